"""Read mails (EML, and MSG of Outlook) and mailboxes (RFC 4155).

The sections are sender, recipients and date, the text, and the attachments.
"""

import codecs
import io
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.utils import parseaddr, parsedate_to_datetime
from typing import Any

from rag.documents.cleaning import clean, decode, one_line
from rag.documents.kinds import OLE_MAGIC
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import html
from rag.documents.readers.packages import damage_message
from rag.documents.readers.registry import AttachedFiles
from rag.errors import Unreadable

WORD = re.compile(r"\w+")
QUOTED = "quoted"  # the locator of the quoted mail
# How programs mark a quoted mail: by a line above its header, or by special elements.
HISTORY = re.compile(
    r"^(?:-{3,} ?\S.{0,60}?-{3,}|_{20,})[ \t]*\n(?=(?:[ \t]*\n)*(?:[^\n:]{1,20}:[ \t].*\n?){2})",
    re.M,
)
ATTRIBUTION = re.compile(r"^(?!>)(\S[^\n]{0,200}:)[ \t]*\n(?=[ \t]*\n?>)", re.M)  # Ann wrote:
QUOTES = (
    "blockquote, .gmail_quote, .yahoo_quoted, .protonmail_quote, .moz-forward-container, "
    "#reply-intro"
)
HEADS_OF_QUOTED = (
    "#appendonsend, #divRplyFwdMsg, #mail-editor-reference-message-container, "
    "div[style*='border-top:solid #E1E1E1'], div[style*='border-top:solid #B5C4DF']"
)
STUB_SHARE = 0.4  # share of the HTML's words
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class _Mail:
    subject: str
    facts: tuple[tuple[str, str], ...]  # From, To, Date
    text: str
    markup: str = ""  # the same text as HTML
    attached: tuple[tuple[str, bytes], ...] = ()


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; attachments are read by the readers of their formats."""
    with damage_message(outline.name, MessageError):
        mail = _of_outlook(data) if data.startswith(OLE_MAGIC) else _of_text(data)
    if not (mail.text.strip() or mail.markup.strip() or mail.attached or mail.subject):
        raise Unreadable(outline.name, "the message has neither a text nor an attachment.")
    outline.heading(1, mail.subject)
    for name, value in mail.facts:
        if value:
            outline.entry(f"{name}: {value}")
    if mail.markup.strip() and _is_stub(mail):
        _write_markup(clean(mail.markup), outline)
    else:
        _write_text(clean(mail.text), outline)
    inside = AttachedFiles(outline, limits)
    for name, content in mail.attached:
        inside.add(name, content)
    outline.title = one_line(mail.subject)
    facts = dict(mail.facts)
    outline.author = parseaddr(facts["From"])[0] or facts["From"]
    with suppress(ValueError):
        outline.date = parsedate_to_datetime(facts["Date"]).date().isoformat()
    outline.date = outline.date or facts["Date"]


def _is_stub(mail: _Mail) -> bool:
    """Return whether the plain text omits what the HTML says: "Please view this in a browser"."""
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(mail.markup).body
    words = set(WORD.findall(body.text(separator=" ").lower())) if body else set()
    return len(words - set(WORD.findall(mail.text.lower()))) > STUB_SHARE * len(words)


def _write_text(text: str, outline: Outline) -> None:
    """Write the text; a quoted mail becomes one passage at the end, not repeated text."""
    history = HISTORY.search(text)
    lines = ATTRIBUTION.sub(r"> \1\n", text[: history.start() if history else None]).split("\n")
    quoted = [line.lstrip("> ") for line in lines if line.startswith(">")]
    newest = "\n".join(line for line in lines if not line.startswith(">"))
    older = text[history.start() :].split("\n\n") if history else []
    if not newest.strip():  # it only hands on
        newest, older = "\n\n".join([newest, *older]), []
    for paragraph in newest.split("\n\n"):
        outline.paragraph(paragraph)
    if any(map(str.strip, [*quoted, *older])):
        outline.place(QUOTED)
        for paragraph in ["\n".join(quoted), *older]:
            outline.paragraph(paragraph)


def _write_markup(markup: str, outline: Outline) -> None:
    """Write the HTML; a quoted mail comes at the end, as in `_write_text`."""
    from selectolax.lexbor import LexborHTMLParser

    html.check_depth(markup, outline.name)
    tree = LexborHTMLParser(markup)
    heads = tree.css(HEADS_OF_QUOTED)
    older = _cut_out([heads[0], *_following_elements(heads[0])]) if heads else ""
    quotes = tree.css(QUOTES)
    ids = {quote.mem_id for quote in quotes}
    quoted = _cut_out([quote for quote in quotes if not _is_inside(quote, ids)]) + older
    if not tree.body or not tree.body.text(strip=True):  # it only hands on
        html.read_fragment(markup, outline)
        return
    html.read_fragment(tree.html or "", outline)
    if quoted:
        outline.leave_headings()
        outline.place(QUOTED)
        html.read_fragment(quoted, outline)


def _cut_out(elements: Sequence[Any]) -> str:
    markup = "".join(element.html or "" for element in elements)
    for element in elements:
        element.decompose()
    return markup


def _is_inside(element: Any, others: Container[int]) -> bool:
    while (element := element.parent) is not None:
        if element.mem_id in others:
            return True
    return False


def _following_elements(element: Any) -> list[Any]:
    results = []
    while element is not None and element.tag != "body":
        following = element
        while (following := following.next) is not None:
            results.append(following)
        element = element.parent
    return results


def _of_text(data: bytes) -> _Mail:
    """Parse a mail (RFC 5322)."""
    if data.startswith(UTF_16):  # saved by a text editor
        data = decode(data).encode()
    count, _, rest = data.partition(b"\n")
    if count.strip().isdigit():  # Apple Mail adds the size before and metadata after the mail
        data = rest[: int(count)]
    message = BytesParser(policy=policy.default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    plain, markup = (message.get_body((kind,)) for kind in ("plain", "html"))
    return _Mail(
        subject=str(message.get("subject", "")),
        facts=tuple((name, str(message.get(name, ""))) for name in ("From", "To", "Cc", "Date")),
        text=_content(plain),
        markup=_content(markup),
        attached=tuple(_attached(message)),
    )


def _content(part: object) -> str:
    if not isinstance(part, EmailMessage):
        return ""
    try:
        return str(part.get_content())
    except (LookupError, ValueError):  # an unknown encoding
        payload = part.get_payload(decode=True)
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""


def _attached(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    for number, part in enumerate(message.iter_attachments(), start=1):
        inner = part.get_payload()
        if part.get_content_type() == "message/rfc822" and isinstance(inner, list) and inner:
            assert isinstance(inner[0], Message)
            yield f"message {number}.eml", inner[0].as_bytes()
            continue
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            yield one_line(part.get_filename() or f"attachment {number}"), content


def _of_outlook(data: bytes) -> _Mail:
    """Parse a message saved by Outlook (MS-OXMSG)."""
    import oxmsg

    message = oxmsg.Message.load(io.BytesIO(data))
    recipients = (recipient.name or recipient.email_address for recipient in message.recipients)
    date = message.sent_date.isoformat(" ", "minutes") if message.sent_date else ""
    attached = (
        (one_line(attachment.file_name or f"attachment {number}"), attachment.file_bytes)
        for number, attachment in enumerate(message.attachments, start=1)
        if attachment.file_bytes
    )
    to = ", ".join(filter(None, recipients))
    return _Mail(
        subject=message.subject or "",
        facts=(("From", message.sender or ""), ("To", to), ("Date", date)),
        text=message.body or "",
        markup=message.html_body or "",
        attached=tuple(attached),
    )


BETWEEN = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\n]*\n")
QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def read_mailbox(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a mail that cannot be read is reported."""
    mails = [part for part in BETWEEN.split(data) if part.strip()]
    for number, part in enumerate(mails, start=1):
        outline.leave_headings()
        outline.place(f"mail {number}")
        try:
            read(QUOTED_FROM.sub(rb"\1", part), outline, limits)
        except Unreadable as error:
            outline.left_out.append(f"mail {number}: {error.reason}")
    outline.title = outline.stem
