"""How long each call of a model may take, and which setting says so: all of it in one place."""

import time
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Patience:
    """With one kind of call."""

    seconds: float
    setting: str = ""  # that gives it more; "" where none does

    def set_to(self, seconds: float) -> "Patience":
        """As the settings have it."""
        return replace(self, seconds=seconds)

    @property
    def advice(self) -> str:
        """What helps where it was not enough."""
        return f"Ask again, or raise {self.setting}." if self.setting else "Ask again."


ANSWER = Patience(60, "llm.timeout_seconds")  # with each piece of a reply, whatever it is for
FOLLOW_UP = Patience(10, "follow_up.timeout_seconds")  # these, with the whole of it
JUDGEMENT = Patience(10, "checks.timeout_seconds")
SUMMARY = Patience(60, "summarization_settings.timeout_seconds")
TABLE_PLAN = Patience(20)
CLIENTS_TASK = Patience(30)  # of a client's own, such as a title
ENDLESS_SECONDS = 600.0  # that an answer may take in all, unless llm.answer_seconds says otherwise
SILENT_SECONDS = 120.0  # without a character of any kind
CONNECT_SECONDS = 10.0
WINDOW_SECONDS = 5.0  # of a server that is asked what its model takes
RETRY_SECONDS = 8.0  # between two tries; a server that asks for more is reported instead


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a whole answer, however many calls of a model it takes; begun where it is made."""

    seconds: float = ENDLESS_SECONDS
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._began + self.seconds - time.monotonic()

    @property
    def reason(self) -> str:
        """Why nothing more comes; "" before it has passed."""
        if self.left > 0:
            return ""
        return f"the answer took more than llm.answer_seconds ({self.seconds:g})"
