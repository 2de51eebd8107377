"""Five trades that the rules were made on."""

# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random
from datetime import date
from statistics import median

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

# ── People ───────────────────────────────────────────────────────────────────────────────────

FIRST = (
    "Amelie Bjarne Carla Dmitri Edda Farid Greta Henk Ines Jonas Kaya Lasse Mira Nuno Olga Pavel"
)
LAST = "Adler Brandt Castro Dahl Engel Fuchs Grau Holm Iversen Jansen Krüger Lund Moreau Novak"


def people(chance: random.Random, size: int) -> list[Record]:
    pay, names = distinct(chance, size, 31_000, 2_000_000 if size > 5_000 else 99_000), set()
    rows: list[Record] = []
    while len(rows) < size:
        name = f"{chance.choice(FIRST.split())} {chance.choice(LAST.split())}"
        if name in names:
            name += f" {len(rows)}"
        names.add(name)
        rows.append({
            "name": name, "department": chance.choice(["Finance", "Legal", "Support", "Research"]),
            "city": chance.choice(["Bergen", "Lisbon", "Hamburg"]),
            "hired": day_of(chance, 2017, 2024), "salary": pay[len(rows)],
            "hours": chance.choice([20, 30, 35, 40]), "remote": chance.random() < 0.4,
            "level": chance.choice(["Junior", "Senior", "Lead"]),
        })  # fmt: skip
    return rows


def people_written(row: Record) -> list[str]:
    return [row["name"], row["department"], row["city"], row["hired"].isoformat(),
        f"€{row['salary']:,}", str(row["hours"]), "yes" if row["remote"] else "no", row["level"],
    ]  # fmt: skip


def people_talks(rows: list[Record]) -> Talks:
    legal, support = of(rows, department="Legal"), of(rows, department="Support")
    yield [
        ("How many employees work in Legal?", count(legal)),
        ("and in Support?", count(support)),
        ("only the seniors", count(of(support, level="Senior"))),
        ("what is their average salary?", average(of(support, level="Senior"), "salary")),
        (
            "and without Hamburg?",
            average(
                where(support, lambda r: r["level"] == "Senior" and r["city"] != "Hamburg"),
                "salary",
            ),
        ),
    ]
    since = where(rows, lambda r: r["hired"] > date(2020, 6, 30))
    yield [
        ("How many people were hired after 30 June 2020?", count(since)),
        ("by department", per(since, "department", len)),
        ("sorted by number, highest first", ends(per(since, "department", len), 9)),
        ("Average salary by level", per(rows, "level", means("salary"))),
        ("the median instead", per(rows, "level", lambda own: median(r["salary"] for r in own))),
    ]
    lisbon = of(rows, city="Lisbon")
    yield [
        ("Wie viele Mitarbeiter arbeiten in Lisbon?", count(lisbon)),
        ("und in Bergen?", count(of(rows, city="Bergen"))),
        ("Durchschnittliches Gehalt pro Abteilung", per(rows, "department", means("salary"))),
        ("nur Bergen", per(of(rows, city="Bergen"), "department", means("salary"))),
        ("Die drei höchsten Gehälter", ranked(rows, "salary", 3, "salary")),
    ]
    paid = where(rows, lambda r: 50_000 <= r["salary"] <= 70_000)
    yield [
        (
            "Which employees earn more than 90,000 euros?",
            listed(where(rows, lambda r: r["salary"] > 90_000), "name"),
        ),
        ("How many employees earn between 50,000 and 70,000 euros?", count(paid)),
        ("how many of them are remote?", count(of(paid, remote=True))),
        (
            "What percentage of employees is remote?",
            [(100 * len(of(rows, remote=True)) / len(rows),)],
        ),
        (
            "Who are the 5 best paid people in Finance?",
            ranked(of(rows, department="Finance"), "salary", 5, "name"),
        ),
        ("How many employees left in 2023?", None),
    ]


# ── Shipments ────────────────────────────────────────────────────────────────────────────────


