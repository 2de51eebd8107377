"""Converts a sentence-transformers model for OpenVINO, once, in a process of its own.

    python -m rag.retrieval.embed.convert MODEL TARGET

A process of its own, because torch would stay in the server's memory for good. What is converted
lies in a folder named by the model's content; one whose vectors are not those of
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
from typing import Any

from rag.errors import RagError
from rag.retrieval.embed.engines import Converted, Reference
from rag.retrieval.embed.known import files_of, known

log = logging.getLogger(__name__)

LEAST_COSINE = 0.9999
EDITION = "1"  # another way of converting makes the converted models anew
SECONDS = 900
REFUSED = "refused.txt"
PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])
PROBES = (
    "How do I reset the router?",
    "  A blank before, CAPITALS, naïve façades and Straßen.\n\nA second paragraph. ",
    "| Model | Price |\n|---|---|\n| Aero 5 Pro | 149.00 EUR |",
    "中国 и Россия",
    "",
    "The AX-5400 has four ports, and each of them can be switched off. " * 40,
)


def converted(model: Path, cache: Path, *, anew: bool = False) -> Path | None:
    """The folder of the converted model, made if need be; None if it cannot be converted."""
    noted = known(model, cache)
    target = cache / (_key(model) if noted is None else noted.key)
    if anew or not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / "converting.lock"):
            if anew:
                shutil.rmtree(target, ignore_errors=True)
            if not target.is_dir():  # another process may have made it meanwhile
                _convert(model, target)
    if (target / REFUSED).exists():
        reason = (target / REFUSED).read_text(encoding="utf-8")
        log.warning("%s runs in sentence-transformers, which is slower: %s", model, reason)
        return None
    return target


def _key(model: Path) -> str:
    digest = sha256(EDITION.encode())
    for path in files_of(model):
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
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run(model: Path, part: Path) -> str | None:
    """Why it failed, or None."""
    command = [sys.executable, "-m", "rag.retrieval.embed.convert", str(model), str(part)]
    known = os.environ | {"PYTHONPATH": PACKAGE_PARENT}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env=known
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"converting it failed: {error}"
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"converting it failed: {said[-1] if said else '?'}"


def convert(model: Path, target: Path) -> None:
    """Write `model.xml` and `model.bin`; raises if their vectors are not the model's own."""
    import openvino
    import torch

    reference = Reference(model)

    class Embedding(torch.nn.Module):  # type: ignore[misc]
        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            given = {"input_ids": input_ids, "attention_mask": attention_mask}
            return reference.model(given)["sentence_embedding"]

    example = torch.ones((2, 16), dtype=torch.long)
    reference.model.eval()
    module = Embedding()
    module.register_module("model", reference.model)
    with torch.no_grad():
        graph = openvino.convert_model(module, example_input=(example, torch.ones_like(example)))
    # Half the file and half the memory; the weights' rounding is far below that of the sums.
    openvino.save_model(graph, target / "model.xml", compress_to_fp16=True)
    _compare(reference, target, model)


def _compare(reference: Reference, target: Path, model: Path) -> None:
    from rag.retrieval.embed.local import LocalEmbedder

    embedder = LocalEmbedder(str(model))
    engine = Converted(target, embedder.tokenizer, max_tokens=embedder.max_tokens)
    for texts in (PROBES, PROBES[:1]):
        exact, ours = reference.vectors(texts), engine.vectors(texts)
        if exact.shape != ours.shape or (worst := float((exact * ours).sum(axis=1).min())) < (
            LEAST_COSINE
        ):
            raise ValueError(f"its vectors differ from the exact ones (cosine {worst:.5f})")


if __name__ == "__main__":
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except RagError as error:
        sys.exit(str(error))
