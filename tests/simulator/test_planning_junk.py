"""Nothing that an object contains, and no place where a file is cut off, can stop a plan."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, Final

import pytest

from tests.project.layout import ROOT
from volcano_py.crds.schedulerconfig import DEFAULT_CONFIG, load_scheduler_config
from volcano_py.scheduler.framework.registry import known_actions, known_plugins
from volcano_py.simulator.manifests import Manifest, Text, read_paths, read_text
from volcano_py.simulator.planning import plan_manifests

NOW: Final = 1_767_225_600.0
JUNK: Final[tuple[Any, ...]] = (
    None, "", 0, -1, 1.5, True, "abc", "é", "x" * 300, "-5", 2**70, -(2**70), float("nan"), float("inf"),
    [], {}, [None], {"a": None}, [[1]], {"": ""}, [{}], {1: 2},
)  # fmt: skip
RICH: Final = """\
apiVersion: v1
kind: Pod
metadata:
  {name: p, namespace: ml, labels: {app: a}, creationTimestamp: "2026-01-01T00:00:00Z",
   annotations: {volcano.sh/preemptable: "true", volcano.sh/cooldown-time: 10m}}
spec:
  schedulerName: volcano-py
  priority: 5
  overhead: {cpu: 10m}
  nodeSelector: {disk: ssd}
  tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
  schedulingGates: [{name: g}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
  initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]
  containers:
  - {name: m, ports: [{hostPort: 80, containerPort: 80}],
     resources: {requests: {cpu: "1", nvidia.com/gpu: "1", nvidia.com/gpumem: "4000"}}}
---
apiVersion: v1
kind: Node
metadata:
  name: g1
  labels: {disk: ssd, zone: z}
  annotations: {volcano.sh/node-vgpu-register: "GPU-0,10,8192,NVIDIA-A100,true,hami-core:"}
spec: {unschedulable: false, taints: [{key: a, value: b, effect: NoSchedule}]}
status: {allocatable: {cpu: "8", memory: 64Gi, pods: "10", volcano.sh/vgpu-number: "10"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: ml}
spec: {storageClassName: s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: s}
provisioner: csi.example
volumeBindingMode: WaitForFirstConsumer
"""
EXAMPLE: Final = ROOT / "examples" / "sharing"
CONFIG: Final = load_scheduler_config(DEFAULT_CONFIG, known_plugins(), known_actions())


def objects() -> list[dict[str, Any]]:
    read = [*read_paths([str(EXAMPLE)])[0], *read_text(RICH, "rich.yaml")[0]]
    return [manifest.document for manifest in read]


def spoiled(document: Any, dice: random.Random) -> None:
    """Replace one value somewhere in *document* by junk."""
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = dice.choice(keys)
        below = here[key]
        if isinstance(below, dict | list) and below and dice.random() < 0.8:
            here = below
            continue
        here[key] = copy.deepcopy(dice.choice(JUNK))
        return


@pytest.mark.parametrize("seed", range(40))
def test_junk_in_objects(seed: int) -> None:
    dice = random.Random(seed)
    given = copy.deepcopy(objects())
    for document in given:
        for _ in range(dice.randint(0, 3)):
            spoiled(document, dice)
    manifests = [Manifest(document, Text("junk", "{}")) for document in given]
    report = plan_manifests((manifests, []), CONFIG, NOW, cycles=2, settle=True)
    json.dumps(report)
    assert report["errors"] or report["warnings"] or report["decisions"]


def test_a_file_may_end_anywhere() -> None:
    text = (EXAMPLE / "3-waiting.yaml").read_text()
    whole = len(read_text(text, "f")[0])
    for end in range(0, len(text), 3):
        found, faults = read_text(text[:end], "f")
        assert len(found) + len(faults) <= whole
        for manifest in found:
            assert manifest.line_of("spec.tasks[0].template.spec") >= manifest.line >= 1
