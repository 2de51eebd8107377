"""Runs in the environment of the frameworks: agents on scripted models use our tools over HTTP.

Each asks one question with the tool `ask` and answers with what it was told. Writes JSON.
"""

import asyncio
import json
import sys

QUESTION = "How heavy is the Aero 5?"


async def by_agents_sdk(url, token):
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from agents.mcp import MCPServerStreamableHttp
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        async def get_response(self, system_instructions, input, model_settings, tools, *rest, **_):
            told = [item for item in input if item.get("type") == "function_call_output"]
            if not told:
                assert "ask" in [tool.name for tool in tools]
                arguments = json.dumps({"question": QUESTION})
                call = ResponseFunctionToolCall(
                    type="function_call", call_id="1", name="ask", arguments=arguments
                )
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            text = str(told[-1]["output"])
            part = ResponseOutputText(type="output_text", text=text, annotations=[])
            message = ResponseOutputMessage(
                id="1", type="message", role="assistant", status="completed", content=[part]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args, **options):
            raise NotImplementedError

    params = {"url": url, "headers": {"Authorization": f"Bearer {token}"}, "timeout": 60}
    server = MCPServerStreamableHttp(params, client_session_timeout_seconds=60)
    async with server:
        agent = Agent(name="reader", model=Scripted(), mcp_servers=[server])
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, QUESTION, run_config=config)
    return str(result.final_output)


async def by_langchain(url, token):
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_mcp_adapters.client import MultiServerMCPClient

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **options):
            assert "ask" in [tool.name for tool in tools]
            return self

    headers = {"Authorization": f"Bearer {token}"}
    connection = {"transport": "streamable_http", "url": url, "headers": headers}
    tools = await MultiServerMCPClient({"groundnote": connection}).get_tools()
    call = {"name": "ask", "args": {"question": QUESTION}, "id": "1"}
    said = [AIMessage("", tool_calls=[call]), AIMessage("Done.")]
    agent = create_agent(Model(messages=iter(said)), tools=tools)
    state = await agent.ainvoke({"messages": [("user", QUESTION)]})
    return str(next(each.content for each in state["messages"] if each.type == "tool"))


async def main(url, token):
    made = {
        "agents sdk": await by_agents_sdk(url, token),
        "langchain": await by_langchain(url, token),
    }
    sys.stdout.write("\n" + json.dumps(made))


asyncio.run(main(*sys.argv[1:]))
