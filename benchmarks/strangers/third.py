"""Six trades, their answers written down before anything was asked, and counted at first sight."""

# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random
from statistics import median

from benchmarks.strangers.figures import (
    Record,
    Talks,
    Trade,
    average,
    count,
    day_of,
    distinct,
    ends,
    euros,
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

# ── Vets ─────────────────────────────────────────────────────────────────────────────────────


def visits(chance: random.Random, size: int) -> list[Record]:
    fees, weights = distinct(chance, size, 25, 900 + size), distinct(chance, size, 2, 950 + size)
    return [
        {
            "patient": f"Pet {at + 1}", "species": chance.choice(["dog", "cat", "rabbit"]),
            "vet": chance.choice(["Lindqvist", "Moss", "Okafor"]), "fee": fees[at],
            "seen": day_of(chance, 2023, 2025), "weight": weights[at] / 10,
            "insured": chance.random() < 0.5,
            "reason": chance.choice(["vaccination", "surgery", "check-up", "dental"]),
        }
        for at in range(size)
    ]  # fmt: skip


def visits_written(row: Record) -> list[str]:
    return [row["patient"], row["species"], row["vet"], row["seen"].isoformat(),
        f"{row['weight']:.1f}", f"£{row['fee']}", "yes" if row["insured"] else "no",
        row["reason"]]  # fmt: skip


def visits_talks(rows: list[Record]) -> Talks:
    dogs = of(rows, species="dog")
    own = of(dogs, vet="Moss")
    yield [
        ("How many dogs did Moss see?", count(own)),
        ("how many of those were insured?", count(of(own, insured=True))),
        ("And cats?", count(of(rows, species="cat", vet="Moss", insured=True))),
        ("What did they pay on average?",
         average(of(rows, species="cat", vet="Moss", insured=True), "fee")),
        ("break it down by reason",
         per(of(rows, species="cat", vet="Moss", insured=True), "reason", means("fee"))),
        ("How many snakes were treated?", None),
    ]  # fmt: skip
    yield [
        ("Total fees per vet in 2024",
         per(where(rows, lambda r: r["seen"].year == 2024), "vet", sums("fee"))),
        ("excluding surgery",
         per(where(rows, lambda r: r["seen"].year == 2024 and r["reason"] != "surgery"),
             "vet", sums("fee"))),
        ("sort it from highest to lowest",
         per(where(rows, lambda r: r["seen"].year == 2024 and r["reason"] != "surgery"),
             "vet", sums("fee"))),
        ("just the top vet",
         ends(per(where(rows, lambda r: r["seen"].year == 2024 and r["reason"] != "surgery"),
                  "vet", sums("fee")), 1)),
        ("Which rabbit is the heaviest?", ranked(of(rows, species="rabbit"), "weight", 1,
                                                 "patient")),
        ("the two lightest", ranked(of(rows, species="rabbit"), "weight", 2, "patient", low=True)),
    ]  # fmt: skip


# ── Claims ───────────────────────────────────────────────────────────────────────────────────


def claims(chance: random.Random, size: int) -> list[Record]:
    asked = distinct(chance, size, 500, 90_000 + size)
    return [
        {
            "id": f"CL-{20_000 + at}", "filed": day_of(chance, 2022, 2024),
            "peril": chance.choice(["fire", "flood", "theft", "hail"]), "claimed": asked[at],
            "paid": chance.randint(100, 95_000), "county": chance.choice(["Kerry", "Mayo", "Cork"]),
            "adjuster": chance.choice(["Byrne", "Doyle", "Farrell", "Hickey"]),
            "state": chance.choice(["open", "settled", "settled", "rejected"]),
        }
        for at in range(size)
    ]  # fmt: skip


def claims_written(row: Record) -> list[str]:
    return [row["id"], row["filed"].strftime("%d/%m/%Y"), row["peril"], row["county"],
        row["adjuster"], f"€{row['claimed']:,}", f"€{row['paid']:,}", row["state"]]  # fmt: skip


def claims_talks(rows: list[Record]) -> Talks:
    flood = of(rows, peril="flood")
    more = where(rows, lambda r: r["paid"] > r["claimed"])
    yield [
        ("How much was paid for flood claims in total?", total(flood, "paid")),
        ("and fire?", total(of(rows, peril="fire"), "paid")),
        ("only in Mayo", total(of(rows, peril="fire", county="Mayo"), "paid")),
        ("for all counties", total(of(rows, peril="fire"), "paid")),
        ("per county", per(of(rows, peril="fire"), "county", sums("paid"))),
        ("as a percentage", shares(per(of(rows, peril="fire"), "county", sums("paid")))),
    ]
    yield [
        ("For how many claims was more paid than claimed?", count(more)),
        ("Which adjuster settled the most claims?",
         ends(per(of(rows, state="settled"), "adjuster", len), 1)),
        ("How many claims over €50,000 were rejected?",
         count(where(rows, lambda r: r["claimed"] > 50_000 and r["state"] == "rejected"))),
        ("list them",
         listed(where(rows, lambda r: r["claimed"] > 50_000 and r["state"] == "rejected"), "id")),
        ("How many claims were filed in the second quarter of 2023?",
         count(where(rows, lambda r: r["filed"].year == 2023 and 4 <= r["filed"].month <= 6))),
        ("what about the third?",
         count(where(rows, lambda r: r["filed"].year == 2023 and 7 <= r["filed"].month <= 9))),
    ]  # fmt: skip


# ── Fuhrpark ─────────────────────────────────────────────────────────────────────────────────


def cars(chance: random.Random, size: int) -> list[Record]:
    driven = distinct(chance, size, 1_000, 200_000 + size)
    return [
        {
            "plate": f"KA-FP {100 + at}", "maker": chance.choice(["Škoda", "Opel", "Renault"]),
            "base": chance.choice(["Ulm", "Trier", "Kassel"]), "driven": driven[at],
            "use": chance.randint(40, 120) / 10, "first": day_of(chance, 2016, 2024),
            "electric": chance.random() < 0.3, "repairs": chance.randint(0, 400_000) / 100,
        }
        for at in range(size)
    ]  # fmt: skip


def cars_written(row: Record) -> list[str]:
    return [row["plate"], row["maker"], row["base"], f"{row['driven']:,}".replace(",", "."),
        f"{row['use']:.1f}".replace(".", ","), row["first"].strftime("%d.%m.%Y"),
        "ja" if row["electric"] else "nein", euros(row["repairs"])]  # fmt: skip


def cars_talks(rows: list[Record]) -> Talks:
    opel = of(rows, maker="Opel")
    far = where(rows, lambda r: r["driven"] > 150_000)
    yield [
        ("Wie viele Fahrzeuge stehen in Ulm?", count(of(rows, base="Ulm"))),
        ("wie viele davon sind elektrisch?", count(of(rows, base="Ulm", electric=True))),
        ("und in Kassel?", count(of(rows, base="Kassel", electric=True))),
        ("Werkstattkosten pro Marke", per(rows, "maker", sums("repairs"))),
        ("nur Trier", per(of(rows, base="Trier"), "maker", sums("repairs"))),
        ("absteigend sortiert", per(of(rows, base="Trier"), "maker", sums("repairs"))),
    ]
    yield [
        ("Welche Fahrzeuge haben mehr als 150.000 Kilometer?", listed(far, "plate")),
        ("Wie hoch ist der durchschnittliche Verbrauch der Opel?", average(opel, "use")),
        ("und bei Renault?", average(of(rows, maker="Renault"), "use")),
        ("Die fünf Fahrzeuge mit den höchsten Werkstattkosten", ranked(rows, "repairs", 5,
                                                                       "plate")),
        ("Wie viele Fahrzeuge wurden vor 2020 zugelassen?",
         count(where(rows, lambda r: r["first"].year < 2020))),
        ("Wie viele Fahrzeuge hatten einen Unfall?", None),
    ]  # fmt: skip


# ── Episodes ─────────────────────────────────────────────────────────────────────────────────


def episodes(chance: random.Random, size: int) -> list[Record]:
    heard, minutes = (
        distinct(chance, size, 900, 60_000 + size),
        distinct(chance, size, 9, 99 + size),
    )
    return [
        {
            "title": f"No. {at + 1}", "host": chance.choice(["Ines", "Jamal", "Wei"]),
            "topic": chance.choice(["history", "science", "music"]), "heard": heard[at],
            "out": day_of(chance, 2022, 2024), "minutes": minutes[at],
            "sponsor": chance.choice(["", "Brightleaf", "Corvus"]),
        }
        for at in range(size)
    ]  # fmt: skip


def episodes_written(row: Record) -> list[str]:
    return [row["title"], row["host"], row["topic"], row["out"].strftime("%b %d, %Y"),
        str(row["minutes"]), str(row["heard"]), row["sponsor"]]  # fmt: skip


def episodes_talks(rows: list[Record]) -> Talks:
    science = of(rows, topic="science")
    yield [
        ("Top 3 science episodes by downloads", ranked(science, "heard", 3, "title")),
        ("top 5 instead", ranked(science, "heard", 5, "title")),
        ("same for music", ranked(of(rows, topic="music"), "heard", 5, "title")),
        ("How many downloads did each host get?", per(rows, "host", sums("heard"))),
        ("since 2023", per(where(rows, lambda r: r["out"].year >= 2023), "host", sums("heard"))),
        ("and the median?",
         per(where(rows, lambda r: r["out"].year >= 2023), "host",
             lambda own: median(r["heard"] for r in own))),
    ]  # fmt: skip
    yield [
        ("How many episodes have no sponsor?", count(of(rows, sponsor=""))),
        ("What's the longest episode hosted by Wei?", ranked(of(rows, host="Wei"), "minutes", 1,
                                                             "title")),
        ("and the shortest?", ranked(of(rows, host="Wei"), "minutes", 1, "title", low=True)),
        ("when was it published?",
         [(day.strftime("%b %d, %Y"),)
          for (day,) in ranked(of(rows, host="Wei"), "minutes", 1, "out", low=True)]),
        ("Average minutes per topic", per(rows, "topic", means("minutes"))),
        ("Downloads per year",
         [(year, sum(r["heard"] for r in rows if r["out"].year == year))
          for year in (2022, 2023, 2024)]),
    ]  # fmt: skip


# ── Museum ───────────────────────────────────────────────────────────────────────────────────


def objects(chance: random.Random, size: int) -> list[Record]:
    worth = distinct(chance, size, 1_000, 500_000 + size)
    return [
        {
            "object": f"Inv. {1_000 + at}", "kind": chance.choice(["vase", "coin", "mask", "map"]),
            "period": chance.choice(["Baroque", "Roman", "Gothic"]), "worth": worth[at],
            "bought": chance.randint(1950, 2020), "lent": chance.random() < 0.3,
            "gallery": chance.choice(["North wing", "South wing", "Depot"]),
        }
        for at in range(size)
    ]  # fmt: skip


def objects_written(row: Record) -> list[str]:
    return [row["object"], row["kind"], row["period"], row["gallery"], str(row["bought"]),
        f"{row['worth']:,}", "yes" if row["lent"] else "no"]  # fmt: skip


def objects_talks(rows: list[Record]) -> Talks:
    roman = of(rows, period="Roman")
    recent = where(roman, lambda r: 1980 <= r["bought"] <= 2000)
    yield [
        ("How many Roman objects were acquired between 1980 and 2000?", count(recent)),
        ("how many are on loan?", count(of(recent, lent=True))),
        ("What is the total insured value of the masks?", total(of(rows, kind="mask"), "worth")),
        ("and of the coins?", total(of(rows, kind="coin"), "worth")),
        ("in the Depot", total(of(rows, kind="coin", gallery="Depot"), "worth")),
        ("the average instead", average(of(rows, kind="coin", gallery="Depot"), "worth")),
    ]
    yield [
        ("Most valuable object in each gallery",
         [(name, max(of(rows, gallery=name), key=lambda r: r["worth"])["object"])
          for name in sorted({r["gallery"] for r in rows})]),
        ("Number of objects by kind and period",
         sorted((k, p, len(of(rows, kind=k, period=p))) for k in {r["kind"] for r in rows}
                for p in {r["period"] for r in rows} if of(rows, kind=k, period=p))),
        ("without the maps",
         sorted((k, p, len(of(rows, kind=k, period=p))) for k in {r["kind"] for r in rows}
                for p in {r["period"] for r in rows}
                if of(rows, kind=k, period=p) and k != "map")),
        ("drop the period",
         [pair for pair in per(rows, "kind", len) if pair[0] != "map"]),
        ("What is the difference in insured value between Gothic and Baroque objects?",
         [(abs(sums("worth")(of(rows, period="Gothic")) -
               sums("worth")(of(rows, period="Baroque"))),)]),
        ("How many objects were stolen?", None),
    ]  # fmt: skip


# ── Fines ────────────────────────────────────────────────────────────────────────────────────


STREETS = ("Elm Road", "Mill Lane", "Quay")


def fines(chance: random.Random, size: int) -> list[Record]:
    return [
        {
            "notice": f"PN{40_000 + at}", "street": chance.choice(STREETS),
            "officer": chance.choice(["17", "23", "42"]), "issued": day_of(chance, 2024, 2024),
            "amount": chance.choice([30, 45, 60, 90]), "paid": chance.random() < 0.6,
            "vehicle": chance.choice(["car", "van", "motorbike"]),
        }
        for at in range(size)
    ]  # fmt: skip


def fines_written(row: Record) -> list[str]:
    return [row["notice"], row["street"], f"Officer {row['officer']}", row["issued"].isoformat(),
        f"${row['amount']}.00", "Y" if row["paid"] else "N", row["vehicle"]]  # fmt: skip


def fines_talks(rows: list[Record]) -> Talks:
    spring = where(rows, lambda r: r["issued"].month == 3)
    unpaid = of(rows, paid=False)
    yield [
        ("How many fines were issued in March?", count(spring)),
        ("in April?", count(where(rows, lambda r: r["issued"].month == 4))),
        ("compare both months",
         [(month, len(where(rows, lambda r, month=month: r["issued"].month == month)))
          for month in (3, 4)]),
        ("What is the total amount of unpaid fines?", total(unpaid, "amount")),
        ("by street", per(unpaid, "street", sums("amount"))),
        ("Mill Lane only", [("Mill Lane", sum(r["amount"] for r in unpaid
                                              if r["street"] == "Mill Lane"))]),
    ]  # fmt: skip
    busy = per(rows, "street", len)
    yield [
        ("Which street got the fewest fines?", ends(busy, 1, low=True)),
        ("and the most?", ends(busy, 1)),
        ("Show me the number of fines per month",
         [(m, len(where(rows, lambda r, m=m: r["issued"].month == m))) for m in range(1, 13)
          if where(rows, lambda r, m=m: r["issued"].month == m)]),
        ("vans only",
         [(m, len(where(of(rows, vehicle="van"), lambda r, m=m: r["issued"].month == m)))
          for m in range(1, 13)
          if where(of(rows, vehicle="van"), lambda r, m=m: r["issued"].month == m)]),
        ("as a line chart",
         [(m, len(where(of(rows, vehicle="van"), lambda r, m=m: r["issued"].month == m)))
          for m in range(1, 13)
          if where(of(rows, vehicle="van"), lambda r, m=m: r["issued"].month == m)]),
        ("How many fines were appealed?", None),
    ]  # fmt: skip


THIRD = (
    Trade("vets", visits, visits_written,
        ("Patient", "Species", "Vet", "Visit", "Weight (kg)", "Fee", "Insured", "Reason"),
        visits_talks),
    Trade("claims", claims, claims_written,
        ("Claim", "Filed", "Peril", "County", "Adjuster", "Claimed", "Paid", "Status"),
        claims_talks),
    Trade("fuhrpark", cars, cars_written,
        ("Kennzeichen", "Marke", "Standort", "Kilometerstand", "Verbrauch (l/100 km)",
         "Erstzulassung", "Elektrisch", "Werkstattkosten"), cars_talks),
    Trade("episodes", episodes, episodes_written,
        ("Episode", "Host", "Topic", "Published", "Minutes", "Downloads", "Sponsor"),
        episodes_talks),
    Trade("museum", objects, objects_written,
        ("Object", "Kind", "Period", "Gallery", "Acquired", "Insured value", "On loan"),
        objects_talks),
    Trade("fines", fines, fines_written,
        ("Notice", "Street", "Officer", "Issued", "Amount", "Paid", "Vehicle"), fines_talks),
)  # fmt: skip
