"""Graphs laid out from weights give the vectors that transformers gives."""

import json
from pathlib import Path

import numpy as np
import pytest

from rag.search.embedders.engines import EncoderEngine, Reference, read_encoder, unit
from rag.search.embedders.local import LocalEmbedder, folder_of

ALIKE = 0.9995  # least cosine: bfloat16 rounds, by more on some processors than on others
MODES = ("pooling_mode_cls_token", "pooling_mode_mean_tokens")
TEXTS = [
    "How do I reset the router?",
    "  A blank before, CAPITALS, naïve façades and Straßen.\n\nA second paragraph. ",
    "| Model | Price |\n|---|---|\n| Aero 5 Pro | 149.00 EUR |",
    "中国 и Россия",
    "",
    "The AX-5400 has four ports, and each of them can be switched off. " * 40,
]


def saved(folder: Path, kind: str, pooling: str) -> Path:
    """A small model with weights by chance, in the form that sentence-transformers saves."""
    import torch
    import transformers

    torch.manual_seed(7)
    sizes = {"vocab_size": 30522, "hidden_size": 48, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 130}
    config = transformers.AutoConfig.for_model(kind, **sizes, initializer_range=0.3)
    if kind != "bert":
        config.pad_token_id = 1
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(folder, safe_serialization=True)
    packaged = folder_of(None)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).write_bytes((packaged / name).read_bytes())
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128}))
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{pooling}": True, "word_embedding_dimension": 48}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    rows = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{name}"}
        for n, (path, name) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "pooling"), [("bert", "cls_token"), ("roberta", "mean_tokens")])
def test_a_models_vectors_are_those_of_transformers(tmp_path, kind, pooling) -> None:
    import torch
    from transformers import AutoModel

    folder = saved(tmp_path, kind, pooling)
    embedder = LocalEmbedder(str(folder))
    assert isinstance(embedder._load, EncoderEngine)
    model = AutoModel.from_pretrained(folder).eval()
    for text in TEXTS[:4]:
        ids = torch.tensor([embedder.tokenizer.encode(text).ids])
        # These tokens are of another vocabulary: the families' own mask is of no use.
        first = 2 if kind != "bert" else 0
        positions = torch.arange(first, first + ids.shape[1])[None]
        with torch.no_grad():
            states = model(ids, torch.ones_like(ids), position_ids=positions).last_hidden_state
        exact = states[:, 0] if pooling == "cls_token" else states.mean(dim=1)
        alone, padded = embedder.embed([text]), embedder.embed([text, TEXTS[1] * 3])[:1]
        for vectors in (alone, padded):
            assert (vectors @ unit(exact.numpy()).T)[0, 0] > ALIKE


@pytest.mark.slow
def test_the_packaged_models_vectors_are_those_of_sentence_transformers() -> None:
    folder = folder_of(None)
    exact = Reference(folder).vectors(TEXTS)

    assert ((LocalEmbedder().embed(TEXTS) * exact).sum(axis=1) > ALIKE).all()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"model_type": "mpnet"}),
        ("config.json", {"model_type": "bert", "hidden_act": "relu"}),
        ("config.json", {"model_type": "bert", "position_embedding_type": "relative_key"}),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
        ("1_Pooling/config.json", dict.fromkeys(MODES, True)),
        ("modules.json", [{"type": "sentence_transformers.models.StaticEmbedding", "path": ""}]),
    ],
)
def test_what_is_no_such_encoder_is_left_to_sentence_transformers(tmp_path, file, content) -> None:
    packaged = folder_of(None)
    (tmp_path / "1_Pooling").mkdir()
    for name in ("config.json", "modules.json", "1_Pooling/config.json"):
        (tmp_path / name).write_bytes((packaged / name).read_bytes())
    (tmp_path / "model.safetensors").symlink_to(packaged / "model.safetensors")
    assert read_encoder(tmp_path) is not None

    (tmp_path / file).write_text(json.dumps(content))

    assert read_encoder(tmp_path) is None
    assert np.isfinite(LocalEmbedder().embed(["text"])).all()
