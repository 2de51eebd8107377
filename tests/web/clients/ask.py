"""Asks a server by each stock client that lives in this environment, for `cite.py`."""

import litellm
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

QUESTION = "How heavy?"
MESSAGES = [{"role": "user", "content": QUESTION}]
TURNS = ("How light?", "And the Pro?", "And the Max?")  # in one conversation


def by_litellm(url):
    asked = {"model": "openai/groundnote", "api_base": url, "api_key": "any", "messages": MESSAGES}
    message = litellm.completion(**asked).choices[0].message
    streamed, links = "", []
    for chunk in litellm.completion(**asked, stream=True):
        delta = chunk.choices[0].delta
        streamed += delta.content or ""
        links = getattr(delta, "annotations", None) or links
    try:
        litellm.completion(**asked, response_format={"type": "json_object"})
        refused = ""
    except litellm.BadRequestError as error:
        refused = str(error)
    messages, turns = [], []
    for question in TURNS:
        messages.append({"role": "user", "content": question})
        turn = litellm.completion(**{**asked, "messages": messages}).choices[0].message
        messages.append({"role": "assistant", "content": turn.content})
        turns += [each["url_citation"]["url"] for each in turn.annotations]
    return {
        "turns": turns,
        "text": message.content,
        "urls": [each["url_citation"]["url"] for each in message.annotations],
        "streamed": streamed,
        "streamedUrls": [each["url_citation"]["url"] for each in links],
        "refused": refused,
    }


def by_llama_index(url):
    model = OpenAILike(
        model="groundnote", api_base=url, api_key="any", is_chat_model=True, max_retries=0
    )
    asked = [ChatMessage(role="user", content=QUESTION)]
    answer = model.chat(asked)
    annotations = answer.raw.choices[0].message.annotations
    pieces = list(model.stream_chat(asked))
    last = pieces[-1].raw.choices[0].delta.annotations
    messages, turns = [], []
    for question in TURNS:
        messages.append(ChatMessage(role="user", content=question))
        turn = model.chat(messages)
        messages.append(turn.message)
        turns += [each.url_citation.url for each in turn.raw.choices[0].message.annotations]
    return {
        "turns": turns,
        "text": answer.message.content,
        "urls": [each.url_citation.url for each in annotations],
        "streamed": "".join(piece.delta for piece in pieces),
        "streamedUrls": [each["url_citation"]["url"] for each in last],
    }


def asked(url):
    """What each of them told."""
    return {"litellm": by_litellm(url), "llama index": by_llama_index(url)}
