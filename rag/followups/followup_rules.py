"""Resolve a follow-up by rules: carry over what it leaves out from the turns before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.followups import followup_focus as focus
from rag.followups import followup_rules_lists as lists
from rag.followups import followup_rules_slots as slots
from rag.followups.followup_focus import Bindings, Past
from rag.followups.followup_names import NO_NAMES, Names
from rag.followups.followup_rules_pronouns import replace_pronouns
from rag.followups.followup_words import (
    AUXILIARIES,
    DETERMINERS,
    LIGHT_NOUNS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    STOPWORDS,
    VERBS,
    mentions,
    tokens,
    word_set,
)

# Openings that say: this goes on from the last question.
CUE_WORDS = (
    "what about",
    "how about",
    "and what about",
    "and how about",
    "and",
    "and for",
    "same for",
    "the same for",
    "or",
    "but",
    "now",
    "also",
    "then",
    "so",
)
FILLERS = re.compile(
    r"^(?:(?:ok|okay|thanks|thank you|thx|great|good|nice|cool|interesting|wow|oh|hmm+|um|well|"
    r"alright|all right|got it|i see|please|right|awesome|sure|perfect|amazing)\b[\s,.!…]*)+(?=\S)",
    re.IGNORECASE,
)
BARE = {
    "why": "why|why not|how so|how come|why is that|why's that|why so|what for|really|how|when|"
    "where|who|which|which one|which ones|what|how much|how many|how long|how often|since when",
    "more": "more|tell me more|more please|more details|more detail|go on|continue|elaborate|"
    "please elaborate|explain|explain more|keep going|what else|anything else|and|any more|"
    "say more|give me more|more info|more information|example|examples|for example|"
    "give me an example|any examples|details|next|can you elaborate|can you explain",
    "yes": "yes|yes please|yeah|yep|yup|sure|ok|okay|please|please do|do it|go ahead|of course|"
    "i do|i would|absolutely|definitely|correct|right|that one",
}
COURTESY = re.compile(
    r"(?:(?:many |no )?thanks(?: a lot)?|thank you(?: very much)?|thx|great|cool|nice|perfect|"
    r"hello|hi|hey|(?:good)?bye|good morning|no|nope|never mind)",
    re.IGNORECASE,
)
BARE_WORDS = {word: kind for kind, words in BARE.items() for word in words.split("|")}
OFFER = re.compile(
    r"(?:would you like(?: me)? to|do you want(?: me)? to|shall i|should i|can i|may i|"
    r"would you like|do you want)\s+([^?]{3,160})\?\s*$",
    re.IGNORECASE,
)
MODIFIER = re.compile(
    r"^(?:(?:can you |could you |please )?(?:show|list|give|display|break|split|group|sort|order|"
    r"rank|filter|limit|present|format|narrow|"
    r"compare(?=(?:\s+(?:it|them|that|this|those|these))*\s+(?:by|per)\b))(?:\s+(?:me|it|them|that|this|those|these|"
    r"down|up|the (?:results?|list|answer)))*|only|just)\s+"
    r"((?:by|per|as|in|for|with|without|from|of|to|on|since|until|sorted|grouped|only)\b.+)$",
    re.IGNORECASE,
)
DEFINITE = re.compile(r"\b(the|these|those|this|that)\s+([a-z]{3,})(?=\s*[?.!,]|\s+[a-z]|\s*$)")
POINTING = PRONOUNS - {"i", "me", "my", "you", "your", "we", "our", "us", "there"}
FILL_ALONE = word_set("in for by per during with on as compared versus vs than without")
MAX_QUESTION = 400  # characters; what is longer leaves nothing out
MAX_FRAGMENT_WORDS = 7
MAX_PROPERTY_WORDS = 3
MAX_OPEN_WORDS = 9
LISTS = 4  # newest answers that are looked through for a list


NOBODY = Bindings()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A question made whole, and who its pronouns were."""

    text: str
    leans: bool = False  # on the turns before, even where nothing could be put in
    bindings: Bindings = NOBODY
    source_numbers: tuple[int, ...] = ()  # of sources it counts out: "the second source"
    is_whole: bool = False  # nothing of the turns before is missing any more


def rewrite(
    question: str,
    past: Sequence[Past],
    lexicon: Names = NO_NAMES,
    cue_words: Sequence[str] = CUE_WORDS,
) -> Rewritten:
    """The question made whole from the turns before; as it came when it stands alone."""
    if not past or not question.strip() or len(question) > MAX_QUESTION:
        return Rewritten(question)
    if COURTESY.fullmatch(_plain(question)):
        return Rewritten(question)
    bare = _bare(question, past)
    if bare:
        return Rewritten(bare, leans=True)
    counted, numbers = _counted(question, past, lexicon)
    carried = _carried(counted, past, lexicon, cue_words)
    if carried:
        return Rewritten(carried, leans=True, source_numbers=numbers, is_whole=True)
    text, bindings = replace_pronouns(counted, past, lexicon)
    text = _spelled_out(text, past, lexicon)
    if text == question and not numbers:
        text = _with_topic(question, past, lexicon)
    return Rewritten(text, text != question or leans(question), bindings, numbers)


def recall_turns(
    history: Sequence[tuple[str, str]],
    lexicon: Names = NO_NAMES,
    cue_words: Sequence[str] = CUE_WORDS,
) -> list[Past]:
    """The turns so far, each question resolved by those before it."""
    past: list[Past] = []
    for question, answer in history:
        whole = rewrite(question, past, lexicon, cue_words)
        past.append(focus.remember(whole.text, answer, past, whole.bindings, lexicon))
    return past


