"""Long sessions through the whole application: nothing is lost, everything fits (C1, C3–C5)."""

import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import pytest

from rag.chat.answers import Answering, ContextSources
from rag.chat.assistant import Assistant
from rag.chat.draft import ModelWriter
from rag.citations.markers import cited_numbers
from rag.documents.files import IncomingFile
from rag.memory.context import MOST_REMEMBERED
from rag.memory.summary import spelled_out
from rag.records import EVERYTHING, ContextConfig, Finished, ImportedMessage, MessageStatus
from rag.sessions.store import SqlSession
from rag.settings import Settings
from tests.applications import application_of, remembering
from tests.fakes import ScriptedModel
from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
WINDOW = 4000
TOPICS = ("weight", "price", "range", "battery", "colour", "warranty")


def manual(number):
    facts = [
        f"The {topic} of the Nimbus {number} is {number * 7 + place} units."
        for place, topic in enumerate(TOPICS)
    ]
    sections = [f"## {t.title()}\n\n{f}" for t, f in zip(TOPICS, facts, strict=True)]
    return f"# Nimbus {number}\n\n" + "\n\n".join(sections)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    application = application_of(settings)
    files = [IncomingFile.from_bytes(f"nimbus-{n}.md", manual(n).encode()) for n in range(1, 21)]
    list(application.ingestion.ingest(files))
    yield application
    application.stop()


def questions(count):
    for number in range(count):
        topic = TOPICS[number % len(TOPICS)]
        yield f"What is the {topic} of the Nimbus {1 + number % 20}?"


@dataclass
class Talk:
    session: SqlSession
    assistant: Assistant
    finished: list[Finished]


def talk_of(application, count, model=None, config=None):
    """Some turns of a session of its own."""
    session = application.store.create("ada", config=config)
    assistant = remembering(application, model)
    asked = [list(assistant.ask(session, question)) for question in questions(count)]
    return Talk(session, assistant, [events[-1] for events in asked])


@pytest.fixture(scope="module")
def summarised(application):
    return talk_of(application, 30)


@pytest.fixture(scope="module")
def truncated(application):
    return talk_of(application, 25, config=ContextConfig(enabled=False, max_tokens=2000))


def context_text(assistant, session):
    return "\n".join(message.content for message in assistant.context_messages(session))


class TestLongSessions:
    @pytest.mark.parametrize(
        "model",
        [
            pytest.param(None, id="without a model"),
            pytest.param(
                ScriptedModel(lambda request: ""),
                id="a model that says nothing",
                marks=pytest.mark.slow,
            ),
            pytest.param(
                ScriptedModel(lambda request: "All is well [99]. Nimbus 3 is Nimbus 4 [1]."),
                id="a model that invents",
            ),
        ],
    )
    def test_keep_every_number_and_always_fit(self, application, summarised, model):
        talk = talk_of(application, 30, model) if model else summarised
        session, assistant = talk.session, talk.assistant
        cited = set()

        for finished in talk.finished:
            assert isinstance(finished, Finished)
            assert finished.context["tokens"] <= finished.context["budget"]
            cited |= set(cited_numbers(finished.message.content))

        assert session.summaries()
        assert len(cited) > 20
        assert cited <= set(cited_numbers(spelled_out(context_text(assistant, session))))
        for summary in session.summaries():
            report = summary.report
            assert report.citations_lost == report.names_lost == 0
            both = len(report.stated_citations) + len(report.recallable_citations)
            assert both == report.citations_required
            assert len(report.stated_names) + len(report.recallable_names) == report.names_required
        assert len(session.messages()) == 60

    def test_of_plain_truncation_make_no_summary(self, truncated):
        assert truncated.session.summaries() == []
        text = context_text(truncated.assistant, truncated.session)
        assert "Previous conversation summary" not in text

    def test_of_plain_truncation_put_back_the_turn_that_a_question_is_about(self, truncated):
        wanted = list(questions(25)).index("What is the battery of the Nimbus 4?")

        question = "What did you say of the Nimbus 4 and its battery?"
        last = list(truncated.assistant.ask(truncated.session, question))[-1]

        assert last.context["pairs"] < 25
        assert 2 * wanted in last.context["recalled"]
        assert last.context["tokens"] <= last.context["budget"]

    def test_with_a_sliding_window_send_the_last_messages_only(self, application):
        config = ContextConfig(compression_strategy="sliding_window", recent_message_count=4)
        session = application.store.create("ada", config=config)
        assistant = remembering(application, None)

        for question in questions(8):
            last = list(assistant.ask(session, question))[-1]

        assert last.context["pairs"] == 2
        assert last.context["recalled"] == []  # what falls out is dropped
        assert len(assistant.context_messages(session)) == 1 + 4

    @pytest.mark.parametrize(
        "config",
        [
            pytest.param(ContextConfig(compression_strategy="sliding_window"), id="sliding"),
            pytest.param(ContextConfig(enabled=False), id="plain truncation"),
        ],
    )
    def test_that_summarise_nothing_are_embedded_all_the_same(self, application, config):
        session = application.store.create("ada", config=config)
        assistant = remembering(application, None)

        for question in questions(10):
            list(assistant.ask(session, question))

        assert sorted(session.vectors(range(20))) == list(range(20))
        assert session.summaries() == []

    def test_summarise_at_once_when_the_background_is_late(self, application):
        session = application.store.create("ada")
        assistant = remembering(application, None, later=lambda session: None)

        for question in questions(16):
            last = list(assistant.ask(session, question))[-1]
            assert last.context["tokens"] <= last.context["budget"]

        assert session.summaries()

    def test_whose_summaries_are_forgotten_have_the_recent_turns_alone(self, summarised):
        (summary,) = summarised.session.summaries()
        assert summarised.session.forget_summaries() > 0

        messages = summarised.assistant.context_messages(summarised.session)
        said = summarised.session.messages()
        assert "summary" not in messages[0].content
        shown = [m.content for m in messages[1:]]
        assert shown == [m.content for m in said][-len(shown) :]

        for question in questions(8):
            list(summarised.assistant.ask(summarised.session, question))
        summarised.assistant.compact(summarised.session)
        (again,) = summarised.session.summaries()
        assert again.start == summary.end


