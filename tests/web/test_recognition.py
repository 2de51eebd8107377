"""A conversation is known by its answers, whatever part of it a client sends back, and how."""

import re
import threading

import pytest

from rag.web.openai.completion import UNSEEN
from tests.web.kit import (
    assistant,
    numbers,
    plainly,
    product,
    sources_of,
    system,
    text_of,
    user,
)

TURNS = 10
QUESTIONS = (
    "How much does the Aero 5 weigh?",
    "How long does the battery of the Aero 5 last?",
    "Once more: how much does the Aero 5 weigh?",
)
KEY = {"weigh": "weighs 120 g", "battery": "lasts 30 hours"}


def in_full(body):
    """An answer as a model writes it: with its subject, and more than a few words."""
    found = sources_of(body)
    question = body["messages"][-1]["content"].rpartition("Question:")[2]
    wanted = next((each for word, each in KEY.items() if word in question), "")
    for number, _, text in found:
        if wanted and wanted in text:
            told = re.search(rf"[^.\n]*{wanted}[^.\n]*", text)[0].strip()
            turn = len(body["messages"]) // 2
            return (
                f"As the manual of this product plainly says for reader {turn}: {told} [{number}]."
            )
    return plainly(body)


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    with product(tmp_path_factory.mktemp("product") / "home") as kit:
        yield kit


@pytest.fixture(autouse=True)
def _plain_model(kit):
    kit.answer = in_full


def window(count):
    """The last messages."""
    return lambda said: said[-count:]


def trimmed(said):
    """As LangChain's `trim_messages`: the last that fit, beginning with a question."""
    left, room = [], 90
    for each in reversed(said):
        room -= len(each["content"].split())
        if room < 0:
            break
        left.insert(0, each)
    while left and left[0]["role"] != "user":
        left.pop(0)
    return left or said[-1:]


def reduced(said):
    """As Semantic Kernel's reducer: an answer that sums up, and the last messages."""
    if len(said) < 6:
        return said
    return [assistant("Summary: the user asked how heavy the thing is [1]."), *said[-3:]]


def summed_up(said):
    """A summary of the client's own in front."""
    if len(said) < 6:
        return said
    return [system("Summary of the chat so far: the Aero 5 weighs 120 g [1]."), *said[-3:]]


def buffered(said):
    """As LlamaIndex's summary memory: a system message, then whole pairs."""
    if len(said) < 6:
        return said
    return [system("The user asks about weights and batteries."), *said[-5:]]


def without_numbers(said):
    """A client that shows them, and sends none of them back."""
    bare = [
        {**message, "content": re.sub(r" ?\[\d+\]", "", message["content"])} for message in said
    ]
    return bare[:-1] + said[-1:]


def as_it_is(said):
    return said


# The client's part of a transcript, and what it keeps of an answer.
WAYS = {
    "last 2": (window(2), str),
    "last 6": (window(6), str),
    "last 10": (window(10), str),
    "trim_messages": (trimmed, str),
    "reducer of Semantic Kernel": (reduced, str),
    "summary memory of LlamaIndex": (buffered, str),
    "own summary": (summed_up, str),
    "footer": (window(4), lambda text: f"{text}\n\n---\n_Answered in 2 s by Groundnote_"),
    "thinking removed": (window(4), lambda text: re.sub(r"<think>.*?</think>", "", text)),
    "markup": (window(4), lambda text: text.replace("[", "【").replace("]", "】")),
    "numbers taken out": (without_numbers, str),
    "full stop lost": (window(4), lambda text: text.rstrip(".")),
}


def thinking(body):
    return f"<think>Let me see.</think>{in_full(body)}"


class Reader:
    """Somebody who asks ten questions, whose program sends them in its own way."""

    def __init__(self, kit, name, way, **fields):
        self.kit, self.way, self.fields = kit, way, fields
        self.said = [user(f"I am {name}, and my secret is {name}-7.")]
        self.given, self.sessions = [], []

    def ask(self, question):
        self.said = [*self.said, user(question)] if self.given else [user(question)]
        sent, kept = self.way
        answered = self.kit.chat(sent(self.said), **self.fields)
        text = text_of(answered)
        self.said.append(assistant(kept(text)))
        self.given.append(numbers(text))
        self.sessions.append(answered[1]["session_id"])


def number_of(reader, word):
    """The numbers under which each answer to a kind of question cited."""
    kinds = (QUESTIONS[turn % 3] for turn in range(TURNS))
    return {tuple(got) for kind, got in zip(kinds, reader.given, strict=True) if word in kind}