def shipments(chance: random.Random, size: int) -> list[Record]:
    weights = distinct(chance, size, 50, 90_000 + size)
    return [
        {
            "id": f"SH-{10_000 + at}", "carrier": chance.choice(["Nordfracht", "Velox", "Pelikan"]),
            "origin": chance.choice(["Oslo", "Ghent", "Turin"]),
            "destination": chance.choice(["Porto", "Riga", "Basel", "Cork"]),
            "shipped": day_of(chance, 2023, 2024), "weight": weights[at] / 10,
            "cost": chance.randint(20, 900), "price": chance.randint(20, 990),
            "status": chance.choice(["delivered", "delivered", "delayed", "lost"]),
        }
        for at in range(size)
    ]  # fmt: skip


def shipments_written(row: Record) -> list[str]:
    return [row["id"], row["carrier"], row["origin"], row["destination"],
        row["shipped"].strftime("%d.%m.%Y"), f"{row['weight']:.1f} kg", f"${row['cost']}",
        f"${row['price']}", row["status"]]  # fmt: skip


def shipments_talks(rows: list[Record]) -> Talks:
    lossy = where(rows, lambda r: r["cost"] > r["price"])
    yield [
        ("How many shipments have a cost greater than their price?", count(lossy)),
        ("by carrier", per(lossy, "carrier", len)),
        ("only the delayed ones", per(of(lossy, status="delayed"), "carrier", len)),
        (
            "Which shipments were lost on the way from Oslo to Riga?",
            listed(of(rows, status="lost", origin="Oslo", destination="Riga"), "id"),
        ),
    ]
    in_year = where(rows, lambda r: r["shipped"].year == 2024)
    third = where(in_year, lambda r: r["shipped"].month in (7, 8, 9))
    yield [
        ("Total weight shipped in Q3 2024", total(third, "weight")),
        ("per carrier", per(third, "carrier", sums("weight"))),
        ("as a percentage", shares(per(third, "carrier", sums("weight")))),
        (
            "what about Q2?",
            shares(
                per(
                    where(in_year, lambda r: r["shipped"].month in (4, 5, 6)),
                    "carrier",
                    sums("weight"),
                )
            ),
        ),
    ]
    march = where(in_year, lambda r: r["shipped"].month == 3)
    yield [
        ("Wie viele Sendungen gab es im März 2024?", count(march)),
        ("und im April?", count(where(in_year, lambda r: r["shipped"].month == 4))),
        ("Gesamtgewicht pro Zielort", per(rows, "destination", sums("weight"))),
        ("nur Velox", per(of(rows, carrier="Velox"), "destination", sums("weight"))),
        ("Welche Sendung ist die schwerste?", ranked(rows, "weight", 1, "id")),
    ]
    profit = per(rows, "carrier", lambda own: sum(r["price"] for r in own))
    yield [
        ("Total price by carrier", profit),
        (
            "What is the difference in cost between Nordfracht and Velox?",
            [
                (
                    abs(
                        sum(r["cost"] for r in of(rows, carrier="Nordfracht"))
                        - sum(r["cost"] for r in of(rows, carrier="Velox"))
                    ),
                )
            ],
        ),
        (
            "How many different destinations did Pelikan serve?",
            count({r["destination"] for r in of(rows, carrier="Pelikan")}),
        ),
        (
            "How many shipments were not delivered?",
            count(where(rows, lambda r: r["status"] != "delivered")),
        ),
        (
            "List the shipments before 10 January 2023",
            listed(where(rows, lambda r: r["shipped"] < date(2023, 1, 10)), "id"),
        ),
        (
            "How many shipments weigh at least 5 tonnes?",
            count(where(rows, lambda r: r["weight"] >= 5_000)),
        ),
    ]


# ── Books ────────────────────────────────────────────────────────────────────────────────────


