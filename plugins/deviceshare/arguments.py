"""The plugin's arguments, read and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.deviceshare.backend import Backend
from volcano_py.plugins.deviceshare.backends import BACKENDS
from volcano_py.plugins.deviceshare.backends.gpushare import GPUSHARE
from volcano_py.plugins.deviceshare.backends.nvidia import NVIDIA
from volcano_py.plugins.deviceshare.catalogue import Catalogue
from volcano_py.plugins.deviceshare.choose import BINPACK, SPREAD
from volcano_py.plugins.deviceshare.deviceconfig import configured
from volcano_py.plugins.deviceshare.mix import PastAsk, read_history
from volcano_py.plugins.deviceshare.placement import POLICIES

ARGUMENTS: Final[Mapping[str, str]] = {
    "deviceshare.VGPUEnable": "slices of NVIDIA cards are scheduled here; default true",
    "deviceshare.SchedulePolicy": (
        "binpack, spread, topology-aware or a placement policy; default binpack for cards only"
    ),
    "deviceshare.ScheduleWeight": "factor of the scores, 0 switches them off; default 1 if a policy is named",
    "deviceshare.PolicySeed": "seed of the policy random; default 0",
    "deviceshare.typicalAsks": (
        "list of {cpuMilli, cards, cardMilli, types, count}: asks to expect; default: of the pods seen"
    ),
    "deviceshare.GPUSharingEnable": "volcano.sh/gpu-memory of Volcano's older plugin; default false",
    "deviceshare.GPUNumberEnable": "volcano.sh/gpu-number of Volcano's older plugin; default false",
    "deviceshare.NodeLockEnable": "read, and without effect: no node is locked, so pods start side by side",
    "deviceshare.AscendHAMiVNPUEnable": "Ascend cards are scheduled here; default true",
    "deviceshare.AscendMindClusterVNPUEnable": (
        "parts of Ascend 310P by huawei.com/npu-core under MindCluster's device plugin; not available, must "
        "be false: HAMi's plugin for Ascend serves the same cards"
    ),
    "deviceshare.KnownGeometriesCMName": (
        "ConfigMap with device-config.yaml: names, chips, MIG geometries; default volcano-vgpu-device-config"
    ),
    "deviceshare.KnownGeometriesCMNamespace": "its namespace; default kube-system",
    "deviceshare.DeviceConfig": "what device-config.yaml would say, where there is no such ConfigMap",
    "deviceshare.GPUExclusiveRules": "list of labels; pods that have all labels of one rule share no card",
}
LINKED: Final = "topology-aware"
_GPUSHARE: Final = ("deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable")
_MINDCLUSTER: Final = "deviceshare.AscendMindClusterVNPUEnable"
_MOST_RULES: Final = 62


@dataclass(frozen=True, slots=True)
class Devices:
    """Whose cards are scheduled, and who says how they are called and cut.

    Attributes:
        backends: those that are switched on.
        ascend: chips of Ascend are among them.
        document: the device configuration in the arguments.
        config_map: "namespace/name" of the one that replaces it.
        rules: labels of pods that share no card.
    """

    backends: tuple[Backend, ...]
    ascend: bool
    document: Mapping[str, Any]
    config_map: str
    rules: tuple[Mapping[str, str], ...]

    def catalogue(self, document: Mapping[str, Any]) -> Catalogue:
        """The backends as *document* names and cuts them; raises ``ValueError``."""
        return configured(self.backends, document, ascend=self.ascend)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says.

    Attributes:
        devices: whose cards.
        policy: as configured, "" for none.
        weight: factor of the scores; 0 gives none.
        seed: of the random policy.
        history: asks to expect; empty means the pods seen.
    """

    devices: Devices
    policy: str
    weight: float
    seed: int
    history: tuple[PastAsk, ...]

    @property
    def card_order(self) -> str:
        """How cards are chosen where no placement policy does."""
        return SPREAD if self.policy == SPREAD else BINPACK

    @property
    def placement(self) -> str:
        """The placement policy, "" for none."""
        return self.policy if self.policy in POLICIES else ""

    @property
    def linked(self) -> bool:
        """Every container's cards are to be linked well."""
        return self.policy == LINKED


