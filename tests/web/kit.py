"""A served product with a scripted model behind it, as a program of somebody else meets it."""

import json
import re
import shutil
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

from rag.settings import Settings
from tests.applications import app_of, application_of, served
from tests.model_application import with_manual
from tests.openai_server import OpenAIServer, reply

_SOURCE = re.compile(r"^\[(\d+)\] ([^\n]*)\n(.*?)(?=\n\n\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]")
_NUMBER = re.compile(r"\[(\d+)\]")


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


def text_of(answered):
    """The answer's text, or the refusal's, of a status and a body."""
    status, body = answered
    if status != 200:
        return body["error"]["message"]
    return body["choices"][0]["message"]["content"] or ""


def numbers(text):
    return [int(number) for number in _NUMBER.findall(text)]


def sources_of(body):
    """The sources in a model's last message: number, heading, text."""
    content = body["messages"][-1]["content"]
    fenced = content.rpartition("<sources>\n")[2].partition("\n</sources>")[0]
    if "</sources>" not in content:
        return []
    return [(int(number), head, text) for number, head, text in _SOURCE.findall(fenced)]


def first_sentence(body):
    """The first sentence of the first source with its number: what a plain model writes."""
    number, _, text = sources_of(body)[0]
    sentence = _SENTENCE.search(text)
    return f"{(sentence[0] if sentence else text).strip().rstrip('.')} [{number}]."


def plainly(body):
    return first_sentence(body) if sources_of(body) else "[]"


class Kit:
    """What a client does; `model` is the scripted server, which answers by `answer`."""

    def __init__(self, url, model, token=""):
        self.url, self.model, self.token = url, model, token
        self.headers = {}
        self.answer = plainly
        model.behaviours[:] = [lambda exchange: reply(self.answer(exchange.body))(exchange)]

    def as_owner(self, token):
        """The same server as another caller meets it."""
        other = Kit.__new__(Kit)
        other.__dict__.update(self.__dict__, token=token)
        return other

    @contextmanager
    def _opened(self, method, path, body, headers):
        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname, address.port, timeout=120)
        sent = {"Content-Type": "application/json", **headers}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        content = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, body=content, headers=sent)
            response = connection.getresponse()
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            yield response
        finally:
            connection.close()

    def call(self, method, path, body=None, **headers):
        """Status and JSON; `self.headers` are those that came."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self._opened(method, path, body, named) as response:
            content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, content.decode()

    def chat(self, messages, **fields):
        headers = fields.pop("headers", {})
        body = {"model": "groundnote", "messages": messages, **fields}
        return self.call("POST", "/v1/chat/completions", body, **headers)

    def stream(self, path="/v1/chat/completions", **body):
        """The lines of a stream, each with the seconds since it was asked for."""
        began, lines = time.monotonic(), []
        asked = {"model": "groundnote", "stream": True, **body}
        with self._opened("POST", path, asked, {}) as response:
            while line := response.readline():
                if line.strip():
                    lines.append((round(time.monotonic() - began, 1), line.decode().strip()))
        return lines

    def asked(self):
        """The requests in which the model was given sources."""
        return [each.body for each in self.model.requests if sources_of(each.body)]


@contextmanager
def product(folder, **settings):
    """The whole product over a small manual, served on loopback."""
    shutil.copytree(with_manual(), folder, dirs_exist_ok=True)
    with OpenAIServer() as model:
        llm = {"base_url": model.url, "model": "fake", "max_retries": 0}
        given = {"llm": llm, "follow_up": {"use_model": False}, "checks": {"model": "off"}}
        merged = {**given, **settings, "llm": {**llm, **settings.get("llm", {})}}
        application = application_of(Settings(data_dir=folder, **merged))
        try:
            with served(app_of(application)) as url:
                yield Kit(url, model)
        finally:
            application.stop()
