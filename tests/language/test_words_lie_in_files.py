"""Words that text is read by lie with their language, in a file; code holds none of them."""

import ast
import re
from pathlib import Path

import pytest

from rag.language.words import ENGLISH, LANGUAGES, words

RAG = Path(__file__).parents[2] / "rag"
READS = {
    "compile",
    "words",
    "word_set",
    "frozenset",
    "search",
    "match",
    "fullmatch",
    "sub",
    "split",
}
# What is left: those words, and the reason.
LEFT = {
    "documents/readers/sheets.py": ("bin", "the ending of parts of a workbook"),
    "language/grids.py": (
        "alt et",
        "pieces of words for a total, believed where it adds up as well",
    ),
    "llm/dialects.py": (
        "at be cannot er over than to",
        "what servers of models complain of, in English on every server",
    ),
    "render/gate.py": ("tel", "the scheme of a link"),
    "render/tables.py": ("sans", "the name of a font"),
    "web/openai/completion.py": ("ai", "what clients call a side of the talks that they quote"),
}
FEWEST = 3  # `yes` and `no` are labels as well
# Of other languages, and signs of formats and protocols as well.
SIGNS = words(
    "a ab am ce ci den dir each en es hr id im in ins it lang le m me mi millions min max mo no "
    "non null octet of pro que s sep sind su t tag um un"
)


def vocabulary(language):
    """What the file of a language says of itself: words, and the words of its expressions."""
    found = set().union(*language.words.values())
    for held in language.meanings.values():
        found.update(word for each in held for word in each.split())
    for groups in language.groups.values():
        found.update(word for group in groups for each in group for word in each.split())
    return {word for word in found if word.isalpha() and len(word) > 1} - SIGNS


IN_ENGLISH = vocabulary(ENGLISH)
IN_OTHERS = set().union(*map(vocabulary, LANGUAGES)) - IN_ENGLISH


def literals(node):
    """The strings below, but for keys: `told("ands")`, `lists["also"]`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif not isinstance(node, ast.Subscript | ast.FormattedValue):
        for child in ast.iter_child_nodes(node):
            yield from literals(child)


def read_by(tree):
    """The strings by which a module reads: patterns, closed sets, tables of words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in READS:
                yield from ("|".join(literals(argument)) for argument in node.args)
        elif isinstance(node, ast.Set):
            yield "|".join(literals(node))
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Dict | ast.Tuple | ast.JoinedStr | ast.BinOp
        ):
            yield "|".join(literals(node.value))


def held(source):
    """Words of other languages, and English ones that are alternatives, if they are several."""
    found, english = set(), set()
    for text in read_by(ast.parse(source)):
        bare = re.sub(r"\\.|\(\?P[<=]\w+[>)]|\(\?[a-zA-Z-]*[:)!=]", "(", text).lower()
        found.update(word for word in re.findall(r"[^\W\d_]+", bare) if word in IN_OTHERS)
        for one, other in re.findall(r"([a-z]+)\|(?=([a-z]+)\b)", bare):
            english |= {one, other} if {one, other} <= ENGLISH.function_words - SIGNS else set()
    return found | (english if len(english) >= FEWEST else set())


def modules():
    for path in sorted(RAG.rglob("*.py")):
        if "languages" not in path.parts and "migrations" not in path.parts:
            yield path.relative_to(RAG).as_posix(), path.read_text("utf-8")


def test_no_module_reads_by_words_of_its_own():
    holding = {name: held(source) for name, source in modules()}
    holding = {name: those for name, those in holding.items() if those}

    assert holding == {name: set(told.split()) for name, (told, _reason) in LEFT.items()}


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('import re\nENDS = re.compile(r"\\b(?:bis|until|und)\\b")', {"bis", "und"}),
        ('import re\nENDS = re.compile(rf"\\b(?:bis|until|und) {1}\\b")', {"bis", "und"}),
        ('import re\nENDS = re.compile(r"(?:until|and|or) the")', {"until", "and", "or"}),
        ('ENDS = words("bis until und")', {"bis", "und"}),
        ('ENDS = {"and", "or", "until"}', {"and", "or", "until"}),
        ('SAME = {"until": 1, "und": 2}', {"und"}),
    ],
)
def test_words_in_code_are_seen(source, seen):
    assert held(source) == seen


def test_a_sentence_that_is_said_is_no_word_to_read_by():
    assert held('SAID = "It is not in the documents, and nothing else is."') == set()
