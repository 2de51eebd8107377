"""Ask a thread of whatever `openai.OpenAI` client an application brings along."""

from typing import Any

from rag.errors import ModelUnavailable
from rag.limits.patience import THREAD


class ClientModel:
    """One model behind an OpenAI client, asked without retries."""

    def __init__(self, client: Any, model: str, *, max_tokens: int, temperature: float) -> None:
        self.name = model
        self._client = client
        self._options: dict[str, Any] = {
            "model": model,
            "temperature": temperature,
            "max_tokens": max_tokens,
        }

    def ask(self, instructions: str, text: str) -> str:
        """The reply. Raises ModelUnavailable, whatever the client raised."""
        messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": text},
        ]
        try:
            completions = _impatient(self._client).chat.completions
            response = completions.create(messages=messages, **self._options)
            content = response.choices[0].message.content
        except Exception as error:
            self._concede(str(error))
            raise ModelUnavailable(f"{type(error).__name__}: {error}"[:300]) from error
        return content if isinstance(content, str) else ""

    def _concede(self, complaint: str) -> None:
        """Some models take neither a temperature nor this name of the limit: not next time."""
        if "max_completion_tokens" in complaint and "max_tokens" in self._options:
            renamed = {"max_tokens": "max_completion_tokens"}
            self._options = {renamed.get(k, k): v for k, v in self._options.items()}
        elif "temperature" in complaint:
            self._options = {k: v for k, v in self._options.items() if k != "temperature"}


def _impatient(client: Any) -> Any:
    """The client without retries and with a limit to its patience, where it can be told so."""
    if not hasattr(client, "with_options"):
        return client
    timeout = getattr(client, "timeout", None)
    own = timeout if isinstance(timeout, int | float) else THREAD.seconds
    return client.with_options(max_retries=0, timeout=min(float(own), THREAD.seconds))