def read_settings(arguments: Arguments) -> Settings:
    """The checked settings; raises ``ConfigError`` naming key and value of everything wrong."""
    unknown = arguments.unknown(ARGUMENTS)
    if unknown:
        raise ConfigError(unknown)
    policy = arguments.get_str("deviceshare.SchedulePolicy", "")
    known = ("", BINPACK, SPREAD, LINKED, *POLICIES)
    if policy not in known:
        raise ConfigError(
            f"{arguments.owner}: argument 'deviceshare.SchedulePolicy' must be one of "
            f"{', '.join(known[1:])}, not {policy!r}"
        )
    weight = arguments.get_float("deviceshare.ScheduleWeight", 1.0 if policy else 0.0)
    if weight < 0:
        raise ConfigError(
            f"{arguments.owner}: argument 'deviceshare.ScheduleWeight' must not be negative: {weight}"
        )
    return Settings(
        _read_devices(arguments),
        policy,
        weight,
        arguments.get_int("deviceshare.PolicySeed", 0),
        read_history("deviceshare.typicalAsks", arguments.get("deviceshare.typicalAsks")),
    )


def _read_devices(arguments: Arguments) -> Devices:
    if arguments.get_bool(_MINDCLUSTER, False):
        raise ConfigError(
            f"{arguments.owner}: argument {_MINDCLUSTER!r} is {arguments[_MINDCLUSTER]!r}, but parts of "
            "cards under MindCluster's device plugin (huawei.com/npu-core) are not scheduled here; leave it "
            "out, run HAMi's ascend-device-plugin on those nodes, and let pods ask for huawei.com/Ascend310P "
            "with huawei.com/Ascend310P-memory"
        )
    arguments.get_bool("deviceshare.NodeLockEnable", False)
    ascend = arguments.get_bool("deviceshare.AscendHAMiVNPUEnable", True)
    nvidia = arguments.get_bool("deviceshare.VGPUEnable", True)
    older = [arguments.get_bool(key, False) for key in _GPUSHARE]
    backends = [
        backend
        for backend in BACKENDS
        if (nvidia or backend is not NVIDIA) and (ascend or backend.chip is None)
    ]
    if any(older):
        backends.append(GPUSHARE)
    namespace = arguments.get_str("deviceshare.KnownGeometriesCMNamespace", "kube-system")
    name = arguments.get_str("deviceshare.KnownGeometriesCMName", "volcano-vgpu-device-config")
    document = arguments.get("deviceshare.DeviceConfig") or {}
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"{arguments.owner}: argument 'deviceshare.DeviceConfig' must be a mapping, not {document!r}"
        )
    devices = Devices(tuple(backends), ascend, document, f"{namespace}/{name}", _read_rules(arguments))
    try:
        devices.catalogue(document)
    except ValueError as error:
        raise ConfigError(f"{arguments.owner}: argument 'deviceshare.DeviceConfig': {error}") from error
    return devices


def _read_rules(arguments: Arguments) -> tuple[Mapping[str, str], ...]:
    key = "deviceshare.GPUExclusiveRules"
    given = arguments.get(key) or []
    right = isinstance(given, list) and all(_is_rule(rule) for rule in given) and len(given) <= _MOST_RULES
    if not right:
        raise ConfigError(
            f"{arguments.owner}: argument {key!r} must be a list of at most {_MOST_RULES} mappings "
            f"of labels, not {given!r}"
        )
    return tuple({str(name): str(value) for name, value in rule.items()} for rule in given)


def _is_rule(rule: object) -> bool:
    return isinstance(rule, Mapping) and bool(rule) and all(isinstance(name, str) for name in rule)
