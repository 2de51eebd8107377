"""Mailboxes (RFC 4155) to sections: one mail after another."""

import re

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import mail
from rag.errors import Unreadable

BETWEEN = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\n]*\n")
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a mail that cannot be read is told in the report."""
    mails = [part for part in BETWEEN.split(data) if part.strip()]
    for number, part in enumerate(mails, start=1):
        outline.leave_headings()
        outline.place(f"mail {number}")
        try:
            mail.read(QUOTED.sub(rb"\1", part), outline, limits)
        except Unreadable as error:
            outline.left_out.append(f"mail {number}: {error.reason}")
    outline.title = outline.stem