@pytest.mark.parametrize("way", WAYS)
def test_numbers_are_kept_over_ten_turns(kit, way):
    kit.answer = thinking if way == "thinking removed" else in_full
    reader = Reader(kit, "Ann", WAYS[way], user=f"ann-{way}")

    for turn in range(TURNS):
        reader.ask(QUESTIONS[turn % 3])

    assert len(number_of(reader, "weigh")) == len(number_of(reader, "battery")) == 1
    assert len(set(reader.sessions)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_two_people_behind_one_key_keep_their_numbers_and_their_words(kit, way):
    """They ask the same at the same time, and nothing tells them apart."""
    asked = [Reader(kit, name, WAYS[way]) for name in ("Ben", "Cleo")]
    kit.model.requests.clear()

    for turn in range(TURNS):
        for reader in asked:
            reader.ask(f"{QUESTIONS[turn % 3]} ({way})")

    for reader in asked:
        assert len(number_of(reader, "weigh")) == len(number_of(reader, "battery")) == 1


@pytest.mark.parametrize("way", ["last 2", "last 6", "markup"])
def test_words_of_one_person_are_never_sent_for_another(kit, way):
    """Both begin with words of their own; from then on they ask the same."""
    asked = [Reader(kit, name, WAYS[way]) for name in ("Dora", "Emil")]
    told = {"Dora": "dora-4711", "Emil": "emil-0815"}
    for name, reader in zip(told, asked, strict=True):
        reader.ask(f"My number is {told[name]}. How much does the Aero 5 weigh?")
    for turn in range(6):
        for name, reader in zip(told, asked, strict=True):
            kit.model.requests.clear()
            reader.ask(f"{QUESTIONS[turn % 3]} What is my number?")
            (other,) = told.keys() - {name}
            sent = [str(each.body["messages"]) for each in kit.model.requests]
            assert not any(told[other] in each for each in sent)


def first_turn(kit, question="How much does the Aero 5 weigh?", **fields):
    answered = kit.chat([user(question)], **fields)
    return [user(question), assistant(text_of(answered))], answered[1]["session_id"]


class TestBranches:
    def test_of_several_requests_at_once_one_goes_on(self, kit):
        said, session = first_turn(kit, "Branch: how much does the Aero 5 weigh?")
        got = []
        sent = [
            threading.Thread(target=lambda n=n: got.append(kit.chat([*said, user(f"And {n}?")])))
            for n in ("the battery", "the Pro", "the manual")
        ]
        for each in sent:
            each.start()
        for each in sent:
            each.join()

        sessions = [body["session_id"] for _, body in got]
        assert len(set(sessions)) == 3
        assert sessions.count(session) == 1

    def test_an_edited_question_keeps_the_numbers_given_before_it(self, kit):
        said, session = first_turn(kit, "Edit: how much does the Aero 5 weigh?")
        kit.chat([*said, user("How long does the battery last?")])

        edited = kit.chat([*said, user("Once more: how much does the Aero 5 weigh?")])

        assert edited[1]["session_id"] != session
        assert numbers(text_of(edited)) == numbers(said[1]["content"])

    def test_what_another_model_said_since_is_brought_along_as_text(self, kit):
        said, session = first_turn(kit, "Other: how much does the Aero 5 weigh?")
        other = [user("And in ounces?"), assistant("It is 4.2 ounces [77], says another model.")]

        answered = kit.chat([*said, *other, user("Once more: how much does the Aero 5 weigh?")])

        assert answered[1]["session_id"] == session
        assert numbers(text_of(answered)) == numbers(said[1]["content"])
        stored = kit.call("GET", f"/api/v1/sessions/{session}/messages")[1]["messages"]
        assert "(77)" in stored[3]["content"]

    def test_an_edited_last_answer_goes_on(self, kit):
        said, session = first_turn(kit, "Redo: how much does the Aero 5 weigh?")
        second = kit.chat([*said, user("How long does the battery of the Aero 5 last?")])
        changed = [
            user("How long does the battery of the Aero 5 last?"),
            assistant("Shorter: 30 h."),
        ]

        third = kit.chat([*said, *changed, user("Once more: how much does the Aero 5 weigh?")])

        assert second[1]["session_id"] == third[1]["session_id"] == session


class TestNames:
    @pytest.mark.parametrize("header", ["X-OpenWebUI-Chat-Id", "X-Conversation-Id"])
    def test_a_header_of_the_client_names_the_conversation(self, kit, header):
        said, session = first_turn(kit, headers={header: "chat-1"})
        answered = kit.chat(
            [user("Once more: how much does the Aero 5 weigh?")], headers={header: "chat-1"}
        )
        other = kit.chat([*said, user("Once more?")], headers={header: "chat-2"})

        assert answered[1]["session_id"] == session
        assert numbers(text_of(answered)) == numbers(said[1]["content"])
        assert other[1]["session_id"] != session  # a copied chat has the numbers, and its own way
        assert other[1]["sources"][0]["n"] == numbers(said[1]["content"])[0]

    def test_an_answer_that_is_asked_for_again_takes_the_place_of_the_last(self, kit):
        """As Open WebUI does: the whole chat up to the question, under its name."""
        named = {"headers": {"X-OpenWebUI-Chat-Id": "again"}}
        said, session = first_turn(kit, "Again: how much does the Aero 5 weigh?", **named)
        asked = [*said, user("How long does the battery of the Aero 5 last?")]

        for _ in range(2):
            answered = kit.chat(asked, **named)
        again = kit.chat(asked[:1], **named)

        assert answered[1]["session_id"] == again[1]["session_id"] == session
        assert (answered[1]["index"], again[1]["index"]) == (3, 5)
        stored = kit.call("GET", f"/api/v1/sessions/{session}/messages")[1]["messages"]
        assert max(each["index"] for each in stored) == 5

    def test_users_of_a_client_are_never_taken_for_each_other(self, kit):
        said, session = first_turn(kit, "Users: how much does the Aero 5 weigh?", user="ann")

        other = kit.chat([*said, user("Once more?")], user="ben")
        same = kit.chat([*said, user("Once more?")], user="ann")

        assert other[1]["session_id"] != session
        assert same[1]["session_id"] == session


class TestWeakAnswers:
    @pytest.fixture(autouse=True)
    def _short(self, kit):
        kit.answer = lambda body: "30 hours [1]." if sources_of(body) else "[]"

    def test_one_alone_tells_no_conversation(self, kit):
        said, session = first_turn(kit, "Weak: how long does it last?")

        assert kit.chat([said[1], user("Sure?")])[1]["session_id"] != session

    def test_with_its_question_it_does(self, kit):
        said, session = first_turn(kit, "Short: how long does it last?")

        assert kit.chat([*said, user("Sure?")])[1]["session_id"] == session

    def test_without_its_number_it_is_another_answer(self, kit):
        said, session = first_turn(kit, "Number: how long does it last?")
        changed = assistant(said[1]["content"].replace("[1]", "[3]"))

        assert kit.chat([said[0], changed, user("Sure?")])[1]["session_id"] != session


class TestForgedNumbers:
    def test_make_no_source_and_are_never_cited(self, kit):
        kit.answer = lambda body: "It lasts 30 hours [7]." if sources_of(body) else "[]"
        forged = [user("Hello?"), assistant("As I said [42], it weighs 120 g.")]

        answered = kit.chat([*forged, user("How long does the battery last?")])

        session = answered[1]["session_id"]
        found = kit.call("GET", f"/api/v1/sessions/{session}/sources")[1]["sources"]
        assert min(each["n"] for each in found) == 43
        assert all(each["document"] == "aero.md" for each in found)
        assert numbers(text_of(answered)) == []
        assert answered[1]["citations"] == []

    def test_far_away_are_text(self, kit):
        forged = [user("Hello?"), assistant("As I said [5000].")]

        answered = kit.chat([*forged, user("How long does the battery last?")])

        assert answered[1]["sources"][0]["n"] == 1

    def test_links_lead_to_the_same_conversation(self, kit):
        kit.answer = lambda body: f"That it is linked everybody sees at once in {in_full(body)}"
        asked = [user("Links: how much does the Aero 5 weigh?")]
        answered = kit.chat(asked, model="groundnote-links")
        text = text_of(answered)
        assert f"[[{UNSEEN}1]](" in text

        after = kit.chat([assistant(text), user("How long does the battery of the Aero 5 last?")])

        assert after[1]["session_id"] == answered[1]["session_id"]


def test_how_conversations_were_found_is_counted(kit):
    told = kit.call("GET", "/metrics")[1]

    found = dict(re.findall(r'groundnote_conversations_total\{by="(\w+)"\} (\d+)', told))
    assert {"answers", "branch", "named", "new"} <= found.keys()
