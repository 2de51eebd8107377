"""Read text in pictures with a model from the extra `groundnote[ocr]`: nothing is downloaded.

One model reads some fifty languages in Latin and East Asian scripts. Models of other scripts that
the settings name read each picture too, and the best result is taken.
"""

import gc
import io
import os
import resource
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.pdf.layout import Page, write_pages
from rag.documents.readers.pdf.lines import PdfCell, PdfLine
from rag.documents.reports import pages_named
from rag.errors import SetupError, TooLarge, Unreadable


def models_for(languages: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return the existing model files for languages that the packaged model does not read.

    `missing` returns what to do for the others.
    """
    if not is_installed():
        return ()
    files = filter(None, (_file_and_url(language)[0] for language in languages))
    return tuple(dict.fromkeys(str(folder / file) for file in files if (folder / file).is_file()))


def missing(languages: Iterable[str], folder: Path) -> list[str]:
    """Return what to do for each language that cannot be read yet."""
    steps = []
    for language in languages:
        name, url = _file_and_url(language)
        if not url and name:
            steps.append(f"{language}: no model reads it; see the languages of rapidocr")
        elif name and not (folder / name).is_file():
            steps.append(f"{language}: put {url} into {folder}")
    return steps


def _file_and_url(language: str) -> tuple[str, str]:
    """Return (file, URL) of a language's model.

    Both are "" if the packaged model reads it; only the URL is "" if no model does.
    """
    from rapidocr import EngineType, ModelType, OCRVersion
    from rapidocr.inference_engine.base import FileInfo, InferSession
    from rapidocr.utils.typings import TaskType

    packaged, other = OCRVersion.PPOCRV6, OCRVersion.PPOCRV5
    for version, kind in ((packaged, ModelType.SMALL), (other, ModelType.MOBILE)):
        model = FileInfo(EngineType.OPENVINO, version, TaskType.REC, language, kind)
        with suppress(ValueError):
            url = str(InferSession.get_model_url(model)["model_dir"])
            return ("", "") if version is packaged else (url.rpartition("/")[2], url)
    return language, ""


def check(languages: Iterable[str], folder: Path) -> str:
    """Describe what reads pictures.

    Raises SetupError for a configured language that is not read.
    """
    names = list(languages)
    if not is_installed():
        if names:
            raise SetupError(
                "documents.ocr_languages is set, and nothing reads pictures. Install "
                "groundnote[ocr]: pip install 'groundnote[ocr]'."
            )
        return "not read: groundnote[ocr] is not installed"
    if steps := missing(names, folder):
        raise SetupError(f"Languages of pictures that are not read: {'; '.join(steps)}.")
    return f"read in {', '.join(names)}" if names else "read in Latin and East Asian scripts"


MOST_PIXELS = 60_000_000  # of a picture
SIDES = (1_000, 1_600)  # side lengths in pixels; larger pictures are scaled down
SIDE_OF_SEARCH = 1_280  # side length for text detection; 2,000 take 750 MiB more and find no more
TIME_SHARE = 0.7  # of a file's time limit; pictures left over are not read but reported
LEAST_SCORE = 0.6
SAME_LINE = 0.5  # of the height that two pieces on one line share
MODEL_BYTES = 3 * 1024 * 1024 * 1024  # of address space; at most half of it is used
MOST_ADDRESS_SPACE = 4 * 1024 * 1024 * 1024  # then the model is loaded again
MARK = "read by OCR"
INSTALL = "text in pictures is read where groundnote[ocr] is installed"


def is_installed() -> bool:
    """Return whether the extra is installed."""
    return find_spec("rapidocr") is not None


@dataclass(frozen=True, slots=True)
class OcrWords:
    """Recognised words, with their place in pixels from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class OcrClock:
    """The time for OCR of one file, a large part of the file's limit."""

    def __init__(self, limits: LoadLimits) -> None:
        self._ends = time.process_time() + TIME_SHARE * limits.max_seconds
        # Part of the process's own limit may be used already.
        last_second, _hard = resource.getrlimit(resource.RLIMIT_CPU)
        if last_second != resource.RLIM_INFINITY:
            self._ends = min(self._ends, last_second - (1 - TIME_SHARE) * limits.max_seconds)

    @property
    def is_over(self) -> bool:
        return time.process_time() > self._ends


@cache
def _take_room() -> None:
    """Raise the memory limit once: the model's memory comes on top of a file's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        with suppress(ValueError, OSError):  # the limit may not be raised
            resource.setrlimit(resource.RLIMIT_AS, (soft + MODEL_BYTES, hard))


@cache
def _engine(model: str) -> Any:
    """Load a model from its file, or the packaged one for ""."""
    from rapidocr import EngineType, RapidOCR

    kinds = {f"{part}.engine_type": EngineType.OPENVINO for part in ("Det", "Cls", "Rec")}
    threads = {"EngineConfig.openvino.inference_num_threads": 1}
    search = {"Det.limit_type": "max", "Det.limit_side_len": SIDE_OF_SEARCH}
    small = {"Rec.rec_batch_num": 1, "Cls.cls_batch_num": 1}  # large batches take gigabytes
    reads = {"Rec.model_path": model} if model else {}
    _take_room()
    return RapidOCR(
        params={**kinds, **threads, **search, **small, **reads, "Global.log_level": "critical"}
    )


def recognise(picture: Any, models: Iterable[str] = ()) -> tuple[PdfLine, ...]:
    """Return the lines of a Pillow picture from top to bottom, as those of a PDF page."""
    import numpy
    from PIL import Image

    if _address_space() > MOST_ADDRESS_SPACE:  # memory grows a little with each picture
        _engine.cache_clear()
        gc.collect()
    plain = picture.convert("RGB")
    plain.thumbnail((SIDES[-1], SIDES[-1]))
    # On a white one of few sizes: the model keeps memory for each size.
    side = next(side for side in SIDES if max(plain.size) <= side)
    framed = Image.new("RGB", (side, side), "white")
    framed.paste(plain, (0, 0))
    pixels = numpy.asarray(framed)
    read = [_pieces(_engine(model)(pixels)) for model in ("", *models)]
    best = max(read, key=lambda pieces: sum(score * len(words.text) for words, score in pieces))
    return tuple(as_lines((words for words, _score in best), plain.height))


def _pieces(output: Any) -> list[tuple[OcrWords, float]]:
    """Return the recognised words with their scores."""
    pieces: list[tuple[OcrWords, float]] = []
    if output.txts is None:
        return pieces
    for text, score, corners in zip(output.txts, output.scores, output.boxes, strict=True):
        if score >= LEAST_SCORE and text.strip():
            across, down = zip(*(map(float, corner[:2]) for corner in corners), strict=True)
            words = OcrWords(text.strip(), min(across), min(down), max(across), max(down))
            pieces.append((words, float(score)))
    return pieces


def _address_space() -> int:
    """Return the address space of this process in bytes; 0 if unknown."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def as_lines(pieces: Iterable[OcrWords], height: float) -> Iterator[PdfLine]:
    """Join words beside each other to lines, each a cell."""
    rows: list[list[OcrWords]] = []
    for piece in sorted(pieces, key=lambda piece: piece.top):
        row = next((row for row in reversed(rows[-3:]) if _is_beside(row[0], piece)), None)
        if row is None:
            rows.append([piece])
        else:
            row.append(piece)
    for row in rows:
        row.sort(key=lambda piece: piece.left)
        size = round(max(piece.bottom - piece.top for piece in row) * 0.75)
        yield PdfLine(
            text=" ".join(piece.text for piece in row),
            size=float(size),
            is_bold=False,
            left=row[0].left,
            bottom=height - max(piece.bottom for piece in row),
            cells=tuple(PdfCell(piece.text, piece.left, piece.right) for piece in row),
        )


def _is_beside(first: OcrWords, second: OcrWords) -> bool:
    shared = min(first.bottom, second.bottom) - max(first.top, second.top)
    return shared > SAME_LINE * min(first.bottom - first.top, second.bottom - second.top)


FORMATS = ("PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP")  # only these decoders of Pillow are used
MOST_FRAMES = 200


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline. Raises Unreadable if the extra is not installed."""
    if not is_installed():
        raise Unreadable(outline.name, f"this is a picture; {INSTALL}.")
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # checked below, before decoding
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            frames = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
            pages = list(_pages(picture, min(frames, MOST_FRAMES), outline, limits))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError) as error:
        raise Unreadable(outline.name, "the picture is damaged or was cut off.") from error
    outline.pages = outline.recognised = len(pages)
    missed = range(len(pages) + 1, frames + 1)
    if missed:
        outline.left_out.append(f"{pages_named(missed)}: reading them by OCR would take too long")
    if pages:
        outline.fallback_title = outline.stem
        write_pages(pages, {}, outline)


def _pages(picture: Any, frames: int, outline: Outline, limits: LoadLimits) -> Iterator[Page]:
    from PIL import ImageOps

    clock = OcrClock(limits)
    for number in range(1, frames + 1):
        if clock.is_over:
            return
        picture.seek(number - 1)
        if picture.width * picture.height > MOST_PIXELS:
            raise TooLarge(
                f"{outline.name}: the picture has {picture.width * picture.height:,} pixels, at "
                f"most {MOST_PIXELS:,} are read. Save it smaller."
            )
        lines = recognise(ImageOps.exif_transpose(picture), limits.ocr_models)
        yield Page(
            number, lines, place=f"page {number}, {MARK}" if frames > 1 else f"picture, {MARK}"
        )