def books(chance: random.Random, size: int) -> list[Record]:
    lent = distinct(chance, size, 3, 4_000 + size)
    rows = []
    for at in range(size):
        rows.append({
            "title": f"{chance.choice(['Nacht', 'Sommer', 'Hafen', 'Schnee', 'Spur'])}"
            f"{chance.choice(['lied', 'wind', 'haus', 'gang', 'weg'])} {at + 1}",
            "author": chance.choice(["Ahrens", "Bodin", "Cerny", "Duval", "Eklund"]),
            "genre": chance.choice(["Krimi", "Lyrik", "Sachbuch", "Roman"]),
            "year": chance.randint(1994, 2023), "copies": chance.randint(1, 9),
            "lent": lent[at], "price": chance.randint(590, 4_990) / 100,
            "branch": chance.choice(["Mitte", "Nordstadt", "Hafencity"]),
        })  # fmt: skip
    return rows


def books_written(row: Record) -> list[str]:
    return [row["title"], row["author"], row["genre"], str(row["year"]), str(row["copies"]),
        str(row["lent"]), euros(row["price"]), row["branch"]]  # fmt: skip


def books_talks(rows: list[Record]) -> Talks:
    crime, verse = of(rows, genre="Krimi"), of(rows, genre="Lyrik")
    yield [
        ("Wie viele Ausleihen hatten die Krimis insgesamt?", total(crime, "lent")),
        ("und Lyrik?", total(verse, "lent")),
        ("nach Zweigstelle", per(verse, "branch", sums("lent"))),
        ("als Anteil", shares(per(verse, "branch", sums("lent")))),
        (
            "ohne Mitte",
            shares(per(where(verse, lambda r: r["branch"] != "Mitte"), "branch", sums("lent"))),
        ),
    ]
    yield [
        ("Top 5 Titel nach Ausleihen", ranked(rows, "lent", 5, "title")),
        ("nur Romane", ranked(of(rows, genre="Roman"), "lent", 5, "title")),
        ("Was kostet " + rows[7]["title"] + "?", [(rows[7]["price"],)]),
        ("Wie viele verschiedene Autoren gibt es?", count({r["author"] for r in rows})),
        ("Durchschnittspreis je Genre", per(rows, "genre", means("price"))),
    ]
    late = where(rows, lambda r: r["year"] > 2015)
    yield [
        (
            "Welche Bücher kosten mehr als 45 Euro?",
            listed(where(rows, lambda r: r["price"] > 45), "title"),
        ),
        ("Wie viele Titel sind nach 2015 erschienen?", count(late)),
        ("und davor?", count(where(rows, lambda r: r["year"] < 2015))),
        (
            "Wie viele Titel sind zwischen 2000 und 2010 erschienen?",
            count(where(rows, lambda r: 2000 <= r["year"] <= 2010)),
        ),
        (
            "Das billigste Buch von Eklund",
            ranked(of(rows, author="Eklund"), "price", 1, "title", low=True),
        ),
    ]
    yield [
        (
            "How many copies does the Nordstadt branch have?",
            total(of(rows, branch="Nordstadt"), "copies"),
        ),
        ("which genre has the most copies?", ends(per(rows, "genre", sums("copies")), 1)),
        (
            "What is the average price of books by Cerny?",
            average(of(rows, author="Cerny"), "price"),
        ),
        ("and Duval?", average(of(rows, author="Duval"), "price")),
        (
            "Welches Genre hat die wenigsten Exemplare?",
            ends(per(rows, "genre", sums("copies")), 1, low=True),
        ),
        ("Wie viele Bücher wurden 2022 gestohlen?", None),
    ]


# ── Homes ────────────────────────────────────────────────────────────────────────────────────


