"""Discovery: kinds come and go with their definitions, clients get what they ask for."""

from __future__ import annotations

import json
from typing import Any

from tests.apiserver.definitions import every_keyword, registry
from volcano_py.simulator.apiserver.schema.discovery import AGGREGATED
from volcano_py.simulator.apiserver.schema.registry import Answer, Registry
from volcano_py.simulator.apiserver.schema.versions import version_order

NEW_CLIENT = f"{AGGREGATED},application/json"
OLD_CLIENT = "application/json"


def ask(made: Registry, path: str, accept: str = OLD_CLIENT) -> Any:
    answer = made.answer(path, accept, "")
    assert answer is not None, path
    assert answer.status == 200
    return json.loads(answer.body)


def names(made: Registry, path: str) -> list[str]:
    return [resource["name"] for resource in ask(made, path)["resources"]]


def test_custom_kinds_come_and_go() -> None:
    made = registry()
    assert made.answer("/apis/test.volcano-py.io", OLD_CLIENT, "") is None
    made.set_crd(every_keyword())
    assert ask(made, "/apis/test.volcano-py.io")["preferredVersion"]["version"] == "v1"
    assert names(made, "/apis/test.volcano-py.io/v1") == ["probes", "probes/status", "probes/scale"]
    made.drop_crd("probes.test.volcano-py.io")
    assert made.answer("/apis/test.volcano-py.io/v1", OLD_CLIENT, "") is None


def test_a_resource_says_its_names_and_verbs() -> None:
    queue = next(one for one in ask(registry(), "/apis/scheduling.volcano.sh/v1beta1")["resources"])
    assert queue["name"] == "podgroups"
    assert queue["shortNames"] == ["pg", "podgroup-v1beta1"]
    pods = {one["name"]: one for one in ask(registry(), "/api/v1")["resources"]}
    assert pods["pods"]["categories"] == ["all"]
    assert pods["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert "deletecollection" not in pods["namespaces"]["verbs"]


def test_new_clients_get_one_document() -> None:
    made = registry()
    answer = made.answer("/apis", NEW_CLIENT, "")
    assert answer is not None
    assert answer.content_type == AGGREGATED
    found = {group["metadata"]["name"] for group in json.loads(answer.body)["items"]}
    assert {"apps", "scheduling.volcano.sh"} <= found
    assert ask(made, "/apis")["kind"] == "APIGroupList"
    assert ask(made, "/api", NEW_CLIENT)["items"][0]["metadata"] == {}
    assert ask(made, "/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def test_who_prefers_json_gets_json() -> None:
    assert ask(registry(), "/apis", f"{OLD_CLIENT},{AGGREGATED}")["kind"] == "APIGroupList"


def test_what_a_client_has_is_not_sent_again() -> None:
    made = registry()
    first = made.answer("/apis", NEW_CLIENT, "")
    assert first is not None
    again = made.answer("/apis", NEW_CLIENT, first.headers["ETag"])
    assert again == Answer(304, AGGREGATED, b"", first.headers)
    made.set_crd(every_keyword())
    changed = made.answer("/apis", NEW_CLIENT, first.headers["ETag"])
    assert changed is not None
    assert changed.status == 200


def test_nothing_else_is_answered() -> None:
    made = registry()
    for path in (
        "/api/v2",
        "/apis/none.io",
        "/apis/batch/v9",
        "/apis/batch/v1/jobs",
        "/openapi/v3/apis/none/v1",
        "/x",
    ):
        assert made.answer(path, OLD_CLIENT, "") is None, path


def test_versions_in_order_of_preference() -> None:
    ordered = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ]
    shuffled = ordered[::-1]
    shuffled.sort(key=version_order)
    assert shuffled == ordered
