"""Runs in the environment of the frameworks: each keeps a conversation through its own interface.

Writes, as JSON, for each framework what its model was sent last: how many tokens, which numbers.
"""

import asyncio
import json
import re
import sys

from groundnote import HistoryTrimmer

ABLE = ("vision", "function_calling", "json_output", "structured_output", "family")  # of AutoGen
TURNS, MOST_TOKENS = 24, 900
PADDING = "It was measured in the laboratory, twice, and written down by the people there. "


def said(turn):
    return f"The part {turn} weighs {100 + turn} g [{turn}]. " + PADDING * 3


def question(turn):
    return f"How heavy is the part {turn}?"


LAST = question(2)


def by_langchain():
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    from groundnote.integrations.langchain import TrimHistory

    seen = []

    class Model(GenericFakeChatModel):
        def _generate(self, messages, *args, **options):
            seen[:] = [str(message.content) for message in messages]
            return super()._generate(messages, *args, **options)

    model = Model(messages=iter([AIMessage("It weighs 102 g [2].")]))
    agent = create_agent(
        model,
        tools=[],
        system_prompt="Answer with citations.",
        middleware=[TrimHistory(HistoryTrimmer(max_tokens=MOST_TOKENS))],
    )
    history = []
    for turn in range(1, TURNS + 1):
        history += [HumanMessage(question(turn)), AIMessage(said(turn))]
    state = agent.invoke({"messages": [*history, HumanMessage(LAST)]})
    assert len(state["messages"]) == 2 * TURNS + 2  # the agent's own history stays whole
    return seen


def by_llama_index():
    from llama_index.core.base.llms.types import ChatMessage

    from groundnote.integrations.llama_index import TrimmedMemory

    memory = TrimmedMemory.from_defaults(max_tokens=MOST_TOKENS)
    for turn in range(1, TURNS + 1):
        memory.put(ChatMessage(role="user", content=question(turn)))
        memory.put(ChatMessage(role="assistant", content=said(turn)))
    memory.put(ChatMessage(role="user", content=LAST))
    assert len(memory.get_all()) == 2 * TURNS + 1
    return [message.content for message in memory.get()]


def by_agents():
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from groundnote.integrations.agents import trimmed_by

    seen = []

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *args, **options):
            items = input if isinstance(input, list) else [{"content": input}]
            seen[:] = [system_instructions or "", *(str(item["content"]) for item in items)]
            part = ResponseOutputText(type="output_text", text="102 g [2].", annotations=[])
            message = ResponseOutputMessage(
                id="1", type="message", role="assistant", status="completed", content=[part]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args, **options):
            raise NotImplementedError

    history = []
    for turn in range(1, TURNS + 1):
        history.append({"role": "user", "content": question(turn)})
        history.append({"role": "assistant", "content": said(turn)})
    config = RunConfig(
        call_model_input_filter=trimmed_by(HistoryTrimmer(max_tokens=MOST_TOKENS)),
        tracing_disabled=True,
    )
    agent = Agent(name="reader", instructions="Answer with citations.", model=Scripted())
    asked = [*history, {"role": "user", "content": LAST}]
    result = asyncio.run(Runner.run(agent, asked, run_config=config))
    assert result.final_output == "102 g [2]."
    return seen


def by_pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        UserPromptPart,
    )
    from pydantic_ai.models.function import FunctionModel

    from groundnote.integrations.pydantic_ai import TrimHistory

    seen = []

    def answer(messages, info):
        seen[:] = [str(part.content) for message in messages for part in message.parts]
        return ModelResponse(parts=[TextPart("102 g [2].")])

    history = []
    for turn in range(1, TURNS + 1):
        history.append(ModelRequest(parts=[UserPromptPart(question(turn))]))
        history.append(ModelResponse(parts=[TextPart(said(turn))]))
    agent = Agent(
        FunctionModel(answer),
        capabilities=[TrimHistory(HistoryTrimmer(max_tokens=MOST_TOKENS))],
    )
    result = agent.run_sync(LAST, message_history=history)
    assert result.output == "102 g [2]."
    return seen


def by_haystack():
    from haystack import Pipeline
    from haystack.dataclasses import ChatMessage

    from groundnote.integrations.haystack import TrimHistory

    messages = [ChatMessage.from_system("Answer with citations.")]
    for turn in range(1, TURNS + 1):
        messages.append(ChatMessage.from_user(question(turn)))
        messages.append(ChatMessage.from_assistant(said(turn)))
    messages.append(ChatMessage.from_user(LAST))
    pipeline = Pipeline()
    pipeline.add_component("trimmer", TrimHistory(HistoryTrimmer(max_tokens=MOST_TOKENS)))
    told = pipeline.run({"trimmer": {"messages": messages}})["trimmer"]["messages"]
    return [message.text for message in told]


def by_autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import (
        AssistantMessage,
        ChatCompletionClient,
        CreateResult,
        RequestUsage,
        UserMessage,
    )

    from groundnote.integrations.autogen import TrimmedContext

    seen = []

    class Scripted(ChatCompletionClient):
        model_info = capabilities = property(lambda self: dict.fromkeys(ABLE, False))
        count_tokens = remaining_tokens = lambda *args, **options: 0
        total_usage = actual_usage = lambda self: RequestUsage(0, 0)

        async def create(self, messages, **options):
            seen[:] = [str(message.content) for message in messages]
            used = RequestUsage(0, 0)
            return CreateResult(
                finish_reason="stop", content="102 g [2].", usage=used, cached=False
            )

        def create_stream(self, *args, **options):
            raise NotImplementedError

        async def close(self):
            pass

    async def run():
        context = TrimmedContext(HistoryTrimmer(max_tokens=MOST_TOKENS))
        for turn in range(1, TURNS + 1):
            await context.add_message(UserMessage(content=question(turn), source="user"))
            await context.add_message(AssistantMessage(content=said(turn), source="reader"))
        agent = AssistantAgent(
            "reader", Scripted(), model_context=context, system_message="Answer with citations."
        )
        result = await agent.run(task=LAST)
        kept = await context.save_state()
        return result.messages[-1].content, len(kept["messages"])

    assert asyncio.run(run()) == ("102 g [2].", 2 * TURNS + 2)
    return ["\n".join(seen[:2]), *seen[2:]]  # the agent's own rules are a message before ours


def main():
    from rag.tokens import count_tokens

    made = {}
    for name, by in {
        "langchain": by_langchain,
        "llama index": by_llama_index,
        "agents": by_agents,
        "pydantic ai": by_pydantic_ai,
        "haystack": by_haystack,
        "autogen": by_autogen,
    }.items():
        texts = by()
        whole = "\n".join(texts)
        made[name] = {
            "tokens": sum(count_tokens(text) + 4 for text in texts),
            "first": texts[0][:200],
            "last": texts[-1],
            "numbers": sorted({int(n) for n in re.findall(r"\[(\d+)\]", whole)}),
            "states": "part 2 weighs 102 g [2]" in whole,
            "heavy": sorted({"flask", "torch", "chromadb"} & set(sys.modules)),
        }
    sys.stdout.write("\n" + json.dumps(made))


main()
