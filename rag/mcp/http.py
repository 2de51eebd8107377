"""The MCP server over streamable HTTP; a caller without a good token is told to bring one."""

from typing import Any

import anyio.to_thread
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.mcp.library import CLIENT, Asker, LibraryApi, Refused, bearer_of
from rag.wiring.listeners import ListenerPolicy, is_own_origin

PATH = "/mcp"
NOT_ALLOWED = (401, 403)
UNGUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the policy guards


class GuardedApp:
    """Passes on what the policy and the library let in; tokens are taken away at any time."""

    def __init__(self, app: ASGIApp, library: LibraryApi, policy: ListenerPolicy) -> None:
        self._app = app
        self._library = library
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            peer = (scope.get("client") or ("",))[0]
            address = self._policy.client_of(peer, headers.get("x-forwarded-for", ""))
            asker = Asker(bearer_of(headers.get("authorization")), address)
            refused = self._foreign(headers)
            if refused is None:
                refused = await anyio.to_thread.run_sync(self._refusal, asker)
            if refused is not None:
                challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
                told = {"error": str(refused)}
                answer = JSONResponse(told, status_code=refused.status, headers=challenge)
                await answer(scope, receive, send)
                return
            MutableHeaders(scope=scope)[CLIENT] = address  # whatever came under this name
        await self._app(scope, receive, send)

    def _foreign(self, headers: Headers) -> Refused | None:
        """What a name that is not ours, or a page of another site, is told."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._policy.answers_as(host):
            text = f"This server does not answer as {host[:100]!r}. See web.allowed_hosts."
            return Refused(text, status=421)
        if origin is not None and not is_own_origin(origin, host):
            return Refused("This request comes from a page of another site.", status=403)
        return None

    def _refusal(self, asker: Asker) -> Refused | None:
        try:
            self._library.get("/sessions", asker, limit=1)
        except Refused as refused:
            return refused if refused.status in (*NOT_ALLOWED, 429) else None
        return None


def http_app(server: MCPServer[Any], library: LibraryApi, policy: ListenerPolicy) -> ASGIApp:
    """The app to be served; what the policy does not let in is refused before the SDK sees it."""
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=UNGUARDED)
    return GuardedApp(app, library, policy)


def serve_http(
    server: MCPServer[Any], library: LibraryApi, policy: ListenerPolicy, *, host: str, port: int
) -> None:
    """Serve until a signal ends it."""
    print(f"Groundnote's MCP server is ready at http://{host}:{port}{PATH}", flush=True)  # noqa: T201
    app = http_app(server, library, policy)
    uvicorn.run(app, host=host, port=port, log_level="warning", proxy_headers=False)
