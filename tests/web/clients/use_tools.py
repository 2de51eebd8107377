"""Agents with a tool of their own, three turns each, by the framework that is named; writes JSON.

Usage: use_tools.py URL NAME…
"""

import asyncio
import json
import sys
from functools import partial

from pydantic import BaseModel

QUESTIONS = ("How heavy is the Aero 5?", "And the Aero 5 Pro?", "How long does the battery last?")
KEY = "any"


class Said(BaseModel):
    """What is said, and how many are left."""

    said: str
    left: int


class Stock:
    """The tool, and how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, of: str) -> int:
        """How many of a product are left."""
        self.calls += 1
        return 12


def asked_by(name):
    return [f"{question} ({name})" for question in QUESTIONS]


def by_langchain(url, name, *, responses=False):
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    stock = Stock()
    told = _langchain_tool(tool, stock)
    model = ChatOpenAI(
        base_url=url, model="groundnote", api_key=KEY, use_responses_api=responses, max_retries=0
    )
    agent = create_agent(model, tools=[told], system_prompt="Answer with citations.")
    messages, texts = [], []
    for question in asked_by(name):
        messages.append({"role": "user", "content": question})
        messages = agent.invoke({"messages": messages})["messages"]
        texts.append(messages[-1].text)
    form = model.with_structured_output(Said).invoke(f"How heavy? ({name}, as a form)")
    return {"texts": texts, "calls": stock.calls, "form": form.model_dump()}


def _langchain_tool(tool, stock):
    @tool("stock")
    def told(of: str) -> int:
        """How many of a product are left."""
        return stock(of)

    return told


def by_agents(url, name, *, responses=True, streamed=False):
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        RunConfig,
        Runner,
        function_tool,
    )
    from openai import AsyncOpenAI

    stock = Stock()

    @function_tool(name_override="stock")
    def told(of: str) -> int:
        """How many of a product are left."""
        return stock(of)

    kind = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel
    model = kind("groundnote", AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0))
    agent = Agent(name="keeper", instructions="Answer with citations.", tools=[told], model=model)
    config = RunConfig(tracing_disabled=True)

    async def run():
        items, texts = [], []
        for question in asked_by(name):
            items.append({"role": "user", "content": question})
            if streamed:
                result = Runner.run_streamed(agent, items, run_config=config)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, items, run_config=config)
            items = result.to_input_list()
            texts.append(result.final_output)
        former = agent.clone(output_type=Said, tools=[])
        form = await Runner.run(former, f"How heavy? ({name}, as a form)", run_config=config)
        return {"texts": texts, "form": form.final_output.model_dump()}

    return asyncio.run(run()) | {"calls": stock.calls}


def by_pydantic_ai(url, name, *, streamed=False, kind="OpenAIChatModel"):
    from pydantic_ai import Agent
    from pydantic_ai.models import openai
    from pydantic_ai.providers.openai import OpenAIProvider

    stock = Stock()
    provider = OpenAIProvider(base_url=url, api_key=KEY)
    model = getattr(openai, kind)("groundnote", provider=provider)
    agent = Agent(model, output_type=Said)

    @agent.tool_plain(name="stock")
    def told(of: str) -> int:
        """How many of a product are left."""
        return stock(of)

    history, texts = [], []
    for question in asked_by(name):
        if streamed:

            async def run(question=question, history=history):
                async with agent.run_stream(question, message_history=history) as result:
                    return await result.get_output(), result.all_messages()

            output, history = asyncio.run(run())
        else:
            result = agent.run_sync(question, message_history=history)
            output, history = result.output, result.all_messages()
        texts.append(output.said)
    return {"texts": texts, "calls": stock.calls, "form": output.model_dump()}


def by_llama_index(url, name):
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.memory import ChatMemoryBuffer
    from llama_index.llms.openai_like import OpenAILike

    stock = Stock()

    async def told(of: str) -> int:
        """How many of a product are left."""
        return stock(of)

    told.__name__ = "stock"
    model = OpenAILike(
        model="groundnote",
        api_base=url,
        api_key=KEY,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )
    agent = FunctionAgent(tools=[told], llm=model, system_prompt="Answer with citations.")

    async def run():
        memory, texts = ChatMemoryBuffer.from_defaults(token_limit=10_000), []
        for question in asked_by(name):
            texts.append(str(await agent.run(question, memory=memory)))
        return texts

    texts = asyncio.run(run())
    form = model.as_structured_llm(Said).complete(f"How heavy? ({name}, as a form)").raw
    return {"texts": texts, "calls": stock.calls, "form": form.model_dump()}


def by_haystack(url, name):
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import tool
    from haystack.utils import Secret

    stock = Stock()

    @tool(name="stock", description="How many of a product are left.")
    def told(of: str) -> int:
        return stock(of)

    asked = {"api_key": Secret.from_token(KEY), "model": "groundnote", "api_base_url": url}
    agent = Agent(chat_generator=OpenAIChatGenerator(**asked), tools=[told])
    agent.warm_up()
    messages, texts = [], []
    for question in asked_by(name):
        messages = agent.run([*messages, ChatMessage.from_user(question)])["messages"]
        texts.append(messages[-1].text)
    former = OpenAIChatGenerator(**asked, generation_kwargs={"response_format": Said})
    question = ChatMessage.from_user(f"How heavy? ({name}, as a form)")
    (reply,) = former.run([question])["replies"]
    return {"texts": texts, "calls": stock.calls, "form": json.loads(reply.text)}


AGENTS = {
    "langchain": by_langchain,
    "langchain, responses": partial(by_langchain, responses=True),
    "agents sdk": by_agents,
    "agents sdk, chat": partial(by_agents, responses=False),
    "pydantic ai": by_pydantic_ai,
    "pydantic ai, streamed": partial(by_pydantic_ai, streamed=True),
    "pydantic ai, responses": partial(by_pydantic_ai, kind="OpenAIResponsesModel"),
    "agents sdk, streamed": partial(by_agents, streamed=True),
    "agents sdk, chat, streamed": partial(by_agents, responses=False, streamed=True),
    "haystack": by_haystack,
    "llama index": by_llama_index,
}


def main(url, *names):
    made = {name: AGENTS[name](url, name) for name in names}
    sys.stdout.write("\n" + json.dumps(made))


main(*sys.argv[1:])