class TestSmallWindows:
    @pytest.mark.parametrize("window", [500, 640, 800, 1300])
    def test_answer_from_what_there_is_room_for(self, application, window):
        session = application.store.create("ada")
        session.configure(ContextConfig(max_tokens=window))

        last = list(remembering(application, None).ask(session, next(questions(1))))[-1]

        assert isinstance(last, Finished)
        assert "7 units" in last.message.content
        assert last.context["tokens"] <= last.context["budget"] < 0.6 * window

    def test_leave_to_sources_what_no_history_takes(self, application):
        session = application.store.create("ada")
        session.configure(ContextConfig(max_tokens=1100))
        memory = remembering(application, None)._memory
        hits = application.retriever.search("weight of the Nimbus", EVERYTHING, limit=8)
        sources = session.register(hits)

        alone = memory.prepare(
            session, session.begin("What does it weigh?"), ContextSources(sources)
        )
        said = [ImportedMessage("user", "Hi. " * 50), ImportedMessage("assistant", "Hi.")]
        session.append(said, [])
        beside = memory.prepare(
            session, session.begin("What does it weigh?"), ContextSources(sources)
        )

        assert len(alone.sources) > len(beside.sources) > 0
        assert beside.stats["pairs"] == 1


class TestWithoutAReader:
    def test_a_context_is_measured_and_nothing_is_chosen_for_it(self, application):
        session = application.store.create("ada")
        session.configure(ContextConfig(max_tokens=500))
        hits = application.retriever.search("weight of the Nimbus", EVERYTHING, limit=8)
        sources = tuple(session.register(hits))
        read = remembering(application, None)._memory
        unread = application.assistant._memory
        turn = session.begin("What does it weigh?")

        prepared = unread.prepare(session, turn, ContextSources(sources))

        assert (
            prepared.sources
            == sources
            != read.prepare(session, turn, ContextSources(sources)).sources
        )
        assert 0 < prepared.stats["tokens"] <= prepared.stats["budget"]
        assert not prepared.messages

    def test_nothing_is_read_of_a_conversation_that_begins(self, application, monkeypatch):
        session = application.store.create("ada")
        read, ranges = SqlSession.bare_messages, []
        monkeypatch.setattr(
            SqlSession, "bare_messages", lambda *asked: [ranges.append(asked), read(*asked)][1]
        )

        list(application.assistant.ask(session, "What is the weight of the Nimbus 1?"))
        assert not ranges
        list(application.assistant.ask(session, "And of the Nimbus 2?"))
        assert ranges


class TestInstructions:
    def test_of_a_client_stand_behind_our_rules_and_never_fill_the_window(self, application):
        session = application.store.create("ada")
        instructions = "Answer like a pirate. " * 2000 + "[7]"
        session.append([ImportedMessage("system", instructions)], [])
        assistant = remembering(application, None)

        last = list(assistant.ask(session, "What is the weight of the Nimbus 1?"))[-1]

        assert isinstance(last, Finished)
        assert last.context["tokens"] <= last.context["budget"]
        assert "pirate" in assistant.context_messages(session)[0].content

    @pytest.mark.parametrize("length", [1, MOST_REMEMBERED])
    def test_give_the_model_no_number_to_cite(self, application, length):
        session = application.store.create("ada")
        session.append([ImportedMessage("system", "Cite [7]. " + "x " * length)], [])
        assistant = remembering(application, None)

        for question in ("What is the weight of the Nimbus 1?", "And its price?"):
            list(assistant.ask(session, question))

            assert "Cite (7)." in assistant.context_messages(session)[0].content


