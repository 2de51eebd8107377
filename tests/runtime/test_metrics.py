"""What is counted while serving."""

from rag.records import Failed, SummaryReport, Text
from rag.runtime.metrics import Metrics


def told(metrics):
    return metrics.render().decode()


class TestWatching:
    def test_counts_how_turns_end_and_passes_every_event_on(self):
        metrics = Metrics()
        events = [Text("a"), Text("b"), Failed(ValueError(), "no")]

        seen = list(metrics.watched(event for event in events))

        assert seen == events
        assert 'groundnote_turns_total{status="failed"} 1.0' in told(metrics)
        assert "groundnote_first_text_seconds_count 1.0" in told(metrics)
        assert "groundnote_turn_seconds_count 1.0" in told(metrics)

    def test_closing_it_closes_what_it_watches(self):
        closed = []

        def events():
            try:
                yield Text("a")
                yield Text("b")
            finally:
                closed.append(True)

        metrics = Metrics()
        watched = metrics.watched(events())
        next(watched)

        watched.close()

        assert closed == [True]
        assert 'groundnote_turns_total{status="interrupted"} 1.0' in told(metrics)


def test_a_summary_is_counted_by_what_became_of_its_citations():
    metrics = Metrics()

    metrics.count_summary(
        SummaryReport(
            4, 3, 4, 4, (1, 2), (3,), listed_citations=(7,), model="small", seconds=1.5, written=2
        )
    )

    assert 'groundnote_compactions_total{model="small"} 1.0' in told(metrics)
    assert 'groundnote_summary_citations_total{fate="stated"} 2.0' in told(metrics)
    assert 'groundnote_summary_citations_total{fate="listed"} 1.0' in told(metrics)
    assert 'groundnote_summary_lines_total{mark="written"} 2.0' in told(metrics)
