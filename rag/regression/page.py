"""The report of a run as one page that needs nothing else: failures first, light and dark."""

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from rag.regression.report import Check, PlayedTurn, Replay, difference

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6670; --line: #d9dee3; --bad: #a3231f;
  --good: #20693a; --paper: #fff; --card: #f6f8f9; --mark: #2c6fb0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa6b1; --line: #39424b;
  --bad: #ff8f88; --good: #7fd19a; --paper: #15191d; --card: #1d2329; --mark: #77b6f2 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem }
table { border-collapse: collapse; width: 100% } .wide { overflow-x: auto }
th, td { text-align: left; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
a { color: inherit } .soft { color: var(--soft) } .bad { color: var(--bad) }
.good { color: var(--good) } .turn { border-left: 3px solid var(--line); margin: .8rem 0;
  padding: .1rem 0 .1rem .9rem } .turn.failed { border-color: var(--bad) }
.turn p { margin: .2rem 0 } details { margin: .3rem 0 } summary { cursor: pointer }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); padding: .7rem;
  margin: .3rem 0; font: .875rem/1.5 ui-monospace, monospace; border-radius: 4px }
svg { width: 100%; height: auto; display: block; margin: .5rem 0 } svg text { fill: var(--soft);
  font: 11px system-ui, sans-serif }
"""
WIDTH, HEIGHT, LEFT, FOOT = 900, 150, 48, 22  # of the plot


def as_page(replays: Sequence[Replay]) -> str:
    """A table of the conversations, and each with its turns; those that failed come first."""
    replays = sorted(replays, key=lambda each: each.passed)
    passed = sum(replay.passed for replay in replays)
    rows = Markup("").join(_row(place, replay) for place, replay in enumerate(replays))
    told = Markup("").join(_conversation(place, replay) for place, replay in enumerate(replays))
    page = Markup(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Conversations</title><style>{style}</style><h1>Conversations</h1>"
        "<p>{passed} of {count} passed.</p>"
        '<div class="wide"><table><thead><tr><th>Conversation<th>Result<th class="n">Turns'
        '<th class="n">Checks<th class="n">Most tokens</thead><tbody>{rows}</tbody></table></div>'
        "{told}</html>"
    )
    return str(
        page.format(style=Markup(STYLE), passed=passed, count=len(replays), rows=rows, told=told)
    )


def _row(place: int, replay: Replay) -> Markup:
    failed = len(replay.failures)
    said = "passed" if replay.passed else f"{failed} failed" if failed else "wrong file"
    return Markup(
        '<tr><td><a href="#c{}">{}</a><td class="{}">{}<td class="n">{}<td class="n">{}'
        '<td class="n">{:,}'
    ).format(
        place,
        replay.title,
        "good" if replay.passed else "bad",
        said,
        len(replay.turns),
        len(replay.checks),
        max((turn.tokens for turn in replay.turns), default=0),
    )


def _conversation(place: int, replay: Replay) -> Markup:
    error = Markup('<p class="bad">{}</p>').format(replay.error) if replay.error else Markup("")
    head = Markup('<h2 id="c{}">{}</h2><p class="soft">{}</p>').format(
        place, replay.title, replay.file
    )
    failed = Markup("").join(_turn(turn) for turn in replay.turns if turn.failures)
    every = Markup("").join(_turn(turn) for turn in replay.turns)
    text = f"All {len(replay.turns)} turns"
    whole = Markup("<details><summary>{}</summary>{}</details>").format(text, every)
    return head + error + plot(replay.turns) + failed + whole


def _turn(turn: PlayedTurn) -> Markup:
    failed = " failed" if turn.failures else ""
    parts = [
        Markup("<p><strong>{}. {}</strong> {}").format(turn.number, turn.action, turn.said),
        *(
            Markup('<p class="soft">searched for: {}').format(turn.resolved)
            if turn.resolved
            else "",
        ),
        *(_failure(turn, check) for check in turn.failures),
        _folded("Answer", turn.answer),
        _sources(turn),
        _folded("Summary", turn.summary),
        *(_folded("Brought back for a question", each) for each in turn.recalled),
    ]
    return Markup('<div class="turn{}">{}</div>').format(failed, Markup("").join(parts))


def _failure(turn: PlayedTurn, check: Check) -> Markup:
    """Of what is folded below nothing is repeated."""
    told = difference(replace(turn, answer="", resolved="", cited=()), check).partition("\n")[2]
    return Markup('<pre class="bad">{}</pre>').format(told)


def _folded(name: str, text: str) -> Markup:
    if not text:
        return Markup("")
    return Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(name, text)


def _sources(turn: PlayedTurn) -> Markup:
    rows = Markup("").join(
        Markup("<tr><td>[{}]<td>{}<td>{}<td>{}").format(c.number, c.document, c.place, c.verdict)
        for c in turn.cited
    )
    return Markup('<div class="wide"><table>{}</table></div>').format(rows) if rows else rows


def plot(turns: Sequence[PlayedTurn]) -> Markup:
    """Tokens that a model would be sent after each turn; summaries are marked."""
    most = max((turn.tokens for turn in turns), default=0)
    if len(turns) < 2 or not most:
        return Markup("")
    step = (WIDTH - LEFT - 8) / (len(turns) - 1)
    places = [
        (LEFT + index * step, (HEIGHT - FOOT) * (1 - turn.tokens / most) + 6)
        for index, turn in enumerate(turns)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = Markup("").join(
        Markup(
            '<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="var(--mark)"><title>{}</title></circle>'
        ).format(x, y, f"turn {turn.number}: summarised")
        for turn, (x, y) in zip(turns, places, strict=True)
        if turn.action == "compress"
    )
    return Markup(
        '<svg viewBox="0 0 {w} {h}" role="img" aria-label="Tokens after each turn, at most {most}">'
        '<text x="0" y="14">{most:,}</text><text x="0" y="{foot}">tokens</text>'
        '<text x="{left}" y="{h}">turn 1</text>'
        '<text x="{w}" y="{h}" text-anchor="end">turn {last}</text>'
        '<polyline points="{line}" fill="none" stroke="var(--mark)" stroke-width="1.5"/>'
        "{marks}</svg>"
    ).format(
        w=WIDTH, h=HEIGHT, most=most, foot=HEIGHT - FOOT, left=LEFT, last=turns[-1].number,
        line=line, marks=marks,
    )  # fmt: skip
