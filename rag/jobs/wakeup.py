"""How workers hear that there is something to do: in this process, and on other hosts by Redis.

The rows of the database are the queue. A call that is lost costs a beat, and never a job.
"""

import fcntl
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from rag.errors import SetupError

if TYPE_CHECKING:
    from redis.client import PubSub

PATIENCE = {"socket_timeout": 5, "socket_connect_timeout": 3}
EARLIER_QUEUE = "jobs.db"  # versions before kept calls in it, each for a row that is done anyway


class AloneLock:
    """Says who is the first process of a machine; the others share it, and the dead have no part.

    Whoever is first has it alone until `share`, and they wait so long.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Whether we are the first; asked again, it is as if for the first time."""
        self.release()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.share()
            return False
        self._path.with_name(EARLIER_QUEUE).unlink(missing_ok=True)
        return True

    def share(self) -> None:
        """Let others have it as well."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class WorkersCall:
    """Wakes the workers of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def send(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, seen: int) -> None:
        """Until there were more calls than `seen`."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != seen)


class RedisCall:
    """Wakes the workers of all hosts; raises what `errors` names while Redis is away."""

    def __init__(self, url: str, name: str) -> None:
        """Raises SetupError where the URL is none."""
        from redis import Redis
        from redis.exceptions import RedisError

        self.errors: tuple[type[Exception], ...] = (RedisError, OSError)
        self._name = name
        self._subscription: PubSub | None = None
        try:
            self._redis = Redis.from_url(url, **PATIENCE)
        except ValueError as error:
            raise SetupError(f"jobs.url is no URL of a Redis server: {error}.") from error

    def send(self) -> None:
        self._redis.publish(self._name, "")

    def ping(self) -> None:
        self._redis.ping()

    def wait(self, seconds: float) -> bool:
        """Whether somebody called."""
        if self._subscription is None:
            subscription = self._redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
            subscription.subscribe(self._name)
            self._redis.delete(f"huey.redis.{self._name.replace('-', '')}")  # see EARLIER_QUEUE
            self._subscription = subscription
        return self._subscription.get_message(timeout=seconds) is not None
