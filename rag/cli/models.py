"""The commands `groundnote models`: download a model from a hub, try it, and use it."""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag.cli.source import as_json_option
from rag.errors import ModelUnavailable, RagError, SetupError, UserError

if TYPE_CHECKING:
    from rag.settings import Settings

MANIFEST = "groundnote-model.json"
SETTING = {
    "embedding": ("embedding", "model"),
    "reranker": ("retrieval", "rerank_model"),
    "judge": ("checks", "nli_model"),
}
_FILES = (".json", ".txt", ".model", ".safetensors")  # files of a model: no code, no other formats
_WEIGHTS = "pytorch_model.bin"  # used if there is no safer format
_SENTENCE = ("The course takes two days.", "The course is short.")


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model as a hub describes it."""

    name: str
    revision: str
    licence: str
    hub: str
    files: tuple[str, ...]
    size: int  # bytes of these files

    @property
    def label(self) -> str:
        megabytes = f"{self.size / 1e6:,.0f} MB" if self.size else "of unknown size"
        return f"{self.name}: {megabytes}, licence {self.licence}, from {self.hub}"


@dataclass(frozen=True, slots=True)
class DownloadedModel:
    """A model that was downloaded."""

    name: str
    kind: str
    licence: str
    hub: str
    revision: str
    size: int


@click.group()
def models() -> None:
    """Models from a hub: `add`, `list`, `remove`. The hub is the one that HF_ENDPOINT names."""


@models.command()
@click.argument("name")
@click.option("--as", "kind", type=click.Choice(list(SETTING)), help="Where the files cannot tell.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def add(settings: "Settings", name: str, kind: str | None, yes: bool) -> None:
    """Get a model, try it, and use it: an embedding model, a reranker or a judge."""
    offer = look_up(name)
    click.echo(offer.label)
    if not yes:
        click.confirm("Download it?", abort=True)
    hub = settings.data_dir / "models" / "hub"
    hub.mkdir(parents=True, exist_ok=True)
    folder = hub / name.replace("/", "--")
    download(offer, folder)
    try:
        kind = kind or kind_of(folder)
        try_out(folder, kind, settings)
    except (RagError, OSError, ValueError, RuntimeError, KeyError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise SetupError(f"{name} does not work here and was taken away: {error}") from error
    model = DownloadedModel(name, kind, offer.licence, offer.hub, offer.revision, offer.size)
    (folder / MANIFEST).write_text(json.dumps(asdict(model)), encoding="utf-8")
    path = set_in_file(kind, str(folder.resolve()))
    _record(settings, "model.added", f"{name} as {kind}")
    click.echo(f"{name} works as {kind}. {'.'.join(SETTING[kind])} is set in {path}.")
    if kind == "embedding":
        click.echo("Run `groundnote reindex`: vectors of two models cannot be compared.")


@models.command("list")
@as_json_option
@click.pass_obj
def list_models(settings: "Settings", as_json: bool) -> None:
    """What was got, and which of it is used."""
    results = [
        asdict(model) | {"used": _is_used(settings, path, model)}
        for path, model in _downloaded_models(settings)
    ]
    if as_json:
        click.echo(json.dumps(results, ensure_ascii=False))
        return
    for result in results:
        used = "used" if result["used"] else "not used"
        click.echo(f"{result['name']}  {result['kind']}  {result['size'] / 1e6:,.0f} MB  {used}")


@models.command()
@click.argument("name")
@click.pass_obj
def remove(settings: "Settings", name: str) -> None:
    """Delete a model that was got; a setting that names it is taken back."""
    for folder, model in _downloaded_models(settings):
        if model.name == name:
            if _is_used(settings, folder, model):
                set_in_file(model.kind, None)
            shutil.rmtree(folder)
            _record(settings, "model.removed", name)
            click.echo(f"{name} is deleted.")
            return
    names = ", ".join(model.name for _, model in _downloaded_models(settings)) or "none"
    raise UserError(f"There is no model {name!r} here; there is {names}.")


def _record(settings: "Settings", action: str, subject: str) -> None:
    from rag.db.audit_trail import AuditTrail
    from rag.wiring.stores import open_database

    AuditTrail(open_database(settings)).add(action, subject)


# ── The hub ──────────────────────────────────────────────────────────────────────────────────


def look_up(name: str) -> ModelOffer:
    """Return the hub's description of a model. Raises ModelUnavailable, UserError."""
    if not all(part and not part.startswith(".") for part in name.split("/")) or "\\" in name:
        raise UserError(f"{name!r} is no name of a model; expected one such as owner/name.")
    hub = _open_hub()
    from huggingface_hub import HfApi

    try:
        info = HfApi(endpoint=hub).model_info(name, files_metadata=True)
    except Exception as error:  # what the client raises depends on its version
        raise ModelUnavailable(f"{hub} has no {name}, or does not answer: {error}") from error
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
    files = model_files(sizes)
    card = info.card_data.to_dict() if info.card_data else {}
    licence = str(card.get("license") or "not stated")
    size = sum(sizes[file] for file in files)
    return ModelOffer(name, info.sha or "main", licence, hub, files, size)


