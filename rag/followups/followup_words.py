"""Closed word classes and mentions: what a sentence talks about, without a language model."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.followups.followup_names import NO_NAMES, Names

WORD = re.compile(r"[^\W_]+(?:['’.&+/-][^\W_]+)*['’]?(?<!')|[^\w\s]", re.UNICODE)


def word_set(text: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(text.split())


QUESTION_WORDS = word_set("what which who whom whose where when why how")
AUXILIARIES = word_set(
    "am is are was were be been being do does did doing done have has had having can could will "
    "would shall should may might must isn't aren't wasn't weren't don't doesn't didn't haven't "
    "hasn't hadn't can't couldn't won't wouldn't shouldn't what's who's where's how's that's it's"
)
PREPOSITIONS = word_set(
    "about above across after against along among around as at before behind below beneath beside "
    "besides between beyond by despite down during except for from in inside into like near of off "
    "on onto out outside over per regarding since through throughout to toward towards under until "
    "up upon via with within without than versus vs compared"
)
PRONOUNS = word_set(
    "i me my mine myself we us our ours you your yours he him his himself she her hers herself it "
    "its itself they them their theirs themselves this that these those there here one ones "
    "someone anyone everyone something anything everything nothing nobody i'm i've i'd i'll you're "
    "you've he's she's they're they've we're we've there's let's"
)
DETERMINERS = word_set(
    "a an the some any each every both all no none another other others else either neither such "
    "many much more most few less least several enough own same various different certain many"
)
JOINERS = word_set(
    "and or but nor so yet if because while although though whether unless once also too very just "
    "even still only really actually exactly quite rather then now again ever never always often "
    "usually sometimes currently today nowadays please ok okay thanks thank yes no not well oh wow "
    "hey hi hello interesting great cool awesome nice sure hmm um sorry maybe perhaps instead "
    "later ago back away together long far ahead first second third last next previous"
)
# Verbs that follow their subject in questions ("how did snowboarding begin"), so that a noun
# phrase ends before them.
VERBS = word_set(
    "accept achieve act add address affect agree allow answer appear apply argue arise arrive ask "
    "assist attack attend avoid award become begin believe belong bite break breathe bring build "
    "buy call care carry cause change charge check choose claim collect come compare complain "
    "compose conduct configure connect consider consist contain continue contribute control "
    "convert cook cost cover create cure damage deal decide define delete describe deploy die "
    "differ disappear disband discover discuss do drink drive drop earn eat enable end enjoy enter "
    "establish evolve exist expand expect explain fail fall feed feel fight find finish fit fix "
    "fly follow form found gain get give go graduate grow handle happen hear help hit hold "
    "identify impact implement improve include increase influence install invent invest involve "
    "join keep kill know last lay lead learn leave let live look lose make manage marry matter "
    "mean measure meet mention monitor move need occur offer open operate order originate own pass "
    "pay perform play prepare prevent produce promote protect prove provide publish purchase put "
    "reach react read receive recommend record reduce refer relate release remain remember remove "
    "repair replace report require resign retire return rise run save say see seek sell send serve "
    "set show sing sleep solve speak spend spoil spread stand start stay stop study succeed suffer "
    "suggest supply support survive switch take taste teach tell think tour train travel treat try "
    "turn understand update upgrade use verify view visit vote wait want watch wear win wish work "
    "write won made said took went got became began came died born called named known wrote "
    "played signed used given sold found built created released based located listed listen left "
    "happened recommended considered thought written known founded produced invented recorded "
    "started ended moved married lived worked changed served affected caused"
)
OPENERS = DETERMINERS | word_set("my your his her its our their this that these those what which")
EXPECT_VERB = word_set(
    "do does did can could will would shall should may might must don't doesn't didn't"
)
# Nouns that only point: what they belong to is what is talked about ("types of orange trees").
LIGHT_NOUNS = word_set(
    "type types kind kinds sort sorts example examples way ways thing things fact facts part parts "
    "kind difference differences benefit benefits cause causes effect effects symptom symptoms "
    "number amount lot lots name names list history origin origins reason reasons purpose role "
    "meaning definition use uses advantage advantages disadvantages cost costs price size weight "
    "process step steps issue issues problem problems tip tips information detail details idea "
    "point side sides aspect aspects article year years time times day days month months people "
    "person anyone someone place places total average best worst top main major minor key popular "
    "common important famous interesting good bad better new old big large small high low "
    "successful significant notable special specific general question questions answer"
)
STOPWORDS = QUESTION_WORDS | AUXILIARIES | PREPOSITIONS | PRONOUNS | DETERMINERS | JOINERS
NOT_NAMES = STOPWORDS | word_set(
    "january february march april may june july august september october november december monday "
    "tuesday wednesday thursday friday saturday sunday mr mrs ms dr i tell show give explain name "
    "list describe compare are any let speaking could besides aside according"
)
NAME_JOINERS = word_set("of the de da del la le van von der den for and in on to a an &")
GROUP_WORDS = word_set(
    "album albums award awards band bank battle bill book boys church city club college commission "
    "committee company corporation council county court cup department east empire experience "
    "festival film foundation girls group hospital house institute island king kingdom lake league "
    "magazine mountain movement museum north office orchestra party prize province queen records "
    "republic river road school series service services society south state states street system "
    "team theatre theory tour tribe trust union university war west world"
)
COLLECTIVE_WORDS = word_set(
    "african all alliance american angeles association australian best black board british "
    "bureau canada canadian center central centre championship channel china chinese "
    "chronicle civil congress dutch england english europe european federal federation first "
    "france french game games german germany great greatest greek grammy high history "
    "hollywood india indian irish italian japan japanese jewish korean latin law league "
    "little local london los madison major matter mexican mexico music national nations "
    "network new news night olympic olympics open oscar pacific paris party players press "
    "prize professional red royal russia russian san santa season senate social south spanish "
    "square stadium star stars supreme texas times top trophy uk united universal us usa "
    "western white women york youth"
)
NO_PERSON = GROUP_WORDS | NAME_JOINERS | COLLECTIVE_WORDS
LOCATIVES = word_set("in at on from near around within during since under into through over")
PLURALS = word_set("people children men women police mice feet teeth geese media data cattle fish")


LOOK_BACK = 8  # words
REMEMBERED_TEXTS = 2048  # whose mentions are
REMEMBERED_CHARACTERS = 2000  # longer ones are read anew, rather than kept in memory


@dataclass(frozen=True, slots=True)
class Mention:
    """Something a text talks about."""

    text: str
    is_name: bool  # written with capitals, quoted, or in the lexicon
    is_located: bool = False  # behind a preposition of place or time: seldom the topic
    is_quoted: bool = False
    has_article: bool = False  # "the Steelers", and no person
    is_solid: bool = True  # False for a plain run of words that may be no noun phrase

    @property
    def words(self) -> list[str]:
        return self.text.split()

    @property
    def is_plural(self) -> bool:
        last = self.words[-1].lower().strip("'\"”’")
        if last in PLURALS:
            return True
        return len(last) > 3 and last.endswith("s") and not last.endswith(("ss", "us", "is", "'s"))

    @property
    def is_person(self) -> bool:
        """Whether it may be somebody's name: one to three capitalised words, nothing collective."""
        words = self.words
        return (
            self.is_name
            and not self.is_quoted
            and not self.has_article
            and len(words) <= 3
            and all(word[0].isupper() and word.replace(".", "").isalpha() for word in words)
            and not any(word.isupper() and len(word) > 1 for word in words)
            and not any(word.lower() in NO_PERSON for word in words)
        )

    @property
    def is_group(self) -> bool:
        """Whether "they" may mean it although its last word is no plural."""
        words = [word.lower() for word in self.words]
        return self.is_name and (words[0] == "the" or any(word in GROUP_WORDS for word in words))


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a punctuation mark with its place."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        return self.text[0].isalnum()

    @property
    def is_acronym(self) -> bool:
        """ "US" is no pronoun."""
        return len(self.text) > 1 and self.text.isupper()


