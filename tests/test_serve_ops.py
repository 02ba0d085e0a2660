"""What an operator looks at: health, slots, models."""

from serving import client

from lanes.serving import Server


def test_a_running_server_is_healthy_and_names_its_model(server: Server):
    with client(server) as one:
        assert one.get("/health").json() == {"status": "ok", "model": server.engine.model}
        body = one.get("/v1/models").json()
    assert body["object"] == "list" and body["data"][0]["id"] == server.engine.model
    assert set(body["models"][0]) == {"name", "description", "release_date"}
