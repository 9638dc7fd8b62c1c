"""Writes ``fields.csv``: which number each field of each message has on the wire.

``python -m volcano_py.simulator.apiserver.protobuf.generate FOLDER`` reads the ``generated.proto`` files in a
folder that holds the modules ``api`` and ``apimachinery`` of k8s.io in the version that is served. Only the
numbers and types are taken, and only of messages that the kinds in ``ROOTS`` lead to. Which zero values mean
something, and which messages stand in line in JSON, is read from the tags in the Go files beside them.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

ROOTS: Final = {
    "core.v1": "Binding ConfigMap Event Namespace Node PersistentVolume PersistentVolumeClaim Pod "
    "PodTemplate ResourceQuota LimitRange Secret Service ServiceAccount",
    "apps.v1": "DaemonSet Deployment ReplicaSet StatefulSet",
    "batch.v1": "CronJob Job",
    "autoscaling.v1": "Scale HorizontalPodAutoscaler",
    "authentication.v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
    "SubjectAccessReview",
    "coordination.v1": "Lease",
    "events.v1": "Event",
    "networking.v1": "Ingress IngressClass NetworkPolicy",
    "policy.v1": "Eviction PodDisruptionBudget",
    "rbac.v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.v1": "PriorityClass",
    "storage.v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    "meta.v1": "DeleteOptions",
}
_MESSAGE: Final = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(
    r"^  (optional|repeated|map<string, (?P<value>[.\w]+)>) ?(?P<type>[.\w]*) "
    r"(?P<name>\w+) = (?P<number>\d+);",
    re.MULTILINE,
)
_STRUCT: Final = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAGGED: Final = re.compile(
    r"^\s+(?:\w+ +)?(?P<go>\S+) +`json:\"(?P<json>[^\"]*)\"[^`]*protobuf:\"[^\"]*name=(?P<name>\w+)",
    re.MULTILINE,
)


class Row(NamedTuple):
    """One field.

    Attributes:
        many: "", "list" or "map".
        zero: "keep" where a zero value was said, "drop" where it means nothing; "inline" for a message whose
            fields stand in JSON beside the others.
    """

    message: str
    field: str
    number: int
    type: str
    many: str
    zero: str


def main() -> None:
    """Read the folder named on the command line and write the table beside this file."""
    rows = reachable(read_all(Path(sys.argv[1])))
    with Path(__file__).with_name("fields.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(rows)


def read_all(folder: Path) -> dict[str, list[Row]]:
    """The fields of every message, by its short name (``core.v1.Pod``)."""
    found: dict[str, list[Row]] = {}
    for path in sorted(folder.rglob("generated.proto")):
        text = path.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        if package is None:
            continue
        place = short_name(package[1])
        zeros = _zeros(path.parent)
        for name, body in _MESSAGE.findall(text):
            rows = [_row(f"{place}.{name}", place, match, zeros) for match in _FIELD.finditer(body)]
            found[f"{place}.{name}"] = rows
    return found


def _zeros(folder: Path) -> dict[tuple[str, str], str]:
    """What a zero value means, by struct and field."""
    found: dict[tuple[str, str], str] = {}
    for path in folder.glob("*types*.go"):
        for struct, body in _STRUCT.findall(path.read_text()):
            for match in _TAGGED.finditer(body):
                found[struct, match["name"]] = _zero(match["go"], match["json"])
    return found


def _zero(go_type: str, json_tag: str) -> str:
    if json_tag == ",inline":
        return "inline"
    return "keep" if go_type.startswith("*") or "omitempty" not in json_tag else "drop"


def short_name(name: str) -> str:
    """``k8s.io.api.core.v1.Pod`` as ``core.v1.Pod``."""
    prefixes = ("k8s.io.api.", "k8s.io.apimachinery.pkg.apis.", "k8s.io.apimachinery.pkg.")
    for prefix in prefixes:
        name = name.removeprefix(prefix)
    return name


def _row(message: str, place: str, match: re.Match[str], zeros: dict[tuple[str, str], str]) -> Row:
    value = match["value"]
    said = value or match["type"]
    kind = short_name(said.removeprefix(".")) if said.startswith(".") else said
    if kind[0].isupper():
        kind = f"{place}.{kind}"
    many = "map" if value else "list" if match[1] == "repeated" else ""
    zero = zeros.get((message.rpartition(".")[2], match["name"]), "drop")
    return Row(message, match["name"], int(match["number"]), kind, many, zero)


def reachable(messages: dict[str, list[Row]]) -> Iterable[Row]:
    """The fields of the roots and of all messages that they lead to."""
    waiting = [f"{place}.{name}" for place, names in ROOTS.items() for name in names.split()]
    taken: dict[str, list[Row]] = {}
    while waiting:
        name = waiting.pop()
        if name in messages and name not in taken:
            taken[name] = messages[name]
            waiting.extend(row.type for row in messages[name])
    return [row for name in sorted(taken) for row in taken[name]]


if __name__ == "__main__":
    main()