def _plain(text: str) -> str:
    return text.strip().strip("?!.…, ").strip()


def _bare(question: str, past: Sequence[Past]) -> str:
    """ "why?", "more", "yes": nothing but a wish to go on."""
    words = " ".join(_plain(question).lower().replace("’", "'").replace(",", " ").split())
    kind = BARE_WORDS.get(words) or BARE_WORDS.get(_plain(FILLERS.sub("", words)))
    if kind is None:
        return ""
    last = past[-1].question[:MAX_QUESTION]
    if kind == "yes":
        return _offered(past[-1].answer) or last
    if kind == "more":
        return f"{_plain(question)}: {last}"
    return f"{_plain(FILLERS.sub('', question))} – {last}"


def _offered(answer: str) -> str:
    found = OFFER.search(answer.strip()[-MAX_QUESTION:])
    if not found:
        return ""
    wish = re.sub(r"^(?:know|hear|learn)\s+", "Tell me ", found[1].strip(), flags=re.IGNORECASE)
    return wish[0].upper() + wish[1:]


def _counted(question: str, past: Sequence[Past], lexicon: Names) -> tuple[str, tuple[int, ...]]:
    """ "The second one" of the newest list: what was said of its first entry came in between."""
    for turn in reversed(past[-LISTS:]):
        counted, numbers = lists.count_out(question, turn.answer, lexicon)
        if counted != question or numbers:
            return counted, numbers
    return question, ()


def _carried(question: str, past: Sequence[Past], lexicon: Names, cue_words: Sequence[str]) -> str:
    """A fragment put into the last question that it could belong to."""
    last = past[-1].question
    if len(last) > MAX_QUESTION:
        return ""
    text = _plain(FILLERS.sub("", question.strip()))
    modifier = MODIFIER.match(text)
    if modifier:
        return slots.fill(last, modifier[1], NO_NAMES) or slots.append(last, modifier[1])
    cue = _cue(text, cue_words)
    fragment = text[len(cue) :].strip(" ,:")
    if not _is_fragment(fragment):
        return ""
    if cue or _fills_alone(fragment, lexicon):
        return slots.fill(last, fragment, lexicon)
    return slots.attribute(last, fragment, lexicon) if _is_property(fragment) else ""


def _cue(text: str, cue_words: Sequence[str]) -> str:
    lowered = text.lower()
    for cue in sorted(cue_words, key=len, reverse=True):
        if lowered.startswith(cue.lower()) and not lowered[len(cue) : len(cue) + 1].isalnum():
            return text[: len(cue)]
    return ""


def _is_fragment(text: str) -> bool:
    words = [token for token in tokens(text) if token.is_word]
    if not words or len(words) > MAX_FRAGMENT_WORDS:
        return False
    if slots.is_period(text):
        return True
    inner = words[1:] if words[0].lower in PREPOSITIONS else words
    return not any(
        token.lower in AUXILIARIES | QUESTION_WORDS | PRONOUNS and not token.is_acronym
        for token in inner
    )


def _fills_alone(fragment: str, lexicon: Names) -> bool:
    """Fragments that need no "what about": a time, a product, a prepositional phrase."""
    return (
        slots.is_period(fragment)
        or fragment.split()[0].lower() in FILL_ALONE
        or slots.DETERMINER.sub("", fragment) in lexicon
    )


def _is_property(fragment: str) -> bool:
    """ "battery life?": a few plain nouns."""
    words = [token for token in tokens(fragment) if token.is_word]
    return len(words) <= MAX_PROPERTY_WORDS and all(
        token.text.islower() and token.lower not in VERBS | STOPWORDS - DETERMINERS
        for token in words
    )


def _spelled_out(question: str, past: Sequence[Past], lexicon: Names) -> str:
    """ "the album" after "a live album" is "the live album"."""
    if any(mention.is_name for mention in mentions(question, lexicon)):
        return question
    for found in DEFINITE.finditer(question):
        longer = focus.longer_phrase(found[2], past)
        if longer:
            return f"{question[: found.start(2)]}{longer}{question[found.end(2) :]}"
    return question


def _with_topic(question: str, past: Sequence[Past], lexicon: Names) -> str:
    """A question that does not say what it is about gets the topic behind it."""
    if not _is_open(question, lexicon):
        return question
    topic = focus.topic(past)
    if not topic or any(word.lower() in question.lower() for word in topic.split()):
        return question
    body = question.rstrip()
    mark = body[-1] if body[-1] in "?!." else ""
    return f"{body.rstrip('?!. ')} ({topic}){mark}"


def _is_open(question: str, lexicon: Names) -> bool:
    found = [token for token in tokens(question) if token.is_word]
    if not 1 < len(found) <= MAX_OPEN_WORDS or any(token.text[0].isdigit() for token in found):
        return False
    if any(mention.is_name for mention in mentions(question, lexicon)):
        return False
    if any(token.lower in POINTING for token in found):
        return False
    content = [t for t in found if t.lower not in STOPWORDS | VERBS | LIGHT_NOUNS]
    return not content


def leans(question: str) -> bool:
    """Whether a question, left as it is, still points at the turns before."""
    words = [token.lower for token in tokens(question) if token.is_word]
    goes_on = words[:2] in (["what", "about"], ["how", "about"])
    return goes_on or bool(POINTING & set(words)) or len(words) <= 3
