"""CRDs that the server lacks, or has in an older form: fields it does not know are dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano_py.cli.vcctl.doctor.finding import Document, Evidence, Finding, some
from volcano_py.crds.base import CrdObject
from volcano_py.crds.objects import KINDS
from volcano_py.crds.schema import crd_manifest

KIND: Final = "CustomResourceDefinition"
APPLY: Final = "kubectl apply --server-side -f crds/yaml"


def check(evidence: Evidence) -> Iterator[Finding]:
    """One finding a CRD."""
    if KIND in evidence.unread:
        yield Finding(
            "warning", KIND, f"CRDs can't be read: {evidence.unread[KIND]}", "run it as an administrator"
        )
        return
    present = {crd["metadata"]["name"]: crd for crd in evidence.of(KIND)}
    for kind in KINDS:
        name = f"{kind.info.plural}.{kind.info.group}"
        if name not in present:
            yield Finding("error", f"{KIND} {name}", "is not installed", APPLY)
        else:
            yield from _compared(kind, name, present[name])


def _compared(kind: type[CrdObject], name: str, there: Document) -> Iterator[Finding]:
    version = kind.info.version
    schemas = {
        one["name"]: ((one.get("schema") or {}).get("openAPIV3Schema") or {})
        for one in there["spec"].get("versions") or []
        if one.get("served")
    }
    if version not in schemas:
        served = ", ".join(sorted(schemas)) or "nothing"
        yield Finding("error", f"{KIND} {name}", f"serves {served}, not {version}", APPLY)
        return
    ours = crd_manifest(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    lacks = list(_lacking(ours, schemas[version], ""))
    if lacks:
        told = f"does not know {some(lacks)}; the server drops these fields"
        yield Finding("warning", f"{KIND} {name}", told, APPLY)


def _lacking(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Paths of fields in schema *ours* that *theirs* has no place for."""
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, schema in (ours.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        there = (theirs.get("properties") or {}).get(name)
        if there is None:
            if not theirs.get("additionalProperties") and here != "metadata":
                yield here
        else:
            yield from _lacking(schema, there, here)
    for key in ("items", "additionalProperties"):
        if isinstance(ours.get(key), dict) and isinstance(theirs.get(key), dict):
            yield from _lacking(ours[key], theirs[key], path)
