"""Decisions over HTTP are those of `lanes.ask`, number by number: in every dialect, manner and client."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest
import typesafe_sdk as typesafe
from hypothesis import given, settings
from hypothesis import strategies as st
from rigs import WAIT, until
from serving import client, post, serving

import lanes
from lanes.asking import prepare
from lanes.serving import Server
from lanes_widgets.desk.wishes import Raw, Typed
from lanes_widgets.desk.wording import URL, curl

JSON = dict[str, Any]
STATE: JSON = {"subject": "Charged twice </data>", "body": ["I was charged twice.", {"amount": 12.5, "paid": None}]}
QUESTIONS: JSON = {
    "refund": {"type": "noul", "instructions": "Does the customer want money back?", "criteria": {"true": "Any money"}},
    "team": {
        "type": "choice",
        "instructions": {"task": "Which team?"},
        "criteria": {"billing": "Payments", "환불 요청": None, "🙂": ["other", 1]},
    },
    "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["Can wait", {"label": "Today"}, "Now"]},
}
SYSTEM: JSON = {"model": "jev-latest", "state": STATE, "questions": QUESTIONS}
ASKED = {
    "refund": lanes.Noul("Does the customer want money back?", {"true": "Any money"}),
    "team": lanes.Choice({"task": "Which team?"}, {"billing": "Payments", "환불 요청": None, "🙂": ["other", 1]}),
    "urgency": lanes.Score("How urgent?", ["Can wait", {"label": "Today"}, "Now"]),
}
MANNERS: dict[str, JSON] = {
    "plain": {},
    "labels": {"method": "labels"},
    "orders": {"orders": 3},
    "all": {"orders": 2, "prior": "contextual", "abstain": True},
}


@pytest.fixture(scope="module")
def server(engine: lanes.Engine) -> Iterator[Server]:
    """A server with room for what these clients ask."""
    with serving(engine) as server:
        yield server


def extended(manner: JSON) -> JSON:
    """A manner as fields of a body."""
    return {f"x_{name}": value for name, value in manner.items()}


def extras(answer: lanes.Answer) -> JSON:
    """All that a dialect may have no place for."""
    found: JSON = {
        "x_entropy": answer.entropy,
        "x_temperature": answer.temperature,
        "x_method": answer.method,
        "x_prior": answer.prior,
        "x_orders": answer.orders,
    }
    found |= {"x_order_flips": answer.flips} if answer.orders > 1 else {}
    found |= {} if answer.abstain is None else {"x_abstain": answer.abstain}
    return found | ({"x_warnings": list(answer.warnings)} if answer.warnings else {})


def in_system_one(name: str, answer: lanes.Answer) -> JSON:
    """What System One must say of an answer."""
    beside = {**extras(answer), "x_label_mass": answer.label_mass}
    if answer.type == "noul":
        return {"type": "noul", "noul": answer["true"], **beside}
    beside |= {"probabilities": dict(answer), "confidence": answer.confidence}
    if answer.type == "choice":
        return {"type": "choice", "choice": answer.choice, **beside}
    legend = {"0": "Can wait", "1": {"label": "Today"}, "2": "Now"}
    return {"type": "score", "score": answer.value, "legend": legend, **beside}


# --- the same numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
@pytest.mark.parametrize("manner", [*MANNERS.values(), {"orders": "auto"}], ids=[*MANNERS, "auto"])
def test_system_one_says_what_ask_says(server: Server, path: str, manner: JSON):
    own = lanes.ask(server.engine, STATE, ASKED, **manner).result(WAIT)
    got = post(server, path, {**SYSTEM, **extended(manner)})
    assert got.status_code == 200 and got.headers["content-type"] == "application/json"
    said = got.json()
    assert said["model"] == server.engine.model
    assert said["answers"] == {name: in_system_one(name, answer) for name, answer in own.items()}
    assert list(said["answers"]) == list(QUESTIONS)
    usage = said["usage"]
    assert usage["input_tokens"] == own.prompt_tokens > 0 and usage["output_tokens"] == 0
    assert 0 <= usage["x_cached_tokens"] <= usage["input_tokens"]


MESSAGES: list[JSON] = [{"role": "user", "content": "I was charged twice"}, {"role": "assistant", "content": "Oh."}]
CHOICES: list[JSON] = [{"value": "true", "description": "It is so"}, {"value": True}, {"value": "no"}]
LEVELS: list[JSON] = [{"label": "low"}, {"label": "high", "description": "today"}]
OPEN_QUESTIONS: Any = [
    {"type": "score", "name": "urgency", "instructions": "How urgent?", "levels": LEVELS},
    {"type": "predicate", "instructions": "The customer wants a refund."},
    {"type": "choice", "name": "kind", "instructions": "Which?", "choices": CHOICES},
]
OPEN_ASKED = {
    "0": lanes.Score("How urgent?", ["low", "high: today"]),
    "1": lanes.Noul("The customer wants a refund."),
    "2": lanes.Choice("Which?", {"true": "It is so", "true (boolean)": None, "no": None}),
}


def in_openai(answers: lanes.Answers) -> list[JSON]:
    """What OpenAI's dialect must say of the answers."""
    score, truth, choice = answers.values()
    values = [one["value"] for one in CHOICES]
    return [
        {
            "type": "score",
            "name": "urgency",
            "score": score.value,
            "confidence": score.confidence,
            "probabilities": [
                {"value": place, "label": level["label"], "probability": score[str(place)]}
                for place, level in enumerate(LEVELS)
            ],
        },
        {"type": "predicate", "name": None, "probability": truth["true"]},
        {
            "type": "choice",
            "name": "kind",
            "choice": values[choice.options.index(choice.choice)],
            "confidence": choice.confidence,
            "probabilities": [
                {"value": value, "probability": p} for value, p in zip(values, choice.values(), strict=True)
            ],
        },
    ]


