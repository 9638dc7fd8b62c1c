"""The Binding that puts a pod on a node, as bytes.

The server reads protobuf at a fraction of what the same costs in JSON, and every kube-apiserver does for its
own kinds. The message is small enough to be put together here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from volcano_py.scheduler.cluster.orders import BindOrder

__all__ = ["JSON", "PROTOBUF", "json_binding", "protobuf_binding"]

JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_encode: Final = msgspec.json.encode


def json_binding(order: BindOrder) -> bytes:
    """The Binding of *order* as JSON."""
    meta: dict[str, Any] = {"name": order.name, "namespace": order.namespace, "uid": order.uid}
    if order.annotations:
        meta["annotations"] = dict(order.annotations)
    target = {"apiVersion": "v1", "kind": "Node", "name": order.node}
    return _encode({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})


def protobuf_binding(order: BindOrder) -> bytes:
    """The Binding of *order* as protobuf, in the envelope of the Kubernetes API.

    Source: the field numbers of core/v1 Binding and ObjectReference, and of meta/v1 ObjectMeta.
    """
    meta = _field(1, order.name.encode()) + _field(3, order.namespace.encode())
    meta += _field(5, order.uid.encode())
    for key, value in order.annotations.items():
        meta += _field(12, _field(1, key.encode()) + _field(2, value.encode()))
    target = _NODE + _field(3, order.node.encode()) + _V1
    return _ENVELOPE + _field(2, _field(1, meta) + _field(2, target))


def _field(number: int, value: bytes) -> bytes:
    """Field *number* (below 16) that holds bytes, a text or a message."""
    return bytes((number << 3 | 2,)) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    """*number* in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_NODE: Final = _field(1, b"Node")
_V1: Final = _field(5, b"v1")
_ENVELOPE: Final = b"k8s\x00" + _field(1, _field(1, b"v1") + _field(2, b"Binding"))
