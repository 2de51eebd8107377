"""The log of what failed: one JSON object per event, without anybody's text in it."""

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """A traceback is text of its event; it shows no local variables."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "event": record.getMessage(),
            "error": getattr(record, "error", None),
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        told = {name: value for name, value in event.items() if value is not None}
        return json.dumps(told, ensure_ascii=False)


def log_as_json(*loggers: str) -> None:
    """What these say; the standard library's own handlers see it as they see all else."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in loggers:
        logging.getLogger(name).handlers = [handler]
