"""What clients and models may ask of a context (The summary that the mission asks for, 10)."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag.errors import NotFound
from rag.records import Source
from tests.model_application import World, calling
from tests.openai_server import failure, reply

TOO_LONG = failure(400, "maximum context length exceeded.", code="context_length_exceeded")
SEVEN = [(f"How heavy is part {n}?", f"Part {n} weighs {n} g. " * 6) for n in range(7)]
UUID = "0b6c7b9e-7c0e-4a54-9c3c-3a1f0a4f5c10"


@pytest.fixture
def world(tmp_path):
    with World(tmp_path, context_window=8_000) as world:
        yield world


def sent(world, request=-1):
    """The messages of a request to the model."""
    return world.server.requests[request].body["messages"]


def post(world, path, **body):
    return world.client.post(f"/api/v1/sessions{path}", json=body)


class TestAServerThatFindsItTooLong:
    def test_gets_a_pair_less_each_time_down_to_none(self, world):
        world.told(*SEVEN)

        world.ask("How heavy is the Aero 5?", *[TOO_LONG] * 7, reply("It weighs 120 g [1]."))

        assert [len(sent(world, at)) for at in range(8)] == [2 + 2 * n for n in range(7, -1, -1)]

    def test_gets_what_fits_at_once_where_it_says_so(self, world):
        world.told(*SEVEN)
        told = failure(400, "maximum context length is 1800 tokens, you requested 4000 tokens")

        world.ask("How heavy is the Aero 5?", told, reply("It weighs 120 g [1]."))

        assert len(sent(world, 1)) < len(sent(world, 0)) - 2

    def test_is_sent_less_from_the_next_question_on(self, world):
        world.told(*SEVEN)
        world.ask("How heavy is the Aero 5?", TOO_LONG, reply("It weighs 120 g [1]."))

        stats = world.client.get(world.at("/context")).get_json()["stats"]
        assert stats["window"] == 6_000


class TestWhatARequestMayWrite:
    @pytest.mark.parametrize(
        ("published", "options", "most"),
        [
            pytest.param(None, {}, 3_140, id="two fifths"),
            pytest.param(None, {"max_tokens": 900}, 900, id="the setting"),
            pytest.param(700, {}, 700, id="what is published"),
            pytest.param(700, {"max_tokens": 900}, 700, id="the least of them"),
            pytest.param(9_000, {"max_tokens": 5_000}, 3_140, id="never more than its share"),
        ],
    )
    def test_is_the_least_of_its_share_the_published_limit_and_the_setting(
        self, tmp_path, published, options, most
    ):
        with World(tmp_path, tools=False, **options) as world:
            row = {"id": "fake", "context_length": 8_000, "max_output_tokens": published}
            world.server.models = [row]
            world.ask("How heavy is the Aero 5?", reply("It weighs 120 g [1]."))

            assert world.server.requests[-1].body["max_tokens"] == most


class TestContextPreferences:
    @pytest.fixture
    def searched(self, world):
        """What is sent in the turn after one in which the model searched and wished something."""

        def wish(**more):
            world.told(*SEVEN, ("Which colour?", "Cerulean is the colour of part 9."), *SEVEN)
            config = {"compression_strategy": "sliding_window", "recent_message_count": 6}
            world.client.put(world.at(""), json={"context_config": config})
            search = calling(("search_session_history", {"query": "Cerulean is", "limit": 1}))
            range_ = {"start_message_index": 0, "end_message_index": 1}
            wished = calling(("request_context_slice", range_ | more))
            world.ask("Which colour was it?", search, wished, reply("It weighs 120 g [1]."))
            world.ask("How heavy is the Aero 5?", reply("It weighs 120 g [1]."))
            return sent(world)

        return wish

    def test_search_results_come_into_the_next_context_once(self, world, searched):
        shown = searched(include_search_results=True)
        world.ask("How heavy is the Aero 5 Pro?", reply("It weighs 140 g [1]."))

        assert "Cerulean is the colour of part 9." in shown[-1]["content"]
        assert "Cerulean" not in str(sent(world))

    def test_search_results_stay_out_where_nobody_wished_them(self, searched):
        assert "Cerulean is the colour" not in str(searched())

    @pytest.mark.parametrize(("most", "messages"), [(0, 2), (4, 4), (5, 4), (None, 8)])
    def test_no_more_messages_than_wished_are_in_the_next_context(
        self, world, searched, most, messages
    ):
        assert len(searched(max_context_messages=most)) == messages
        world.ask("How heavy is the Aero 5 Pro?", reply("It weighs 140 g [1]."))
        assert len(sent(world)) == 8

    def test_a_negative_number_changes_nothing(self, searched):
        assert len(searched(max_context_messages=-1)) == 8


class TestAnIdOfTheClientsOwn:
    @pytest.mark.parametrize("own", ["a", "chat-7.of_Ann", UUID, "x" * 64])
    def test_begins_a_session_that_goes_on(self, world, own):
        world.server.behaviours[:] = [reply("It weighs 120 g [1]."), reply("It runs 30 hours [2].")]
        first = post(world, f"/{own}/messages", content="How heavy is the Aero 5?").get_json()
        second = post(world, f"/{own}/messages", content="How long does it run?").get_json()

        session = world.client.get(f"/api/v1/sessions/{own}").get_json()
        assert (first["index"], second["index"]) == (1, 3)
        assert (session["client_id"], session["message_count"]) == (own, 4)
        assert session["id"] == first["session_id"] != own

    @pytest.mark.parametrize("wrong", ["-a", ".a", "a b", "x" * 65, "ä", "0" * 32])
    def test_is_refused_where_it_is_none(self, world, wrong):
        assert post(world, f"/{wrong}/messages", content="How heavy?").status_code == 404

    def test_begins_empty_after_it_was_deleted(self, world):
        world.server.behaviours[:] = [reply("It weighs 120 g [1].")] * 2
        first = post(world, "/mine/messages", content="How heavy is the Aero 5?").get_json()
        assert world.client.delete("/api/v1/sessions/mine").status_code == 204
        assert world.client.get("/api/v1/sessions/mine").status_code == 404
        second = post(world, "/mine/messages", content="How heavy is the Aero 5?").get_json()

        assert second["index"] == 1
        assert first["session_id"] != second["session_id"]

    def test_is_anothers_own_and_never_shown(self, world):
        store = world.application.store
        hers = store.open_or_create("mine", owner="ann")
        his = store.open_or_create("mine", owner="ben")

        assert hers.id != his.id
        assert store.open("mine", owner="ann").id == hers.id
        with pytest.raises(NotFound):
            store.open(hers.id, owner="ben")

    def test_is_one_session_however_many_begin_it_at_once(self, world):
        store = world.application.store
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: store.open_or_create("mine", owner="ann").id, range(8)))

        assert len(set(made)) == 1


class TestSharedSessions:
    @pytest.fixture
    def other(self, world):
        """Another talk of the same owner, with a source of its own."""
        session = world.application.store.create("local")
        text = "Cerulean dries in 9 hours."
        source = Source(
            number=1, chunk_id="c9", document_id="", document_name="paint.md", locator="",
            document_title="Paint", heading_path=(), text=text, passage=text, content_hash="h",
        )  # fmt: skip
        session.register_sources([source])
        bring(
            world, session, "How long does cerulean dry? I paint on Fridays.", f"{text[:-1]} [1]."
        )
        return session

    def share(self, world, *ids):
        return world.client.put(world.at(""), json={"context_config": {"share": list(ids)}})

    def test_are_read_with_numbers_of_this_one(self, world, other):
        world.ask("How heavy is the Aero 5?", reply("It weighs 120 g [1]."))
        shared = self.share(world, other.id).get_json()["context_config"]["share"]
        world.ask("How long does cerulean dry?", reply("I do not know."))

        shown = sent(world)[-1]["content"]
        sources = world.client.get(world.at("/sources")).get_json()["sources"]
        (ours,) = [source["n"] for source in sources if source["title"] == "Paint"]
        assert shared == [other.id]
        assert ours > 1
        assert f"Cerulean dries in 9 hours [{ours}]." in shown
        assert "I paint on Fridays." in shown

    def test_are_gone_once_they_are_deleted(self, world, other):
        self.share(world, other.id)
        other.delete()
        world.ask("How long does cerulean dry?", reply("I do not know."))

        assert "9 hours" not in str(sent(world))

    def test_are_read_as_far_as_they_went_at_the_question(self, world, other):
        self.share(world, other.id)
        bring(world, other, "My cerulean is from Delft.", "Noted.")
        world.ask("Where is my cerulean from?", reply("From Delft."))

        assert "My cerulean is from Delft." in sent(world)[-1]["content"]

    def test_must_be_the_callers_own(self, world):
        hers = world.application.store.create("ann")

        assert self.share(world, hers.id).status_code == 404
        assert self.share(world, "nothing").status_code == 404


def bring(world, session, question, answer):
    """A turn into a session, from elsewhere."""
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    assert post(world, f"/{session.id}/import", messages=messages).status_code == 201


@pytest.fixture
def imported(tmp_path):
    """A conversation from elsewhere, far longer than the window."""
    with World(tmp_path / "imported", context_window=4_000) as imported:
        messages = [
            {"role": role, "content": text}
            for n in range(1, 121)
            for role, text in (
                ("user", f"What about part {n} of the Aero 5?"),
                (
                    "assistant",
                    f"Part {n} of the Aero 5 weighs {n} g [{n % 20 + 1}].",
                ),
            )
        ]
        sources = [{"n": n, "document": "parts.md", "text": f"Part {n}."} for n in range(1, 21)]
        body = {"messages": messages, "sources": sources}
        assert imported.client.post(imported.at("/import"), json=body).status_code < 300
        yield imported


def test_what_was_just_imported_is_shown_with_the_summary_that_will_be_sent(imported):
    read = imported.client.get(imported.at("/context")).get_json()

    text = "\n".join(message["content"] for message in read["messages"])
    assert {int(n) for n in re.findall(r"\[(\d+)\]", text)} == set(range(1, 21))
    assert read["stats"]["kept"]["citations_required"] == 20
    assert read["stats"]["tokens"] <= read["stats"]["budget"]
    # Reading has written nothing.
    assert imported.client.get(imported.at("/summaries")).get_json()["summaries"] == []

    imported.ask("How much does the Aero 5 weigh?", reply("The Aero 5 weighs 120 g."))

    sent = imported.server.requests[-1].body["messages"][0]["content"]
    assert sent == read["messages"][0]["content"]
