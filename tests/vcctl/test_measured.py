"""What is really in use, from a Prometheus, beside what was handed out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.vcctl.person import Person
from tests.vcctl.test_cards import CARDS, on_cards
from volcano_py.cli.vcctl.measured import Measured, read_samples

MIB = 1 << 20
CARD = {"node": "n0", "card": "GPU-a", "index": "0", "type": "A100"}


def series(name: str, value: float, **labels: str) -> tuple[dict[str, str], float]:
    return {"__name__": f"volcano_py_{name}", **labels}, value


@contextmanager
def prometheus(answer: Any, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that gives *answer* to every query; its address, and the queries that it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(parse_qs(urlparse(self.path).query)["query"][0])
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def vector(*samples: tuple[dict[str, str], float]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1.5, str(value)]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def test_what_is_no_number_is_not_known() -> None:
    values = (("a", "nan"), ("b", "inf"), ("c", "0.5"))
    told = read_samples(series("card_cores_used_ratio", float(value), card=card) for card, value in values)
    assert told.card_percent == {"c": 50}


def test_figures_of_a_pod_are_those_of_its_containers_together() -> None:
    where = {"namespace": "ns", "pod": "a", "card": "GPU-a"}
    told = read_samples(
        [
            series("slice_memory_used_bytes", 60 * MIB, container="one", **where),
            series("slice_memory_used_bytes", 7 * MIB, container="two", **where),
            series("slice_cores_used_ratio", 0.254, container="one", **where),
            series("card_memory_used_bytes", 100 * MIB, **CARD),
        ]
    )
    assert told == Measured({"GPU-a": 100}, {}, {("ns", "a", "GPU-a"): 67}, {("ns", "a", "GPU-a"): 25})


def test_in_use_stands_beside_what_was_handed_out(person: Person) -> None:
    person.cluster.nodes(1, annotations={"hami.io/node-nvidia-register": CARDS})
    on_cards(person, "one", "default", "GPU-a,2048,10")
    on_cards(person, "two", "default", "GPU-a,2048,10")
    mine = {"namespace": person.space, "pod": "one-0", "card": "GPU-a", "container": "main"}
    samples = vector(
        series("card_memory_used_bytes", 3000 * MIB, **CARD),
        series("card_cores_used_ratio", 0.37, **CARD),
        series("slice_memory_used_bytes", 2900 * MIB, **mine),
    )
    with prometheus(samples) as (url, asked):
        card = person.data("card", "n0", "--prometheus", url)["cards"][0]
        drawn = person.says("card", "n0", "--prometheus", url)
        table = person.says("top", "cards", "--prometheus", url)
        assert person.data("top", "cards", "--prometheus", url)["cards"][0]["inUseMemoryMiB"] == 3000
    assert len(asked) == 4
    assert (card["inUseMemoryMiB"], card["inUseCores"]) == (3000, 37)
    assert [pod.get("inUseMemoryMiB") for pod in card["pods"]] == [2900, None]
    assert "4096/16384 MiB, 3000 MiB in use" in drawn
    assert "20/100 %, 37 % in use" in drawn
    assert "Running  in use 2900 MiB\n" in drawn
    head, first, second = table.splitlines()
    assert head.endswith("In use")
    assert first.endswith("3000 MiB, 37 %")
    assert second.endswith("not known")


def test_a_prometheus_that_does_not_answer_well(person: Person) -> None:
    person.cluster.nodes(1)
    with prometheus({"status": "error", "error": "query is wrong"}, 400) as (url, _):
        assert "refused: query is wrong" in person.refused("card", "n0", "--prometheus", url)
    with prometheus(b"<html>") as (url, _):
        assert "can't be asked" in person.refused("card", "n0", "--prometheus", url)
    assert "can't be asked" in person.refused("top", "cards", "--prometheus", url)
