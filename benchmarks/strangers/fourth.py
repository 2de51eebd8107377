"""Three trades, written when the rules stood, and counted at first sight."""

# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random

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

# ── Hives ────────────────────────────────────────────────────────────────────────────────────


def hives(chance: random.Random, size: int) -> list[Record]:
    honey = distinct(chance, size, 20, 900 + size)
    return [
        {
            "hive": f"H-{at + 1:03}", "yard": chance.choice(["Orchard", "Heath", "Riverside"]),
            "keeper": chance.choice(["Abel", "Birgit", "Cosmo"]), "honey": honey[at] / 10,
            "checked": day_of(chance, 2024, 2025), "mites": chance.randint(0, 40),
            "breed": chance.choice(["Carnica", "Buckfast"]), "wintered": chance.random() < 0.6,
        }
        for at in range(size)
    ]  # fmt: skip


def hives_written(row: Record) -> list[str]:
    return [row["hive"], row["yard"], row["keeper"], row["breed"], row["checked"].isoformat(),
        f"{row['honey']:.1f}", str(row["mites"]), "yes" if row["wintered"] else "no"]  # fmt: skip


def hives_talks(rows: list[Record]) -> Talks:
    heath = of(rows, yard="Heath")
    yield [
        ("How much honey did the Heath yard give?", total(heath, "honey")),
        ("and Orchard?", total(of(rows, yard="Orchard"), "honey")),
        ("split by keeper", per(of(rows, yard="Orchard"), "keeper", sums("honey"))),
        ("only Buckfast", per(of(rows, yard="Orchard", breed="Buckfast"), "keeper", sums("honey"))),
        ("who has the most?",
         ends(per(of(rows, yard="Orchard", breed="Buckfast"), "keeper", sums("honey")), 1)),
    ]  # fmt: skip
    mites = where(rows, lambda r: r["mites"] > 30)
    yield [
        ("Which hives have more than 30 mites?", listed(mites, "hive")),
        ("how many are there?", count(mites)),
        ("What share of the hives is wintered?",
         [(100 * len(of(rows, wintered=True)) / len(rows),)]),
        ("Average mites per breed", per(rows, "breed", means("mites"))),
        ("How many hives swarmed?", None),
    ]  # fmt: skip


# ── Loans ────────────────────────────────────────────────────────────────────────────────────


def loans(chance: random.Random, size: int) -> list[Record]:
    sums_ = distinct(chance, size, 1_000, 80_000 + size)
    return [
        {
            "loan": f"K{500 + at}", "branch": chance.choice(["Bonn", "Jena", "Köln"]),
            "purpose": chance.choice(["Auto", "Küche", "Umbau"]), "amount": sums_[at],
            "rate": chance.randint(20, 95) / 10, "start": day_of(chance, 2022, 2024),
            "repaid": chance.random() < 0.4,
        }
        for at in range(size)
    ]  # fmt: skip


def loans_written(row: Record) -> list[str]:
    return [row["loan"], row["branch"], row["purpose"], f"{row['amount']:,} €".replace(",", "."),
        f"{row['rate']:.1f} %".replace(".", ","), row["start"].strftime("%d.%m.%Y"),
        "ja" if row["repaid"] else "nein"]  # fmt: skip


def loans_talks(rows: list[Record]) -> Talks:
    bonn = of(rows, branch="Bonn")
    yield [
        ("Wie hoch ist die Summe der Beträge in Bonn?", total(bonn, "amount")),
        ("und in Jena?", total(of(rows, branch="Jena"), "amount")),
        ("nach Zweck", per(of(rows, branch="Jena"), "purpose", sums("amount"))),
        ("als Anteil", shares(per(of(rows, branch="Jena"), "purpose", sums("amount")))),
        ("Wie viele Kredite sind getilgt?", count(of(rows, repaid=True))),
    ]
    big = where(rows, lambda r: r["amount"] > 40_000)
    yield [
        ("Wie viele Kredite haben einen Betrag über 40.000 Euro?", count(big)),
        ("davon mit Zweck Auto", count(of(big, purpose="Auto"))),
        ("Durchschnittlicher Zinssatz pro Filiale", per(rows, "branch", means("rate"))),
        ("Der größte Betrag in Köln", ranked(of(rows, branch="Köln"), "amount", 1, "amount")),
        ("Wie viele Kredite wurden abgelehnt?", None),
    ]


# ── Trails ───────────────────────────────────────────────────────────────────────────────────


def trails(chance: random.Random, size: int) -> list[Record]:
    length = distinct(chance, size, 10, 400 + size)
    climbs = distinct(chance, size, 50, 2_400 + size)
    return [
        {
            "trail": f"Path {at + 1}", "valley": chance.choice(["Alba", "Corvo", "Serra"]),
            "grade": chance.choice(["easy", "moderate", "hard"]), "length": length[at] / 10,
            "climb": climbs[at], "dogs": chance.random() < 0.5,
            "opened": chance.randint(1960, 2023), "walkers": chance.randint(100, 9_000),
        }
        for at in range(size)
    ]  # fmt: skip


def trails_written(row: Record) -> list[str]:
    return [row["trail"], row["valley"], row["grade"], f"{row['length']:.1f} km",
        f"{row['climb']:,} m", "yes" if row["dogs"] else "no", str(row["opened"]),
        str(row["walkers"])]  # fmt: skip


def trails_talks(rows: list[Record]) -> Talks:
    hard = of(rows, grade="hard")
    yield [
        ("What are the 3 longest hard trails?", ranked(hard, "length", 3, "trail")),
        ("and the easy ones?", ranked(of(rows, grade="easy"), "length", 3, "trail")),
        ("the shortest instead", ranked(of(rows, grade="easy"), "length", 3, "trail", low=True)),
        ("How many trails are between 10 and 20 km?",
         count(where(rows, lambda r: 10 <= r["length"] <= 20))),
        ("by valley", per(where(rows, lambda r: 10 <= r["length"] <= 20), "valley", len)),
    ]  # fmt: skip
    old = where(rows, lambda r: r["opened"] < 1990)
    yield [
        ("How many walkers did Serra have in total?", total(of(rows, valley="Serra"), "walkers")),
        ("excluding hard trails",
         total(where(rows, lambda r: r["valley"] == "Serra" and r["grade"] != "hard"), "walkers")),
        ("What is the average climb of trails opened before 1990?", average(old, "climb")),
        ("where dogs are allowed", average(of(old, dogs=True), "climb")),
        ("Which valley has the most trails?", ends(per(rows, "valley", len), 1)),
        ("How many trails have a hut?", None),
    ]  # fmt: skip


FOURTH = (
    Trade("hives", hives, hives_written,
        ("Hive", "Yard", "Keeper", "Breed", "Checked", "Honey (kg)", "Mites", "Wintered"),
        hives_talks),
    Trade("kredite", loans, loans_written,
        ("Kredit", "Filiale", "Zweck", "Betrag", "Zinssatz", "Beginn", "Getilgt"), loans_talks),
    Trade("trails", trails, trails_written,
        ("Trail", "Valley", "Grade", "Length", "Climb", "Dogs", "Opened", "Walkers"),
        trails_talks),
)  # fmt: skip
