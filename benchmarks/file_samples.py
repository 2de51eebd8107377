"""Load every file of a folder of whole and broken samples, each in the guarded process.

Prints per kind how many were read, refused (with the reasons), crashed the reader or ran out of
time; and how much of the reference text was found where there is one (token F1). Of any other
folder (`--folder`): which of its files were read, hold no text, are of a type that is not read, or
are called damaged, and with `--others` whether LibreOffice or poppler opens the damaged ones.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from rag.documents.limits import LoadLimits
from rag.documents.sandbox import GuardedLoader
from rag.errors import RagError
from rag.records import ParsedDocument

WORD = re.compile(r"\w+")
KINDS = {"type not read": "this is a", "no text": "no text", "damaged": "damaged"}


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    file: str
    kind: str
    ending: str
    verdict: str  # ok, refused, crashed, timed out
    reason: str
    seconds: float
    f1: float | None


def main() -> None:
    """Run over the data and print the tables."""
    arguments = _arguments()
    loader = GuardedLoader(LoadLimits(max_seconds=arguments.seconds))
    if arguments.folder:
        _print_folder(loader, arguments.folder, asks_others=arguments.others)
        loader.close()
        return
    outcomes = [
        _try(loader, part, entry)
        for part in _parts(Path(arguments.data) / "file_samples")
        for entry in _manifest(part)
    ]
    loader.close()
    _print_table(outcomes)
    _print_reasons(outcomes)
    if arguments.verbose:
        _print_each(outcomes)


def _arguments() -> argparse.Namespace:
    default = os.environ.get("GROUNDNOTE_BENCH_DATA", "../shared/data")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=default)
    parser.add_argument("--seconds", type=float, default=30.0, help="time limit of one file")
    parser.add_argument("--folder", type=Path, help="any files, instead of the data's")
    parser.add_argument("--others", action="store_true", help="ask soffice and pdftotext")
    parser.add_argument("--verbose", action="store_true", help="list the files that were not read")
    return parser.parse_args()


def _print_folder(loader: GuardedLoader, folder: Path, *, asks_others: bool) -> None:
    counts: Counter[str] = Counter()
    for path in sorted(each for each in folder.iterdir() if each.is_file()):
        reason = _try(loader, folder, {"file": path.name, "kind": ""}).reason
        found = next((name for name, words in KINDS.items() if words in reason), "refused")
        found = found if reason else "read"
        if found in ("damaged", "refused") and asks_others:
            found += ", opens elsewhere" if _opens_elsewhere(path) else ", nowhere"
        counts[found] += 1
        print(f"{found:26} {path.name}: {reason.partition(' Supported are ')[0]}".rstrip(": "))
    print(", ".join(f"{name} {count}" for name, count in counts.most_common()))


def _opens_elsewhere(path: Path) -> bool:
    """Whether a program that is installed finds words in it."""
    with tempfile.TemporaryDirectory() as folder:
        pdf = path
        if path.suffix.lower() != ".pdf":
            make = ["soffice", "--headless", "--convert-to", "pdf", "--outdir", folder, str(path)]
            subprocess.run(make, capture_output=True, timeout=120, check=False)
            pdf = next(Path(folder).glob("*.pdf"), Path(folder) / "none")
        ran = subprocess.run(["pdftotext", str(pdf), "-"], capture_output=True, check=False)
        return bool(ran.stdout.strip())


def _parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SystemExit(f"There is no folder {folder}. Name the data's folder with --data.")
    return sorted(path for path in folder.iterdir() if (path / "manifest.jsonl").exists())


def _manifest(part: Path) -> list[dict[str, str]]:
    lines = (part / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def _try(loader: GuardedLoader, part: Path, entry: dict[str, str]) -> Outcome:
    path = part / entry["file"]
    if not path.exists():
        path = part.parent / entry["file"]
    reference = _reference(part, entry)
    started = time.perf_counter()
    f1 = None
    try:
        document = loader.load(path.name, path.read_bytes())
        verdict, reason = "ok", ""
        f1 = _token_f1(_text(document), reference) if reference else None
    except RagError as error:
        reason = str(error)[len(path.name) + 2 :]
        verdict = _verdict(reason)
    seconds = time.perf_counter() - started
    return Outcome(str(path), entry["kind"], path.suffix.lower(), verdict, reason, seconds, f1)


def _verdict(reason: str) -> str:
    if "reading process fail" in reason:
        return "crashed"
    return "timed out" if "took longer" in reason else "refused"


def _reference(part: Path, entry: dict[str, str]) -> str:
    named = entry.get("reference_text")
    if not named:
        return ""
    for folder in (part, part.parent):
        if (folder / named).exists():
            return (folder / named).read_text(encoding="utf-8", errors="replace")
    return named


def _text(document: ParsedDocument) -> str:
    headings = dict.fromkeys(title for each in document.sections for title in each.heading_path)
    return "\n".join([document.title, *headings, *(section.text for section in document.sections)])


def _token_f1(text: str, reference: str) -> float:
    found, expected = (Counter(WORD.findall(each.lower())) for each in (text, reference))
    common = sum((found & expected).values())
    return 2 * common / max(1, sum(found.values()) + sum(expected.values()))


def _print_table(outcomes: list[Outcome]) -> None:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[f"kind {outcome.kind}"].append(outcome)
        groups[f"{outcome.ending or 'no ending'}"].append(outcome)
    groups["all"] = outcomes
    print(f"{'':22} files    ok refused crashed timeout  slowest   F1 (of n)")
    for label, group in sorted(groups.items()):
        counts = Counter(outcome.verdict for outcome in group)
        scores = [outcome.f1 for outcome in group if outcome.f1 is not None]
        quality = f"{sum(scores) / len(scores):.3f} ({len(scores)})" if scores else ""
        print(
            f"{label:22} {len(group):5} {counts['ok']:5} {counts['refused']:7} "
            f"{counts['crashed']:7} {counts['timed out']:7} "
            f"{max(outcome.seconds for outcome in group):7.2f}s   {quality}"
        )


def _print_reasons(outcomes: list[Outcome]) -> None:
    reasons = Counter(re.sub(r"\d+", "N", each.reason) for each in outcomes if each.reason)
    for reason, count in reasons.most_common():
        print(f"{count:4}  {reason}")


def _print_each(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.verdict != "ok" or (outcome.f1 is not None and outcome.f1 < 0.8):
            score = "" if outcome.f1 is None else f"{outcome.f1:.2f}"
            print(
                f"{outcome.verdict:9} {score:5} {outcome.kind:12} {outcome.file}: {outcome.reason}"
            )


if __name__ == "__main__":
    main()