def tokens(text: str) -> list[Token]:
    """Words and punctuation marks in order."""
    return [Token(found.group(), found.start(), found.end()) for found in WORD.finditer(text)]


def is_content(word: str) -> bool:
    """Whether a lower-case word says what a question is about."""
    return word not in STOPWORDS and word not in VERBS and (len(word) > 1 or word.isdigit())


def mentions(text: str, lexicon: Names = NO_NAMES) -> list[Mention]:
    """What the text talks about, in the order of reading, names before plain noun phrases."""
    find = _remembered if len(text) <= REMEMBERED_CHARACTERS else _mentions
    return list(find(text, lexicon))


def _mentions(text: str, lexicon: Names) -> tuple[Mention, ...]:
    spans = [*_quoted(text), *_listed(text, lexicon)]
    spans += [span for span in _capitalised(text) if not _overlaps(span, spans)]
    spans += [span for span in _phrases(text) if not _overlaps(span, spans)]
    return tuple(mention for _, _, mention in sorted(spans, key=lambda span: span[0]))


# Each question reads the turns before it again.
_remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(_mentions)


Span = tuple[int, int, Mention]


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end, _ in others)


def _quoted(text: str) -> list[Span]:
    return [
        (
            found.start(),
            found.end(),
            Mention(found.group().strip('“”"').strip(" ,."), is_name=True, is_quoted=True),
        )
        for found in re.finditer(r"[“\"]([^“”\"]{2,60})[”\"]", text)
        if found.group(1).strip(" ,.")
    ]


def _listed(text: str, lexicon: Names) -> list[Span]:
    found = tokens(text)
    return [
        (name.start, name.end, _name(name.text, _before(found, name.start)))
        for name in lexicon.find(text)
    ]


def _name(text: str, before: Sequence[Token]) -> Mention:
    return Mention(
        text, is_name=True, is_located=_located(before), has_article=_after_article(before)
    )


