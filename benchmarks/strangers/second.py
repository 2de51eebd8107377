"""Five trades whose wrong answers were read when the rules were made a second time."""

# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random
from datetime import date, timedelta

from benchmarks.strangers.figures import (
    Record,
    Talks,
    Trade,
    Wanted,
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

# ── Samples ──────────────────────────────────────────────────────────────────────────────────


def samples(chance: random.Random, size: int) -> list[Record]:
    figures = distinct(chance, size, 10, 4_000 + size)
    return [
        {
            "id": f"LX{4_000 + at}", "test": chance.choice(["Glucose", "Ferritin", "Calcium"]),
            "analyst": chance.choice(["Bauer", "Costa", "Dietz", "Egger"]),
            "ward": chance.choice(["Cardiology", "Surgery", "Oncology"]),
            "taken": day_of(chance, 2022, 2024), "result": figures[at] / 100,
            "limit": chance.randint(200, 4_000) / 100, "minutes": chance.randint(5, 240),
            "flag": chance.choice(["normal", "normal", "high", "low"]),
        }
        for at in range(size)
    ]  # fmt: skip


def samples_written(row: Record) -> list[str]:
    return [row["id"], row["test"], row["analyst"], row["ward"], row["taken"].isoformat(),
        f"{row['result']:.2f}", f"{row['limit']:.2f}", str(row["minutes"]), row["flag"],
    ]  # fmt: skip


def samples_talks(rows: list[Record]) -> Talks:
    over = where(rows, lambda r: r["result"] > r["limit"])
    yield [
        ("How many samples have a result above the limit?", count(over)),
        ("per ward", per(over, "ward", len)),
        ("only Glucose", per(of(over, test="Glucose"), "ward", len)),
        ("and Calcium?", per(of(over, test="Calcium"), "ward", len)),
        ("as a percentage", shares(per(of(over, test="Calcium"), "ward", len))),
    ]
    year = where(rows, lambda r: r["taken"].year == 2023)
    yield [
        ("How many samples did Costa analyse in 2023?", count(of(year, analyst="Costa"))),
        (
            "and last year?",
            count(where(rows, lambda r: r["taken"].year == 2022 and r["analyst"] == "Costa")),
        ),
        (
            "by month",
            by_month(where(rows, lambda r: r["taken"].year == 2022 and r["analyst"] == "Costa")),
        ),
        ("Average minutes by test", per(rows, "test", means("minutes"))),
        ("the maximum", per(rows, "test", lambda own: max(r["minutes"] for r in own))),
    ]
    high = of(rows, flag="high")
    yield [
        ("Wie viele Proben sind high?", count(high)),
        ("nur Oncology", count(of(high, ward="Oncology"))),
        (
            "ohne Ferritin",
            count(where(high, lambda r: r["ward"] == "Oncology" and r["test"] != "Ferritin")),
        ),
        ("Welche Probe hat das höchste Ergebnis?", ranked(rows, "result", 1, "id")),
        (
            "Wie viele Proben wurden vor dem 1. Februar 2022 genommen?",
            count(where(rows, lambda r: r["taken"] < date(2022, 2, 1))),
        ),
    ]
    some = where(rows, lambda r: 100 <= r["minutes"] <= 120)
    yield [
        ("List samples that took between 100 and 120 minutes", listed(some, "id")),
        ("What is the result of LX4007?", [(rows[7]["result"],)]),
        ("Which analyst handled the most samples?", ends(per(rows, "analyst", len), 1)),
        ("What proportion of samples is low?", [(100 * len(of(rows, flag="low")) / len(rows),)]),
        ("How many samples were taken on a weekend?", None),
        (
            "Which samples have a result below 0.5?",
            listed(where(rows, lambda r: r["result"] < 0.5), "id"),
        ),
    ]


def by_month(rows: list[Record]) -> Wanted:
    return [(m, len(where(rows, lambda r, m=m: r["taken"].month == m)))
        for m in sorted({r["taken"].month for r in rows})]  # fmt: skip


# ── Energy ───────────────────────────────────────────────────────────────────────────────────

MONTHS = [date(2024, month, 1).strftime("%B") for month in range(1, 13)]


def energy(chance: random.Random, size: int) -> list[Record]:
    used = distinct(chance, size, 100, 90_000 + size)
    return [
        {
            "site": chance.choice(["Alder Mill", "Birch Depot", "Cedar House", "Dogwood Plant"]),
            "source": chance.choice(["solar", "wind", "grid", "gas"]),
            "year": chance.choice([2022, 2023, 2024]), "month": chance.choice(MONTHS),
            "consumed": used[at], "fed": chance.randint(0, 60_000),
            "cost": chance.randint(1_000, 900_000) / 100, "outages": chance.randint(0, 6),
        }
        for at in range(size)
    ]  # fmt: skip


def energy_written(row: Record) -> list[str]:
    return [row["site"], row["source"], str(row["year"]), row["month"], str(row["consumed"]),
        str(row["fed"]), f"{row['cost']:,.2f}", str(row["outages"])]  # fmt: skip


def energy_talks(rows: list[Record]) -> Talks:
    solar = of(rows, source="solar", year=2024)
    yield [
        ("Total consumption from solar in 2024", total(solar, "consumed")),
        ("and wind?", total(of(rows, source="wind", year=2024), "consumed")),
        ("by site", per(of(rows, source="wind", year=2024), "site", sums("consumed"))),
        ("the year before", per(of(rows, source="wind", year=2023), "site", sums("consumed"))),
        (
            "only the top 2",
            ends(per(of(rows, source="wind", year=2023), "site", sums("consumed")), 2),
        ),
    ]
    yield [
        ("Wie hoch waren die Kosten im Mai 2023?", total(of(rows, month="May", year=2023), "cost")),
        ("und im Juni?", total(of(rows, month="June", year=2023), "cost")),
        ("Kosten pro Standort", per(rows, "site", sums("cost"))),
        (
            "nur gas und grid",
            per(where(rows, lambda r: r["source"] in ("gas", "grid")), "site", sums("cost")),
        ),
        (
            "im Durchschnitt",
            per(where(rows, lambda r: r["source"] in ("gas", "grid")), "site", means("cost")),
        ),
    ]
    net = where(rows, lambda r: r["fed"] > r["consumed"])
    yield [
        ("In how many rows was more fed in than consumed?", count(net)),
        (
            "How many outages did Cedar House have in 2022?",
            total(of(rows, site="Cedar House", year=2022), "outages"),
        ),
        ("and Birch Depot?", total(of(rows, site="Birch Depot", year=2022), "outages")),
        (
            "which site had the fewest outages in 2022?",
            ends(per(of(rows, year=2022), "site", sums("outages")), 1, low=True),
        ),
        ("Share of consumption by source", shares(per(rows, "source", sums("consumed")))),
    ]
    yield [
        (
            "What is the difference in consumption between 2023 and 2024?",
            [
                (
                    abs(
                        sum(r["consumed"] for r in of(rows, year=2023))
                        - sum(r["consumed"] for r in of(rows, year=2024))
                    ),
                )
            ],
        ),
        (
            "How many different sources does Dogwood Plant use?",
            count({r["source"] for r in of(rows, site="Dogwood Plant")}),
        ),
        (
            "Cost by source and year",
            [
                (s, y, sum(r["cost"] for r in of(rows, source=s, year=y)))
                for s in sorted({r["source"] for r in rows})
                for y in sorted({r["year"] for r in of(rows, source=s)})
            ],
        ),
        ("How much nuclear power was consumed?", None),
        (
            "Average cost in the first quarter",
            average(where(rows, lambda r: r["month"] in MONTHS[:3]), "cost"),
        ),
    ]


# ── Matches ──────────────────────────────────────────────────────────────────────────────────

CLUBS = ("Rovers", "Albion", "Wanderers", "Athletic", "Orient", "Harriers")


def matches(chance: random.Random, size: int) -> list[Record]:
    crowds = distinct(chance, size, 900, 60_000 + size)
    rows = []
    for at in range(size):
        home, away = chance.sample(CLUBS, 2)
        rows.append({
            "match": at + 1, "date": day_of(chance, 2021, 2023), "home": home, "away": away,
            "hg": chance.randint(0, 5), "ag": chance.randint(0, 5), "crowd": crowds[at],
            "referee": chance.choice(["Ito", "Larsen", "Mbeki", "Quinn"]),
            "cards": chance.randint(0, 9),
            "round": chance.choice(["League", "League", "Cup"]),
        })  # fmt: skip
    return rows


def matches_written(row: Record) -> list[str]:
    return [str(row["match"]), row["date"].strftime("%m/%d/%Y"), row["home"], row["away"],
        str(row["hg"]), str(row["ag"]), f"{row['crowd']:,}", row["referee"], str(row["cards"]),
        row["round"]]  # fmt: skip


def matches_talks(rows: list[Record]) -> Talks:
    won = where(rows, lambda r: r["hg"] > r["ag"])
    yield [
        ("In how many matches were the home goals higher than the away goals?", count(won)),
        ("in the Cup", count(of(won, round="Cup"))),
        ("How many matches had exactly 3 home goals?", count(of(rows, hg=3))),
        (
            "How many matches ended with the same home goals and away goals?",
            count(where(rows, lambda r: r["hg"] == r["ag"])),
        ),
    ]
    yield [
        ("Average attendance by home team", per(rows, "home", means("crowd"))),
        ("highest first", ends(per(rows, "home", means("crowd")), 9)),
        ("only Cup", ends(per(of(rows, round="Cup"), "home", means("crowd")), 9)),
        ("the top three", ends(per(of(rows, round="Cup"), "home", means("crowd")), 3)),
    ]
    after = where(rows, lambda r: r["date"] >= date(2022, 8, 1))
    yield [
        ("How many matches were played since August 2022?", count(after)),
        ("Which referee showed the most cards?", ends(per(rows, "referee", sums("cards")), 1)),
        ("and the fewest?", ends(per(rows, "referee", sums("cards")), 1, low=True)),
        (
            "Total cards shown by Quinn in 2022",
            total(
                where(rows, lambda r: r["referee"] == "Quinn" and r["date"].year == 2022), "cards"
            ),
        ),
        (
            "und 2023?",
            total(
                where(rows, lambda r: r["referee"] == "Quinn" and r["date"].year == 2023), "cards"
            ),
        ),
    ]
    yield [
        ("Wie viele Spiele hatte Albion zu Hause?", count(of(rows, home="Albion"))),
        ("Die fünf Spiele mit den meisten Zuschauern", ranked(rows, "crowd", 5, "crowd")),
        (
            "What was the highest attendance in 2021?",
            [(max(r["crowd"] for r in rows if r["date"].year == 2021),)],
        ),
        ("How many goals did Orient score away?", total(of(rows, away="Orient"), "ag")),
        ("Who won the match between Rovers and Albion?", None),
        ("How many penalties were there?", None),
    ]


# ── Dishes ───────────────────────────────────────────────────────────────────────────────────


def dishes(chance: random.Random, size: int) -> list[Record]:
    sold = distinct(chance, size, 5, 3_000 + size)
    return [
        {
            "dish": f"{chance.choice(['Linsen', 'Kürbis', 'Spinat', 'Pilz', 'Lachs'])}"
            f"{chance.choice(['suppe', 'auflauf', 'teller', 'pfanne'])} {at + 1}",
            "kind": chance.choice(["Vorspeise", "Hauptgericht", "Nachtisch"]),
            "price": chance.randint(350, 2_950) / 100, "kcal": chance.randint(90, 1_400),
            "vegan": chance.random() < 0.35, "sold": sold[at],
            "quarter": chance.choice(["Q1", "Q2", "Q3", "Q4"]),
            "chef": chance.choice(["Amara", "Bruno", "Chiara"]),
        }
        for at in range(size)
    ]  # fmt: skip


def dishes_written(row: Record) -> list[str]:
    return [row["dish"], row["kind"], euros(row["price"]), str(row["kcal"]),
        "ja" if row["vegan"] else "nein", str(row["sold"]), row["quarter"], row["chef"],
    ]  # fmt: skip


def dishes_talks(rows: list[Record]) -> Talks:
    third = of(rows, quarter="Q3")
    yield [
        ("Wie viele Gerichte wurden im dritten Quartal verkauft?", total(third, "sold")),
        ("und im zweiten Quartal?", total(of(rows, quarter="Q2"), "sold")),
        ("nur die veganen", total(of(rows, quarter="Q2", vegan=True), "sold")),
        ("nach Kategorie", per(of(rows, quarter="Q2", vegan=True), "kind", sums("sold"))),
    ]
    yield [
        ("Top 10 Gerichte nach Verkauft", ranked(rows, "sold", 10, "dish")),
        ("nur von Bruno", ranked(of(rows, chef="Bruno"), "sold", 10, "dish")),
        (
            "die drei günstigsten davon",
            listed(
                sorted(
                    sorted(of(rows, chef="Bruno"), key=lambda r: -r["sold"])[:10],
                    key=lambda r: r["price"],
                )[:3],
                "dish",
            ),
        ),
        ("Was kostet " + rows[5]["dish"] + "?", [(rows[5]["price"],)]),
    ]
    light = where(rows, lambda r: r["kcal"] < 300)
    yield [
        ("Wie viele Gerichte haben weniger als 300 Kalorien?", count(light)),
        ("Wie viele davon sind vegan?", count(of(light, vegan=True))),
        ("Durchschnittliche Kalorien pro Kategorie", per(rows, "kind", means("kcal"))),
        (
            "Welcher Anteil der Gerichte ist vegan?",
            [(100 * len(of(rows, vegan=True)) / len(rows),)],
        ),
        ("Welches Gericht hat die meisten Kalorien?", ranked(rows, "kcal", 1, "kcal")),
    ]
    yield [
        ("How many dishes does Chiara cook?", count(of(rows, chef="Chiara"))),
        ("Average price of the desserts", None),
        ("Durchschnittspreis der Vorspeisen", average(of(rows, kind="Vorspeise"), "price")),
        ("Which quarter sold the most?", ends(per(rows, "quarter", sums("sold")), 1)),
        (
            "Welche Gerichte kosten zwischen 5 und 6 Euro?",
            listed(where(rows, lambda r: 5 <= r["price"] <= 6), "dish"),
        ),
        ("Wie viele Gerichte sind glutenfrei?", None),
    ]


# ── Machines ─────────────────────────────────────────────────────────────────────────────────


def machines(chance: random.Random, size: int) -> list[Record]:
    prices = distinct(chance, size, 300, 5_000 + size)
    rows = []
    for at in range(size):
        bought = day_of(chance, 2019, 2024)
        rows.append({
            "tag": f"IT-{chance.choice('ABC')}{2_000 + at}",
            "type": chance.choice(["laptop", "server", "monitor", "printer"]),
            "maker": chance.choice(["Kestrel", "Ibex", "Marlin"]),
            "owner": chance.choice(["Accounting", "Design", "Sales", "Warehouse"]),
            "office": chance.choice(["Leeds", "Graz", "Tallinn"]), "bought": bought,
            "warranty": bought + timedelta(days=chance.choice([365, 730, 1095])),
            "price": prices[at], "ram": chance.choice([8, 16, 32, 64]),
            "retired": chance.random() < 0.25,
        })  # fmt: skip
    return rows


def machines_written(row: Record) -> list[str]:
    return [row["tag"], row["type"], row["maker"], row["owner"], row["office"],
        row["bought"].strftime("%d/%m/%Y"), row["warranty"].strftime("%d/%m/%Y"),
        f"{row['price']:.2f}", f"{row['ram']} GB", "true" if row["retired"] else "false",
    ]  # fmt: skip


def machines_talks(rows: list[Record]) -> Talks:
    laptops = of(rows, type="laptop")
    yield [
        ("How many laptops are there?", count(laptops)),
        ("by office", per(laptops, "office", len)),
        ("only Kestrel", per(of(laptops, maker="Kestrel"), "office", len)),
        ("without retired ones", per(of(laptops, maker="Kestrel", retired=False), "office", len)),
        ("in Graz", count(of(laptops, maker="Kestrel", retired=False, office="Graz"))),
    ]
    big = where(rows, lambda r: r["ram"] >= 32)
    yield [
        ("How many machines have 32 GB of RAM or more?", count(big)),
        ("What do they cost in total?", total(big, "price")),
        ("on average", average(big, "price")),
        ("The five most expensive servers", ranked(of(rows, type="server"), "price", 5, "tag")),
        ("the cheapest instead", ranked(of(rows, type="server"), "price", 5, "tag", low=True)),
    ]
    expired = where(rows, lambda r: r["warranty"] < date(2023, 1, 1))
    yield [
        ("How many assets have a warranty that ends before 2023?", count(expired)),
        (
            "How many assets were bought in 2021?",
            count(where(rows, lambda r: r["bought"].year == 2021)),
        ),
        ("and in 2022?", count(where(rows, lambda r: r["bought"].year == 2022))),
        (
            "Which office has the most printers?",
            ends(per(of(rows, type="printer"), "office", len), 1),
        ),
        (
            "What is the average price of a monitor from Ibex?",
            average(of(rows, type="monitor", maker="Ibex"), "price"),
        ),
    ]
    sales = of(rows, owner="Sales")
    yield [
        ("Wie viel hat Sales insgesamt gekostet?", total(sales, "price")),
        (
            "Wie viele Geräte hat Design in Tallinn?",
            count(of(rows, owner="Design", office="Tallinn")),
        ),
        ("Gesamtpreis pro Hersteller", per(rows, "maker", sums("price"))),
        ("Price by owner, highest first", ends(per(rows, "owner", sums("price")), 9)),
        (
            "Top 2 makers by price in each office",
            [
                (office, *pair)
                for office in sorted({r["office"] for r in rows})
                for pair in ends(per(of(rows, office=office), "maker", sums("price")), 2)
            ],
        ),
        ("How many machines run Linux?", None),
    ]


SECOND = (
    Trade("samples", samples, samples_written,
        ("Sample", "Test", "Analyst", "Ward", "Taken", "Result", "Limit", "Minutes", "Flag"),
        samples_talks),
    Trade("energy", energy, energy_written,
        ("Site", "Source", "Year", "Month", "Consumed (kWh)", "Fed in (kWh)", "Cost (EUR)",
         "Outages"), energy_talks),
    Trade("matches", matches, matches_written,
        ("Match", "Date", "Home", "Away", "Home goals", "Away goals", "Attendance", "Referee",
         "Cards", "Round"), matches_talks),
    Trade("speisekarte", dishes, dishes_written,
        ("Gericht", "Kategorie", "Preis", "Kalorien", "Vegan", "Verkauft", "Quartal", "Koch"),
        dishes_talks),
    Trade("machines", machines, machines_written,
        ("Asset", "Type", "Maker", "Owner", "Office", "Bought", "Warranty until", "Price", "RAM",
         "Retired"), machines_talks),
)  # fmt: skip
