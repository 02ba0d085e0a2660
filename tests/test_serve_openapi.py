"""The OpenAPI document: it is valid, it is what the server does, and no example of it ends in a 5xx."""

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance
from serving import GOOD, client, post, serving

import lanes
from lanes.serving import Server

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)
FEW = settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
STREAMED = {path for path in GOOD if "completions" in path}
PATHS = {"/health", "/slots", "/metrics", "/v1/rounds", "/v1/models", "/v1/models/{name}", "/openapi.json", *GOOD}


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    with client(server) as one:
        return one.get("/openapi.json").json()


@pytest.fixture(scope="module")
def schema(engine: lanes.Engine) -> Any:
    """Every request ends soon, whatever it asks for: rounds and replies would go on otherwise."""
    with serving(engine, deadline=2.0) as server:
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")


def test_it_lists_every_endpoint(document: dict[str, Any]):
    assert set(document["paths"]) == PATHS
    assert document["openapi"] == "3.1.0" and document["info"]["version"] == lanes.__version__


def test_every_schema_in_it_is_one(document: dict[str, Any]):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", GOOD)
def test_a_good_body_and_its_answer_fit_it(server: Server, document: dict[str, Any], path: str):
    said = document["paths"][path]["post"]
    _fits(document, said["requestBody"], GOOD[path])
    _fits(document, said["responses"]["200"], post(server, path, GOOD[path]).json())
    wrong = post(server, path, {})
    _fits(document, said["responses"][str(wrong.status_code)], wrong.json())


def _fits(document: dict[str, Any], place: dict[str, Any], value: Any) -> None:
    schema = place["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_keys_are_in_it_where_they_are_needed(engine: lanes.Engine, document: dict[str, Any]):
    assert "security" not in document
    with serving(engine, api_keys="k") as server, client(server) as one:
        found = one.get("/openapi.json", headers={"Authorization": "Bearer k"}).json()
    assert found["security"] == [{"key": []}] and found["paths"]["/health"]["get"]["security"] == []


FITTING = [*((path, False) for path in sorted(PATHS - {"/v1/rounds"})), *((path, True) for path in sorted(STREAMED))]


@pytest.mark.parametrize(("path", "streamed"), FITTING)
def test_what_fits_it_is_answered_as_it_says(schema: Any, path: str, streamed: bool):
    statuses: list[int] = []

    def answered(case: Any) -> None:
        if path in GOOD:
            case.body = {**case.body, "model": GOOD[path]["model"]}
        if path in STREAMED:  # a reply may be as long as the context
            case.body = {**case.body, "max_tokens": 3, "stream": streamed}
            if not streamed:
                case.body.pop("stream_options", None)
            case.body.pop("max_completion_tokens", None)
        got = case.call()
        # No schema says that a text is too long for the model, or that two fields do not go together.
        case.validate_response(got, excluded_checks=[positive_data_acceptance])
        statuses.append(got.status_code)

    _try(schema, path, GenerationMode.POSITIVE, answered)
    assert 200 in statuses or path == "/v1/models/{name}", "no example was answered"


@pytest.mark.parametrize("path", GOOD)
def test_what_does_not_fit_it_is_refused_as_it_says(schema: Any, path: str):
    def refused(case: schemathesis.Case) -> None:
        case.call_and_validate()

    _try(schema, path, GenerationMode.NEGATIVE, refused)


def _try(schema: Any, path: str, mode: Any, check: Callable[[schemathesis.Case], None]) -> None:
    """Examples of what may come, the same ones every time."""
    [asked] = schema[path].values()
    given(asked.as_strategy(generation_mode=mode))(FEW(check))()
