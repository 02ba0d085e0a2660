"""What an operator looks at: health, slots, models, figures for Prometheus, rounds as they happen."""

import json
from collections import Counter
from typing import Any

import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rigs import FOREVER, WAIT, until
from serving import GOOD, client, post, serving
from typesafe_sdk import TypeSafeClient

import lanes
from lanes.record import Finished, Round, RowsOf, Submitted
from lanes.record.shapes import Admitted
from lanes.serving import Server
from lanes.serving.ops import plain
from lanes.serving.times import Times


def figures(server: Server, **headers: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, without the model's name."""
    with client(server) as one:
        got = one.get("/metrics", headers=headers)
    assert got.headers["content-type"].startswith("text/plain")
    samples = (sample for family in text_string_to_metric_families(got.text) for sample in family.samples)
    return {(one.name, *(v for k, v in sorted(one.labels.items()) if k != "model_name")): one.value for one in samples}


# --- health, slots, models ------------------------------------------------------------------------------------------


def test_health_says_whether_requests_are_taken():
    with lanes.Engine(lanes.tiny("llama")) as engine, serving(engine) as server, client(server) as one:
        assert one.get("/health").json() == {"status": "ok", "model": engine.model}
        engine.close()
        got = one.get("/health")
        assert got.status_code == 503 and got.json()["status"] == "closed"


def test_slots_are_the_snapshot_and_hide_what_was_asked(server: Server, engine: lanes.Engine):
    secret = engine.stream("a secret prompt", max_tokens=FOREVER, ignore_eos=True)
    until(lambda: engine.snapshot().count("live") == 1)
    with client(server) as one:
        got = one.get("/slots")
    secret.cancel()
    seen = got.json()
    assert seen["prompts"] is None and "secret" not in got.text
    assert [slot["index"] for slot in seen["snapshot"]["slots"]] == list(range(8))
    live = [slot for slot in seen["snapshot"]["slots"] if slot["state"] == "live"]
    assert [slot["id"] for slot in live] == [secret.id]


def test_slots_show_what_was_asked_where_that_was_asked_for(engine: lanes.Engine):
    assert engine.pause(WAIT)
    shown = engine.stream("an open prompt")
    with serving(engine, show_prompts=True) as server, client(server) as one:
        prompts = one.get("/slots").json()["prompts"]
    assert prompts == [{"id": shown.id, "state": "queued", "prompt": "an open prompt", "text": ""}]
    shown.cancel()
    engine.resume()


def test_both_official_clients_find_the_model(server: Server, engine: lanes.Engine):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x") as one:
        assert [model.id for model in one.models.list()] == [engine.model]
        assert one.models.retrieve(engine.model).owned_by == "lanes"
        with pytest.raises(openai.NotFoundError, match="only"):
            one.models.retrieve("another")
    with TypeSafeClient(api_key="x", base_url=server.url) as other:
        [found] = other.models.list().models
    assert found.name == engine.model and "4096" in found.description


# --- figures --------------------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_record(engine: lanes.Engine):
    with serving(engine) as server:
        before = figures(server)
        assert before["vllm:time_to_first_token_seconds_count",] == 0, "what was before is not counted in times"
        for _ in range(3):
            assert post(server, "/v1/completions", GOOD["/v1/completions"]).status_code == 200
        assert post(server, "/v1/systemone", GOOD["/v1/systemone"]).status_code == 200
        assert post(server, "/v1/nothing", {}).status_code == 404
        assert engine.wait(WAIT)
        now, totals = figures(server), engine.rounds.totals
    assert now["vllm:generation_tokens_total",] == totals.tokens
    assert now["vllm:prompt_tokens_total",] == totals.prompt_tokens
    assert now["lanes:rounds_total",] == totals.rounds
    assert now["lanes:requests_total", "stream", "length"] == totals.streams.length
    assert now["lanes:requests_total", "decision", "answered"] == totals.decisions.answered
    assert now["vllm:request_success_total", "length"] == totals.streams.length
    assert now["vllm:num_requests_running",] == now["vllm:num_requests_waiting",] == 0
    assert now["vllm:time_to_first_token_seconds_count",] == now["vllm:e2e_request_latency_seconds_count",] == 3
    assert now["vllm:inter_token_latency_seconds_count",] == 3 * 3, "four tokens each"
    assert now["lanes:decision_seconds_count",] == 1
    assert now["lanes:http_requests_total", "/v1/completions", "200"] == 3
    assert now["lanes:http_requests_total", "other", "404"] == 1


def test_figures_count_who_waits_and_who_is_served(engine: lanes.Engine):
    with serving(engine) as server:
        streams = [engine.stream("x", max_tokens=FOREVER, ignore_eos=True) for _ in range(10)]
        until(lambda: engine.snapshot().count("live") == 8)
        now = figures(server)
        assert (now["vllm:num_requests_running",], now["vllm:num_requests_waiting",]) == (8, 2)
        assert 0 < now["vllm:kv_cache_usage_perc",] < 1
        for one in streams:
            one.cancel()
        assert engine.wait(WAIT)
        assert figures(server)["lanes:requests_total", "stream", "cancelled"] >= 10


def test_figures_come_in_openmetrics_where_that_is_asked_for(server: Server):
    with client(server) as one:
        got = one.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert got.headers["content-type"].startswith("application/openmetrics-text") and got.text.endswith("# EOF\n")


def test_figures_survive_a_record_that_forgets():
    with lanes.Engine(lanes.tiny("llama"), keep_rounds=5) as engine, serving(engine) as server:
        engine.stream("x", max_tokens=50, ignore_eos=True).result(WAIT)
        now = figures(server)
    assert now["vllm:generation_tokens_total",] == 50
    assert now["vllm:inter_token_latency_seconds_count",] == 0, "its beginning is forgotten"


def _round(index: int, **what: Any) -> Round:
    return Round(index, start=float(index), end=index + 0.5, width=8, **what)


def test_times_are_those_between_the_stations():
    rounds = [
        _round(0, submitted=(Submitted(1, "stream", 4, -1.0), Submitted(2, "decision", 4, -0.5))),
        _round(1, admitted=(Admitted(0, 1, "stream"), Admitted(1, 2, "decision"))),
        _round(2, rows=(RowsOf(0, 1, "tail", 1, 1),)),
        _round(3, rows=(RowsOf(0, 1, "decode", 1, 1),), finished=(Finished(1, 2, "decision", "answered"),)),
        _round(5, rows=(RowsOf(0, 1, "draft", 3, 3),)),
        _round(6, finished=(Finished(0, 1, "stream", "stop"),)),
        _round(7, finished=(Finished(0, 9, "stream", "stop"),)),
    ]
    times = Times()
    heard = [pair for done in rounds for pair in times.hear(done)]
    assert heard == [("queue", 2.0), ("ttft", 3.5), ("gap", 1.0), ("decision", 4.0), ("gap", 2.0), ("stream", 7.5)]


def test_times_of_who_was_cancelled_are_not_counted():
    times = Times()
    ends = (Finished(None, 1, "stream", "cancelled"), Finished(None, 2, "decision", "deadline"))
    news = (Submitted(1, "stream", 4, 0.0), Submitted(2, "decision", 4, 0.0))
    assert not list(times.hear(_round(0, submitted=news, finished=ends)))


# --- rounds ---------------------------------------------------------------------------------------------------------


def events(text: str) -> list[dict[str, str]]:
    """Server-sent events: their fields."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


def test_rounds_come_as_they_were(server: Server, engine: lanes.Engine):
    first = engine.rounds.next_index
    engine.stream("x", max_tokens=5, ignore_eos=True).result(WAIT)
    assert engine.wait(WAIT)
    with client(server) as one:
        found = events(one.get(f"/v1/rounds?since={first}&last=4").text)
        again = events(one.get("/v1/rounds?last=2", headers={"Last-Event-ID": str(first)}).text)
    assert [int(one["id"]) for one in found] == list(range(first, first + 4))
    assert [int(one["id"]) for one in again] == [first + 1, first + 2]
    told = json.loads(found[0]["data"])
    assert told == json.loads(json.dumps(plain(engine.rounds.since(first).rounds[0])))
    assert told["submitted"][0]["kind"] == "stream" and told["seats"][0]["slot"] == 0


def test_rounds_come_while_they_happen(server: Server, engine: lanes.Engine):
    with client(server) as one, one.stream("GET", "/v1/rounds?last=3") as got:
        lines = got.iter_lines()
        assert next(lines) == ": rounds"  # whoever listens now hears what comes
        engine.stream("x", max_tokens=5, ignore_eos=True).result(WAIT)
        indices = [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]
    assert len(indices) == 3 and indices == sorted(indices)


def test_who_saw_rounds_of_an_engine_before_hears_those_of_this_one(server: Server, engine: lanes.Engine):
    with client(server) as one, one.stream("GET", "/v1/rounds?last=3", headers={"Last-Event-ID": "999999"}) as got:
        lines = got.iter_lines()
        assert next(lines) == ": rounds"
        engine.stream("x", max_tokens=5, ignore_eos=True).result(WAIT)
        assert len([line for line in lines if line.startswith("id: ")]) == 3


def test_the_head_of_rounds_has_an_end(server: Server):
    with client(server) as one:
        got = one.head("/v1/rounds")
        assert got.status_code == 200 and got.headers["content-type"].startswith("text/event-stream")
        assert one.get("/health").status_code == 200, "the connection is free for what comes next"
    until(lambda: server._run.context.counters.open == 0)


def test_rounds_that_were_forgotten_are_told():
    with lanes.Engine(lanes.tiny("llama"), keep_rounds=5) as engine, serving(engine) as server, client(server) as one:
        engine.stream("x", max_tokens=20, ignore_eos=True).result(WAIT)
        assert engine.wait(WAIT)
        found = events(one.get("/v1/rounds?since=0&last=5").text)
    assert found[0]["event"] == "lost" and json.loads(found[0]["data"])["rounds"] == engine.rounds.next_index - 5
    assert len(found) == 6


def test_rounds_end_with_the_engine():
    engine = lanes.Engine(lanes.tiny("llama"))
    with serving(engine) as server, client(server) as one, one.stream("GET", "/v1/rounds") as got:
        lines = got.iter_lines()
        assert next(lines) == ": rounds"
        engine.close()
        assert Counter(lines)["event: closed"] == 1


@pytest.mark.parametrize(
    "asked", ["since=-1", "since=x", "since=1.5", "last=0", "last=", "since=99999999999999999", "since=²"]
)
def test_what_is_no_round_is_refused(server: Server, asked: str):
    with client(server) as one:
        got = one.get(f"/v1/rounds?{asked}")
    assert got.status_code == 400 and got.json()["error"]["param"] == asked.partition("=")[0]