def homes(chance: random.Random, size: int) -> list[Record]:
    rents = distinct(chance, size, 400, 4_500 + size)
    return [
        {
            "address": f"{chance.choice(['Elm', 'Dock', 'Abbey', 'Quarry', 'Mill'])} "
            f"{chance.choice(['Street', 'Lane', 'Road'])} {at + 1}",
            "district": chance.choice(["Harbour", "Old Town", "Westfield", "Castle Hill"]),
            "type": chance.choice(["flat", "house", "studio"]), "rooms": chance.randint(1, 7),
            "area": chance.randint(22, 240), "rent": rents[at],
            "deposit": chance.randint(5, 90) * 100,
            "listed": day_of(chance, 2024, 2024), "balcony": chance.random() < 0.5,
        }
        for at in range(size)
    ]  # fmt: skip


def homes_written(row: Record) -> list[str]:
    return [row["address"], row["district"], row["type"], str(row["rooms"]), str(row["area"]),
        f"£{row['rent']:,}", f"£{row['deposit']:,}", row["listed"].strftime("%d %B %Y"),
        "yes" if row["balcony"] else "no"]  # fmt: skip


def homes_talks(rows: list[Record]) -> Talks:
    flats = of(rows, type="flat")
    yield [
        (
            "What is the cheapest flat in Old Town?",
            ranked(of(flats, district="Old Town"), "rent", 1, "address", low=True),
        ),
        (
            "and in Westfield?",
            ranked(of(flats, district="Westfield"), "rent", 1, "address", low=True),
        ),
        (
            "with a balcony",
            ranked(of(flats, district="Westfield", balcony=True), "rent", 1, "address", low=True),
        ),
    ]
    large = where(rows, lambda r: r["area"] > 100)
    yield [
        ("How many homes are larger than 100 m²?", count(large)),
        ("with at least 4 rooms", count(where(large, lambda r: r["rooms"] >= 4))),
        ("by district", per(where(large, lambda r: r["rooms"] >= 4), "district", len)),
        ("as a chart", per(where(large, lambda r: r["rooms"] >= 4), "district", len)),
        ("how many is that in total?", count(where(large, lambda r: r["rooms"] >= 4))),
    ]
    yield [
        ("Average rent per district", per(rows, "district", means("rent"))),
        ("only houses", per(of(rows, type="house"), "district", means("rent"))),
        (
            "houses or studios",
            per(where(rows, lambda r: r["type"] in ("house", "studio")), "district", means("rent")),
        ),
        ("Which districts have an average rent above 2,000?", where_above(rows)),
    ]
    dear = where(rows, lambda r: r["deposit"] > r["rent"])
    may = where(rows, lambda r: r["listed"].month == 5)
    yield [
        ("How many homes ask for a deposit higher than the rent?", count(dear)),
        ("How many were listed in May 2024?", count(may)),
        (
            "How many homes were listed between 1 March and 15 April 2024?",
            count(where(rows, lambda r: date(2024, 3, 1) <= r["listed"] <= date(2024, 4, 15))),
        ),
        ("What is the rent of " + rows[3]["address"] + "?", [(rows[3]["rent"],)]),
        ("Wie hoch ist die Miete im Durchschnitt?", average(rows, "rent")),
        ("The two most expensive homes in each district", top_two(rows)),
        ("How many homes have a garden?", None),
    ]


def where_above(rows: list[Record]) -> Wanted:
    return [pair for pair in per(rows, "district", means("rent")) if pair[1] > 2_000]


def top_two(rows: list[Record]) -> Wanted:
    by = sorted({row["district"] for row in rows})
    return [
        row for name in by
        for row in ranked(of(rows, district=name), "rent", 2, "district", "address")
    ]  # fmt: skip


# ── Grants ───────────────────────────────────────────────────────────────────────────────────


