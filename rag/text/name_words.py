"""Words that look like names and are none: units, dates, the openings of sentences."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A number before one of these is a measure.
UNITS = _words(
    """
    Ah GB GHz Gb Gbit Gbps Hz KB KiB MB MHz MP MW Mbit Mbps Nm PB Pa TB THz V VA VDC VAC W Wh
    bar bit bits bytes cm cm² dB dBi dBm days day degrees dpi eV euro euros fps ft g h hour
    hours hPa inch inches kB kHz kV kW kWh kbit kbps kg km kPa l lb lbs lm lumens lux m mA mAh
    mV mW mm mm² m² m³ min minute minutes ml month months ms nits ns oz percent pixels ppi psi
    px rpm s sec second seconds week weeks year years € $ £ ¥ % ° °C °F GiB MiB TiB USD EUR GBP
    AM PM am pm mph nm µm
    """
)
CALENDAR = _words(
    """
    January February March April May June July August September October November December Jan
    Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Monday Tuesday Wednesday Thursday Friday
    Saturday Sunday Mon Tue Wed Thu Fri Sat Sun Januar Februar März Mai Juni Juli Oktober
    Dezember Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag Christmas Easter Q1 Q2
    Q3 Q4 H1 H2
    """
)
# Words that begin sentences or number the parts of a text.
ORDINARY = _words(
    """
    A About According Additionally After Again All Also Although Among An And Another Any Are As
    Asked At Based Battery Because Been Before Being Besides Between Both But By Can Chapter
    Compared Consequently Could Currently Customers Did Do Does Documents During Each Earlier
    Either Even Every Everything Figure Finally First For From Further Furthermore Given Had Has
    Have He Hello Hence Her Here Hi His How However I I'd I'll I'm I've If In Indeed Instead
    Into Is It Its It's Item Just Last Lastly Later Least Less Let Like Line Made Make Many May
    Maybe Meanwhile Might More Moreover Most Much Must My Near Neither Never Next No None Nor
    Not Note Nothing Now Number Of Often Ok Okay On Once One Only Option Or Other Otherwise Our
    Out Over Overall Page Part Per Perhaps Please Point Previously Price Question Rather
    Recently Regarding Row Second Secondly Section See Shall She Should Similarly Since So Some
    Sometimes Source Sources Specifically Step Still Such Sure Table Tell Than Thank Thanks That
    That's The Their Them Then There Therefore These They Third This Those Though Three Through
    Thus To Today Together Too Turn Two Type Typically Under Unfortunately Unit Units Unless
    Unlike Until Up Upon Use Used Users Using Usually Version Was We Weight Well Were What
    What's When Where Whereas Whether Which While Who Whose Why Will With Within Without Would
    Yes Yet You Your Der Die Das Ein Eine Und Oder Ist Sind Wie Wer Wo Es Er Sie Ja Nein Im Mit
    Für Von Zu Le La Les Un Une El Los Il
    """
)
# Words that open requests: no part of a name at the beginning of a sentence, as elsewhere they may.
REQUESTS = _words(
    """
    Advise Calculate Check Clarify Compare Confirm Contrast Define Describe Determine Discuss
    Estimate Explain Find Get Give Help Identify List Mention Need Outline Provide Recommend
    Remind Show State Suggest Summarise Summarize Translate Verify Want
    Beschreibe Bitte Brauche Empfiehl Erklär Erkläre Erläutere Fasse Finde Gib Nenn Nenne Such
    Suche Vergleich Vergleiche Warum Welche Welchem Welchen Welcher Welches Wann Wieso Wieviel
    Zeig Zeige Combien Comment Comparez Décrivez Donnez Expliquez Montrez Pourquoi Quand Quel
    Quelle Quelles Quels Compara Cuál Cuáles Cuándo Cuánto Cómo Dame Dónde Explica Muestra Qué
    """
)
# Capitalised, but names of nothing that is sold.
GENERIC = _words(
    """
    USB PDF HTML CSV API URL FAQ LED LCD OLED HDMI CPU GPU RAM SSD HDD UK US USA EU PC TV IT OS
    ID IP AC DC OK Bluetooth Wi-Fi WiFi WLAN LAN WAN DNS DHCP HTTP HTTPS JSON XML SMS GPS NFC QR
    English German French Spanish Gen Chinese Japanese Internet Ethernet Europe Germany France
    """
)
# What tells a model from its siblings, besides figures.
VARIANTS = _words(
    """
    + s x e pro max plus mini lite ultra air se xl xs xxl duo trio go neo nano junior one two three
    fe i ii iii iv v
    """
)
