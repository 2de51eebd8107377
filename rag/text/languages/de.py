"""German."""

from rag.text.languages.language import Language, groups, listed, words

_NUMBERS = listed(
    """
    null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
    fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig
    """
)
_TENS = listed(
    """
    zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig
    """
)
_MONTHS = listed(
    """
    januar februar märz april mai juni juli august september oktober november dezember
    """
)
_ORDINALS = listed(
    "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte"
)

GERMAN = Language(
    code="de",
    stemmer="german",
    function_words=words(
        """
        ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch
        auf aus außerdem bei beim bereits bin bis bitte bzw da dabei dadurch dafür damit danach
        dann daran darauf daraus darf darin darum darüber das dass davon dazu dein dem den denen
        denn der deren des deshalb dessen dich die dies diese diesem diesen dieser dieses dir
        doch dort du durch dürfen ebenso eher ein eine einem einen einer eines einige einmal er
        es etwa etwas euch euer für gegen geht gibt hab habe haben hat hatte hatten hier hierbei
        hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem innerhalb ins
        insgesamt ist ja je jede jedem jeden jeder jedes jedoch jemand jene jetzt kann kein keine
        keinem keinen keiner keines können könnte lassen lässt laut man manche mehr mein meist
        mich mir mit muss müssen nach nachdem neben nein nicht nichts noch nun nur ob obwohl oder
        ohne pro schon sehr sei sein seine seinem seinen seiner seines seit selbst sich sie sind
        so sobald sodass sofern solche soll sollen sollte sollten somit sondern sonst soweit
        sowie sowohl sowie statt steht über um und uns unser unter usw viel viele vom von vor
        während wann war waren warum was weder weil weiter welche welchem welchen welcher welches
        wenn wer werden wie wieder will wir wird wo wobei wollen worden wurde wurden würde zu
        zudem zum zur zwar zwischen übrigens quelle quellen dokument dokumente laut gemäß kurz
        gesagt kurzum zusammengefasst fazit
        """
    ),
    question_words=words(
        "wie was wer wen wem wessen wo wann warum wieso wieviel welche welcher welches welchem "
        "welchen ist sind hat haben kann können darf dürfen muss müssen soll wird werden gibt"
    ),
    negations=words(
        """
        nicht kein keine keinem keinen keiner keines nie niemals nichts niemand weder noch
        nirgends kaum unmöglich verboten untersagt unzulässig
        """
    ),
    hedges=words(
        "kann könnte vielleicht möglicherweise wahrscheinlich meist meistens oft manchmal "
        "üblicherweise etwa ungefähr rund circa ca fast nahezu"
    ),
    conditions=words(
        "wenn falls sofern sobald solange bis nachdem bevor vorausgesetzt unter-der-bedingung"
    ),
    exceptions=words("außer ausgenommen abgesehen mit-ausnahme es-sei-denn"),
    restrictions=words("nur ausschließlich lediglich allein"),
    universals=words("beliebig beliebige immer sämtliche überall jederzeit unbegrenzt"),
    closings=(
        "insgesamt", "kurz gesagt", "kurzum", "zusammengefasst", "zusammenfassend", "fazit", "also",
        "somit", "daher", "demnach", "das heißt", "unterm strich",
    ),
    comparators={
        "mindestens": ">=", "wenigstens": ">=", "minimal": ">=", "ab": ">=",
        "mehr als": ">", "über": ">", "länger als": ">", "größer als": ">", "höher als": ">",
        "höchstens": "<=", "maximal": "<=", "bis zu": "<=", "nicht mehr als": "<=",
        "innerhalb von": "<=", "binnen": "<=", "max": "<=", "innerhalb": "<=",
        "weniger als": "<", "unter": "<", "kürzer als": "<", "kleiner als": "<",
        "etwa": "~", "ungefähr": "~", "rund": "~", "circa": "~", "ca": "~", "fast": "~",
        "knapp": "~",
        "zirka": "~",
    },
    comparators_behind={
        "oder mehr": ">=", "oder neuer": ">=", "oder länger": ">=", "und mehr": ">=",
        "oder weniger": "<=", "und neuer": ">=",
    },
    numbers={
        **{word: float(value) for value, word in enumerate(_NUMBERS)},
        **{word: 10.0 * value for value, word in enumerate(_TENS, start=2)},
        "hundert": 100.0, "tausend": 1000.0, "million": 1e6, "millionen": 1e6, "dutzend": 12.0,
    },
    fractions={
        "halb": 0.5, "halbe": 0.5, "halben": 0.5, "hälfte": 0.5, "viertel": 0.25, "drittel": 1 / 3,
        "fünftel": 0.2, "zehntel": 0.1, "doppelt": 2.0, "anderthalb": 1.5,
    },
    ordinals={
        form: value
        for value, word in enumerate(_ORDINALS, start=1)
        for form in (word, f"{word}n", f"{word}r", f"{word}s", f"{word}m")
    },
    months={
        **{word: value for value, word in enumerate(_MONTHS, start=1)},
        "jan": 1, "feb": 2, "mär": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "okt": 10,
        "nov": 11, "dez": 12,
    },
    units={
        **dict.fromkeys(("gramm",), "g"),
        **dict.fromkeys(("kilogramm", "kilo"), "kg"),
        **dict.fromkeys(("sekunde", "sekunden", "sek"), "s"),
        **dict.fromkeys(("minute", "minuten"), "min"),
        **dict.fromkeys(("stunde", "stunden", "std"), "h"),
        **dict.fromkeys(("tag", "tage", "tagen", "täglich"), "day"),
        **dict.fromkeys(("woche", "wochen", "wöchentlich"), "week"),
        **dict.fromkeys(("monat", "monate", "monaten", "monatlich"), "month"),
        **dict.fromkeys(("jahr", "jahre", "jahren", "jährlich"), "year"),
        **dict.fromkeys(("meter", "metern"), "m"),
        **dict.fromkeys(("zentimeter", "zentimetern"), "cm"),
        **dict.fromkeys(("millimeter", "millimetern"), "mm"),
        **dict.fromkeys(("kilometer", "kilometern"), "km"),
        **dict.fromkeys(("prozent",), "%"),
        **dict.fromkeys(("euro", "euros"), "€"),
        **dict.fromkeys(("dezibel",), "db"),
        **dict.fromkeys(("liter", "litern"), "l"),
        **dict.fromkeys(("grad",), "°"),
        **dict.fromkeys(("werktag", "werktage", "werktagen", "arbeitstag"), "business day"),
        **dict.fromkeys(("arbeitstage", "arbeitstagen"), "business day"),
        **dict.fromkeys(("kalendertag", "kalendertage", "kalendertagen"), "day"),
    },
    synonyms=groups(
        """
        kosten, preis, kostet, teuer, gebühr
        wiegen, gewicht, wiegt, schwer
        kaufen, erwerben, bestellen
        mitarbeiter, beschäftigte, angestellte, personal
        urlaub, ferien
        erstatten, zurückzahlen, erstattung, rückerstattung
        löschen, entfernen
        behalten, aufbewahren, erhalten
        gerät, produkt
        """
    ),
    alternatives=(
        words("montag dienstag mittwoch donnerstag freitag samstag sonntag"),
        words("januar februar märz april mai juni juli august september oktober november dezember"),
        words("rot grün blau weiß schwarz gelb orange lila violett grau rosa"),
    ),
    opposites=groups(  # type: ignore[arg-type]  # each line is a pair
        """
        behalten, löschen
        erlaubt, verboten
        an, aus
        ein, aus
        einschalten, ausschalten
        öffnen, schließen
        mehr, weniger
        schwerer, leichter
        länger, kürzer
        vor, nach
        innen, außen
        links, rechts
        oben, unten
        erste, letzte
        geöffnet, geschlossen
        offen, geschlossen
        bezahlt, unbezahlt
        kostenlos, kostenpflichtig
        freiwillig, verpflichtend
        nass, trocken
        warm, kalt
        heiß, kalt
        mindestens, höchstens
        genehmigen, ablehnen
        genehmigt, abgelehnt
        annehmen, ablehnen
        leer, voll
        immer, nie
        gültig, ungültig
        ankommen, abfahren
        hinzufügen, entfernen
        erhöhen, senken
        """
    ),
)  # fmt: skip
