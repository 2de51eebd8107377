"""A small library and a way to replay a script over it, with a fake embedding model."""

import json
from contextlib import contextmanager

from rag.regression.replay import Libraries, Replayer, ReplayOptions
from rag.settings import Settings
from tests.fakes import HashEmbedder

FILES = {
    "refunds.md": "# Refunds\n\n## Time\n\nRefunds are paid within five working days.\n\n"
    "## Abroad\n\nFrom abroad refunds take nine working days.",
    "nimbus.md": "---\nproducts: [Nimbus 7, Nimbus 7 Pro]\n---\n# Nimbus 7\n\n"
    "The Nimbus 7 weighs 410 g.\n\n# Nimbus 7 Pro\n\nThe Nimbus 7 Pro weighs 620 g.",
    "prices.csv": "product,price_eur\nNimbus 7,120\nNimbus 7 Pro,190\nNimbus 7 Max,240\n",
}
BROUGHT = {
    "import": [
        {"role": "user", "content": "How wide is the gate?"},
        {"role": "assistant", "content": "The gate is 3.2 m wide [1] and 4.1 m high [2]."},
        {"role": "user", "content": "Where does the Nimbus 7 stand?"},
        {"role": "assistant", "content": "The Nimbus 7 stands in hall 9 [2]."},
    ],
    "sources": [
        {"n": 1, "document": "plan.txt", "text": "The gate is 3.2 m wide."},
        {"n": 2, "document": "log.txt", "text": "4.1 m high. The Nimbus 7 stands in hall 9."},
    ],
}
AS_SET = ReplayOptions()
HOW_LONG = {"ask": "How long do refunds take?"}


def documents_in(folder):
    """The small library, in a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def written(folder, turns, name="talk.json", **more):
    """A script of these turns."""
    path = folder / name
    script = {"title": "T", "documents": "documents", "turns": turns} | more
    path.write_text(json.dumps(script, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


@contextmanager
def replaying(folder, options=AS_SET):
    """A replayer over its own data folder."""
    settings = Settings(data_dir=folder / "var")
    with Replayer(settings, Libraries(settings, HashEmbedder()), options) as replayer:
        yield replayer
