"""The forms of questions about the library, in English and in German: regular expressions.

Each is read against a whole question without its polite words; the first that matches holds. A
group is the subject.
"""

_DOCS = r"(?:documents|docs|files|pdfs|sources|papers|manuals|reports)"
_DOC = r"(?:document|doc|file|pdf|manual|report)"
_TEXTS = r"(?:documents|docs|pdfs|papers|reports)"  # what "contain" is said of: files contain code
_LIBRARY = r"(?:(?:the|your|our|my|this) (?:document )?(?:library|knowledge ?base))"
_HELD = (
    r"(?: (?:are|is) there| do (?:you|we|i) (?:have|know)(?: access to| of)?"
    r"| (?:are|is) (?:available|indexed|stored|loaded|in here)"
    rf"| can (?:i|we|you) (?:search|read|see)| does {_LIBRARY} (?:have|contain|hold))?"
    rf"(?:(?: are)? (?:there )?in {_LIBRARY})?"
)
_OF_THOSE = r"(?: all)?(?: of)?(?: the| your| our| my)?"
_ASKED = rf"(?:what|which|how many|do any|does any|list|show|find)(?: me)?{_OF_THOSE}"
_NOT = r"(?:(?:could|was|were|is|are|did|have|has|do)(?: not|n'?t)|can(?:not| not|'?t))"
_READ = r"(?:read|ingested|indexed|loaded|opened|processed|imported|searchable|readable)"
_WORD = r"(?:(?:the |das |den )?(?:words?|terms?|names?|phrase|wort|begriff|namen?) )?"
_FILE = rf"(?:the {_DOC} .+?|.+? {_DOC}|\S+\.[a-z]{{2,5}})"

