"""Where a citation arrives in each client, by each protocol; writes JSON.

Usage: cite.py URL NAME…   (URL ends with /v1)

Each gives the text, the addresses of its citations in a form of the client's own, and the text that
the model `groundnote-links` gives.
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


def main(url, *names):
    made = {}
    for name in names:
        text, urls = globals()[name](url, "groundnote")
        linked, _ = globals()[name](url, "groundnote-links")
        made[name] = {"text": text, "urls": urls, "linked": linked}
    sys.stdout.write("\n" + json.dumps(made))


main(*sys.argv[1:])
