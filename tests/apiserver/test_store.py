"""The store: whoever lists, watches and comes back after drops ends with what is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.simulator.apiserver.store import DELETED, Change, Compacted, Store

NAMES = st.sampled_from(["a/x", "a/y", "b/x", "b/z"])


def document(key: str, value: int) -> dict[str, Any]:
    namespace, _, name = key.partition("/")
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"namespace": namespace, "name": name, "labels": {"parity": str(value % 2)}},
        "data": {"value": str(value)},
    }


def content(store: Store, namespace: str = "") -> dict[tuple[str, str], bytes]:
    return {item.key: item.body for item in store.items("things", namespace)}


@dataclass
class Client:
    """Lists once, then follows changes; what it is not told while it is away it has to fetch."""

    namespace: str
    known: dict[tuple[str, str], bytes] = field(default_factory=dict)
    version: int = 0
    lists: int = 0

    def catch_up(self, store: Store) -> None:
        try:
            for change in store.changes_since("things", self.version):
                self.take(change)
        except Compacted:
            self.known = content(store, self.namespace)
            self.lists += 1
        self.version = store.version

    def take(self, change: Change) -> None:
        if self.namespace and change.item.namespace != self.namespace:
            return
        if change.kind == DELETED:
            del self.known[change.item.key]
        else:
            self.known[change.item.key] = change.item.body


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.integers(0, 9)),
        st.tuples(st.just("remove"), NAMES, st.just(0)),
        st.tuples(st.just("read"), st.sampled_from(["0", "1", "2"]), st.just(0)),
        st.tuples(st.just("compact"), st.just(""), st.integers(0, 5)),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 12))
def test_clients_that_come_back_know_what_is_there(steps: list[tuple[str, str, int]], history: int) -> None:
    store = Store(history=history)
    clients = [Client(""), Client("a"), Client("b")]
    for kind, name, number in steps:
        carry_out(store, clients, kind, name, number)
    for client in clients:
        client.catch_up(store)
        assert client.known == content(store, client.namespace)


def carry_out(store: Store, clients: list[Client], kind: str, name: str, number: int) -> None:
    namespace, _, plain = name.partition("/")
    there = store.get("things", namespace, plain) is not None
    if kind == "put":
        store.put("things", document(name, number))
    elif kind == "remove" and there:
        store.remove("things", namespace, plain)
    elif kind == "read":
        clients[int(name)].catch_up(store)
    elif kind == "compact":
        store.compact(store.version - number)


@given(STEPS, st.integers(1, 40))
def test_old_versions_can_be_read_as_they_were(steps: list[tuple[str, str, int]], history: int) -> None:
    store = Store(history=history)
    past = {store.version: content(store)}
    for kind, name, number in steps:
        carry_out(store, [], kind if kind != "read" else "", name, number)
        past[store.version] = content(store)
    for version, then in past.items():
        if version < store.compacted:
            with pytest.raises(Compacted):
                store.items_at("things", "", version)
        else:
            items = store.items_at("things", "", version)
            assert {item.key: item.body for item in items} == then
            assert [item.key for item in items] == sorted(then)


@given(STEPS)
def test_versions_grow_by_one_and_are_in_the_objects(steps: list[tuple[str, str, int]]) -> None:
    store = Store()
    heard: list[Change] = []
    store.listen("things", heard.append)
    for kind, name, number in steps:
        carry_out(store, [], kind if kind != "read" else "", name, number)
    assert [change.version for change in heard] == list(range(2, 2 + len(heard)))
    for change in heard:
        assert change.item.document()["metadata"]["resourceVersion"] == str(change.version)


def test_listeners_hear_only_their_bucket_and_until_they_stop() -> None:
    store = Store()
    heard: list[Change] = []
    stop = store.listen("things", heard.append)
    store.put("things", document("a/x", 1))
    store.put("others", document("a/x", 1))
    stop()
    store.put("things", document("a/x", 2))
    assert [(change.bucket, change.kind) for change in heard] == [("things", "ADDED")]
