"""Settings come from the file and the environment, or say what is wrong."""

import json
from pathlib import Path

import pytest

from rag.errors import SetupError
from rag.settings import Settings, load_settings, settings_file


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ("HOST", "PORT", "CONTEXT_MESSAGE_PAIRS", "GROUNDNOTE_SETTINGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(tmp_path):
    def write(values):
        path = tmp_path / "settings.json"
        path.write_text(values if isinstance(values, str) else json.dumps(values))
        return path

    return write


class TestPrecedence:
    def test_defaults_stand_where_nothing_is_said(self, write):
        settings = load_settings(write({}))

        assert settings.summarization_settings.enabled
        assert settings.summarization_settings.max_summary_tokens == 800
        assert settings.context.recent_message_count == 10
        assert not settings.llm.is_configured

    def test_a_variable_wins_over_the_file(self, write, monkeypatch):
        path = write({"llm": {"model": "small", "temperature": 0.5}})
        monkeypatch.setenv("GROUNDNOTE_LLM__MODEL", "large")

        settings = load_settings(path)

        assert (settings.llm.model, settings.llm.temperature) == ("large", 0.5)

    def test_context_message_pairs_counts_pairs(self, write, monkeypatch):
        monkeypatch.setenv("CONTEXT_MESSAGE_PAIRS", "3")

        assert load_settings(write({})).context.recent_message_count == 6

    def test_the_long_name_of_a_variable_wins_over_the_short_one(self, write, monkeypatch):
        monkeypatch.setenv("PORT", "9000")
        assert load_settings(write({"web": {"port": 1}})).web.port == 9000

        monkeypatch.setenv("GROUNDNOTE_WEB__PORT", "9001")
        assert load_settings(write({})).web.port == 9001

    def test_the_data_folder_counts_from_the_settings_file(self, write, tmp_path, monkeypatch):
        assert load_settings(write({"data_dir": "here"})).data_dir == tmp_path / "here"

        monkeypatch.setenv("GROUNDNOTE_DATA_DIR", "/srv/groundnote")
        assert load_settings(write({})).data_dir == Path("/srv/groundnote")
        assert load_settings(write({})).database_url == "sqlite:////srv/groundnote/groundnote.db"

    def test_the_file_can_be_named_by_a_variable(self, write, monkeypatch):
        path = write({"web": {"threads": 5}})
        monkeypatch.setenv("GROUNDNOTE_SETTINGS", str(path))

        assert settings_file() == path
        assert load_settings().web.threads == 5


class TestMistakes:
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            pytest.param(
                {"llm": {"modell": "x"}}, r"llm\.modell is not a setting.*model", id="key"
            ),
            pytest.param({"extra": 1}, r"extra is not a setting.*llm", id="section"),
            pytest.param({"web": {"port": "x"}}, r"web\.port is 'x'", id="type"),
            pytest.param({"context": {"input_share": 2}}, r"context\.input_share is 2", id="range"),
            pytest.param("{", "not valid JSON", id="broken"),
            pytest.param("[]", "must hold one JSON object", id="no object"),
        ],
    )
    def test_are_named_with_their_place(self, write, values, message):
        with pytest.raises(SetupError, match=message):
            load_settings(write(values))

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(SetupError, match=r"nothing\.json cannot be read"):
            load_settings(tmp_path / "nothing.json")

    def test_an_unknown_variable_of_a_section_is_named(self, write, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_WEB__PROT", "80")

        with pytest.raises(SetupError, match=r"web\.prot is not a setting"):
            load_settings(write({}))

    def test_pairs_must_be_a_number(self, write, monkeypatch):
        monkeypatch.setenv("CONTEXT_MESSAGE_PAIRS", "many")

        with pytest.raises(SetupError, match="CONTEXT_MESSAGE_PAIRS is 'many'"):
            load_settings(write({}))

    def test_settings_cannot_be_changed_afterwards(self, write):
        settings = load_settings(write({}))

        with pytest.raises(ValueError, match="frozen"):
            settings.web.port = 1

    @pytest.mark.parametrize(
        ("variable", "value"),
        [
            ("GROUNDNOTE_LLM", "qwen3"),
            ("GROUNDNOTE_AUTH__TOKENS", "a-token"),
            ("GROUNDNOTE_DOCUMENTS__PRODUCTS", "Aero 5, Aero 6"),
        ],
    )
    def test_a_variable_that_should_be_json_is_named(self, write, monkeypatch, variable, value):
        monkeypatch.setenv(variable, value)

        with pytest.raises(SetupError, match=f"{variable}.*JSON"):
            load_settings(write({}))

    def test_a_variable_of_an_unknown_section_is_named(self, write, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_LMM__MODEL", "qwen3")

        with pytest.raises(SetupError, match=r"GROUNDNOTE_LMM__MODEL: lmm is not a section.*llm"):
            load_settings(write({}))

    def test_variables_of_others_are_let_be(self, write, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_PORT", "tcp://10.0.0.1:8000")
        monkeypatch.setenv("GROUNDNOTE_TOKEN", "secret")

        assert load_settings(write({})).web.port == 8000

    def test_a_file_that_is_nested_too_deeply_is_no_json(self, write):
        with pytest.raises(SetupError, match="is not valid JSON"):
            load_settings(write("[" * 100_000))


class TestEmptyText:
    """What a script passes on without having it: `GROUNDNOTE_LLM__MODEL=$MODEL`."""

    def test_of_a_variable_leaves_what_the_file_says(self, write, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_LLM__MODEL", "")
        monkeypatch.setenv("GROUNDNOTE_WEB__PORT", "")
        monkeypatch.setenv("PORT", "9000")

        assert load_settings(write({"llm": {"model": "small"}})).llm.model == "small"
        assert load_settings(write({})).web.port == 9000
        assert not load_settings(write({})).llm.is_configured

    def test_of_the_file_leaves_the_default(self, write, tmp_path):
        settings = load_settings(
            write({"data_dir": "", "llm": {"model": ""}, "auth": {"proxy_header": ""}})
        )

        assert settings.data_dir == tmp_path / "var"
        assert not settings.llm.is_configured
        assert settings.auth.proxy_header == "X-Forwarded-User"

    def test_is_no_data_folder(self, write, tmp_path, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_DATA_DIR", "")

        assert load_settings(write({"data_dir": "here"})).data_dir == tmp_path / "here"

    def test_before_a_file_may_be_a_mark_of_its_encoding(self, write):
        assert load_settings(write('\ufeff{"web": {"port": 1}}')).web.port == 1


class TestNearMisses:
    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("GROUNDNOTE_LLM_MODEL", "GROUNDNOTE_LLM__MODEL"),
            ("GROUNDNOTE_LLM_BASE_URL", "GROUNDNOTE_LLM__BASE_URL"),
            ("groundnote_retrieval_limit", "GROUNDNOTE_RETRIEVAL__LIMIT"),
            ("GROUNDNOTE_FOLLOW_UP_ENABLED", "GROUNDNOTE_FOLLOW_UP__ENABLED"),
            ("GROUNDNOTE_WEB_PORT", "GROUNDNOTE_WEB__PORT"),
        ],
    )
    def test_of_a_setting_are_refused_by_name(self, write, monkeypatch, variable, meant):
        monkeypatch.setenv(variable, "8")

        with pytest.raises(SetupError, match=f"{variable} sets nothing.*{meant}"):
            load_settings(write({}))

    def test_no_setting_of_any_section_is_lost(self, write, monkeypatch):
        path = write({})
        for section, field in Settings.model_fields.items():
            for key in getattr(field.annotation, "model_fields", ()):
                with monkeypatch.context() as patched:
                    patched.setenv(f"GROUNDNOTE_{section}_{key}".upper(), "8")
                    with pytest.raises(SetupError, match=f"{section}__{key}".upper()):
                        load_settings(path)

    @pytest.mark.parametrize(
        ("variable", "value", "warns"),
        [
            ("GROUNDNOTE_MODEL", "llama", True),
            ("GROUNDNOTE_WEB_PORT", "tcp://10.0.0.1:8000", True),
            ("GROUNDNOTE_PORT_8000_TCP_ADDR", "10.0.0.1", False),
            ("GROUNDNOTE_PORT", "tcp://10.0.0.1:8000", False),
            ("GROUNDNOTE_SERVICE_HOST", "10.0.0.1", False),
            ("GROUNDNOTE_SERVICE_PORT_HTTP", "8000", False),
            ("GROUNDNOTE_WEB_SERVICE_HOST", "10.0.0.1", False),
            ("GROUNDNOTE_LLMMODEL", "llama", True),
            ("GROUNDNOTE_DATADIR", "/data", True),
            ("GROUNDNOTE_TOKEN", "anna", False),
        ],
    )
    def test_of_others_are_named_at_most(self, write, monkeypatch, caplog, variable, value, warns):
        monkeypatch.setenv(variable, value)

        load_settings(write({}))

        assert (variable in caplog.text) is warns

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ('{"llm": {"model": "a"}, "web": {"port": 1}, "llm": {}}', "llm"),
            ('{"llm": {"model": "a", "model": "a"}}', "model"),
            ('{"llm": {"extra_body": {"top_k": 1, "top_k": 2}}}', "top_k"),
        ],
    )
    def test_a_key_that_stands_twice_is_refused(self, write, text, name):
        with pytest.raises(SetupError, match=f"{name} stands twice"):
            load_settings(write(text))

    def test_a_server_without_a_model_is_refused(self, write):
        with pytest.raises(SetupError, match=r"llm\.model is not set"):
            load_settings(write({"llm": {"base_url": "http://127.0.0.1:1/v1"}}))

    def test_a_server_in_the_file_may_get_its_model_by_variable(self, write, monkeypatch):
        monkeypatch.setenv("GROUNDNOTE_LLM__MODEL", "llama")

        settings = load_settings(write({"llm": {"base_url": "http://127.0.0.1:1/v1"}}))

        assert settings.llm.model == "llama"

    @pytest.mark.parametrize("by_variable", [False, True])
    def test_a_tilde_is_home(self, write, monkeypatch, tmp_path, by_variable):
        monkeypatch.setenv("HOME", str(tmp_path))
        if by_variable:
            monkeypatch.setenv("GROUNDNOTE_DATA_DIR", "~/gn")

        settings = load_settings(write({} if by_variable else {"data_dir": "~/gn"}))

        assert settings.data_dir == tmp_path / "gn"

    def test_so_it_is_before_the_settings_file(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("GROUNDNOTE_SETTINGS", "~/gn.json")

        assert settings_file() == settings_file("~/gn.json") == tmp_path / "gn.json"


@pytest.mark.parametrize(
    ("section", "key"),
    [
        (name, key)
        for name, field in Settings.model_fields.items()
        for key in getattr(field.annotation, "removed", {})
    ],
)
def test_a_removed_setting_is_read_and_told_of(section, key, caplog):
    Settings.model_validate({section: {key: ["of an earlier version"]}})

    assert f"{key} does nothing any more" in caplog.text
