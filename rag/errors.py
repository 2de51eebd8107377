"""All errors that rag raises on purpose, by who has to act.

RagError
├── UserError              the request is wrong: tell the user                      400
│   ├── NotFound           no such session, source, document or job                 404
│   ├── Forbidden          this is somebody else's to change                        403
│   ├── Conflict           the request is right, but not now                        409
│   ├── TooLarge           more than a limit of the settings allows                 413
│   │   └── OverBudget     more work than one request may make                      413
│   └── Unreadable         a document we cannot read, with its name and the reason  422
├── NotAllowed             no key, or not this one                                  401
├── ProviderAway           the login provider cannot be reached                    503
├── SetupError             settings, keys, missing packages: tell the operator      500
│   ├── IndexAway          its server or folder cannot be reached now                503
│   └── IndexMismatch      the index was built with another embedding model         500
├── Busy                   others are before it: come back in a few seconds         503
├── ClientGone             the client has left                                      503
├── StorageFailed          the disk is full or read-only: tell everybody             507
└── ModelError             the language model failed us                             502
    ├── ModelUnavailable   it cannot be reached, refuses us or is overloaded        503
    ├── ContextTooLong     it says that the messages do not fit its window          502
    ├── ModelInterrupted   its reply broke off in the middle                        502
    └── UnreadableReply    it answered in a form that we did not ask for            502
"""


def needs_extra(what: str, extra: str) -> str:
    """Return the message for a missing package of an optional extra."""
    return (
        f"{what} needs the extra groundnote[{extra}], which is not installed. Install it: "
        f"pip install 'groundnote[{extra}]'."
    )


class RagError(Exception):
    """Base of all errors that rag raises on purpose; the message may be shown to users."""

    http_status = 500


class UserError(RagError):
    """The request cannot be served as it stands."""

    http_status = 400


class NotFound(UserError):
    """There is no such session, source, document or job (or it is another owner's)."""

    http_status = 404


class Forbidden(UserError):
    """The caller is known, but may not do this."""

    http_status = 403


class Conflict(UserError):
    """The request is well formed, but the state of the session or document forbids it now."""

    http_status = 409


class TooLarge(UserError):
    """The request exceeds a limit; the message says both numbers."""

    http_status = 413


class OverBudget(TooLarge):
    """The request needs more work than one may; the message says both amounts."""


class Unreadable(UserError):
    """A document cannot be read; `name` says which, the message says why."""

    http_status = 422

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class NotAllowed(RagError):
    """The caller is not identified, or may not do this."""

    http_status = 401


class ProviderAway(RagError):
    """The login provider cannot be reached; logged-in callers stay logged in."""

    http_status = 503


class SourceAway(RagError):
    """A source of documents cannot be listed completely now, so no document is removed."""

    http_status = 502


class SetupError(RagError):
    """Settings, keys or packages are wrong; the message tells the operator what to change."""

    http_status = 500


class IndexAway(SetupError):
    """The vector index cannot be reached now; meanwhile passages are found by words."""

    http_status = 503


class SharedAway(IndexAway):
    """The process that the workers of a server share does not answer now."""


class IndexMismatch(SetupError):
    """The vector index was built with another embedding model: `groundnote reindex` rebuilds it."""


class Busy(RagError):
    """Other requests are first and nothing was begun; the request may be repeated in seconds."""

    http_status = 503
    retry_seconds = 5


class ClientGone(RagError):
    """The client has left: nobody reads the answer, and the work ends."""

    http_status = 503


class StorageFailed(RagError):
    """The disk is full or read-only; stored data is intact, the request's is not stored."""

    http_status = 507


class ModelError(RagError):
    """The language model failed us; asking again may help."""

    http_status = 502


class ModelUnavailable(ModelError):
    """The model server cannot be reached, refuses us or is overloaded."""

    http_status = 503


class ContextTooLong(ModelError):
    """The model server says that the messages do not fit its window; nothing was generated."""


class ModelInterrupted(ModelError):
    """The reply broke off in the middle; what came before it stands."""


class UnreadableReply(ModelError):
    """The model answered in a form that was not asked for."""