@pytest.mark.parametrize("given", ["I was charged twice", MESSAGES], ids=["text", "messages"])
@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
def test_openais_client_gets_what_ask_says(server: Server, given: Any, manner: JSON):
    own = lanes.ask(server.engine, given, OPEN_ASKED, **manner).result(WAIT)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0, timeout=WAIT) as one:
        said = one.decisions.create(
            model=server.engine.model, input=given, questions=OPEN_QUESTIONS, extra_body=extended(manner)
        )
    assert said.model == server.engine.model
    plain = [{k: v for k, v in one.to_dict().items() if not k.startswith("x_")} for one in said.answers]
    beside = [{k: v for k, v in one.to_dict().items() if k.startswith("x_")} for one in said.answers]
    assert plain == in_openai(own)
    assert beside == [{**extras(answer), "x_label_mass": answer.label_mass} for answer in own.values()]
    assert [type(one).__name__ for one in said.answers] == [
        "AnswerAnswerResourceScore",
        "AnswerAnswerResourcePredicate",
        "AnswerAnswerResourceChoice",
    ]
    usage = said.usage
    assert usage.input_tokens == usage.total_tokens == own.prompt_tokens > 0 == usage.output_tokens
    assert 0 <= usage.input_tokens_details.cached_tokens <= usage.input_tokens


def test_openais_client_awaits_and_reads_raw(server: Server):
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", timeout=WAIT) as one:
            created = one.decisions.create(model="default", input="hi", questions=OPEN_QUESTIONS)
            raw = one.decisions.with_raw_response.create(model="default", input="hi", questions=OPEN_QUESTIONS)
            return await asyncio.gather(created, raw)

    said, raw = asyncio.run(ask())
    own = lanes.ask(server.engine, "hi", OPEN_ASKED).result(WAIT)
    assert raw.parse().answers == said.answers and raw.headers["x-request-id"]
    assert said.answers[1].probability == own["1"]["true"]


@pytest.mark.parametrize("temperature", [None, 0.5, 3])
def test_the_third_dialect_says_what_ask_says(server: Server, temperature: float | None):
    body: JSON = {
        "input": STATE,
        "questions": [
            {"id": "b", "type": "yes_no", "question": "So?", "yes": "It is so"},
            {"id": "a", "type": "choice", "question": "Which?", "options": [{"name": "x"}, {"name": "y"}]},
            {"id": "c", "type": "score", "question": "How?", "levels": ["low", "mid", "high"]},
        ],
    }
    own = lanes.ask(
        server.engine,
        STATE,
        {
            "b": lanes.Noul("So?", {"true": "It is so"}),
            "a": lanes.Choice("Which?", ["x", "y"]),
            "c": lanes.Score("How?", ["low", "mid", "high"]),
        },
    ).result(WAIT)
    said = post(server, "/v1/decisions", body if temperature is None else {**body, "temperature": temperature}).json()
    b, a, c = (answer.at(temperature or 1.0) for answer in own.values())
    mass = {name: {"label_mass": answer.label_mass} for name, answer in own.items()}
    sure = [{"x_confidence": answer.confidence} for answer in (a, c)]
    shares = {"yes": b["true"], "no": b["false"]}
    assert said["answers"] == {
        "b": {"type": "yes_no", "probabilities": shares, **mass["b"], **extras(b)},
        "a": {"type": "choice", "choice": a.choice, "probabilities": dict(a), **mass["a"], **sure[0], **extras(a)},
        "c": {"type": "score", "score": c.value, "probabilities": dict(c), **mass["c"], **sure[1], **extras(c)},
    }
    assert said["usage"]["prompt_tokens"] == own.prompt_tokens and said["usage"]["completion_tokens"] == 0