def _before(found: Sequence[Token], start: int) -> Sequence[Token]:
    """The last words before a place: all that one looks at."""
    end = bisect_right(found, start, key=lambda token: token.end)
    return found[max(0, end - LOOK_BACK) : end]


def _starts_sentence(text: str, token: Token) -> bool:
    before = text[: token.start].rstrip(" \"“'(-*#")
    return not before or before[-1] in ".!?:\n"


def _capitalised(text: str) -> list[Span]:
    """Runs such as "Great Wall of China" or "Aero 5 Pro"."""
    spans: list[Span] = []
    run: list[Token] = []
    found = tokens(text)
    for position, token in enumerate(found):
        if _belongs(token, run, found[position + 1 :]):
            run.append(token)
            continue
        spans += _run_span(text, found, run)
        run = [token] if _opens(token) else []
    return spans + _run_span(text, found, run)


def _opens(token: Token) -> bool:
    return token.text[0].isupper()


def _belongs(token: Token, run: Sequence[Token], following: Sequence[Token]) -> bool:
    if not run:
        return False
    if token.lower not in NAME_JOINERS:
        return token.text[0].isupper() or token.text[0].isdigit()
    if token.lower in {"and", "in", "on", "to", "a", "an", "for"} or run[-1].lower in NOT_NAMES:
        return False
    ahead = [other for other in following[:2] if other.lower not in NAME_JOINERS]
    return bool(ahead) and ahead[0].text[0].isupper()


def _run_span(text: str, found: Sequence[Token], run: list[Token]) -> list[Span]:
    run = list(run)
    while run and not run[0].is_acronym and _is_no_name(run[0]):
        run.pop(0)
    if not run or not run[0].text[0].isupper():
        return []
    if len(run) == 1 and _is_common_opener(text, run[0]):
        return []
    start, end = run[0].start, run[-1].end
    words = re.sub(r"['’]s?$", "", text[start:end])
    return [(start, end, _name(words, _before(found, start)))]


def _after_article(before: Sequence[Token]) -> bool:
    return bool(before) and before[-1].lower in {"the", "a", "an"}


def _is_no_name(token: Token) -> bool:
    return token.lower in NOT_NAMES or token.lower.split("'")[0] in QUESTION_WORDS | PRONOUNS


def _is_common_opener(text: str, token: Token) -> bool:
    """A capital at a sentence's start tells nothing, unless it is a code or an acronym."""
    if not _starts_sentence(text, token):
        return False
    if token.text.isupper() and len(token.text) > 1:
        return False
    elsewhere = re.search(rf"[a-z,] {re.escape(token.text)}\b", text)
    return elsewhere is None and not token.lower.endswith("'s")


def _located(before: Sequence[Token]) -> bool:
    words = [token.lower for token in before if token.lower not in {"the", "a", "an"}]
    return bool(words) and words[-1] in LOCATIVES


def _phrases(text: str) -> list[Span]:
    """Runs of plain content words: "orange trees" in "types of orange trees"."""
    spans: list[Span] = []
    run: list[Token] = []
    found = tokens(text)
    for position, token in enumerate(found):
        start = position - len(run)
        if _is_phrase_word(token, found[max(0, start - LOOK_BACK) : start]):
            run.append(token)
            continue
        spans += _phrase_span(text, found, run)
        run = []
    return spans + _phrase_span(text, found, run)


def _is_phrase_word(token: Token, before: Sequence[Token]) -> bool:
    """Behind "the", a word that could be a verb is a noun, unless "did the … start" expects one."""
    if not token.is_word or token.text[0].isdigit() or token.lower in STOPWORDS:
        return False
    if token.lower not in VERBS:
        return len(token.text) > 1
    expects_verb = any(other.lower in EXPECT_VERB for other in before)
    is_noun = bool(before) and before[-1].lower in OPENERS - QUESTION_WORDS
    return is_noun and not expects_verb


def _phrase_span(text: str, found: Sequence[Token], run: list[Token]) -> list[Span]:
    run = list(run)
    while run and (run[0].lower in LIGHT_NOUNS or run[0].lower.endswith("ly")):
        run.pop(0)
    while run and (run[-1].lower in LIGHT_NOUNS or run[-1].lower.endswith(("ed", "ly"))):
        run.pop()
    if not run:
        return []
    start, end = run[0].start, run[-1].end
    before = _before(found, start)
    words = re.sub(r"['’]s?$", "", text[start:end])
    is_located = _located([token for token in before if token.lower not in LIGHT_NOUNS])
    is_solid = len(run) <= 4 and _is_solid(before, run)
    return [(start, end, Mention(words, is_name=False, is_located=is_located, is_solid=is_solid))]


def _is_solid(before: Sequence[Token], run: Sequence[Token]) -> bool:
    """Whether a noun phrase is expected where the run begins."""
    if run[0].lower.endswith("ed") or (len(run) > 1 and run[0].lower.endswith("ing")):
        return False
    if not before:
        return True
    word = before[-1].lower
    return word in OPENERS | PREPOSITIONS | LIGHT_NOUNS | VERBS | EXPECT_VERB
