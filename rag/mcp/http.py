"""The MCP server over streamable HTTP; a caller without a good token is told to bring one."""

from typing import Any

import anyio.to_thread
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.mcp.library import LibraryApi, Refused

PATH = "/mcp"
NOT_ALLOWED = (401, 403)


class GuardedApp:
    """Passes on what the library lets in; each request is checked, for tokens are taken away."""

    def __init__(self, app: ASGIApp, library: LibraryApi) -> None:
        self._app = app
        self._library = library

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            bearer = token.strip() if kind.lower() == "bearer" else ""
            refused = await anyio.to_thread.run_sync(self._refusal, bearer)
            if refused is not None:
                challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
                told = {"error": str(refused)}
                answer = JSONResponse(told, status_code=refused.status, headers=challenge)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, token: str) -> Refused | None:
        try:
            self._library.get("/sessions", token, limit=1)
        except Refused as refused:
            return refused if refused.status in (*NOT_ALLOWED, 429) else None
        return None


def http_app(server: MCPServer[Any], library: LibraryApi, *, host: str) -> ASGIApp:
    """The app to be served; requests that name another host than `host` are refused by the SDK."""
    return GuardedApp(server.streamable_http_app(streamable_http_path=PATH, host=host), library)


def serve_http(server: MCPServer[Any], library: LibraryApi, *, host: str, port: int) -> None:
    """Serve until a signal ends it."""
    print(f"Groundnote's MCP server is ready at http://{host}:{port}{PATH}", flush=True)  # noqa: T201
    uvicorn.run(http_app(server, library, host=host), host=host, port=port, log_level="warning")