# --- TypeSafe's client ----------------------------------------------------------------------------------------------


def typed() -> dict[str, typesafe.Noul | typesafe.Choice | typesafe.Score]:
    """The questions as TypeSafe's client has them."""
    kinds = {"noul": typesafe.Noul, "choice": typesafe.Choice, "score": typesafe.Score}
    return {name: kinds[one["type"]](**one) for name, one in QUESTIONS.items()}


def check(said: typesafe.SystemOneResponse, own: lanes.Answers) -> None:
    """Hold what the client read against what `ask` said."""
    assert said.nouls["refund"].noul == own["refund"]["true"]
    assert said.choices["team"].choice == own["team"].choice
    assert said.choices["team"].probabilities == dict(own["team"])
    assert said.scores["urgency"].score == own["urgency"].value
    assert said.scores["urgency"].probabilities == {int(level): p for level, p in own["urgency"].items()}
    assert said.scores["urgency"].legend == {0: "Can wait", 1: {"label": "Today"}, 2: "Now"}
    assert said.usage.input_tokens == own.prompt_tokens and said.usage.output_tokens == 0


@pytest.mark.parametrize("length", [0, 1500])
def test_typesafes_client_is_answered_compressed_or_not(server: Server, length: int):
    sent: list[str | None] = []
    hooks = {"request": [lambda request: sent.append(request.headers.get("content-encoding"))]}
    state = {**STATE, "more": "x" * length}
    plain = httpx2.Client(event_hooks=hooks, timeout=WAIT)
    with typesafe.TypeSafeClient(api_key="x", base_url=server.url, http_client=plain) as one:
        said = one.system_one(state=state, questions=typed())
        listed = one.models.list()
    check(said, lanes.ask(server.engine, state, ASKED).result(WAIT))
    assert sent[0] == ("zstd" if length else None), "the client compresses bodies of 1 KB and more"
    assert listed.models[0].name == server.engine.model


def test_typesafes_client_awaits_many_at_once(server: Server):
    states = [{**STATE, "number": number} for number in range(6)]

    async def ask() -> list[typesafe.SystemOneResponse]:
        async with typesafe.AsyncTypeSafeClient(api_key="x", base_url=server.url, timeout=WAIT) as one:
            return await asyncio.gather(*(one.system_one(state=state, questions=typed()) for state in states))

    for state, said in zip(states, asyncio.run(ask()), strict=True):
        check(said, lanes.ask(server.engine, state, ASKED).result(WAIT))


def test_typesafes_client_is_told_which_field_is_wrong(server: Server):
    with typesafe.TypeSafeClient(api_key="x", base_url=server.url) as one:
        with pytest.raises(typesafe.TypeSafeUnprocessableEntityError, match=r"questions\.team\.choice\.criteria"):
            one.system_one(state="x", questions={"team": {"type": "choice", "criteria": {"only": None}}})
        with pytest.raises(typesafe.TypeSafeNotFoundError, match="no-such") as caught:
            one.system_one(state="x", questions=typed(), model="no-such", extra_headers={"x-request-id": "mine"})
        assert caught.value.request_id == "mine"
        with pytest.raises(typesafe.TypeSafeUnprocessableEntityError, match="pictures"):
            one.system_one(state="x", questions={"dog": typesafe.Box(instructions="the dog")})


def test_typesafes_client_comes_back_to_a_busy_server():
    with lanes.Engine(lanes.tiny("llama"), queue=1) as engine, serving(engine) as server:
        assert engine.pause(WAIT)
        blocking = engine.score("x", [" a", " b"])
        statuses: list[int] = []

        def note(response: httpx2.Response) -> None:
            statuses.append(response.status_code)
            engine.resume()

        plain = httpx2.Client(event_hooks={"response": [note]}, timeout=WAIT)
        with typesafe.TypeSafeClient(api_key="x", base_url=server.url, http_client=plain) as one:
            said = one.system_one(state=STATE, questions=typed())
        assert statuses == [529, 200] and blocking.result(WAIT)
        check(said, lanes.ask(engine, STATE, ASKED).result(WAIT))


# --- what answers do not depend on ----------------------------------------------------------------------------------

MORE: JSON = {
    "polite": {"type": "score", "instructions": "How polite?", "criteria": ["Rude", "Polite"]},
    "spam": {"type": "noul", "criteria": {"false": "A real message"}},
    "language": {"type": "choice", "criteria": {"English": None, "Other": None}},
}


