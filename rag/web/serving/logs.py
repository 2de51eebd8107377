"""The server's log: one JSON object per event, without anybody's text in it."""

import structlog
from structlog.tracebacks import ExceptionDictTransformer


def log_as_json() -> None:
    """Log through the standard library's loggers; tracebacks show no local variables."""
    structlog.configure(
        processors=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
