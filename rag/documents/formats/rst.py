"""The marks of reStructuredText that a reader does not see; text.py reads the rest.

docutils would need to know every directive and role that a project defines for itself.
"""

import re
from collections.abc import Iterator, Sequence

CODE_DIRECTIVE = re.compile(r"\s*\.\. (?:code|code-block|sourcecode|parsed-literal)::.*")
_DIRECTIVE = re.compile(r"\s*\.\. (?:[\w:-]+::|_[^:]+:)(?:\s|$)")  # and targets: `.. _install:`
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_ROLE = re.compile(r":[\w:+-]{1,60}:`(?P<short>~)?(?P<text>[^`<]+?)(?: ?<[^`>]+>)?`")
_LINK = re.compile(r"`(?P<text>[^`<]+?) ?<[^`>]+>`__?")
_LITERAL = re.compile(r"``(?P<text>[^`]+)``")


def without_marks(lines: Sequence[str]) -> list[str]:
    """The lines without directives, targets, roles and literals' quotes; code directives stay."""
    return list(_lines(lines))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    in_options = False
    for line in lines:
        is_code = bool(CODE_DIRECTIVE.fullmatch(line))
        is_hidden = not is_code and bool(_DIRECTIVE.match(line))
        in_options = is_code or is_hidden or (in_options and bool(_OPTION.match(line)))
        if is_code:
            yield line
        elif is_hidden or in_options:
            yield ""
        else:
            yield _plain(line)


def _plain(line: str) -> str:
    line = _LITERAL.sub(lambda found: found["text"], _ROLE.sub(_role, line))
    return _LINK.sub(lambda found: found["text"], line)


def _role(found: re.Match[str]) -> str:
    text = found["text"].lstrip("!/.")
    return text.rpartition(".")[2] if found["short"] else text
