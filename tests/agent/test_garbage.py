"""Nothing that pods, nodes, files or the kubelet's checkpoint contain can stop the agent."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.node import GPU, VGPU, container, node, part
from volcano_py.client.api import Api
from volcano_py.crds.cards import records
from volcano_py.crds.cards.instances import INSTANCES
from volcano_py.crds.cards.register import HAMI_REGISTER
from volcano_py.shim.agent.follow import Follower
from volcano_py.shim.agent.instances import wishes, with_identities
from volcano_py.shim.agent.kubelet import read_checkpoint
from volcano_py.shim.agent.pods import Container, Metadata, Pod, PodSpec, RecordError, Resources, record_of
from volcano_py.shim.agent.publish import published
from volcano_py.shim.agent.slices import read_owner

WORDS = st.text(alphabet='GPU-0123456789,:;[]{}"xyz \x00é', max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
AMOUNTS = st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.none())


@settings(max_examples=300, deadline=None)
@given(text=WORDS, amounts=st.lists(AMOUNTS, min_size=1, max_size=3), instances=WORDS)
def test_a_pods_words_are_read_or_refused(text: str, amounts: list[Any], instances: str) -> None:
    containers = tuple(
        Container(f"c{at}", Resources({GPU: amount, "nvidia.com/priority": amount}))
        for at, amount in enumerate(amounts)
    )
    notes = {INSTANCES: instances}
    for keys in (records.HAMI, records.VOLCANO):
        pod = Pod(
            Metadata("p", annotations={**notes, keys.node: "n1", keys.allocated: text}), PodSpec(containers)
        )
        for read in (lambda: record_of(pod, "n1", (GPU, VGPU)), lambda: wishes(pod)):  # noqa: B023 - at once
            with suppress(RecordError):
                read()
    assert with_identities(instances, []) is not None


@settings(max_examples=300, deadline=None)
@given(document=JSON)
def test_a_checkpoint_is_read_or_there_is_none(tmp_path_factory: Any, document: Any) -> None:
    path = tmp_path_factory.mktemp("c") / "checkpoint"
    shapes = (document, {"Data": document}, {"Data": {"PodDeviceEntries": document}})
    for shape in (*shapes, {"Data": {"PodDeviceEntries": [document]}}):
        path.write_text(json.dumps(shape))
        found = read_checkpoint(path)
        assert found is None or isinstance(found, tuple)
    path.write_bytes(b"\xff\x00")
    assert read_checkpoint(path) is None


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=80))
def test_a_slices_owner_is_read_or_there_is_none(tmp_path_factory: Any, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("s")
    (folder / "owner.json").write_bytes(content)
    assert read_owner(folder) is None


@settings(max_examples=200, deadline=None)
@given(text=WORDS)
def test_what_a_node_published_is_read_or_nothing(text: str) -> None:
    assert isinstance(published({HAMI_REGISTER: text}), tuple)


def test_an_object_that_cannot_be_read_hides_no_other() -> None:
    follower = Follower(Api.__new__(Api), "/api/v1/pods", "", Pod, lambda: None)
    good: dict[str, Any] = {"metadata": {"name": "good", "uid": "1"}}
    assert follower.read(json.dumps({**good, "spec": {"containers": "none"}}).encode()) is None
    found = follower.read(json.dumps(good).encode())
    assert found is not None
    assert found.uid == "1"


def test_lists_of_instances_that_became_garbage_end_nothing(tmp_path: Path) -> None:
    """A tenant may change annotations of its pod; the next pod is served all the same."""

    async def case() -> None:
        async with node(tmp_path) as n1:
            await n1.run(await n1.sliced("a", part("GPU-0", 1000, 10)))
            garbage = dict.fromkeys((INSTANCES, records.HAMI.allocated, records.HAMI.to_allocate), "[{")
            await n1.api.patch("/api/v1/namespaces/default/pods/a", {"metadata": {"annotations": garbage}})
            spec = {"containers": [container("main", {GPU: 1})]}
            await n1.run(await n1.bind("b", spec, n1.record(records.HAMI, [[part("GPU-0", 2000, 10)]])))
            await n1.until_note("b", records.HAMI.phase, "success")

    asyncio.run(case())
