"""English."""

from rag.text.languages.language import Language, groups, listed, words

_NUMBERS = listed(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty
    """
)
_TENS = listed(
    """
    twenty thirty forty fifty sixty seventy eighty ninety
    """
)
_MONTHS = listed(
    """
    january february march april may june july august september october november december
    """
)
_ORDINALS = listed(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
)

ENGLISH = Language(
    code="en",
    stemmer="english",
    function_words=words(
        """
        a about above after again all along already also although always am among an and another
        any anybody anyone anything are around as at away be became because become becomes been
        before being below besides between both but by can cannot could did do does doing done
        down during each either else even ever every everybody everyone everything for from
        further furthermore get gets getting give given gives got had has have having he hence
        her here hers herself him himself his how however i if in indeed instead into is it its
        itself just let like many may me might mine moreover more most much must my myself
        neither never no nobody none nor not nothing now of off often on once one ones only onto
        or other others otherwise ought our ours ourselves out over overall own per perhaps
        please rather really said same say says see shall she should since so some somebody
        someone something still such than that the their theirs them themselves then there
        thereby therefore these they thing things this those though through thus to together too
        toward towards under unless until up upon us usually various very via was
        way ways we well were what whatever when whenever where whereas wherever whether which
        while who whoever whole whom whose why will with within without would yes yet you your
        yours yourself don doesn didn isn aren wasn weren won wouldn couldn shouldn ll ve re s t
        d m im ive id according additionally stated states source sources document documents
        means mean note short summary conclusion summarise besides simply quite also order
        respectively case
        """
    ),
    question_words=words(
        """
        how what which who whom whose where when why is are was were do does did can could may might
        should will would has have had must shall
        """
    ),
    negations=words(
        """
        not no never none cannot neither nor nothing nobody nowhere unable hardly n't isn't
        aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't won't
        wouldn't shouldn't mustn't needn't lacks lack forbidden prohibited impossible avoid
        dont doesnt cant wont excluded
        """
    ),
    hedges=words(
        """
        may might could perhaps possibly probably likely usually often sometimes typically generally
        seem seems appear appears suggest suggests about approximately roughly around nearly almost
        """
    ),
    conditions=words(
        """
        if unless provided when whenever once as-long-as until till after before only-if in-case
        depending subject-to given assuming while
        """
    ),
    exceptions=words("except excluding besides unless but apart-from other-than save"),
    restrictions=words("only solely exclusively just merely"),
    universals=words(
        "any always anyone anybody everyone everybody everywhere anywhere anytime unlimited "
        "limitless"
    ),
    closings=(
        "overall", "in short", "in summary", "to sum up", "in conclusion", "so", "therefore",
        "thus",
        "hence", "all in all", "in other words", "that means", "this means", "to summarise",
        "to summarize", "in total", "bottom line", "summing up", "put simply", "as a result",
    ),
    comparators={
        "at least": ">=", "never less than": ">=",
        "no less than": ">=", "not less than": ">=", "a minimum of": ">=",
        "minimum": ">=", "min": ">=", "at minimum": ">=", "or more than": ">=", "from": ">=",
        "more than": ">", "over": ">", "above": ">", "longer than": ">", "greater than": ">",
        "higher than": ">", "older than": ">", "exceeding": ">", "exceeds": ">", "exceed": ">",
        "heavier than": ">", "larger than": ">", "beyond": ">", "farther than": ">",
        "at most": "<=", "up to": "<=", "no more than": "<=", "not more than": "<=",
        "a maximum of": "<=", "maximum": "<=", "max": "<=", "as much as": "<=", "as many as": "<=",
        "within": "<=", "not exceeding": "<=", "no longer than": "<=", "no later than": "<=",
        "limited to": "<=", "capped at": "<=",
        "less than": "<", "under": "<", "below": "<", "fewer than": "<", "shorter than": "<",
        "lower than": "<", "smaller than": "<", "lighter than": "<", "younger than": "<",
        "about": "~", "approximately": "~", "roughly": "~", "around": "~", "nearly": "~",
        "almost": "~", "some": "~", "approx": "~", "ca": "~", "circa": "~",
    },
    comparators_behind={
        "or more": ">=", "or later": ">=", "or newer": ">=", "and later": ">=", "or above": ">=",
        "and above": ">=", "and up": ">=", "and over": ">=", "or longer": ">=", "and newer": ">=",
        "at least": ">=", "minimum": ">=", "or higher": ">=", "and more": ">=", "or over": ">=",
        "or less": "<=", "or fewer": "<=", "at most": "<=", "maximum": "<=", "or below": "<=",
        "or earlier": "<=", "or shorter": "<=", "or under": "<=", "and below": "<=",
        "at the most": "<=",
        "or lower": "<=",
    },
    numbers={
        **{word: float(value) for value, word in enumerate(_NUMBERS)},
        **{word: 10.0 * value for value, word in enumerate(_TENS, start=2)},
        "hundred": 100.0, "thousand": 1000.0, "million": 1e6, "billion": 1e9, "dozen": 12.0,
    },
    fractions={
        "half": 0.5, "quarter": 0.25, "quarters": 0.25, "third": 1 / 3, "thirds": 1 / 3,
        "fifth": 0.2, "fifths": 0.2, "tenth": 0.1, "tenths": 0.1, "eighth": 0.125, "double": 2.0,
        "triple": 3.0,
    },
    ordinals={word: value for value, word in enumerate(_ORDINALS, start=1)},
    months={
        **{word: value for value, word in enumerate(_MONTHS, start=1)},
        **{word[:3]: value for value, word in enumerate(_MONTHS, start=1)},
        "sept": 9,
    },
    units={
        **dict.fromkeys(("gram", "grams", "gramme", "grammes"), "g"),
        **dict.fromkeys(("kilogram", "kilograms", "kilo", "kilos"), "kg"),
        **dict.fromkeys(("milligram", "milligrams"), "mg"),
        **dict.fromkeys(("pound", "pounds", "lbs"), "lb"),
        **dict.fromkeys(("ounce", "ounces"), "oz"),
        **dict.fromkeys(("tonne", "tonnes", "ton", "tons"), "t"),
        **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
        **dict.fromkeys(("minute", "minutes", "min", "mins"), "min"),
        **dict.fromkeys(("hour", "hours", "hr", "hrs", "hourly"), "h"),
        **dict.fromkeys(("day", "days", "daily"), "day"),
        **dict.fromkeys(("week", "weeks", "weekly"), "week"),
        **dict.fromkeys(("month", "months", "monthly"), "month"),
        **dict.fromkeys(("year", "years", "yr", "yrs", "annually", "yearly", "annual"), "year"),
        **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
        **dict.fromkeys(("centimeter", "centimeters", "centimetre", "centimetres"), "cm"),
        **dict.fromkeys(("millimeter", "millimeters", "millimetre", "millimetres"), "mm"),
        **dict.fromkeys(("kilometer", "kilometers", "kilometre", "kilometres"), "km"),
        **dict.fromkeys(("inch", "inches"), "in"),
        **dict.fromkeys(("foot", "feet"), "ft"),
        **dict.fromkeys(("mile", "miles"), "mi"),
        **dict.fromkeys(("percent", "pct"), "%"),
        **dict.fromkeys(("dollar", "dollars", "usd"), "$"),
        **dict.fromkeys(("euro", "euros", "eur"), "€"),
        "gbp": "£", "chf": "chf", "sek": "sek", "nok": "nok", "yen": "¥", "jpy": "¥",
        "cent": "cent", "cents": "cent",
        **dict.fromkeys(("watt", "watts"), "w"),
        **dict.fromkeys(("volt", "volts"), "v"),
        **dict.fromkeys(("amp", "amps", "ampere", "amperes"), "a"),
        **dict.fromkeys(("decibel", "decibels", "dba", "db(a)"), "db"),
        **dict.fromkeys(("hertz",), "hz"),
        **dict.fromkeys(("megabyte", "megabytes"), "mb"),
        **dict.fromkeys(("gigabyte", "gigabytes"), "gb"),
        **dict.fromkeys(("byte", "bytes"), "byte"),
        **dict.fromkeys(("liter", "liters", "litre", "litres"), "l"),
        **dict.fromkeys(("degree", "degrees"), "°"),
        **dict.fromkeys(("celsius",), "°c"),
        **dict.fromkeys(("fahrenheit",), "°f"),
        **dict.fromkeys(("mbps", "mbit/s", "megabit", "megabits"), "mbit/s"),
        **dict.fromkeys(("gbps", "gbit/s", "gigabit", "gigabits"), "gbit/s"),
        **dict.fromkeys(("pixel", "pixels"), "px"),
        "fold": "×",
    },
    synonyms=groups(
        """
        cost, price, charge, fee, priced, expensive
        weigh, weight, heavy, heavier, lighter
        runtime, endurance
        buy, purchase, order
        employee, staff, personnel, worker, colleague
        holiday, leave, vacation
        refund, reimburse, reimbursement, repay
        start, begin, begins, launch
        stop, end, cease, finish
        delete, erase, remove, wipe, clear
        keep, retain, preserve
        need, require, requires, necessary
        allow, permit, let, authorise, authorize
        forbid, prohibit, ban, disallow
        show, display, indicate
        send, ship, dispatch, deliver, mail
        return, send back, give back
        connect, join, pair, link, attach, plug
        press, push
        choose, select, pick
        change, modify, alter, edit, adjust
        reply, answer, respond, response
        abroad, foreign, overseas
        repair, fix, mend
        replace, swap, exchange
        colour, color
        password, credential, login
        transfer, carry, move
        device, unit, product, appliance
        light, lamp, led, indicator
        customer, client, buyer, user
        manual, guide, handbook, instructions
        fast, quick, rapid, speed
        big, large
        use, employ, utilise, utilize
        phone, telephone, mobile, smartphone
        provider, isp, carrier
        refuse, reject, decline, deny
        """
    ),
    alternatives=(
        words("monday tuesday wednesday thursday friday saturday sunday"),
        words("january february march april june july august september october november december"),
        words("red green blue white black yellow orange purple violet grey pink amber turquoise"),
        words("north south east west"),
        words("gold silver copper iron steel aluminium plastic wood glass leather"),
    ),
    opposites=groups(  # type: ignore[arg-type]  # each line is a pair
        """
        keep, delete
        cover, exclude
        covered, excluded
        add, remove
        work, rest
        succeed, fail
        successful, failed
        alone, together
        employer, employee
        weekday, weekend
        soft, hard
        light, dark
        early, late
        fixed, flexible
        rich, poor
        strong, weak
        thick, thin
        wide, narrow
        voluntary, compulsory
        keep, remove
        allow, forbid
        include, exclude
        on, off
        open, close
        open, shut
        increase, decrease
        increase, reduce
        raise, lower
        more, less
        more, fewer
        heavier, lighter
        heaviest, lightest
        larger, smaller
        longer, shorter
        faster, slower
        higher, lower
        highest, lowest
        earlier, later
        before, after
        first, last
        maximum, minimum
        most, least
        enable, disable
        enabled, disabled
        connect, disconnect
        start, stop
        accept, refuse
        inside, outside
        indoors, outdoors
        above, below
        left, right
        front, back
        top, bottom
        upper, lower
        mandatory, optional
        required, optional
        public, private
        internal, external
        wired, wireless
        wet, dry
        hot, cold
        plug, unplug
        lock, unlock
        safe, dangerous
        active, inactive
        steady, blinking
        free, cost
        success, fail
        full, low
        rise, fall
        buy, sell
        import, export
        upload, download
        input, output
        male, female
        day, night
        summer, winter
        cheaper, dearer
        best, worst
        same, different
        approve, reject
        accept, reject
        grant, deny
        win, lose
        pass, fail
        attach, detach
        install, uninstall
        arrive, depart
        empty, full
        always, never
        horizontal, vertical
        valid, invalid
        odd, even
        old, new
        oldest, newest
        """
    ),
)  # fmt: skip