def model_files(names: Iterable[str]) -> tuple[str, ...]:
    """Return the files that a model is loaded from."""
    every = list(names)
    is_safe = any(name.endswith(".safetensors") for name in every)
    return tuple(
        name
        for name in every
        if name.endswith(_FILES) or (not is_safe and Path(name).name == _WEIGHTS)
    )


def download(offer: ModelOffer, folder: Path) -> None:
    """Download all files of a model, or none. Raises ModelUnavailable."""
    hub = _open_hub()
    from huggingface_hub import snapshot_download

    part = folder.with_name(f"part-{folder.name}")
    try:
        snapshot_download(
            offer.name,
            revision=offer.revision,
            local_dir=part,
            allow_patterns=list(offer.files),
            endpoint=hub,
        )
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except Exception as error:
        raise ModelUnavailable(f"{offer.name} could not be had from {hub}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _open_hub() -> str:
    """Let this process reach the hub, and return its address; its client is loaded after that."""
    os.environ["HF_HUB_OFFLINE"] = "0"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = os.environ["HF_HUB_DISABLE_XET"] = "1"
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = False
    return os.environ.get("HF_ENDPOINT") or str(constants.ENDPOINT)


# ── What it is, and whether it works ─────────────────────────────────────────────────────────


def kind_of(folder: Path) -> str:
    """Return the kind of a model by its files. Raises UserError if they do not show it."""
    if (folder / "modules.json").exists():
        return "embedding"
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"It has no config.json that can be read ({error}).") from error
    architectures: Sequence[str] = config.get("architectures") or ()
    if any("SequenceClassification" in architecture for architecture in architectures):
        return "judge" if len(config.get("id2label") or {}) > 1 else "reranker"
    raise UserError(
        "Its files do not say what it is for. Say it: --as embedding, reranker or judge."
    )


def try_out(folder: Path, kind: str, settings: "Settings") -> None:
    """Load the model and use it once; raises its errors."""
    if kind == "embedding":
        from rag.search.embedders.local import LocalEmbedder

        LocalEmbedder(str(folder)).embed(list(_SENTENCE))
    elif kind == "reranker":
        from rag.search.hybrid import CrossEncoderReranker

        CrossEncoderReranker(str(folder)).score(*_SENTENCE[:1], _SENTENCE[1:])
    else:
        from rag.llm.judges import InferenceJudge
        from rag.seams.models import OpenStatement

        InferenceJudge(folder).judge([OpenStatement(_SENTENCE[1], _SENTENCE[:1])])


# ── Where it lies, and the setting ───────────────────────────────────────────────────────────


def _downloaded_models(settings: "Settings") -> list[tuple[Path, DownloadedModel]]:
    paths = sorted((settings.data_dir / "models" / "hub").glob(f"*/{MANIFEST}"))
    return [
        (path.parent, DownloadedModel(**json.loads(path.read_text(encoding="utf-8"))))
        for path in paths
    ]


def _is_used(settings: "Settings", folder: Path, model: DownloadedModel) -> bool:
    section, key = SETTING[model.kind]
    value = getattr(getattr(settings, section), key)
    return value is not None and Path(value) == folder.resolve()


def set_in_file(kind: str, value: str | None) -> Path:
    """Set, or remove, the setting for a kind of model in the settings file."""
    from rag.settings import settings_file

    named = click.get_current_context().find_root().params.get("named")
    path = settings_file(named) or Path("settings.json")
    section, key = SETTING[kind]
    values = json.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
    options = values.setdefault(section, {})
    if value is None:
        options.pop(key, None)
    else:
        options[key] = value
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
    return path
