"""Messages of one session that hold the words of a question, best first.

PostgreSQL ranks them itself. The rank of SQLite's text index reads every message of the session,
and every holder of a word in any session; so there, the few that can matter are ranked here.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from heapq import nlargest
from math import log
from operator import add
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    TextClause,
    bindparam,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy import text as sql

from rag.database import messages, storable
from rag.seams import MatchedMessage
from rag.sessions.owned import OWNED, Key, absent, check, found

ALIKE_WEIGHT = 0.1  # of words of about the same meaning
INSTEAD_WEIGHT = 0.4  # the same where no message holds the word itself
COMMON = 100  # messages of one session: a word in more of them tells little, and costs much
COMBINED = 3  # common words that are looked up together with others: the rarest
NEWEST = 1_000  # messages among which words that are all common are looked up first
MOST_WORDS = 24
LAST = 2**31 - 1  # beyond the index of any message
USUAL_CHARACTERS = 400  # of a message; longer ones hold a word more easily


def matching(
    connection: Connection,
    key: Key,
    words: Sequence[str],
    *,
    alike: Mapping[str, Sequence[str]],
    before: int | None,
    limit: int,
) -> list[MatchedMessage]:
    """Messages that hold any of the words, or one `alike`, best first. Raises NotFound."""
    end = LAST if before is None else before
    wanted = [word for word in map(storable, words) if any(c.isalnum() for c in word)]
    if not wanted:
        check(connection, key)
        return []
    if connection.dialect.name == "sqlite":
        return _matching_sqlite(connection, key, wanted[:MOST_WORDS], alike, end, limit)
    return _matching_postgresql(connection, key, wanted, alike, end, limit)


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────


def _matching_sqlite(
    connection: Connection,
    key: Key,
    words: Sequence[str],
    alike: Mapping[str, Sequence[str]],
    before: int,
    limit: int,
) -> list[MatchedMessage]:
    own = {word: _any_of([word]) for word in words}
    others = {word: _any_of(alike[word]) for word in words if alike.get(word)}
    every = [*own.values(), *others.values()]
    message_count, known = _holders(connection, key, every, before=before, most=COMMON + 1)
    weights = {
        near: ALIKE_WEIGHT if own[word] in known else INSTEAD_WEIGHT
        for word, near in others.items()
    }
    telling = {word: rows for word, rows in known.items() if len(rows) <= COMMON}
    if telling:
        common = [word for word in _rarest(known) if word not in telling]
        telling |= _narrowed(connection, key, telling, common, before)
        scores = _scores(telling, weights, message_count)
        best = nlargest(limit, scores, key=lambda row: (scores[row], row))
        weighed = [
            (row, scores[row.row] * _brevity(row.length)) for row in _at(connection, key, best)
        ]
    else:
        meant = [[own[word], others.get(word, "")] for word in words]
        meant = [[each for each in both if each in known] for both in meant]
        meant.sort(key=lambda both: min((_rarest(known).index(each) for each in both), default=0))
        together = [f"({' OR '.join(both)})" for both in meant if both][:COMBINED]
        rows = _combined(connection, key, together, message_count, before)[-limit:]
        weighed = [(row, 1.0) for row in _at(connection, key, rows)]
    weighed.sort(key=lambda pair: (-pair[1], -pair[0].index))
    return _once((row.index, score, row.turn, row.role) for row, score in weighed)


def _any_of(words: Iterable[str]) -> str:
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    return f"({' OR '.join(quoted)})"


# A session's messages lie side by side in the index (see migration 0003): `low` is before the
# first, `high` after the last that counts. Backwards, the index would be read from its end: so
# forwards only.
_MINE = (
    "WITH mine AS (SELECT min(message_count, :before) AS message_count, "
    'number * 4294967296 AS low, coalesce(number * 4294967296 - 1 + (SELECT "row" FROM messages '
    'WHERE session_id = :its_id AND "index" >= :before ORDER BY "index", revision LIMIT 1), '
    "(number + 1) * 4294967296) AS high FROM sessions JOIN messages_words_sessions "
    "ON session_id = id WHERE id = :its_id AND owner = :its_owner) "
)
_HELD = "rowid & 4294967295 AS held FROM messages_words WHERE messages_words MATCH"


@cache
def _holders_of(words: int) -> TextClause:
    """How many messages there are, and the first rows that hold each word, in one statement."""
    held = [
        f"SELECT {place}, (SELECT group_concat(held) FROM (SELECT {_HELD} :word_{place} "
        "AND rowid BETWEEN (SELECT low FROM mine) AND (SELECT high FROM mine) LIMIT :most))"
        for place in range(words)
    ]
    return sql(_MINE + " UNION ALL ".join(["SELECT -1, message_count FROM mine", *held]))


def _holders(
    connection: Connection, key: Key, quoted: Sequence[str], *, before: int, most: int
) -> tuple[int, dict[str, list[int]]]:
    """How many messages there are, and the rows of each word that is known."""
    asked = {f"word_{place}": word for place, word in enumerate(quoted)}
    rows = connection.execute(
        _holders_of(len(quoted)), key.asking(before=before, most=most, **asked)
    )
    held: dict[int, Any] = {row[0]: row[1] for row in rows}
    if -1 not in held:
        raise absent(key)
    message_count = held.pop(-1)
    return message_count, {
        quoted[place]: list(map(int, rows.split(","))) for place, rows in held.items() if rows
    }


def _scores(
    telling: Mapping[str, Sequence[int]], weights: Mapping[str, float], message_count: int
) -> dict[int, float]:
    """What the words that a row holds tell together: the rarer a word, the more (as in BM25)."""
    scores: dict[int, float] = {}
    for word, rows in telling.items():
        others = max(0, message_count - len(rows))
        weight = weights.get(word, 1.0) * log(1 + (others + 0.5) / (len(rows) + 0.5))
        for row in rows:
            scores[row] = scores.get(row, 0.0) + weight
    return scores


def _narrowed(
    connection: Connection, key: Key, telling: Iterable[str], common: Sequence[str], before: int
) -> dict[str, list[int]]:
    """Of the rows with telling words, those that hold a common one as well."""
    any_of = " OR ".join(telling)
    asked = [f"({any_of}) AND {word}" for word in common[:COMBINED]]
    return _holders(connection, key, asked, before=before, most=NEWEST)[1] if asked else {}


def _rarest(known: Mapping[str, Sequence[int]]) -> list[str]:
    """Of common words the rarest first: those whose first holders lie farthest apart."""
    return sorted(known, key=lambda word: known[word][0] - known[word][-1])


def _combined(
    connection: Connection, key: Key, words: Sequence[str], message_count: int, before: int
) -> list[int]:
    """Rows that hold all of these common words, else any: the newest, where there are many."""
    newest = max(0, message_count - NEWEST)
    if not words:
        return []
    for join in (" AND ", " OR "):
        asked = key.asking(wanted=join.join(words), since=0, before=before, most=NEWEST)
        if newest:
            asked["most"] = COMMON
        rows = connection.execute(_SINCE, asked).scalars().all()
        if newest and len(rows) == COMMON:
            asked |= {"since": newest, "most": NEWEST}
            rows = connection.execute(_SINCE, asked).scalars().all() or rows
        if rows:
            return list(rows)
    return []


_SINCE = sql(
    f"{_MINE} SELECT {_HELD} :wanted AND rowid BETWEEN (SELECT low FROM mine) + "
    '(SELECT "row" FROM messages WHERE session_id = :its_id AND "index" >= :since '
    'ORDER BY "index", revision LIMIT 1) AND (SELECT high FROM mine) LIMIT :most'
)
_BY_ROW = sql(  # CROSS JOIN: from the rows to the messages, never through the whole session
    'SELECT "row", "index", length(content) AS length, turn, role FROM json_each(:rows) AS wanted '
    'CROSS JOIN messages ON "row" = wanted.value WHERE session_id = :its_id AND EXISTS '
    "(SELECT 1 FROM sessions WHERE id = :its_id AND owner = :its_owner)"
)


def _at(connection: Connection, key: Key, rows: Sequence[int]) -> Sequence[Any]:
    """What is known of the messages in these rows."""
    return found(connection, key, _BY_ROW, rows=json.dumps(rows)) if rows else []


def _brevity(characters: int) -> float:
    """By how much a score is worth more in a short message, and less in a long one (as in BM25)."""
    return 2.2 / (1 + 1.2 * (0.25 + 0.75 * characters / USUAL_CHARACTERS))


def _once(matches: Iterable[Any]) -> list[MatchedMessage]:
    """Of several revisions of a message the best, which comes first."""
    best: dict[int, MatchedMessage] = {}
    for match in matches:
        best.setdefault(match[0], MatchedMessage(*match))
    return list(best.values())


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────


def _matching_postgresql(
    connection: Connection,
    key: Key,
    words: Sequence[str],
    alike: Mapping[str, Sequence[str]],
    before: int,
    limit: int,
) -> list[MatchedMessage]:
    held: ColumnElement[Any] = literal_column("words")
    own = [func.plainto_tsquery("english", word) for word in words]
    others = [
        func.plainto_tsquery("english", each) for word in words for each in alike.get(word, ())
    ]
    any_word = or_(*(held.op("@@")(each) for each in [*own, *others]))
    ranks: list[ColumnElement[Any]] = [func.ts_rank_cd(held, each) for each in own]
    ranks += [INSTEAD_WEIGHT * func.ts_rank_cd(held, each) for each in others]
    rank = reduce(add, ranks)
    query = (
        select(messages.c.index, rank.label("score"), messages.c.turn, messages.c.role)
        .where(
            messages.c.session_id == bindparam("its_id"), OWNED, messages.c.index < before, any_word
        )
        .order_by(rank.desc())
        .limit(limit)
    )
    return _once(found(connection, key, query))
