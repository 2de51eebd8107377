"""What was said long ago comes back: real compactions, a real context, a server for the model."""

import pytest

from rag.documents.files import IncomingFile
from rag.memory.history import OPENS
from rag.records import Finished, ImportedMessage
from rag.settings import Settings
from tests.applications import application_of, remembering
from tests.model_application import World, final, of
from tests.openai_server import reply

TOPICS = {
    "warranty": "It is covered for {n} months",
    "battery": "It runs for {n} hours on one charge",
    "price": "It costs {n} euros",
    "delivery": "It arrives after {n} days",
}
PRODUCTS = ("Nimbus X2", "Nimbus X4", "Vega One", "Terra Hub", "Quill Lite", "Quill Pro")
PROBES = (
    "What did you say about the {topic} of the {product}?",
    "Earlier you told me about the {product}. What was its {topic}?",
)


@pytest.fixture
def application(tmp_path):
    settings = Settings(data_dir=tmp_path, context={"default_window": 4000})
    application = application_of(settings)
    chairs = IncomingFile.from_bytes("chairs.md", b"# Chairs\n\nEvery chair is green.")
    list(application.ingestion.ingest([chairs]))
    yield application
    application.stop()


def told_and_compacted(application, assistant, facts):
    """A session in which each fact is a turn, compacted three times on the way."""
    session = application.store.create("ada")
    third = len(facts) // 3
    for start in range(0, len(facts), third):
        turns = [
            message
            for (product, topic), text in facts[start : start + third]
            for message in (
                ImportedMessage("user", f"Tell me the {topic} of the {product}"),
                ImportedMessage("assistant", f"{text}, the {product} manual says."),
            )
        ]
        session.append(turns, [])
        assistant.compact(session)
    return session


def test_a_probe_after_three_compactions_finds_the_turn_or_the_summary_says_it(application):
    facts = [
        ((product, topic), text.format(n=10 + number))
        for number, product in enumerate(PRODUCTS)
        for topic, text in TOPICS.items()
    ]
    assistant = remembering(application, None)
    session = told_and_compacted(application, assistant, facts)
    evicted = max(summary.end for summary in session.summaries())
    indices = [2 * place for place in range(len(facts)) if 2 * place < evicted]
    assert session.summaries()
    assert len(indices) >= 18

    found = []
    for index in indices:
        product, topic = facts[index // 2][0]
        probe = PROBES[index // 2 % 2].format(product=product, topic=topic)
        *_, last = assistant.ask(session, probe)
        assert isinstance(last, Finished)
        assert last.context["tokens"] <= last.context["budget"]
        summary = session.summaries()[-1].text
        found.append(index in last.context["recalled"] or facts[index // 2][1] in summary)

    assert sum(found) >= 0.9 * len(found)


def test_nothing_is_recalled_or_embedded_where_no_model_reads_it(application):
    facts = [(("Nimbus X2", topic), text.format(n=10)) for topic, text in TOPICS.items()] * 6

    session = told_and_compacted(application, application.assistant, facts)
    *_, last = application.assistant.ask(session, "What was the warranty of the Nimbus X2?")

    assert session.summaries()
    assert last.context["recalled"] == []
    assert session.vectors_besides([]) == {}


@pytest.fixture
def world(tmp_path):
    with World(tmp_path) as world:
        yield world


@pytest.fixture
def long_ago(world):
    """The number under which the first turn cited its source; that turn is evicted since."""
    said = reply("The Aero 5 weighs 120 g [1].")
    world.client.put(world.at(""), json={"context_config": {"recent_message_count": 2}})
    first = world.ask("How much does the Aero 5 weigh?", said)
    world.told(*[(f"What about chair {n}?", f"Chair {n} is green.") for n in range(12)])
    world._behave([reply("They spoke of chairs.")])
    assert world.client.post(world.at("/compact")).get_json()["compacted"]
    return first["citations"][0]["n"]


def test_the_model_may_cite_what_a_recalled_turn_cited(world, long_ago):
    said = f"As I said, the Aero 5 weighs 120 g [{long_ago}]."

    events = world.stream("What did you say about the weight of the Aero 5?", reply(said))

    sent = [message["content"] for message in world.server.requests[0].body["messages"]]
    quoted = [content for content in sent if f"The Aero 5 weighs 120 g [{long_ago}]." in content]
    assert len(quoted) == 1, "in the summary, or recalled, but not twice"
    assert not quoted[0].startswith(OPENS) or quoted[0] is sent[-1]
    assert [citation["n"] for citation in final(events)["citations"]] == [long_ago]
    assert final(events)["content"] == said


def test_a_question_naming_a_number_gets_that_source_and_what_stands_around_it(world, long_ago):
    events = world.stream(
        f"Tell me more about [{long_ago}]", reply(f"It weighs 120 g [{long_ago}].")
    )

    [shown] = of(events, "sources")
    assert [source["n"] for source in shown["sources"]] == [long_ago]
    question = world.server.requests[0].body["messages"][-1]["content"]
    assert "The Aero 5 Pro weighs 140 g." in question
    assert f"[{long_ago}]" in question


def test_a_number_that_does_not_exist_is_said_so(world, long_ago):
    events = world.stream(
        f"Compare [{long_ago}] with [99]", reply(f"It weighs 120 g [{long_ago}].")
    )

    said = final(events)["content"]
    assert said.startswith("This conversation has no source number 99")
    assert "[99]" not in said


def test_a_question_that_stands_alone_is_no_followup(world, long_ago):
    events = world.stream("How long does the battery of the Aero 5 last?", reply("30 hours [1]."))

    [resolved] = of(events, "resolved")
    assert resolved["query"] == "How long does the battery of the Aero 5 last?"
    assert resolved["is_followup"] is False
