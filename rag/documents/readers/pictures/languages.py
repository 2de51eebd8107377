"""The models that read pictures: one comes with the extra, others are put into a folder by hand."""

from collections.abc import Iterable
from pathlib import Path

from rag.documents.readers.pictures.ocr import is_installed
from rag.errors import SetupError


def models_for(languages: Iterable[str], folder: Path) -> tuple[str, ...]:
    """The files of those languages that the packaged model does not read, as far as they are there.

    `missing` says what is not.
    """
    if not is_installed():
        return ()
    return tuple(
        dict.fromkeys(
            str(path)
            for language in languages
            if (path := folder / (_file_and_url(language)[0] or " ")).is_file()
        )
    )


def missing(languages: Iterable[str], folder: Path) -> list[str]:
    """What to do for each language that cannot be read yet."""
    told = []
    for language in languages:
        name, url = _file_and_url(language)
        if not url and name:
            told.append(f"{language}: no model reads it; see the languages of rapidocr")
        elif name and not (folder / name).is_file():
            told.append(f"{language}: put {url} into {folder}")
    return told


def _file_and_url(language: str) -> tuple[str, str]:
    """Both empty for what the packaged model reads; a name without a URL for what none does."""
    from rapidocr import EngineType, ModelType, OCRVersion
    from rapidocr.inference_engine.base import FileInfo, InferSession
    from rapidocr.utils.typings import TaskType

    packaged, others = (
        (OCRVersion.PPOCRV6, ModelType.SMALL),
        (OCRVersion.PPOCRV5, ModelType.MOBILE),
    )
    for version, kind in (packaged, others):
        wanted = FileInfo(EngineType.OPENVINO, version, TaskType.REC, language, kind)
        try:
            url = str(InferSession.get_model_url(wanted)["model_dir"])
        except ValueError:
            continue
        return ("", "") if version is packaged[0] else (url.rpartition("/")[2], url)
    return language, ""


def check(languages: Iterable[str], folder: Path) -> str:
    """What reads pictures here. Raises SetupError for a language that is set and not read."""
    wanted = list(languages)
    if not is_installed():
        if wanted:
            raise SetupError(
                "documents.ocr_languages is set, and nothing reads pictures. Install "
                "groundnote[ocr]: pip install 'groundnote[ocr]'."
            )
        return "not read: groundnote[ocr] is not installed"
    lacking = missing(wanted, folder)
    if lacking:
        raise SetupError(f"Languages of pictures that are not read: {'; '.join(lacking)}.")
    return f"read in {', '.join(wanted)}" if wanted else "read in Latin and East Asian scripts"
