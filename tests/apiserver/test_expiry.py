"""Old events go, fresh ones stay."""

from __future__ import annotations

from volcano_py.simulator.apiserver.expiry import Expiry
from volcano_py.simulator.apiserver.store import Store


def event(name: str) -> dict[str, object]:
    return {"kind": "Event", "apiVersion": "v1", "metadata": {"namespace": "a", "name": name}}


def test_events_go_an_hour_after_they_were_last_written() -> None:
    store = Store()
    store.put("events", event("from-before"))
    expiry = Expiry(store, now=0.0, kept_s=60.0)
    now = 10.0
    store.observe(lambda change: expiry.heed(change, now))
    store.put("events", event("once"))
    store.put("events", event("again"))
    now = 50.0
    store.put("events", event("again"))
    expiry.sweep(65.0, most=10)
    assert [item.name for item in store.items("events")] == ["again", "once"]
    expiry.sweep(75.0, most=10)
    assert [item.name for item in store.items("events")] == ["again"]
    expiry.sweep(111.0, most=10)
    assert store.items("events") == []
