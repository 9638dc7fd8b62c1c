"""The plugin's arguments, read and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from volcano_py.crds.schedulerconfig import Arguments, ConfigError
from volcano_py.plugins.deviceshare.choose import BINPACK, SPREAD
from volcano_py.plugins.deviceshare.mix import PastAsk, read_history
from volcano_py.plugins.deviceshare.placement import POLICIES

ARGUMENTS: Final[Mapping[str, str]] = {
    "deviceshare.VGPUEnable": "slices of NVIDIA cards are scheduled here; default true",
    "deviceshare.SchedulePolicy": "binpack, spread or a placement policy; default binpack for cards only",
    "deviceshare.ScheduleWeight": "factor of the scores, 0 switches them off; default 1 if a policy is named",
    "deviceshare.PolicySeed": "seed of the policy random; default 0",
    "deviceshare.typicalAsks": (
        "list of {cpuMilli, cards, cardMilli, types, count}: asks to expect; default: of the pods seen"
    ),
    "deviceshare.GPUSharingEnable": "gpu-memory slices of old; not available, must be false",
    "deviceshare.GPUNumberEnable": "gpu-number cards of old; not available, must be false",
    "deviceshare.NodeLockEnable": "node locks; not available, must be false",
    "deviceshare.AscendMindClusterVNPUEnable": "MindCluster vNPU; not available, must be false",
    "deviceshare.AscendHAMiVNPUEnable": "HAMi vNPU; not available, must be false",
    "deviceshare.KnownGeometriesCMName": "ConfigMap of MIG geometries; not available, must not be set",
    "deviceshare.KnownGeometriesCMNamespace": "its namespace; not available, must not be set",
    "deviceshare.GPUExclusiveRules": "labels of pods that share no card; not available, must be empty",
}

_FLAGS_TO_COME: Final = (
    "deviceshare.GPUSharingEnable",
    "deviceshare.GPUNumberEnable",
    "deviceshare.NodeLockEnable",
    "deviceshare.AscendMindClusterVNPUEnable",
    "deviceshare.AscendHAMiVNPUEnable",
)
_VALUES_TO_COME: Final = (
    "deviceshare.KnownGeometriesCMName",
    "deviceshare.KnownGeometriesCMNamespace",
    "deviceshare.GPUExclusiveRules",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says.

    Attributes:
        enabled: card slices are scheduled.
        policy: as configured, "" for none.
        weight: factor of the scores; 0 gives none.
        seed: of the random policy.
        history: asks to expect; empty means the pods seen.
    """

    enabled: bool
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


def read_settings(arguments: Arguments) -> Settings:
    """The checked settings; raises ``ConfigError`` naming key and value of everything wrong."""
    unknown = arguments.unknown(ARGUMENTS)
    if unknown:
        raise ConfigError(unknown)
    _refuse_what_is_to_come(arguments)
    policy = arguments.get_str("deviceshare.SchedulePolicy", "")
    known = ("", BINPACK, SPREAD, *POLICIES)
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
        arguments.get_bool("deviceshare.VGPUEnable", True),
        policy,
        weight,
        arguments.get_int("deviceshare.PolicySeed", 0),
        read_history("deviceshare.typicalAsks", arguments.get("deviceshare.typicalAsks")),
    )


def _refuse_what_is_to_come(arguments: Arguments) -> None:
    """Nothing that was asked for is left out silently."""
    asked = [key for key in _FLAGS_TO_COME if arguments.get_bool(key, False)]
    asked += [key for key in _VALUES_TO_COME if arguments.get(key)]
    if asked:
        raise ConfigError(
            [
                f"{arguments.owner}: argument {key!r} is {arguments[key]!r}, but that is not available "
                "in this version; leave it out"
                for key in asked
            ]
        )
