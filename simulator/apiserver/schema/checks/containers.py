"""Containers of a pod: names, images, ports, mounts, probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from volcano_py.simulator.apiserver.schema.checks.causes import (
    at_least,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
    unsupported,
)
from volcano_py.simulator.apiserver.schema.checks.names import (
    PORT_RULE,
    env_name_faults,
    label_faults,
    port_name_faults,
)
from volcano_py.simulator.apiserver.schema.checks.resources import container_resource_faults
from volcano_py.simulator.apiserver.schema.kinds import Cause

Part = Mapping[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


@dataclass(frozen=True, slots=True)
class PodParts:
    """What containers refer to.

    Attributes:
        volumes: Names of the pod's volumes.
        claims: Names of its resource claims.
        host_network: Its ports are the node's.
    """

    volumes: frozenset[str]
    claims: tuple[str, ...]
    host_network: bool


def container_list_faults(spec: Part, field: str, parts: PodParts) -> Iterator[Cause]:
    """The containers and init containers of a pod spec at *field*."""
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{field}.containers")
    names: set[str] = set()
    ports: set[str] = set()
    for position, one in enumerate(containers):
        at = f"{field}.containers[{position}]"
        yield from _container_faults(one, at, parts, names)
        yield from _host_port_faults(one, at, ports)
    for position, one in enumerate(spec.get("initContainers") or ()):
        at = f"{field}.initContainers[{position}]"
        yield from _container_faults(one, at, parts, names)
        yield from one_of(f"{at}.restartPolicy", one.get("restartPolicy"), ("Always", "Never", "OnFailure"))


def _container_faults(one: Part, at: str, parts: PodParts, names: set[str]) -> Iterator[Cause]:
    yield from _name_faults(one.get("name", ""), f"{at}.name", names)
    image = one.get("image", "")
    if not image:
        yield required(f"{at}.image")
    elif image != image.strip():
        yield invalid(f"{at}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(
        f"{at}.imagePullPolicy", one.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never")
    )
    policies = ("File", "FallbackToLogsOnError")
    yield from one_of(f"{at}.terminationMessagePolicy", one.get("terminationMessagePolicy"), policies)
    yield from _port_faults(one.get("ports") or (), f"{at}.ports", parts)
    yield from _env_faults(one.get("env") or (), f"{at}.env")
    yield from _mount_faults(one.get("volumeMounts") or (), f"{at}.volumeMounts", parts)
    yield from container_resource_faults(one.get("resources") or {}, f"{at}.resources", parts.claims)
    for name in _PROBES:
        if (probe := one.get(name)) is not None:
            yield from _probe_faults(probe, f"{at}.{name}")
    for name, hook in (one.get("lifecycle") or {}).items():
        if isinstance(hook, Mapping):
            yield from _handler_faults(hook, f"{at}.lifecycle.{name}")


def _name_faults(name: str, at: str, names: set[str]) -> Iterator[Cause]:
    if not name:
        yield required(at)
        return
    yield from each(at, name, label_faults(name))
    if name in names:
        yield duplicate(at, name)
    names.add(name)


def _port_faults(ports: Any, field: str, parts: PodParts) -> Iterator[Cause]:
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = f"{field}[{position}]"
        if name := port.get("name"):
            yield from each(f"{at}.name", name, port_name_faults(name))
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        number = port.get("containerPort", 0)
        if not number:
            yield required(f"{at}.containerPort")
        else:
            yield from port_number_faults(f"{at}.containerPort", number)
        if host := port.get("hostPort"):
            yield from port_number_faults(f"{at}.hostPort", host)
            if parts.host_network and host != number:
                yield invalid(f"{at}.hostPort", host, "must match `containerPort` when `hostNetwork` is true")
        yield from one_of(f"{at}.protocol", port.get("protocol"), PROTOCOLS)


def port_number_faults(field: str, number: Any) -> Iterator[Cause]:
    """A port must be 1 to 65535."""
    if not isinstance(number, int) or not 1 <= number <= 65535:
        yield invalid(field, number, PORT_RULE)


def _host_port_faults(one: Part, at: str, taken: set[str]) -> Iterator[Cause]:
    for position, port in enumerate(one.get("ports") or ()):
        if not port.get("hostPort"):
            continue
        name = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
        if name in taken:
            yield duplicate(f"{at}.ports[{position}].hostPort", name)
        taken.add(name)


def _env_faults(variables: Any, field: str) -> Iterator[Cause]:
    for position, one in enumerate(variables):
        name = one.get("name", "")
        if not name:
            yield required(f"{field}[{position}].name")
        else:
            yield from each(f"{field}[{position}].name", name, env_name_faults(name))
        if one.get("value") and one.get("valueFrom"):
            detail = "may not be specified when `value` is not empty"
            yield invalid(f"{field}[{position}].valueFrom", "", detail)


def _mount_faults(mounts: Any, field: str, parts: PodParts) -> Iterator[Cause]:
    paths: set[str] = set()
    for position, mount in enumerate(mounts):
        at = f"{field}[{position}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{at}.name")
        elif name not in parts.volumes:
            yield not_found(f"{at}.name", name)
        if not path:
            yield required(f"{at}.mountPath")
        elif path in paths:
            yield invalid(f"{at}.mountPath", path, "must be unique")
        paths.add(path)


def _probe_faults(probe: Part, at: str) -> Iterator[Cause]:
    yield from _handler_faults(probe, at)
    for name in _PROBE_NUMBERS:
        yield from at_least(f"{at}.{name}", probe.get(name))


def _handler_faults(handler: Part, at: str) -> Iterator[Cause]:
    chosen = [name for name in _HANDLERS if handler.get(name) is not None]
    if not chosen:
        yield required(at, "must specify a handler type")
    for name in chosen[1:]:
        yield forbidden(f"{at}.{name}", "may not specify more than 1 handler type")
    if chosen[:1] == ["exec"] and not handler["exec"].get("command"):
        yield required(f"{at}.exec.command")
    if chosen[:1] in (["httpGet"], ["tcpSocket"]):
        yield from _handler_port_faults(handler[chosen[0]], f"{at}.{chosen[0]}")


def _handler_port_faults(request: Part, at: str) -> Iterator[Cause]:
    port = request.get("port", 0)
    if isinstance(port, int):
        yield from port_number_faults(f"{at}.port", port)
    else:
        yield from each(f"{at}.port", port, port_name_faults(port))
    scheme = request.get("scheme")
    if scheme is not None and scheme not in ("HTTP", "HTTPS"):
        yield unsupported(f"{at}.scheme", scheme, ("HTTP", "HTTPS"))
