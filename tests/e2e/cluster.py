"""One test's cluster: a server, our components as processes, and pretend kubelets beside the test."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e import objects
from tests.e2e.components import Component
from tests.e2e.invariants import half_gangs, too_much
from tests.e2e.live import TRIES, WAIT_S, Document, Live
from tests.e2e.servers import Server
from volcano_py.client.api import RESOURCES, ApiError
from volcano_py.simulator.kubelet.play import play

CRDS: Final = Path(__file__).parents[2] / "crds" / "yaml"
KEPT_QUEUES: Final = ("root", "default")
_numbers: Final = itertools.count(1)


class Cluster(Live):
    """An empty cluster. The namespace ``space`` is the test's own.

    Attributes:
        server: where the objects are.
        place: logs and files of the components.
        components: those that were started, by name.
        environment: variables that those to come have besides ours.
    """

    def __init__(self, server: Server, place: Path) -> None:
        super().__init__(server.kubeconfig)
        self.server, self.place = server, place
        self.components: dict[str, Component] = {}
        self.environment: Mapping[str, str] = {}
        self._install_crds()
        self._clean()
        self.space = f"test-{next(_numbers)}"
        if self.get("Namespace", "volcano-system") is None:
            self.create(objects.namespace("volcano-system"))
        self.create(objects.namespace(self.space))
        self.until(self._has_service_account, what="service account of the namespace")

    def close(self) -> None:
        """Stop what runs and remove what was made."""
        for component in reversed(self.components.values()):
            if component.alive():
                component.stop()
        self._clean()
        super().close()

    def component(
        self, name: str, *arguments: str, instance: str = "", kubeconfig: Path | None = None
    ) -> Component:
        """Start ``volcano-py NAME``; a second one of a name needs an *instance*."""
        place = self.place / instance if instance else self.place
        place.mkdir(exist_ok=True)
        component = Component(name, kubeconfig or self.server.kubeconfig, place, *arguments)
        component.environment = self.environment
        self.components[f"{name}{instance}"] = component
        component.start()
        return component

    def scheduler(self, *arguments: str, instance: str = "", kubeconfig: Path | None = None) -> Component:
        """Start the scheduler."""
        ports = ["--listen-address", "127.0.0.1:0", "--healthz-address", "127.0.0.1:0"]
        return self.component("scheduler", *ports, *arguments, instance=instance, kubeconfig=kubeconfig)

    def controller(self, *arguments: str) -> Component:
        """Start the controllers."""
        return self.component("controller", "--listen-address", "127.0.0.1:0", *arguments)

    def kubelets(self) -> None:
        """Play the kubelets of all nodes beside the test."""
        self.background(play(self.api))

    def nodes(self, count: int, **fields: Any) -> list[str]:
        """Create nodes n0, n1, ...; their names."""
        names = [f"n{number}" for number in range(count)]
        self.create(*(objects.node(name, **fields) for name in names))
        return names

    def default_queue(self) -> None:
        """Create the queue ``default``, for cases without controllers."""
        if self.get("Queue", "default") is None:
            self.create(objects.queue("default", weight=1))

    # -- what the cases look at -----------------------------------------------------------------

    def pods(self, prefix: str = "") -> dict[str, Document]:
        """Pods of the test's namespace by name, those whose name begins with *prefix*."""
        items = self.ask("GET", RESOURCES["Pod"].path(self.space))["items"]
        return {
            item["metadata"]["name"]: item for item in items if item["metadata"]["name"].startswith(prefix)
        }

    def bound(self, prefix: str = "") -> dict[str, str]:
        """Pod -> its node, of those that have one and are not on their way out."""
        return {
            name: pod["spec"]["nodeName"]
            for name, pod in self.pods(prefix).items()
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        }

    def wait_bound(self, count: int, prefix: str = "", *, within_s: float = WAIT_S) -> dict[str, str]:
        """Wait until exactly *count* such pods are bound."""
        return self._watch(lambda: self.bound(prefix), count, within_s, f"{count} of {prefix or 'all'} bound")

    def condition(self, kind: str, key: str, of_type: str) -> Document | None:
        """The condition *of_type* of an object, if it has one."""
        found = self.get(kind, key) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == of_type), None)

    def until_says(self, kind: str, key: str, of_type: str, *words: str) -> Document:
        """Wait until the message of a condition has all *words*; the condition. Another may come before."""

        def says() -> Document | None:
            found = self.condition(kind, key, of_type)
            return found if found and all(word in found["message"] for word in words) else None

        return self.until(says, what=f"{of_type} of {kind} {key} says {words}")

    def events(self, reason: str) -> list[Document]:
        """Events with *reason* in the test's namespace."""
        items = self.ask("GET", RESOURCES["Event"].path(self.space))["items"]
        return [item for item in items if item.get("reason") == reason]

    def assert_sound(self) -> None:
        """The invariants, from the server's own objects; victims of a gang may go one after another."""
        self.assert_never_too_much()
        self.until(lambda: not half_gangs(*self._objects()), what="every gang stands whole or not at all")

    def assert_never_too_much(self) -> None:
        """No node and no queue holds more than it may."""
        found = too_much(*self._objects())
        assert not found, "\n".join(found)

    def _objects(self) -> list[dict[str, Document]]:
        return [self.list(kind) for kind in ("Node", "Queue", "PodGroup", "Pod")]

    def _watch(
        self, look: Callable[[], dict[str, str]], count: int, within_s: float, what: str
    ) -> dict[str, str]:
        try:
            self.until(lambda: len(look()) == count, within_s=within_s, what=what)
        except AssertionError as error:
            logs = "\n".join(f"--- {c.name}\n{c.said()}" for c in self.components.values())
            raise AssertionError(f"{error}\nbound: {sorted(look())}\n{logs}") from None
        return look()

    # -- before and after -----------------------------------------------------------------------

    def _install_crds(self) -> None:
        for document in _shipped_crds():
            name = document["metadata"]["name"]
            if self.get("CustomResourceDefinition", name) is None:
                self.create(document)
        self.until(self._crds_established, what="CRDs established")

    def _crds_established(self) -> bool:
        found = self.list("CustomResourceDefinition").values()
        return all(
            any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
            for conditions in (item.get("status", {}).get("conditions") or () for item in found)
        )

    def _has_service_account(self) -> bool:
        return self.get("ServiceAccount", f"{self.space}/default") is not None

    def _clean(self) -> None:
        """Delete what cases make; pods without grace, since no kubelet may be left to end them."""
        now = {"gracePeriodSeconds": 0}
        kinds = ("Deployment", "ReplicaSet", "PodGroup", "Pod", "Queue", "Node", "PodDisruptionBudget")
        for kind in (*kinds, "PriorityClass", "Lease", "Command"):
            doomed = [key for key, item in self.list(kind).items() if _is_tests(kind, key, item)]
            self.call(self._delete_all(kind, doomed, now))

    async def _delete_all(self, kind: str, keys: Iterable[str], options: Document) -> None:
        async def delete(key: str) -> None:
            space, _, name = key.rpartition("/")
            try:
                path = RESOURCES[kind].path(space or None, name)
                await self.api.call("DELETE", path, body=options, tries=TRIES)
            except ApiError as error:
                if not error.is_missing:
                    raise

        await asyncio.gather(*(delete(key) for key in keys))


@lru_cache(maxsize=1)
def _shipped_crds() -> list[Document]:
    """Read once: it takes a quarter of a second."""
    return [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(CRDS.glob("*.yaml"))]


def _is_tests(kind: str, key: str, item: Document) -> bool:
    if kind == "PriorityClass":
        return not key.startswith("system-")
    if kind == "Lease":
        return "volcano-py" in key
    return not (kind == "Queue" and key in KEPT_QUEUES)
