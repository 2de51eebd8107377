"""A sentence-transformers model as OpenVINO runs it: converted once, by `converting`.

What is converted lies in a folder named by the model's content; one whose vectors are not those of
sentence-transformers is not kept.
"""

import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from rag.retrieval.embed.known import files_of, known, works_as_before

log = logging.getLogger(__name__)

EDITION = "1"  # another way of converting makes the converted models anew
SECONDS = 900
REFUSED = "refused.txt"
CHECKSUM = "checksum.txt"  # of all else that lies there, as it was made
PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])


def converted(model: Path, cache: Path, *, anew: bool = False) -> Path | None:
    """The folder of the converted model, made if need be; None if it cannot be converted."""
    noted = known(model, cache)
    target = cache / (_key(model) if noted is None else noted.key)
    if anew or not (works_as_before(model, cache) or _is_as_made(target)):
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / "converting.lock"):
            if anew or not _is_as_made(target):  # another process may have made it meanwhile
                if target.is_dir():
                    log.warning(
                        "The model in %s is made anew: it is no longer what was made", target
                    )
                shutil.rmtree(target, ignore_errors=True)
                _convert(model, target)
    if (target / REFUSED).exists():
        reason = (target / REFUSED).read_text(encoding="utf-8")
        log.warning("%s runs in sentence-transformers, which is slower: %s", model, reason)
        return None
    return target


def _is_as_made(target: Path) -> bool:
    try:
        return (target / CHECKSUM).read_text(encoding="utf-8") == _key(target)
    except (OSError, ValueError):
        return False


def _key(model: Path) -> str:
    digest = sha256(EDITION.encode())
    for path in files_of(model):
        if path.name == CHECKSUM:
            continue
        digest.update(str(path.relative_to(model)).encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:32]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _convert(model: Path, target: Path) -> None:
    """The folder appears whole or not at all; a reason in it says that it is of no use."""
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix="part-"))
    try:
        reason = _run(model, part)
        if reason is not None:
            (part / REFUSED).write_text(reason, encoding="utf-8")
        (part / CHECKSUM).write_text(_key(part), encoding="utf-8")
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run(model: Path, part: Path) -> str | None:
    """Why it failed, or None."""
    command = [sys.executable, "-m", "rag.retrieval.embed.converting", str(model), str(part)]
    known = os.environ | {"PYTHONPATH": PACKAGE_PARENT}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env=known
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"converting it failed: {error}"
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"converting it failed: {said[-1] if said else '?'}"
