"""What a kubelet does next: from the pod alone, so that a restart changes nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.kubelet.pods import view
from volcano_py.simulator.kubelet.script import Script, ScriptError, output, read_script
from volcano_py.simulator.kubelet.steps import Act, Moments, Step, next_step

PREFIX = "playground.volcano-py.io/"
SINCE = 1_767_225_600.0  # 2026-01-01T00:00:00Z
RUNNING: dict[str, Any] = {
    "phase": "Running",
    "startTime": "2025-12-31T23:59:50Z",
    "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
}
LEAVING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:01:30Z", "deletionGracePeriodSeconds": 30}
SLEEP_5 = [{"name": "main", "image": "busybox", "command": ["sleep", "5"]}]


def notes(**words: str) -> dict[str, str]:
    return {PREFIX + key.replace("_", "-"): value for key, value in words.items()}


def test_a_bound_pod_starts_at_once() -> None:
    assert next_step(view(), Script(), Moments()) == Step(Act.START)


def test_a_delay_counts_from_when_the_pod_was_seen() -> None:
    script = Script(start_delay_s=7)
    seen = view(status={"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"})
    assert next_step(view(), script, Moments()) == Step(Act.ACKNOWLEDGE)
    assert next_step(seen, script, Moments()) == Step(Act.START, SINCE + 7)


def test_a_run_counts_from_when_the_container_started() -> None:
    script = Script(run_s=60, exit_code=2)
    assert next_step(view(status=RUNNING), script, Moments()) == Step(Act.FINISH, SINCE + 60, 2)
    assert next_step(view(status=RUNNING), script, Moments(started_s=SINCE + 0.5)) == Step(
        Act.FINISH, SINCE + 60.5, 2
    )
    assert next_step(view(status=RUNNING), Script(), Moments()) is None


def test_what_has_ended_stays() -> None:
    assert next_step(view(status={"phase": "Failed"}), Script(), Moments()) is None


def test_a_deleted_pod_leaves_when_it_is_asked() -> None:
    asked = SINCE + 60
    pod = view(status=RUNNING, **LEAVING)
    assert next_step(pod, Script(), Moments()) == Step(Act.FINISH, asked, 143)
    assert next_step(pod, Script(ignore_sigterm_s=10), Moments()) == Step(Act.FINISH, asked + 10, 143)


def test_a_stubborn_pod_is_killed_when_its_grace_is_over() -> None:
    pod = view(status=RUNNING, **LEAVING)
    assert next_step(pod, Script(ignore_sigterm_s=999), Moments()) == Step(Act.FINISH, SINCE + 90, 137)


def test_a_pod_that_ends_within_its_grace_ends_as_it_would_have() -> None:
    pod = view(status=RUNNING, **LEAVING)
    assert next_step(pod, Script(run_s=65, ignore_sigterm_s=20), Moments()) == Step(Act.FINISH, SINCE + 65, 0)


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_deleted_pod_that_does_not_run_is_removed(phase: str) -> None:
    assert next_step(view(status={"phase": phase}, **LEAVING), Script(), Moments()) == Step(Act.REMOVE)


def test_annotations_are_the_script() -> None:
    words = notes(run_seconds="30", exit_code="3", start_delay_seconds="1.5", ignore_sigterm_seconds="4")
    assert read_script(view(notes=words)) == Script(1.5, 30.0, 3, 4.0)


def test_annotations_win_over_commands_and_restart_policies() -> None:
    pod = view(notes=notes(run_seconds="30"), spec={"containers": SLEEP_5, "restartPolicy": "Never"})
    assert read_script(pod).run_s == 30
    assert read_script(view(notes=notes(exit_code="1"))) == Script(run_s=0, exit_code=1)


@pytest.mark.parametrize(("policy", "run_s"), [("Never", 5.0), ("OnFailure", 5.0), ("Always", math.inf)])
def test_a_container_that_its_policy_restarts_goes_on(policy: str, run_s: float) -> None:
    assert read_script(view(spec={"containers": SLEEP_5, "restartPolicy": policy})).run_s == run_s


def test_a_failing_container_is_restarted_unless_never() -> None:
    failing = [{"name": "main", "command": ["sh", "-c", "sleep 1; exit 9"]}]
    again = view(spec={"containers": failing, "restartPolicy": "OnFailure"})
    never = view(spec={"containers": failing, "restartPolicy": "Never"})
    assert math.isinf(read_script(again).run_s)
    assert (read_script(never).run_s, read_script(never).exit_code) == (1.0, 9)


def test_the_last_container_ends_the_pod_and_init_containers_delay_it() -> None:
    pod = view(
        spec={
            "restartPolicy": "Never",
            "initContainers": [
                {"name": "pull", "command": ["sleep", "2"]},
                {"name": "side", "command": ["sleep", "9"], "restartPolicy": "Always"},
            ],
            "containers": [*SLEEP_5, {"name": "two", "command": ["sleep"], "args": ["8"]}],
        }
    )
    assert read_script(pod) == Script(start_delay_s=2, run_s=8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (notes(run_secs="3"), "unknown annotation playground.volcano-py.io/run-secs; known: "),
        (notes(run_seconds="nan"), "run-seconds: 'nan' is not a number of seconds"),
        (notes(run_seconds="-1"), "run-seconds: '-1' is not a number of seconds"),
        (notes(exit_code="256"), "exit-code: '256' is not an exit code"),
    ],
)
def test_a_bad_script_says_what_is_wrong(words: dict[str, str], said: str) -> None:
    with pytest.raises(ScriptError, match="playground") as raised:
        read_script(view(notes=words))
    assert said in str(raised.value)


def test_a_log_is_what_the_annotation_says_else_what_echo_says() -> None:
    said = view(notes=notes(log="one\ntwo"))
    echo = view(spec={"containers": [{"name": "main", "command": ["sh", "-c", "echo hi"]}]})
    assert output(said, said.spec.containers[0]) == ["one", "two"]
    assert output(echo, echo.spec.containers[0]) == ["hi"]
    assert "node-0" in output(view(), view().spec.containers[0])[0]
