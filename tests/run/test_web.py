"""What probes and Prometheus get over HTTP."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.clusters import group, node, pod, queue
from tests.run.lives import change_of
from volcano_py.scheduler.probes import Address, AddressError, Web, parse_address
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.health import MOST_FAULTS, Health
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.reload import read_config
from volcano_py.scheduler.run.triggers import Triggers
from volcano_py.scheduler.run.worker import Given, Worker

CONFIG = "actions: enqueue, allocate, backfill\ntiers:\n- plugins: [{name: gang}, {name: proportion}]\n"


async def ask(health: Health, metrics: Metrics, *paths: str) -> list[tuple[int, str]]:
    web = Web(health.alive, health.ready, metrics.text)
    await web.start(Address("127.0.0.1", 0), None)
    host, port = web.bound[0]
    answers = []
    async with aiohttp.ClientSession() as session:
        for path in paths:
            async with session.get(f"http://{host}:{port}{path}") as answer:
                answers.append((answer.status, await answer.text()))
    await web.stop()
    return answers


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_health_is_bad_when_the_loop_is_silent_or_cycles_keep_failing() -> None:
    now = [0.0]
    health = Health(silent_s=60, clock=lambda: now[0])
    assert health.alive() == ""
    now[0] = 59.0
    assert health.alive() == ""
    now[0] = 61.0
    assert health.alive() == "the loop has not come round for 61 s"
    health.beat()
    health.faults = MOST_FAULTS - 1
    assert health.alive() == ""
    health.faults = MOST_FAULTS
    assert "broken off" in health.alive()


def test_ready_once_the_cluster_is_known_and_the_configuration_good() -> None:
    trouble = [""]
    health = Health(config_trouble=lambda: trouble[0])
    assert health.ready() == "the cluster has not been read yet"
    health.synced = True
    assert health.ready() == ""
    trouble[0] = "actions: unknown"
    assert "actions: unknown" in health.ready()
    assert health.alive() == ""


def test_probes_get_200_or_503_and_the_reason() -> None:
    health = Health()
    answers = asyncio.run(ask(health, Metrics(), "/healthz", "/livez", "/readyz"))
    assert answers == [(200, "ok\n"), (200, "ok\n"), (503, "the cluster has not been read yet\n")]


def test_metrics_of_a_cycle() -> None:
    metrics = Metrics()
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "i"), Triggers(1.0), metrics
    )
    metrics.watch(worker.figures.samples)
    objects = [node("n0"), queue("a", deserved={"cpu": "2"}, capability={"cpu": "3"}), group("g", 2, "a")]
    pods = [pod(f"g-{i}", "g") for i in range(2)] + [pod("big", "h", "9")]
    changes = [change_of(each) for each in (*objects, group("h"), *pods)]
    worker.turn(Given(1.0, changes, may_cycle=True, leads=True))
    ((status, text),) = asyncio.run(ask(Health(), metrics, "/metrics"))
    found = samples(text)
    assert status == 200
    assert found["volcano_schedule_attempts_total", (("result", "scheduled"),)] == 2
    assert found["volcano_schedule_attempts_total", (("result", "unschedulable"),)] == 1
    assert found["volcano_unschedule_task_count", (("reason", "NodesUnfit"),)] == 1
    assert found["volcano_queue_allocated_milli_cpu", (("queue_name", "a"),)] == 2000
    assert found["volcano_queue_capacity_milli_cpu", (("queue_name", "a"),)] == 3000
    assert found["volcano_queue_request_milli_cpu", (("queue_name", "default"),)] == 9000
    assert found["volcano_action_scheduling_latency_milliseconds_count", (("action", "allocate"),)] == 1
    assert found["volcano_py_cycles_total", (("why", "first"),)] == 1
    assert found["volcano_py_changes_total", (("effect", "moved"),)] == len(changes)


def test_no_metric_has_a_label_of_unbounded_values() -> None:
    metrics = Metrics()
    worker = Worker(
        read_config(CONFIG), ("volcano-py",), Carrier(EvictionStyle(), "i"), Triggers(1.0), metrics
    )
    metrics.watch(worker.figures.samples)
    changes = [change_of(node("some-node", "99"))]
    for number in range(50):
        changes += [
            change_of(group(f"some-job-{number}")),
            change_of(pod(f"some-pod-{number}", f"some-job-{number}")),
        ]
    worker.turn(Given(1.0, changes, may_cycle=True, leads=True))
    text = metrics.text().decode()
    assert "volcano_schedule_attempts_total" in text
    assert "some-" not in text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address("", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:9", Address("::1", 9)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses(text: str, address: Address | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8080", "host", "a:b", ":99999"])
def test_texts_that_are_no_address(text: str) -> None:
    with pytest.raises(AddressError, match="is no address"):
        parse_address(text)