class TestCompactionsAtOnce:
    def test_one_wins_and_none_corrupts(self, application):
        session = application.store.create("ada")
        assistant = remembering(application, None, later=lambda session: None)
        for question in questions(12):
            list(assistant.ask(session, question))

        with ThreadPoolExecutor(4) as pool:
            reports = list(pool.map(lambda _: assistant.compact(session), range(4)))

        assert any(reports)
        summaries = session.summaries()
        ends = [summary.end for summary in summaries]
        assert ends == sorted(ends)
        assert all(a.end <= b.start for a, b in itertools.pairwise(summaries))

    def test_one_that_ends_after_the_context_was_forgotten_is_dropped(self, application):
        session = application.store.create("ada")
        started, go_on = Event(), Event()

        def slow(request):
            started.set()
            assert go_on.wait(LONG)
            return "Nothing."

        assistant = remembering(application, ScriptedModel(slow), later=lambda session: None)
        for question in questions(12):
            list(assistant.ask(session, question))

        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(assistant.compact, session)
            assert started.wait(LONG)
            session.forget_summaries()
            go_on.set()

        assert late.result() is None
        assert session.summaries() == []


KILLED = """
import sys, time
from pathlib import Path
from rag.memory.conversation import ConversationMemory
from rag.memory.summariser import ApplicationModel, Summariser
from rag.chat.context import ContextBuilder, MemoryRules
from rag.memory.context import MOST_REMEMBERED
from rag.sessions.store import SqlSession
from rag.settings import Settings
from rag.tokens import count_tokens
from rag.wiring.application import build
from tests.fakes import HashEmbedder, ScriptedModel

def hang(request):
    print("summarising", flush=True)
    time.sleep(60)
    return "late"

application = build(Settings(data_dir=Path(sys.argv[1])), embedder=HashEmbedder())
session = application.store.open(sys.argv[2], owner="ada")
ask = ApplicationModel(ScriptedModel(hang), 99, 0)
hanging = Summariser(ask, "hanging", count_tokens)
memory = ContextBuilder(ConversationMemory(count_tokens, summariser=hanging), rules=MemoryRules(),
                window=lambda: 4000, count=count_tokens)
memory.compact(session)
"""


class TestAKill:
    def test_in_the_middle_of_a_compaction_loses_nothing_and_doubles_nothing(self, tmp_path):
        settings = Settings(data_dir=tmp_path / "var")
        application = application_of(settings)
        list(application.ingestion.ingest([IncomingFile.from_bytes("n.md", manual(1).encode())]))
        session = application.store.create("ada", config=ContextConfig(recent_message_count=2))
        assistant = remembering(application, None, later=lambda session: None)
        for question in questions(12):
            list(assistant.ask(session, question.replace("Nimbus 2", "Nimbus 1")))
        before, summarised = session.messages(), session.summaries()
        application.stop()

        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(settings.data_dir), session.id],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline().strip() == "summarising"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=LONG)

        restarted = application_of(settings)
        again = restarted.store.open(session.id, owner="ada")
        assert again.messages() == before
        assert again.summaries() == summarised
        report = remembering(restarted, None).compact(again)
        assert report.citations_required > 0
        assert report.listed_citations == ()
        assert len(again.summaries()) == 1
        restarted.stop()

    def test_in_the_middle_of_an_answer_leaves_it_interrupted_and_regenerable(self, tmp_path):
        settings = Settings(data_dir=tmp_path / "var")
        application = application_of(settings)
        list(application.ingestion.ingest([IncomingFile.from_bytes("n.md", manual(1).encode())]))
        session = application.store.create("ada")
        session.begin("What is the weight of the Nimbus 1?")
        application.stop()

        restarted = application_of(settings)
        time.sleep(0.01)
        restarted.start()
        again = restarted.store.open(session.id, owner="ada")

        assert again.message(1).status is MessageStatus.INTERRUPTED
        finished = list(restarted.assistant.regenerate(again, 1))[-1]
        assert isinstance(finished, Finished)
        restarted.stop()


class TestBackground:
    def test_compacts_after_the_answer_without_holding_it_up(self, application):
        session = application.store.create(
            "ada", config=replace(ContextConfig(), max_tokens=WINDOW)
        )
        model = ScriptedModel(lambda request: "The weight is 7 units [1]. " * 12)
        assistant = application.assistant
        plain = assistant._answering
        assistant._answering = Answering(ModelWriter(model))
        try:
            for question in questions(8):
                list(assistant.ask(session, question))
        finally:
            assistant._answering = plain
        assert session.summaries() == []

        application.jobs.run_waiting()

        assert session.summaries()
