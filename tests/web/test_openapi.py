"""The API keeps to its own description, whatever it is sent."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from rag.db import migrate, open_engine
from rag.settings import Settings
from rag.web import create_app
from tests.web.fake_application import FakeApplication

SETTINGS = settings(
    max_examples=2,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
PLAIN = {"Accept-Encoding": "identity"}  # what is sent compressed is not unpacked by schemathesis


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """An app with one session, and its description as schemathesis reads it."""
    import schemathesis  # loaded by the slow tests alone: it takes a second

    folder = tmp_path_factory.mktemp("openapi")
    engine = open_engine(f"sqlite:///{folder}/groundnote.db")
    migrate(engine)
    application = FakeApplication(Settings(data_dir=folder), engine).with_library()
    app = create_app(application)
    session_id = app.test_client().post("/api/v1/sessions", json={}).get_json()["id"]
    known = {"session_id": session_id, "document_id": "document-1", "index": 1, "n": 1}
    yield schemathesis.openapi.from_wsgi("/openapi.json", app), known, application
    engine.dispose()


def check_call(operation, known):
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    kept = (
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
        checks.unsupported_method,
    )

    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @SETTINGS
    def fitting(case):
        if operation.method != "delete":
            case.path_parameters = {
                name: known.get(name, value) for name, value in case.path_parameters.items()
            }
        case.call_and_validate(checks=kept, headers=PLAIN)

    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    @SETTINGS
    def unfitting(case):
        case.call_and_validate(checks=kept, headers=PLAIN)

    fitting()
    with suppress(Unsatisfiable):  # a call without parameters cannot be made wrongly
        unfitting()


@pytest.mark.slow
@pytest.mark.no_cover  # every call is made elsewhere, too
def test_every_call_keeps_to_its_description(described):
    from schemathesis.core.failures import FailureGroup

    schema, known, application = described
    problems = {}

    for found in schema.get_all_operations():
        operation = found.ok()
        try:
            check_call(operation, known)
        except FailureGroup as group:
            problems[operation.label] = [str(failure) for failure in group.exceptions]

    assert problems == {}
    assert application.assistant.asked  # the calls reached what is behind them


class TestDescription:
    @pytest.fixture
    def description(self, client):
        return client.get("/openapi.json").get_json()

    def test_names_every_route_of_the_api(self, app, description):
        routes = {
            rule.rule.replace("<", "{").replace(">", "}")
            for rule in app.url_map.iter_rules()
            if rule.rule.startswith(("/api/", "/v1/"))
        }

        assert routes == {path for path in description["paths"] if path.startswith(("/api", "/v1"))}

    def test_points_nowhere(self, description):
        defined = description["components"]["schemas"]

        def references(part):
            if isinstance(part, dict):
                for key, value in part.items():
                    if key == "$ref":
                        yield value.removeprefix("#/components/schemas/")
                    yield from references(value)
            elif isinstance(part, list):
                for value in part:
                    yield from references(value)

        assert set(references(description)) <= defined.keys()

    def test_says_what_each_call_does(self, description):
        for path, calls in description["paths"].items():
            for method, call in calls.items():
                assert call.get("summary"), (path, method)

    def test_is_the_same_of_every_app_of_a_process_and_has_each_tag_once(
        self, application, description
    ):
        tags = [tag["name"] for tag in description["tags"]]

        assert len(tags) == len(set(tags))
        assert create_app(application).test_client().get("/openapi.json").get_json() == description