ENGLISH = (
    (
        "unread",
        rf"(?:what|which|(?:are|were) there|list|show)(?: me)?(?: any)?{_OF_THOSE} {_DOCS}"
        rf"(?: that| which)? (?:{_NOT}(?: be| get| been)* {_READ}|failed(?: to .+)?"
        r"|(?:are|were) (?:unreadable|not read|rejected|refused))(?:,? and why| why| so far)?",
    ),
    ("unread", rf"why {_NOT}(?: you| we| be| get| been)* (?:read|open|load) (?P<x>.+)"),
    ("unread", rf"why {_NOT} (?P<x>.+?)(?: be| get| been| getting)* (?:{_READ}|found|there)"),
    (
        "newest",
        r"(?:(?:what|which)(?:'s| are| is| were)?|list|show(?: me)?)(?: the)? (?:newest|latest"
        rf"|most recent|recently added|last added) {_DOCS}{_HELD}",
    ),
    (
        "newest",
        rf"(?:what|which) {_DOCS} (?:were|have been|are)(?: recently| just| newly| last)?"
        r" (?:added|uploaded|ingested)(?: recently| lately| last| today| this week)?",
    ),
    (
        "contents",
        r"(?:what|which|how many)(?: kinds? of| types? of| other)?(?: of (?:the|your|our))?"
        rf" {_DOCS}{_HELD}",
    ),
    (
        "contents",
        r"(?:list|show|give|name)(?: me| us)?(?: an? (?:list|overview) of)?"
        rf"{_OF_THOSE} {_DOCS}{_HELD}(?: that)?(?: you have| we have| there are)?",
    ),
    (
        "contents",
        rf"what(?:'s| is| do you have| is there)? (?:in|inside) {_LIBRARY}"
        rf"|what does {_LIBRARY} (?:contain|hold|have|cover|know)|what(?:'s| is) {_LIBRARY} about"
        rf"|how (?:big|large) is {_LIBRARY}",
    ),
    (
        "contents",
        r"what(?: all)? (?:do you know(?: about)?|can (?:i|we) ask(?: you)?(?: about)?"
        rf"|is in (?:the|your|our|my) {_DOCS})",
    ),
    (
        "mentions",
        rf"{_ASKED} (?:{_DOCS}|{_DOC})(?: that| which)? (?:mention(?:s|ing)?|refer(?:s|ring)? to"
        r"|(?:contains?|includes?|uses?) (?:the )?(?:words?|terms?|names?|phrase))"
        rf" {_WORD}(?P<x>.+?)(?: anywhere)?",
    ),
    (
        "mentions",
        rf"(?:in )?(?:where|(?:which|what|how many) {_DOCS}) (?:is|are) {_WORD}(?P<x>.+?)"
        r" (?:mentioned|referred to)(?: anywhere| in)?"
        rf"(?: in (?:the|your|our|my) (?:{_DOCS}|library))?",
    ),
    (
        "mentions",
        rf"(?:is|are) {_WORD}(?P<x>.+?) mentioned(?: anywhere| at all)?(?: in (?:any|one|some|the"
        rf"|your|our|my)(?: of the)? (?:{_DOCS}|{_DOC}|library))?",
    ),
    (
        "mentions",
        rf"in (?:which|what|how many) {_DOCS} (?:does|do) {_WORD}(?P<x>.+?)"
        r" (?:appear|occur|come up|show up)",
    ),
    (
        "topic",
        rf"{_ASKED} {_TEXTS}(?: that| which)?(?: talk| speak| are| say (?:some|any)thing)?"
        r" (?:about|discuss|deal with|cover|contain) (?P<x>.+)",
    ),
    (
        "topic",
        rf"(?:do you have|are there|is there|have you)(?: any| an?)? (?:{_TEXTS}|{_DOC})"
        r" (?:about|on|concerning) (?P<x>.+)",
    ),
    (
        "summary",
        r"(?:summari[sz]e|sum up|recap|tl;?dr(?: of| for)?:?|(?:(?:give|write)(?: me| us)? |make )?"
        r"(?:an? |the )?(?:short |brief |quick |concise )?(?:summary|recap|abstract|digest) of)"
        r" (?P<x>.+?)"
        r"(?: in (?:a few|\w+) (?:points|bullets|bullet points|sentences|words)| briefly)?",
    ),
    (
        "summary",
        r"(?:what(?:'s| is| are)? |list |give me |show me )?(?:the )?(?:key|main|most important)"
        r" (?:points?|statements?|takeaways?|messages?|ideas?) (?:of|in|from) (?P<x>.+)",
    ),
    ("about", r"what(?:'s| is| are) (?P<x>.+?) (?:all )?about"),
    (
        "about",
        r"(?:what(?:'s| is) |show me |show |give me )?(?:the |an? )?"
        r"(?:outline|table of contents|toc|structure|overview) (?:of|for) (?P<x>.+)",
    ),
    ("about", r"when (?:was|were) (?P<x>.+?) (?:added|uploaded|ingested)"),
    (
        "about",
        r"(?:what|which|how many) (?:sections|chapters|headings|pages)"
        r" (?:does|are there in|are in) (?P<x>.+?)(?: have| contain)?",
    ),
    # Only of what is surely called a document: "what is in the box" is none.
    (
        "about",
        rf"(?:what(?:'s| is)(?: in| inside)?|what does|describe|open|show(?: me)?) (?P<x>{_FILE})"
        r"(?: contain| cover| say| describe)?",
    ),
)

_DOKUMENTE = r"(?:dokumente?n?|dateien|unterlagen|pdfs|quellen|handbücher|berichte)"
_BIBLIOTHEK = r"(?:(?:der|die|deiner?|unserer?|meiner?|dieser?) (?:bibliothek|wissensdatenbank))"
_GIBT_ES = (
    r"(?: gibt es| hast du| haben (?:sie|wir)| habe ich| kennst du| kennen sie| sind)?"
    rf"(?: da)?(?: in {_BIBLIOTHEK})?(?: vorhanden| verfügbar| gespeichert| enthalten)?"
)
_GELESEN = r"(?:gelesen|eingelesen|geladen|verarbeitet|importiert|lesbar|lesen|gefunden)"
_VON = r"(?:von|vom|des|der|für|zu|zum|zur|im|in|aus)(?: dem| der| das)?"

