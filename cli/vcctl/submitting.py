"""Manifests into objects on the server, with faults told at the line where they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import ValidationError

from volcano_py.cli.vcctl.cluster import USAGE, Cluster, CommandError
from volcano_py.cli.vcctl.tables import say
from volcano_py.crds.messages import validation_messages
from volcano_py.crds.objects import parse_object
from volcano_py.simulator.manifests import Manifest, read_paths


async def submit(cluster: Cluster, paths: Iterable[str], kinds: Collection[str]) -> None:
    """Create the objects in *paths*, all of *kinds*; nothing is created if one of them is wrong."""
    manifests, faults = read_paths(list(paths))
    wrong = [f"{fault.file}:{fault.line}: {fault.message}" for fault in faults]
    for manifest in manifests:
        wrong += _faults(manifest, kinds)
    if not manifests and not wrong:
        wrong.append("there is nothing in it")
    if wrong:
        raise CommandError("\n  ".join(wrong), code=USAGE)
    for manifest in manifests:
        body = manifest.document
        named = cluster.flags.namespace or body["metadata"].get("namespace") or cluster.namespace
        body = {**body, "metadata": {**body["metadata"], "namespace": named}}
        made = await cluster.create(str(body["kind"]), body)
        say(f"{str(body['kind']).lower()} {made['metadata']['name']} created")


def _faults(manifest: Manifest, kinds: Collection[str]) -> list[str]:
    where = f"{manifest.file}:{manifest.line}"
    try:
        found = parse_object(manifest.document)
    except ValidationError as error:
        return [
            f"{manifest.file}:{manifest.line_of(path)}: {path}: {message}"
            for path, message in validation_messages(error)
        ]
    if found is None or found.info.kind not in kinds:
        return [f"{where}: {manifest.name} is no {' or '.join(kinds)} of Volcano's API"]
    return []
