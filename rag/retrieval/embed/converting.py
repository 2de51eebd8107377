"""Converts a sentence-transformers model for OpenVINO, in a process of its own.

    python -m rag.retrieval.embed.converting MODEL TARGET

A process of its own, because torch would stay in the server's memory for good.
"""

import sys
from pathlib import Path
from typing import Any

from rag.errors import RagError
from rag.retrieval.embed.engines import Converted, Reference
from rag.retrieval.embed.local import LocalEmbedder

LEAST_COSINE = 0.9999
PROBES = (
    "How do I reset the router?",
    "  A blank before, CAPITALS, naïve façades and Straßen.\n\nA second paragraph. ",
    "| Model | Price |\n|---|---|\n| Aero 5 Pro | 149.00 EUR |",
    "中国 и Россия",
    "",
    "The AX-5400 has four ports, and each of them can be switched off. " * 40,
)


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
