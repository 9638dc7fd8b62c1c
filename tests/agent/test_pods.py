"""Records of pods, as schedulers of both families write them, and what each container gets by them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.agent.node import GPU, VGPU, container, part
from volcano_py.crds.cards import records
from volcano_py.crds.cards.records import Part
from volcano_py.shim.agent.pods import (
    DONE,
    Container,
    Metadata,
    Pod,
    PodSpec,
    Record,
    RecordError,
    claims_of,
    marks,
    record_of,
)

BOTH = (GPU, VGPU)
A, B, C = (part(f"GPU-{number}", 1000 * number, number) for number in (1, 2, 3))


def pod(
    notes: dict[str, str], containers: list[dict[str, Any]], inits: list[dict[str, Any]] | None = None
) -> Pod:
    return Pod(
        Metadata("p", "default", "u", annotations=notes),
        PodSpec(tuple(map(made, containers)), tuple(map(made, inits or [])), "n1"),
    )


def made(document: dict[str, Any]) -> Container:
    return msgspec.convert(document, Container)


def hami(text: str) -> dict[str, str]:
    return {records.HAMI.node: "n1", records.HAMI.allocated: text, records.HAMI.to_allocate: text}


def volcano(text: str) -> dict[str, str]:
    return {records.VOLCANO.node: "n1", records.VOLCANO.allocated: text, records.VOLCANO.to_allocate: text}


def gets(record: Record | None) -> dict[str, tuple[Part, ...]]:
    assert record is not None
    return {claim.container: claim.parts for claim in record.claims if claim.parts}


ONE, TWO, NONE = container("one", {GPU: 1}), container("two", {GPU: 1}), container("none", {})
INIT = container("init", {GPU: 1})


@pytest.mark.parametrize(
    ("text", "containers", "inits", "wanted"),
    [
        (f"{A.uuid},NVIDIA,1000,1:;", [ONE], [], {"one": A}),
        (";" + f"{A.uuid},NVIDIA,1000,1:;", [NONE, ONE], [], {"one": A}),
        # HAMi loses empty segments of NVIDIA's cards.
        (f"{A.uuid},NVIDIA,1000,1:;", [NONE, ONE], [], {"one": A}),
        (f"{A.uuid},NVIDIA,1000,1:;{B.uuid},NVIDIA,2000,2:;", [ONE], [INIT], {"init": A, "one": B}),
        (f"{A.uuid},NVIDIA,1000,1:;;{B.uuid},NVIDIA,2000,2:;", [ONE, NONE, TWO], [], {"one": A, "two": B}),
    ],
)
def test_hamis_records_begin_with_init_containers(
    text: str, containers: list[Any], inits: list[Any], wanted: dict[str, Part]
) -> None:
    record = record_of(pod(hami(text), containers, inits), "n1", BOTH)
    assert gets(record) == {name: (each,) for name, each in wanted.items()}
    assert record is not None
    assert records.decode(record.text(record.segments)) == records.decode(text)


@pytest.mark.parametrize(
    ("text", "containers", "inits", "wanted"),
    [
        (f"{A.uuid},NVIDIA,1000,1:", [ONE], [NONE], {"one": A}),
        (f";{A.uuid},NVIDIA,1000,1:", [NONE, ONE], [], {"one": A}),
        # Volcano's scheduler writes no segment for containers that ask for nothing.
        (f"{A.uuid},NVIDIA,1000,1:;{B.uuid},NVIDIA,2000,2:", [NONE, ONE, TWO], [], {"one": A, "two": B}),
        (f"{A.uuid},NVIDIA,1000,1:;{B.uuid},NVIDIA,2000,2:", [ONE], [INIT], {"one": A, "init": B}),
    ],
)
def test_volcanos_records_begin_with_app_containers(
    text: str, containers: list[Any], inits: list[Any], wanted: dict[str, Part]
) -> None:
    record = record_of(pod(volcano(text), containers, inits), "n1", BOTH)
    assert gets(record) == {name: (each,) for name, each in wanted.items()}


@pytest.mark.parametrize(
    "text", ["GPU-1,NVIDIA,1:;", "GPU-1,NVIDIA,x,1:;", "GPU-1,NVIDIA,1,1:GPU-2,NVIDIA,1,1:;"]
)
def test_a_record_that_fits_no_container_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        record_of(pod(hami(text), [ONE]), "n1", BOTH)


def test_a_record_for_another_node_is_none_of_ours() -> None:
    assert record_of(pod(hami("GPU-1,NVIDIA,1,1:;"), [ONE]), "n2", BOTH) is None


def test_marks_follow_what_is_served() -> None:
    text = f"{A.uuid},NVIDIA,1000,1:;;{B.uuid},NVIDIA,2000,2:;"
    given = pod(hami(text), [ONE, NONE, TWO])
    record = record_of(given, "n1", BOTH)
    assert record is not None
    keys = records.HAMI
    assert marks(record, given.metadata.annotations, []) == {}
    assert marks(record, given.metadata.annotations, ["two"]) == {
        keys.to_allocate: f"{A.uuid},NVIDIA,1000,1:;;;"
    }
    whole = marks(record, given.metadata.annotations, ["one", "two"])
    assert whole == {keys.to_allocate: ";;;", keys.phase: "success"}
    assert marks(record, {**given.metadata.annotations, **whole}, ["one", "two"]) == {}


def test_volcanos_marks_end_the_time() -> None:
    given = pod(volcano(f"{A.uuid},NVIDIA,1000,1:"), [ONE])
    record = record_of(given, "n1", BOTH)
    assert record is not None
    keys = records.VOLCANO
    assert marks(record, given.metadata.annotations, ["one"]) == {
        keys.to_allocate: "",
        keys.phase: "success",
        keys.time: DONE,
    }


@pytest.mark.parametrize(("amount", "count"), [("2", 2), (2, 2), ("0", 0), ("1k", 0), ("-1", 0), ("1.5", 0)])
def test_counts_are_whole_numbers(amount: object, count: int) -> None:
    given = {"name": "one", "resources": {"limits": {GPU: amount}}}
    (claim,) = claims_of(pod({}, [given]), BOTH)
    assert claim.counts.get(GPU, 0) == count


@pytest.mark.parametrize(
    ("more", "priority"),
    [
        ({}, 1),
        ({"resources": {"limits": {"nvidia.com/priority": "0"}}}, 0),
        ({"env": [{"name": "CUDA_TASK_PRIORITY", "value": "3"}]}, 3),
        ({"env": [{"name": "CUDA_TASK_PRIORITY", "value": "x"}]}, 1),
    ],
)
def test_priority_is_a_resource_or_a_variable(more: dict[str, Any], priority: int) -> None:
    (claim,) = claims_of(pod({}, [{"name": "one", **more}]), BOTH)
    assert claim.priority == priority
