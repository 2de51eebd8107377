"""Where a citation arrives in each client, by each protocol; writes JSON.

Usage: cite.py URL NAME…   (URL ends with /v1)

Each gives the text, the addresses of its citations in a form of the client's own, and the text that
the model `groundnote-links` gives; those of `TURNS_BY` also the address that each of three turns
cites, in one conversation that the client keeps (`use_tools.py` has three turns of the others).
The name `asked` gives what `ask.py` is told.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

QUESTION = "How heavy?"
MESSAGES = [{"role": "user", "content": QUESTION}]
KEY = "any"


def openai_chat(url, model):
    from openai import OpenAI

    asked = OpenAI(base_url=url, api_key=KEY).chat.completions.create(
        model=model, messages=MESSAGES
    )
    message = asked.choices[0].message
    return message.content, [each.url_citation.url for each in message.annotations]


def openai_responses(url, model):
    from openai import OpenAI

    asked = OpenAI(base_url=url, api_key=KEY).responses.create(model=model, input=QUESTION)
    return asked.output_text, [each.url for each in asked.output[0].content[0].annotations]


def langchain(url, model, *, responses=False):
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(base_url=url, model=model, api_key=KEY, use_responses_api=responses)
    message = chat.invoke(QUESTION)
    (block,) = message.content_blocks
    return message.text, [each["url"] for each in block.get("annotations", ())]


def langchain_responses(url, model):
    return langchain(url, model, responses=True)


def agents(url, model, *, kind="OpenAIChatCompletionsModel"):
    import agents as sdk
    from openai import AsyncOpenAI

    chosen = getattr(sdk, kind)(model, AsyncOpenAI(base_url=url, api_key=KEY))
    agent = sdk.Agent(name="reader", model=chosen)
    config = sdk.RunConfig(tracing_disabled=True)
    result = asyncio.run(sdk.Runner.run(agent, QUESTION, run_config=config))
    (part,) = result.new_items[-1].raw_item.content
    return result.final_output, [each.url for each in part.annotations]


def agents_responses(url, model):
    return agents(url, model, kind="OpenAIResponsesModel")


def pydantic_ai(url, model, *, kind="OpenAIChatModel"):
    from pydantic_ai import Agent
    from pydantic_ai.models import openai
    from pydantic_ai.providers.openai import OpenAIProvider

    chosen = getattr(openai, kind)(model, provider=OpenAIProvider(base_url=url, api_key=KEY))
    result = Agent(chosen).run_sync(QUESTION)
    (part,) = result.all_messages()[-1].parts
    return result.output, [each.url for one in part.citations or () for each in one.sources]


def pydantic_ai_responses(url, model):
    return pydantic_ai(url, model, kind="OpenAIResponsesModel")


def haystack(url, model, *, kind="OpenAIChatGenerator"):
    from haystack.components.generators import chat
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret

    made = getattr(chat, kind)(api_key=Secret.from_token(KEY), model=model, api_base_url=url)
    (reply,) = made.run([ChatMessage.from_user(QUESTION)])["replies"]
    root = url.removesuffix("/v1")
    numbers = [each["n"] for each in reply.meta.get("citations", ())]
    session = reply.meta.get("session_id")
    return reply.text, [f"{root}/sessions/{session}/sources/{n}" for n in numbers]


def haystack_responses(url, model):
    return haystack(url, model, kind="OpenAIResponsesChatGenerator")


def litellm_chat(url, model):
    import litellm

    asked = {"model": f"openai/{model}", "api_base": url, "api_key": KEY}
    message = litellm.completion(messages=MESSAGES, **asked).choices[0].message
    return message.content, [each["url_citation"]["url"] for each in message.annotations]


def litellm_responses(url, model):
    import litellm

    asked = {"model": f"openai/{model}", "api_base": url, "api_key": KEY}
    (part,) = litellm.responses(input=QUESTION, **asked).output[0].content
    return part.text, [each.url for each in part.annotations]


def llama_index(url, model):
    from llama_index.llms.openai_like import OpenAILike

    made = OpenAILike(model=model, api_base=url, api_key=KEY, is_chat_model=True)
    answer = made.complete(QUESTION)
    annotations = answer.raw.choices[0].message.annotations
    return answer.text, [each.url_citation.url for each in annotations]


def llama_index_responses(url, model):
    from llama_index.llms.openai import OpenAIResponses

    made = OpenAIResponses(model=model, api_base=url, api_key=KEY, context_window=8000)
    answer = made.complete(QUESTION)
    return answer.text, [each.url for each in answer.additional_kwargs["annotations"]]


def llm(url, model):
    """The command, with a file that names the model."""
    with TemporaryDirectory() as folder:
        known = [{"model_id": model, "model_name": model, "api_base": url, "api_key_name": "x"}]
        Path(folder, "extra-openai-models.yaml").write_text(json.dumps(known))
        command = [Path(sys.executable).with_name("llm"), "-m", model, "--key", KEY, QUESTION]
        own = os.environ | {"LLM_USER_PATH": folder}
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    return done.stdout.strip(), []


# ── Three turns ──────────────────────────────────────────────────────────────────────────────


def turns_of_openai_chat(url, questions):
    from openai import OpenAI

    client, messages = OpenAI(base_url=url, api_key=KEY), []
    for question in questions:
        messages.append({"role": "user", "content": question})
        asked = client.chat.completions.create(model="groundnote", messages=messages)
        message = asked.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        yield from (each.url_citation.url for each in message.annotations)


def turns_of_openai_responses(url, questions):
    from openai import OpenAI

    client, items = OpenAI(base_url=url, api_key=KEY), []
    for question in questions:
        items.append({"role": "user", "content": question})
        asked = client.responses.create(model="groundnote", input=items)
        items += [each.model_dump(exclude_none=True) for each in asked.output]
        yield from (each.url for each in asked.output[0].content[0].annotations)


def turns_of_haystack_responses(url, questions):
    from haystack.components.generators.chat import OpenAIResponsesChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret

    made = OpenAIResponsesChatGenerator(
        api_key=Secret.from_token(KEY), model="groundnote", api_base_url=url
    )
    messages = []
    for question in questions:
        messages.append(ChatMessage.from_user(question))
        (reply,) = made.run(messages)["replies"]
        messages.append(reply)
        root, session = url.removesuffix("/v1"), reply.meta.get("session_id")
        yield from (f"{root}/sessions/{session}/sources/{c['n']}" for c in reply.meta["citations"])


def turns_of_litellm_responses(url, questions):
    import litellm

    asked, items = {"model": "openai/groundnote", "api_base": url, "api_key": KEY}, []
    for question in questions:
        items.append({"role": "user", "content": question})
        (item,) = litellm.responses(input=items, **asked).output
        items.append({"role": "assistant", "content": item.content[0].text})
        yield from (each.url for each in item.content[0].annotations)


def turns_of_llama_index_responses(url, questions):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai import OpenAIResponses

    made = OpenAIResponses(model="groundnote", api_base=url, api_key=KEY, context_window=8000)
    messages = []
    for question in questions:
        messages.append(ChatMessage(role="user", content=question))
        answer = made.chat(messages)
        messages.append(answer.message)
        yield from (each.url for each in answer.additional_kwargs["annotations"])


TURNS = ("How light?", "And the Pro?", "And the Max?")
TURNS_BY = {
    "openai_chat": turns_of_openai_chat,
    "openai_responses": turns_of_openai_responses,
    "haystack_responses": turns_of_haystack_responses,
    "litellm_responses": turns_of_litellm_responses,
    "llama_index_responses": turns_of_llama_index_responses,
}


def main(url, *names):
    made = {}
    for name in names:
        if name == "asked":
            from ask import asked  # the packages of one environment

            made[name] = asked(url)
            continue
        text, urls = globals()[name](url, "groundnote")
        linked, _ = globals()[name](url, "groundnote-links")
        made[name] = {"text": text, "urls": urls, "linked": linked}
        if by := TURNS_BY.get(name):
            made[name]["turns"] = list(by(url, [f"{each} ({name})" for each in TURNS]))
    sys.stdout.write("\n" + json.dumps(made))


main(*sys.argv[1:])
