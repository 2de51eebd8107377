"""A small fleet under load whose servers go away one after the other, and whose processes die."""

from benchmarks.load import load


def test_no_acknowledged_answer_is_lost_whatever_goes_away():
    told = []

    report, log = load(sessions=12, clients=3, seconds=3.0, between=2.0, tell=told.append)

    assert report.told["answered"] == len(report.answers) > 60, told
    assert report.lost == []
    assert report.pending == 0
    assert report.wrong == [], log
    assert report.uploads
    assert report.undone == []
    assert "Traceback" not in log, log
    assert len(log.splitlines()) < 80, log
