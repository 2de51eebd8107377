import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.records import ContextConfig, ImportedMessage
from rag.sessions.store import SqlConversationStore
from rag.web.openai.transcripts import SessionFinder, TranscriptTable, chain, link

MESSAGES = st.lists(
    st.builds(ImportedMessage, st.sampled_from(["user", "assistant"]), st.text(max_size=20)),
    max_size=6,
)


CONFIG = ContextConfig(recent_message_count=4)


def said(*texts):
    roles = ("user", "assistant")
    return [ImportedMessage(roles[place % 2], text) for place, text in enumerate(texts)]


class TestChain:
    @given(MESSAGES, MESSAGES)
    def test_of_a_beginning_is_the_beginning_of_the_chain(self, first, rest):
        assert chain(first + rest)[: len(first)] == chain(first)

    @given(st.text(max_size=20))
    def test_does_not_see_blanks_at_the_ends(self, text):
        assert link("", "user", f" {text.strip()}\n") == link("", "user", text)

    @pytest.mark.parametrize(
        "other", [said("a", "b", "d"), said("a", "x", "c"), said("a", "b"), said("b", "a", "c")]
    )
    def test_differs_between_conversations(self, other):
        assert chain(other)[-1] != chain(said("a", "b", "c"))[-1]

    def test_takes_half_a_surrogate_pair(self):
        assert chain([ImportedMessage("user", "\ud800")])


class TestFinder:
    @pytest.fixture
    def store(self, engine):
        return SqlConversationStore(engine)

    @pytest.fixture
    def table(self, engine):
        return TranscriptTable(engine)

    @pytest.fixture
    def find(self, store, table):
        finder = SessionFinder(store, table, config=CONFIG)
        return lambda past, **options: finder.session_for("anna", past, **options).session

    def grown(self, session, table, past, *texts):
        """The session after more messages, and its transcript."""
        more = said(*texts)
        session.append(more, [])
        table.remember(session, chain([*past, *more])[-1:], index=session.read().message_count)
        return [*past, *more]

    def test_begins_a_session_without_a_past(self, find):
        assert find([]).read().message_count == 0
        assert find([]).read().config == CONFIG
        assert find([]).id != find([]).id

    def test_goes_on_with_the_session_whose_end_it_is(self, find, table):
        session = find([])
        past = self.grown(session, table, [], "a", "b")
        past = self.grown(session, table, past, "c", "d")

        assert find(past).id == session.id

    def test_forks_where_a_transcript_leaves_the_session(self, find, table):
        session = find([])
        first = self.grown(session, table, [], "a", "b [1]")
        self.grown(session, table, first, "c", "d")

        fork = find([*first, *said("x", "y")])

        assert fork.id != session.id
        assert [m.content for m in fork.messages()] == ["a", "b [1]", "x", "y"]
        assert fork.sources() == session.sources()
        assert session.read().message_count == 4

    def test_forks_when_the_session_has_gone_on(self, find, table):
        session = find([])
        first = self.grown(session, table, [], "a", "b")
        self.grown(session, table, first, "c", "d")

        fork = find(first)

        assert fork.id != session.id
        assert [m.content for m in fork.messages()] == ["a", "b"]

    def test_gives_one_session_to_one_of_several_who_go_on_at_once(self, find, table):
        session = find([])
        past = self.grown(session, table, [], "a", "b")

        found = [find(past) for _ in range(3)]  # before any of them asks

        assert found[0].id == session.id
        assert len({each.id for each in found}) == 3
        assert [m.content for m in found[2].messages()] == ["a", "b"]

    def test_goes_on_with_neither_of_two_that_say_the_same(self, find, table):
        first, second = find([]), find([])
        past = self.grown(first, table, [], "a", "b")
        self.grown(second, table, [], "a", "b")

        assert find(past).id not in (first.id, second.id)
        assert first.read().message_count == second.read().message_count == 2

    def test_forks_where_another_went_on_since_it_was_looked_for(self, store, table):
        finder = SessionFinder(store, table, config=CONFIG)
        session = finder.session_for("anna", []).session
        past = self.grown(session, table, [], "a", "b")
        seen = table.find("anna", chain(past)[-1])
        assert table.go_on("anna", seen[0])
        table.known = lambda owner, hashes: [(len(hashes), seen)]

        assert finder.session_for("anna", past).session.id != session.id

    def test_lets_go_on_again_what_was_given_back(self, store, table):
        finder = SessionFinder(store, table, config=CONFIG)
        session = finder.session_for("anna", []).session
        past = self.grown(session, table, [], "a", "b")

        table.give_back("anna", finder.session_for("anna", past).state)

        assert finder.session_for("anna", past).session.id == session.id

    def test_imports_a_transcript_that_nobody_knows(self, find):
        session = find(said("a", "b"), instructions=["Be brief."])

        kept = [(m.role, m.content) for m in session.messages()]
        assert kept == [("system", "Be brief."), ("user", "a"), ("assistant", "b")]

    def test_forgets_deleted_sessions(self, find, table):
        session = find([])
        past = self.grown(session, table, [], "a", "b")
        session.delete()

        assert find(past).id != session.id

    def test_knows_only_the_owners_sessions(self, store, table, find):
        bens = store.create("ben")
        past = self.grown(bens, table, [], "a", "b")

        assert find(past).owner == "anna"
        assert table.find("anna", chain(past)[-1]) == []

    def test_may_be_told_a_state_twice(self, find, table):
        session = find([])
        past = self.grown(session, table, [], "a", "b")

        table.remember(session, chain(past)[-1:], index=2)

        assert len(table.find("anna", chain(past)[-1])) == 1
