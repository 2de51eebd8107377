"""The reading process: files arrive on stdin, parsed documents leave on stdout, one at a time.

Messages are JSON, never pickle: a file that takes over this process must not reach its parent.
"""

import ctypes
import dataclasses
import gc
import json
import math
import os
import resource
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rag.documents.limits import LoadLimits
from rag.documents.readers.registry import load
from rag.documents.reports import report_from
from rag.errors import TooLarge, Unreadable
from rag.records import ParsedDocument, RawTable, Section

WorkerReply = Callable[[str, bytes, LoadLimits], bytes]
LENGTH = struct.Struct(">Q")


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one message with its length in front."""
    stream.write(LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read one message. Raises EOFError when the other side has closed the stream."""
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    message = stream.read(length)
    if len(message) < length:
        raise EOFError("the other process ended")
    return message


def to_json(document: ParsedDocument) -> bytes:
    """Write a document in the form that `from_json` reads."""
    return json.dumps({"document": dataclasses.asdict(document)}).encode()


def opened(message: bytes) -> dict[str, Any]:
    """Parse a reply. Raises the error that the reading process met."""
    reply: dict[str, Any] = json.loads(message)
    if "unreadable" in reply:
        raise Unreadable(*reply["unreadable"])
    if "too_large" in reply:
        raise TooLarge(reply["too_large"])
    return reply


def from_json(message: bytes) -> ParsedDocument:
    """Read a document from a reply. Raises the error that the reading process met."""
    document = opened(message)["document"]
    sections = (
        Section(**section | {"heading_path": tuple(section["heading_path"])})
        for section in document["sections"]
    )
    tables = (RawTable(**table | {"typed": tuple(table["typed"])}) for table in document["tables"])
    document |= {
        "sections": tuple(sections),
        "names": tuple(document["names"]),
        "tables": tuple(tables),
        "report": report_from(document["report"]),
    }
    return ParsedDocument(**document)


def answer(name: str, data: bytes, limits: LoadLimits) -> bytes:
    """Read one file; every failure becomes a reply."""
    return answered(name, limits, lambda: to_json(load(name, data, limits=limits)))


def answered(name: str, limits: LoadLimits, work: Callable[[], bytes]) -> bytes:
    """Return the result of `work`, or its failure as a reply."""
    gc.disable()  # a table has millions of cells and no garbage to collect
    try:
        return work()
    except Unreadable as error:
        return json.dumps({"unreadable": [error.name, error.reason]}).encode()
    except TooLarge as error:
        return json.dumps({"too_large": str(error)}).encode()
    except MemoryError:
        reason = f"reading it needs more than {limits.max_memory_bytes >> 20:,} MiB of memory."
    except RecursionError:
        reason = "its parts are nested too deeply. Save it again from the program that made it."
    finally:
        gc.enable()
    return json.dumps({"unreadable": [name, reason]}).encode()


def limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor_time(seconds: float) -> None:
    """Allow this process so many more seconds; the system ends it when it exceeds them.

    Called for each file, so that each has the whole limit.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds)
    _soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))


def leave_the_network() -> None:
    """Enter a network namespace without interfaces, where the system allows that."""
    new_user, new_network = 0x10000000, 0x40000000  # of <linux/sched.h>
    with suppress(OSError, AttributeError):  # another system
        libc = ctypes.CDLL(None)
        if libc.unshare(new_network) != 0:  # root may; others need a user namespace of their own
            libc.unshare(new_user | new_network)


def serve(answering: WorkerReply = answer) -> None:
    """Answer until stdin closes; the first message holds the limits.

    At the end the process removes its folder if it is empty: its parent may have been killed.
    """
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Native parsers print; what they print must not land among the replies.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    files = sys.stdin.buffer
    limits = LoadLimits(**json.loads(receive(files)))
    limit_memory(limits.max_memory_bytes)
    leave_the_network()
    while True:
        try:
            request = json.loads(receive(files))
            data = receive(files)
            limit_processor_time(request["max_seconds"])
            send(replies, answering(request["name"], data, limits))
        except (EOFError, BrokenPipeError):
            with suppress(OSError):
                Path.cwd().rmdir()
            return


if __name__ == "__main__":
    serve()
