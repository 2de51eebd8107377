"""What is wrong with a file of a conversation is told with its line, its key and in plain words."""

import json
from pathlib import Path

import jsonschema
import pytest

from rag.errors import UserError
from rag.regression.script import read_script, scalar, schema

ROOT = Path(__file__).parents[2]
HEAD = '{"title": "x", "documents": "d",\n "turns": [\n'
VALIDATORS_OWN = ("validation", "Tuple", "Input should", "Field required", "tag", "pydantic")


def wrong(tmp_path, text, name="talk.json"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        read_script(path)
    told = str(raised.value)
    assert not any(word in told for word in VALIDATORS_OWN)
    return told.replace(f"{path}", name)


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ('{"aks": "?"}]}', 'line 3, turn 1: a turn needs one of ask, compress, import'),
        ('{"ask": "a",\n "syas": ["b"]}]}', 'line 4, turn 1, "syas": there is no such key'),
        ('{"ask": "a", "says": "b"}]}', 'line 3, turn 1, "says": a list was expected, "b" came'),
        ('{"ask": "a", "says": [410]}]}', 'line 3, turn 1, "says": words were expected, 410 came'),
        ('{"ask": ""}]}', 'line 3, turn 1, "ask": some words were expected'),
        ('{"ask": "a", "declines": "no"}]}', '"declines": true or false was expected, "no" came'),
        ('{"ask": "a", "verdicts": ["right"]}]}', '"verdicts": \'supported\', \'computed\''),
        ('{"ask": "a", "cites": [{"document": "x"}]}]}', '"place": this key is missing'),
        ('{"ask": "a", "compress": true}]}', "a turn does one thing, this one has ask and"),
        ('"ask"]}', "a turn was expected"),
        ('{"regenerate": true}]}', '"regenerate": nothing was asked before'),
        ('{"add": {"name": "x"}}]}', '"add": it needs either "text" or "file"'),
        ('{"ask": "a"},\n {"compress": false}]}', '"compress": true was expected, false came'),
        ("]}", 'line 2, "turns": at least one entry was expected'),
        ('{"ask": "a", "ask": "b"}]}', 'line 3, "ask": this key stands twice'),
        ('{"ask": "a", "ask": "b"},\n{"ask": "c"}]}', 'line 3, "ask": this key stands twice'),
        ('{"ask": "a",,}]}', "line 3: not JSON"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path, turns, told):
    assert told in wrong(tmp_path, HEAD + turns)


def test_characters_that_json_escapes_in_two_halves_are_read(tmp_path):
    path = tmp_path / "talk.json"
    turns = [{"ask": "What does 🛠 mean?", "says": ["𝒙"]}]
    path.write_text(json.dumps({"title": "🙂", "documents": str(tmp_path), "turns": turns}))

    assert "\\ud83d" in path.read_text()
    assert read_script(path)[0].title == "🙂"


@pytest.mark.parametrize(
    ("expectations", "refusal"),
    [
        ({"says": []}, '"says": at least one entry was expected, none came'),
        ({"cites": []}, '"cites": at least one entry was expected'),
        ({"says": ["ok", " \n"]}, '"says": " \\n" stands in every text'),
        ({"says": ["**"]}, '"says": "**" stands in every text'),
        ({"says_not": ["days [3]"]}, '"says_not": "days [3]" holds a number'),
        ({"says_not": ["【3】"]}, "holds a number, and numbers are set apart from words"),
        ({"resolves_to": "?!"}, '"resolves_to": "?!" has no word'),
        ({"computes": " "}, '"computes": " " stands in every text'),
        ({"cites": [{"document": "a.md", "place": " "}]}, '"place": " " stands in every text'),
        (
            {"verdicts": ["supported", "computed", "contradicted", "off_subject", "open"]},
            '"verdicts": every citation has one of these',
        ),
    ],
)
def test_what_can_never_fail_is_an_error_of_the_file(tmp_path, expectations, refusal):
    turns = [{"ask": "a"} | expectations]

    told = wrong(tmp_path, json.dumps({"title": "x", "documents": "d", "turns": turns}))

    assert refusal in told
    assert "line 1, turn 1" in told


@pytest.mark.parametrize(
    "turns",
    [
        [{"restart": True}],
        [{"import": [{"role": "user", "content": "Hi"}]}, {"settings": {"enabled": False}}],
    ],
)
def test_a_script_that_checks_nothing_is_refused(tmp_path, turns):
    told = wrong(tmp_path, json.dumps({"title": "x", "documents": "d", "turns": turns}))

    assert "nothing is asked or compressed, so that nothing is checked" in told


@pytest.mark.parametrize(
    ("compress", "told"),
    [
        ({"keeps_sources_of": [77]}, "there is no turn 77: there are 4"),
        ({"keeps_sources_of": [4]}, "turn 4 comes later"),
        ({"keeps_sources_of": [2]}, "turn 2 is the newest"),
        ({"states": [{"words": "x", "turn": 3}]}, "turn 3 comes later; name an earlier one"),
        ({"recalls": [{"ask": "q", "turn": 9, "words": "x"}]}, "there is no turn 9"),
        ({"keeps_names_of": [0]}, "1 or more was expected, 0 came"),
        ({"keeps_names_of": []}, '"keeps_names_of": at least one entry was expected'),
        ({"states": [{"words": " ", "turn": 1}]}, '"words": " " stands in every text'),
        ({"states": [{"words": "x", "source": "a.md"}]}, '"source" needs the "turn" that cites'),
    ],
)
def test_turns_that_cannot_be_meant_are_errors_of_the_file(tmp_path, compress, told):
    turns = [{"ask": "a"}, {"ask": "b"}, {"compress": True} | compress, {"ask": "c"}]
    script = {"title": "x", "documents": "d", "turns": turns}

    assert told in wrong(tmp_path, json.dumps(script))


def test_a_turn_that_says_nothing_cannot_be_kept(tmp_path):
    turns = [{"restart": True}, {"ask": "b"}, {"compress": True, "keeps_sources_of": [1]}]

    told = wrong(tmp_path, json.dumps({"title": "x", "documents": "d", "turns": turns}))

    assert "turn 1 says nothing" in told


def test_another_version_is_refused(tmp_path):
    turns = [{"ask": "a"}]

    told = wrong(
        tmp_path, json.dumps({"version": 2, "title": "x", "documents": "d", "turns": turns})
    )

    assert '"version": 1 was expected, 2 came' in told


class TestYaml:
    def test_is_read_like_json(self, tmp_path):
        (tmp_path / "a.yaml").write_text(
            "title: x\ndocuments: d\nturns:\n  - ask: yes?\n    says: [no, 12:30, 2026-01-01]\n"
        )

        script, source = read_script(tmp_path / "a.yaml")

        assert script.turns[0].says == ("no", "12:30", "2026-01-01")
        assert source.lines["turns", 0, "says"] == 5

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("title: [\n", "line 2: not YAML"),
            ("title: x\ntitle: y\n", 'line 2, "title": this key stands twice'),
            ("title: x\ndocuments: d\nturns:\n  - ask: a\n    says: [410]\n", "line 5, turn 1"),
            ("a: &a [*a]\n", "holds something that holds itself"),
            (
                "a: &a [1,1,1,1,1,1,1,1,1]\n"
                + "".join(
                    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n"
                    for a, b in zip("abcdefg", "bcdefgh", strict=True)
                ),
                "holds more than 200,000 values",
            ),
        ],
    )
    def test_tells_what_is_wrong(self, tmp_path, text, told):
        assert told in wrong(tmp_path, text, "a.yaml")

    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("1.5", 1.5), ("-3", -3), ("007", "007"), ("off", "off"), ("", None)],
    )
    def test_knows_numbers_and_words_apart(self, text, value):
        assert scalar(text, is_plain=True) == value
        assert scalar(text, is_plain=False) == text


class TestTheSchema:
    def test_beside_the_module_is_the_one_that_is_read_by(self):
        kept = ROOT / "rag" / "regression" / "conversation.schema.json"

        assert json.loads(kept.read_text(encoding="utf-8")) == schema()

    def test_takes_every_conversation_of_ours_and_refuses_a_wrong_one(self):
        for path in sorted((ROOT / "data" / "conversations").iterdir()):
            if ".recorded." not in path.name:
                jsonschema.validate(read_script(path)[1].data, schema())

        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"title": "x", "documents": "d", "turns": [{"aks": "?"}]}, schema())