@pytest.fixture(scope="module")
def alone(server: Server) -> JSON:
    """Each question's answer, asked alone."""
    every = {**QUESTIONS, **MORE}
    return {
        name: post(server, "/v1/systemone", {**SYSTEM, "questions": {"q": one}}).json()["answers"]["q"]
        for name, one in every.items()
    }


@settings(max_examples=25)
@given(
    order=st.permutations([*QUESTIONS, *MORE]),
    count=st.integers(1, 6),
    ids=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=6, max_size=6, unique=True),
)
def test_names_company_and_order_of_questions_change_no_answer(
    server: Server, alone: JSON, order: list[str], count: int, ids: list[str]
):
    every = {**QUESTIONS, **MORE}
    chosen = dict(zip(ids, order[:count], strict=False))
    said = post(server, "/v1/systemone", {**SYSTEM, "questions": {id: every[name] for id, name in chosen.items()}})
    assert said.json()["answers"] == {id: alone[name] for id, name in chosen.items()}


def test_who_asks_beside_changes_no_answer(server: Server, alone: JSON):
    stream = server.engine.stream("Tell me", max_tokens=200, ignore_eos=True)
    said = post(server, "/v1/systemone", {**SYSTEM, "questions": QUESTIONS}).json()["answers"]
    stream.cancel()
    assert said == {name: alone[name] for name in QUESTIONS}


# --- what is refused ------------------------------------------------------------------------------------------------

LONG = "x" * 10_000
"""More bytes than the tiny model's context has tokens."""
OPEN: JSON = {"model": "default", "input": "hi", "questions": OPEN_QUESTIONS}
THIRD: JSON = {"input": "hi", "questions": [{"id": "a", "type": "yes_no", "question": "So?"}]}


@pytest.mark.parametrize("longer", [1, 4, 10], ids=["beyond the context", "far beyond it", "beyond any"])
@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/v1/systemone", {**SYSTEM, "state": LONG}, ["body", "state"]),
        ("/v1/decisions", {**OPEN, "input": LONG}, "input"),
        ("/v1/decisions", {**THIRD, "input": LONG}, ["body", "input"]),
        (
            "/v1/systemone",
            {**SYSTEM, "questions": {**QUESTIONS, "long": {"type": "noul", "instructions": LONG}}},
            ["body", "questions", "long", "noul"],
        ),
        (
            "/v1/decisions",
            {**OPEN, "questions": [*OPEN_QUESTIONS, {"type": "predicate", "instructions": LONG}]},
            "questions[3]",
        ),
        (
            "/v1/decisions",
            {**THIRD, "questions": [*THIRD["questions"], {"id": "b", "type": "yes_no", "question": LONG}]},
            ["body", "questions", 1, "yes_no"],
        ),
    ],
)
def test_what_does_not_fit_the_context_is_named(server: Server, path: str, body: JSON, where: Any, longer: int):
    got = post(server, path, json.loads(json.dumps(body).replace(LONG, LONG * longer)))
    said = got.json()
    if isinstance(where, str):
        assert got.status_code == 400 and said["error"]["param"] == where
        message, code = said["error"]["message"], said["error"]["code"]
    else:
        assert got.status_code == 422 and [one["loc"] for one in said["detail"]] == [where]
        message, code = said["detail"][0]["msg"], said["detail"][0]["type"]
    assert "context" in message
    assert code == "context_length_exceeded" or "question" in str(where)


