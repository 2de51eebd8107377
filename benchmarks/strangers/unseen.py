"""Four trades, written before the rules changed for `second`; unseen once, known since."""

# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random
from datetime import date

from benchmarks.strangers.figures import (
    Record,
    Talks,
    Trade,
    average,
    count,
    day_of,
    distinct,
    ends,
    listed,
    means,
    of,
    per,
    ranked,
    shares,
    sums,
    total,
    where,
)

# ── Tickets ──────────────────────────────────────────────────────────────────────────────────


def tickets(chance: random.Random, size: int) -> list[Record]:
    return [
        {
            "id": f"T-{700 + at}", "opened": day_of(chance, 2023, 2025),
            "severity": chance.choice(["minor", "major", "critical"]),
            "product": chance.choice(["Lumen", "Nimbus", "Quartz"]),
            "agent": chance.choice(["Ada", "Boris", "Carmen"]),
            "hours": chance.randint(1, 900) / 10, "reopened": chance.random() < 0.3,
        }
        for at in range(size)
    ]  # fmt: skip


def tickets_written(row: Record) -> list[str]:
    return [row["id"], row["opened"].isoformat(), row["severity"], row["product"], row["agent"],
        f"{row['hours']:.1f}", "yes" if row["reopened"] else "no"]  # fmt: skip


def tickets_talks(rows: list[Record]) -> Talks:
    bad = of(rows, severity="critical")
    late = where(rows, lambda r: r["severity"] == "critical" and r["opened"].year == 2025)
    yield [
        ("How many critical tickets were opened in 2025?", count(late)),
        ("and major ones?",
         count(where(rows, lambda r: r["severity"] == "major" and r["opened"].year == 2025))),
        ("per agent", per(
            where(rows, lambda r: r["severity"] == "major" and r["opened"].year == 2025),
            "agent", len)),
    ]  # fmt: skip
    yield [
        ("Average hours per product", per(rows, "product", means("hours"))),
        ("only reopened ones", per(of(rows, reopened=True), "product", means("hours"))),
        ("lowest first", ends(per(of(rows, reopened=True), "product", means("hours")), 9)),
    ]
    yield [
        ("Which agent handled the most critical tickets?", ends(per(bad, "agent", len), 1)),
        ("Tickets that took more than 80 hours",
         listed(where(rows, lambda r: r["hours"] > 80), "id")),
        ("What percentage of tickets was reopened?",
         [(100 * len(of(rows, reopened=True)) / len(rows),)]),
        ("How many tickets are about billing?", None),
    ]  # fmt: skip


# ── Harvests ─────────────────────────────────────────────────────────────────────────────────


def harvests(chance: random.Random, size: int) -> list[Record]:
    kilos = distinct(chance, size, 50, 9_000 + size)
    return [
        {
            "plot": f"Plot {at + 1}", "crop": chance.choice(["barley", "rye", "oats"]),
            "farmer": chance.choice(["Huber", "Keller", "Lang"]), "kilos": kilos[at],
            "year": chance.choice([2021, 2022, 2023]), "lost": chance.randint(0, 400),
            "organic": chance.random() < 0.5,
        }
        for at in range(size)
    ]  # fmt: skip


def harvests_written(row: Record) -> list[str]:
    return [row["plot"], row["crop"], row["farmer"], f"{row['kilos']:,}", str(row["year"]),
        str(row["lost"]), "yes" if row["organic"] else "no"]  # fmt: skip


def harvests_talks(rows: list[Record]) -> Talks:
    rye = of(rows, crop="rye")
    yield [
        ("Total harvest of rye", total(rye, "kilos")),
        ("by farmer", per(rye, "farmer", sums("kilos"))),
        ("as a share", shares(per(rye, "farmer", sums("kilos")))),
        ("and oats?", shares(per(of(rows, crop="oats"), "farmer", sums("kilos")))),
    ]
    yield [
        ("The three largest harvests", ranked(rows, "kilos", 3, "kilos")),
        ("the smallest instead", ranked(rows, "kilos", 3, "kilos", low=True)),
        ("How much was lost in 2022?", total(of(rows, year=2022), "lost")),
        ("und 2023?", total(of(rows, year=2023), "lost")),
        ("Which farmer lost the least?", ends(per(rows, "farmer", sums("lost")), 1, low=True)),
        ("How many plots does Keller farm without pesticides?", None),
    ]


# ── Lessons ──────────────────────────────────────────────────────────────────────────────────