def grants(chance: random.Random, size: int) -> list[Record]:
    asked = distinct(chance, size, 40, 4_000 + size)
    return [
        {
            "project": f"{chance.choice(['Deep', 'Blue', 'Open', 'Quiet', 'Solar'])}"
            f"{chance.choice(['Reef', 'Grid', 'Mind', 'Soil', 'Wave'])}-{at + 1}",
            "lead": chance.choice(["Okafor", "Silva", "Tanaka", "Weiss", "Yilmaz"]),
            "institute": chance.choice(["Delta Lab", "Ostsee Institut", "Northgate College"]),
            "programme": chance.choice(["Climate", "Health", "Mobility"]),
            "year": chance.choice([2021, 2022, 2023, 2024]), "requested": asked[at] * 1_000,
            "awarded": asked[at] * 1_000 - chance.randrange(-9, 30) * 1_000,
            "status": chance.choice(["approved", "rejected", "pending"]),
        }
        for at in range(size)
    ]  # fmt: skip


def grants_written(row: Record) -> list[str]:
    return [row["project"], row["lead"], row["institute"], row["programme"], str(row["year"]),
        f"{row['requested']:,}", f"{row['awarded']:,}", row["status"]]  # fmt: skip


def grants_talks(rows: list[Record]) -> Talks:
    recent = of(rows, year=2023)
    yield [
        ("How much was awarded in 2023?", total(recent, "awarded")),
        ("by programme", per(recent, "programme", sums("awarded"))),
        ("and last year?", per(of(rows, year=2022), "programme", sums("awarded"))),
        (
            "only approved",
            per(of(rows, year=2022, status="approved"), "programme", sums("awarded")),
        ),
        (
            "what about Health?",
            total(of(rows, year=2022, status="approved", programme="Health"), "awarded"),
        ),
    ]
    yield [
        ("Top 3 leads by awarded", ends(per(rows, "lead", sums("awarded")), 3)),
        ("the top 5", ends(per(rows, "lead", sums("awarded")), 5)),
        ("how many projects does Silva have?", count(of(rows, lead="Silva"))),
        ("How many of them were rejected?", count(of(rows, lead="Silva", status="rejected"))),
    ]
    more = where(rows, lambda r: r["awarded"] > r["requested"])
    yield [
        ("Which projects were awarded more than they requested?", listed(more, "project")),
        ("How many is that?", count(more)),
        (
            "What share of the projects is approved?",
            [(100 * len(of(rows, status="approved")) / len(rows),)],
        ),
        (
            "Requested by institute and year",
            [
                (i, y, sum(r["requested"] for r in of(rows, institute=i, year=y)))
                for i in sorted({r["institute"] for r in rows})
                for y in sorted({r["year"] for r in of(rows, institute=i)})
            ],
        ),
        ("How many projects are there per institute?", per(rows, "institute", len)),
    ]
    yield [
        (
            "Wie viele Projekte hat das Ostsee Institut?",
            count(of(rows, institute="Ostsee Institut")),
        ),
        ("nur abgelehnte", None),
        ("Bewilligt pro Jahr", None),
        ("Awarded per year", per(rows, "year", sums("awarded"))),
        (
            "Which institute received the least?",
            ends(per(rows, "institute", sums("awarded")), 1, low=True),
        ),
        (
            "What is the total requested by Tanaka and Weiss?",
            total(where(rows, lambda r: r["lead"] in ("Tanaka", "Weiss")), "requested"),
        ),
    ]


DEV = (
    Trade("staff", people, people_written,
        ("Employee", "Department", "City", "Hired", "Salary", "Hours per week", "Remote", "Level"),
        people_talks),
    Trade("shipments", shipments, shipments_written,
        ("Shipment", "Carrier", "Origin", "Destination", "Shipped", "Weight", "Cost", "Price",
         "Status"), shipments_talks),
    Trade("bestand", books, books_written,
        ("Titel", "Autor", "Genre", "Jahr", "Exemplare", "Ausleihen", "Preis", "Zweigstelle"),
        books_talks),
    Trade("homes", homes, homes_written,
        ("Address", "District", "Type", "Rooms", "Area (m²)", "Rent", "Deposit", "Listed",
         "Balcony"), homes_talks),
    Trade("grants", grants, grants_written,
        ("Project", "Lead", "Institute", "Programme", "Year", "Requested", "Awarded", "Status"),
        grants_talks),
)  # fmt: skip