@pytest.mark.parametrize("length", [LONG * 4, LONG * 10], ids=["far beyond the context", "beyond any"])
def test_what_is_far_too_long_is_never_put_to_the_model(server: Server, length: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lanes.serving.decide.endpoints.Asking", None)  # it reads a prompt once for every set of codes
    assert post(server, "/v1/systemone", {**SYSTEM, "state": length}).status_code == 422
    long = {"long": {"type": "choice", "criteria": {"a": length, "b": None}}}
    assert post(server, "/v1/systemone", {**SYSTEM, "questions": long}).status_code == 422


@pytest.mark.parametrize("model", ["jev-latest", "default", None])
@pytest.mark.parametrize(("path", "body"), [("systemone", SYSTEM), ("decisions", OPEN), ("decisions", THIRD)])
def test_the_model_has_three_names(server: Server, path: str, body: JSON, model: str | None):
    got = post(server, f"/v1/{path}", {**body, "model": model or server.engine.model})
    assert got.status_code == 200 and got.json()["model"] == server.engine.model


@pytest.mark.parametrize(("path", "body"), [("systemone", SYSTEM), ("decisions", OPEN), ("decisions", THIRD)])
def test_another_model_is_not_found(server: Server, path: str, body: JSON):
    got = post(server, f"/v1/{path}", {**body, "model": "other"})
    said = got.json()
    assert got.status_code == 404 and "other" in got.text
    if body is OPEN:
        assert said["error"]["code"] == "model_not_found" and said["error"]["param"] == "model"
    else:
        assert set(said["detail"]) == {"error_type", "message"}


def test_an_engine_without_decisions_says_so():
    with lanes.Engine(lanes.tiny("llama"), policy="off") as engine, serving(engine) as server:
        got = post(server, "/v1/systemone", SYSTEM)
        assert got.status_code == 404 and "policy" in got.json()["detail"]["message"]


@pytest.mark.parametrize(("body", "key"), [(SYSTEM, "detail"), (THIRD, "detail"), (OPEN, "error")])
def test_a_deadline_that_passed_is_said_in_the_style_of_the_body(server: Server, body: JSON, key: str):
    with held(server.engine):
        got = post(server, "/v1/decisions", body, headers={"x-deadline": "0.05"})
    assert got.status_code == 408 and set(got.json()) == {key}


# --- who leaves -----------------------------------------------------------------------------------------------------


@contextmanager
def held(engine: lanes.Engine) -> Iterator[None]:
    """The engine, held before its next round."""
    assert engine.pause(WAIT)
    try:
        yield
    finally:
        engine.resume()
        assert engine.wait(WAIT)


def test_what_is_given_up_amid_its_tokens_is_not_read_to_the_end(engine: lanes.Engine, monkeypatch):
    read: list[Any] = []
    own = engine.use_tokenizer

    def counted(work: Any) -> Any:
        read.append(work)
        if len(read) == 2:
            call.cancel()
        return own(work)

    call = prepare(engine, "x", {str(n): lanes.Noul("So?") for n in range(50)})
    monkeypatch.setattr(engine, "use_tokenizer", counted)
    with pytest.raises(lanes.Cancelled):
        call.start(True)
    assert len(read) == 2


def test_who_leaves_while_questions_are_tokenized_stops_that(server: Server, monkeypatch):
    read: list[Any] = []
    engine = server.engine
    own = engine.use_tokenizer

    def slow(work: Any) -> Any:
        read.append(work)
        until(lambda: server._run.context.counters.gone > gone)  # the client has left, and the server knows
        return own(work)

    gone = server._run.context.counters.gone
    monkeypatch.setattr(engine, "use_tokenizer", slow)
    many = {str(number): {"type": "noul", "instructions": "So?"} for number in range(50)}
    with client(server) as one, pytest.raises(Exception, match="timed out"):
        one.post("/v1/systemone", json={**SYSTEM, "questions": many}, timeout=0.3)
    until(lambda: server._run.context.counters.open == 0)
    assert 1 <= len(read) <= 2


# --- the desk's own words -------------------------------------------------------------------------------------------

ODD = 'It\'s "so":\n\\ ☃ $HOME `x`\nand\r\n\u2028?'


def run(server: Server, command: str) -> JSON:
    """What curl gets for this command."""
    assert URL in command
    done = subprocess.run(
        ["sh", "-c", command.replace(URL, server.url).replace("curl ", "curl -sS --fail-with-body ", 1)],
        capture_output=True,
        check=True,
        timeout=WAIT,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("manner", [("codes", 1, None, False), ("labels", 2, "contextual", True)])
def test_the_desks_curl_of_a_typed_decision_gives_the_same_numbers(server: Server, manner: Any):
    method, orders, prior, abstain = manner
    wish = Typed({"said": ODD}, tuple(ASKED.items()), method, orders, prior, abstain, {})
    own = wish.ask(server.engine).result(WAIT)
    assert run(server, curl(wish))["answers"] == {name: in_system_one(name, answer) for name, answer in own.items()}


@pytest.mark.parametrize("prompt", [ODD, [{"role": "user", "content": ODD}]])
def test_the_desks_curl_of_a_raw_decision_is_answered(server: Server, prompt: Any):
    said = run(server, curl(Raw.read(prompt, [" yes", " \"no'"])))
    state = prompt if isinstance(prompt, str) else [{"role": "user", "content": ODD}]
    question = lanes.Choice("What comes next?", [" yes", " \"no'"])
    own = lanes.ask(server.engine, state, {"answer": question}).result(WAIT)
    pairs = [(one["value"], one["probability"]) for one in said["answers"][0]["probabilities"]]
    assert pairs == list(own["answer"].items())