def lessons(chance: random.Random, size: int) -> list[Record]:
    fees = distinct(chance, size, 20, 300 + size)
    return [
        {
            "course": f"Kurs {at + 1}", "subject": chance.choice(["Klavier", "Geige", "Gesang"]),
            "teacher": chance.choice(["Adler", "Busch", "Conrad"]), "fee": fees[at],
            "seats": chance.randint(4, 30), "start": day_of(chance, 2024, 2025),
            "online": chance.random() < 0.4,
        }
        for at in range(size)
    ]  # fmt: skip


def lessons_written(row: Record) -> list[str]:
    return [
        row["course"],
        row["subject"],
        row["teacher"],
        f"{row['fee']},00 €",
        str(row["seats"]),
        row["start"].strftime("%d.%m.%Y"),
        "ja" if row["online"] else "nein",
    ]


def lessons_talks(rows: list[Record]) -> Talks:
    violin = of(rows, subject="Geige")
    yield [
        ("Wie viele Kurse gibt Adler?", count(of(rows, teacher="Adler"))),
        ("nur online", count(of(rows, teacher="Adler", online=True))),
        ("und Busch?", count(of(rows, teacher="Busch", online=True))),
        ("Durchschnittliche Gebühr pro Fach", per(rows, "subject", means("fee"))),
        ("nur 2025", per(where(rows, lambda r: r["start"].year == 2025), "subject", means("fee"))),
    ]
    yield [
        ("Der teuerste Kurs in Geige", ranked(violin, "fee", 1, "course")),
        ("und der günstigste?", ranked(violin, "fee", 1, "course", low=True)),
        ("Welche Kurse beginnen nach dem 1. November 2025?",
         listed(where(rows, lambda r: r["start"] > date(2025, 11, 1)), "course")),
        ("Plätze insgesamt", total(rows, "seats")),
        ("Wie viele Kurse sind für Kinder?", None),
    ]  # fmt: skip


# ── Flights ──────────────────────────────────────────────────────────────────────────────────


def flights(chance: random.Random, size: int) -> list[Record]:
    return [
        {
            "flight": f"ZQ{300 + at}", "origin": chance.choice(["Basel", "Porto", "Riga"]),
            "seats": chance.randint(100, 180), "booked": chance.randint(80, 200),
            "delay": chance.randint(0, 120), "day": day_of(chance, 2024, 2025),
            "crew": chance.choice(["Alpha", "Bravo"]),
        }
        for at in range(size)
    ]  # fmt: skip


def flights_written(row: Record) -> list[str]:
    return [row["flight"], row["origin"], str(row["seats"]), str(row["booked"]),
        str(row["delay"]), row["day"].isoformat(), row["crew"]]  # fmt: skip


def flights_talks(rows: list[Record]) -> Talks:
    full = where(rows, lambda r: r["booked"] > r["seats"])
    yield [
        ("How many flights have more booked than seats?", count(full)),
        ("from Riga", count(of(full, origin="Riga"))),
        ("What is the average delay from Porto?", average(of(rows, origin="Porto"), "delay")),
        ("the maximum", [(max(r["delay"] for r in of(rows, origin="Porto")),)]),
        ("Delay by origin in 2024",
         per(where(rows, lambda r: r["day"].year == 2024), "origin", means("delay"))),
    ]  # fmt: skip
    yield [
        ("Flights with a delay between 60 and 75 minutes",
         listed(where(rows, lambda r: 60 <= r["delay"] <= 75), "flight")),
        ("only Bravo",
         listed(where(rows, lambda r: 60 <= r["delay"] <= 75 and r["crew"] == "Bravo"), "flight")),
        ("How many different crews are there?", count({r["crew"] for r in rows})),
        ("How many passengers missed their connection?", None),
        ("Booked by crew", per(rows, "crew", sums("booked"))),
    ]  # fmt: skip


UNSEEN = (
    Trade("tickets", tickets, tickets_written,
        ("Ticket", "Opened", "Severity", "Product", "Agent", "Hours", "Reopened"), tickets_talks),
    Trade("harvests", harvests, harvests_written,
        ("Plot", "Crop", "Farmer", "Harvest (kg)", "Year", "Lost (kg)", "Organic"),
        harvests_talks),
    Trade("kurse", lessons, lessons_written,
        ("Kurs", "Fach", "Lehrkraft", "Gebühr", "Plätze", "Beginn", "Online"), lessons_talks),
    Trade("flights", flights, flights_written,
        ("Flight", "Origin", "Seats", "Booked", "Delay (min)", "Day", "Crew"), flights_talks),
)  # fmt: skip