GERMAN = (
    (
        "unread",
        rf"(?:welche|gibt es) {_DOKUMENTE}(?:,? die)? (?:konnten|können|wurden|sind|ließen sich)"
        rf" nicht {_GELESEN}(?: werden| worden)?(?:,? und warum(?: nicht)?)?",
    ),
    (
        "unread",
        r"(?:warum|wieso|weshalb) (?:konnte|kann|wurde|ist|ließ sich|kannst du) (?P<x>.+?)"
        rf" nicht {_GELESEN}(?: werden| worden)?",
    ),
    (
        "newest",
        r"(?:(?:was|welche|welches)(?: sind| ist)?|zeige?|liste)(?: mir)?(?: die| das)?"
        rf" (?:neueste[ns]?|neuen|letzten|zuletzt hinzugefügten) {_DOKUMENTE}{_GIBT_ES}",
    ),
    (
        "newest",
        rf"welche {_DOKUMENTE} (?:wurden|sind) (?:(?:zuletzt|kürzlich|neu|heute) )*"
        r"(?:hinzugefügt|hochgeladen|hinzugekommen|eingelesen)(?: worden)?",
    ),
    ("contents", rf"(?:was für|welche|wie ?viele) {_DOKUMENTE}{_GIBT_ES}"),
    (
        "contents",
        r"(?:liste|zeige?|nenne?|gib)(?: mir| uns)?(?: eine (?:liste|übersicht)(?: der| aller)?)?"
        rf"(?: alle)?(?: die| deine| unsere)? {_DOKUMENTE}{_GIBT_ES}(?: auf| an)?",
    ),
    (
        "contents",
        rf"was (?:ist|steht|liegt|gibt es|hast du)(?: alles)? in {_BIBLIOTHEK}"
        rf"|was enthält {_BIBLIOTHEK}|wie groß ist {_BIBLIOTHEK}|was weißt du(?: alles)?"
        r"|was kann (?:ich|man) (?:dich )?(?:alles )?fragen",
    ),
    (
        "mentions",
        r"(?:welche|wie ?viele|zeige?(?: mir)?(?: alle)?|liste(?: alle)?) "
        rf"{_DOKUMENTE}(?:,? die)? (?:erwähnen|enthalten (?:das wort|den begriff|den namen))"
        rf" {_WORD}(?P<x>.+?)(?: auf)?",
    ),
    (
        "mentions",
        rf"(?:in )?(?:welche[nm]?|wie ?vielen?) {_DOKUMENTE} (?:wird|werden|kommt|kommen|taucht)"
        rf" {_WORD}(?P<x>.+?) (?:erwähnt|genannt|vor|auf)",
    ),
    ("mentions", rf"(?:wo )?(?:wird|werden|ist) {_WORD}(?P<x>.+?) (?:irgendwo )?erwähnt"),
    (
        "topic",
        rf"(?:welche|wie ?viele|zeige?(?: mir)?(?: alle)?) {_DOKUMENTE}(?:,? die)? (?:handeln von"
        r"|behandeln|gibt es (?:über|zu|zum thema)|sprechen (?:über|von)) (?P<x>.+)",
    ),
    (
        "summary",
        r"fasse?(?: bitte| mir)* (?P<x>.+?)(?: kurz)? zusammen"
        rf"|(?:(?:gib|schreibe?) (?:mir )?)?(?:eine )?(?:kurze )?zusammenfassung {_VON} (?P<y>.+)"
        rf"|was sind die (?:wichtigsten|zentralen) (?:punkte|aussagen) {_VON} (?P<z>.+)",
    ),
    (
        "about",
        r"worum geht(?: es|'s) (?:im|in(?: dem| der)?) (?P<x>.+)|wovon handelt (?P<y>.+)"
        r"|(?:gib mir |zeige? mir |zeige? )?(?:die |das |eine )?"
        rf"(?:gliederung|inhaltsverzeichnis|übersicht) {_VON} (?P<z>.+)",
    ),
    ("about", r"wann wurde (?P<x>.+?) (?:hinzugefügt|hochgeladen|eingelesen)"),
    (
        "about",
        r"was (?:steht|ist) (?:in (?P<x>\S+\.[a-z]{2,5}|der datei .+)"
        r"|i(?:m|n dem) dokument (?P<y>.+))",
    ),
)

OPENS = (
    r"(?:(?:please|hey|hi|hello|ok|okay|so|and|bitte|hallo|und|can you|could you|would you"
    r"|tell me|kannst du|können sie|könntest du|sage? mir)(?: bitte| please)?[,.!:]* )+"
)
ENDS = r"[\s?!.。？…]*(?:,? (?:please|bitte|for me|für mich))?[\s?!.。？…]*$"
