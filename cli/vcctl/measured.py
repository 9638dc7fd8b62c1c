"""What cards and slices really hold, as a Prometheus has it from the node agents (docs/keeping.md)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import aiohttp
import msgspec
import typer

from volcano_py.cli.vcctl.cluster import CommandError

PrometheusUrl = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        envvar="VOLCANO_PY_PROMETHEUS",
        help="Also say what is really in use, as this Prometheus has it from the node agents.",
    ),
]
_QUERY: Final = '{__name__=~"volcano_py_(card|slice)_(memory_used_bytes|cores_used_ratio)"}'
_ANSWER_S: Final = 10.0
_MIB: Final = 1 << 20
SliceKey = tuple[str, str, str]
"""Namespace, pod, UUID of the card."""


class _Sample(msgspec.Struct):
    """One series, with its value of now."""

    metric: dict[str, str]
    value: tuple[float, str]


class _Result(msgspec.Struct):
    result: list[_Sample] = []


class _Answer(msgspec.Struct):
    """What ``/api/v1/query`` says."""

    status: str
    data: _Result = msgspec.field(default_factory=_Result)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What is in use; what nobody measured is missing.

    Attributes:
        card_mib, card_percent: by UUID, of everybody together.
        slice_mib, slice_percent: of a pod's containers together.
    """

    card_mib: Mapping[str, int] = field(default_factory=dict)
    card_percent: Mapping[str, int] = field(default_factory=dict)
    slice_mib: Mapping[SliceKey, int] = field(default_factory=dict)
    slice_percent: Mapping[SliceKey, int] = field(default_factory=dict)

    def of_card(self, uuid: str) -> dict[str, int]:
        """Figures of a card, for its data."""
        return _told(self.card_mib.get(uuid), self.card_percent.get(uuid))

    def of_pod(self, key: SliceKey) -> dict[str, int]:
        """Figures of a pod's part of a card, for its data."""
        return _told(self.slice_mib.get(key), self.slice_percent.get(key))


def _told(mib: int | None, percent: int | None) -> dict[str, int]:
    figures = {"inUseMemoryMiB": mib, "inUseCores": percent}
    return {name: value for name, value in figures.items() if value is not None}


async def measured(url: str | None) -> Measured:
    """What the Prometheus at *url* says, nothing without one. Raises ``CommandError`` if it says nothing."""
    if url is None:
        return Measured()
    try:
        limit = aiohttp.ClientTimeout(total=_ANSWER_S)
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(f"{url.rstrip('/')}/api/v1/query", params={"query": _QUERY}) as response,
        ):
            answer = msgspec.json.decode(await response.read(), type=_Answer)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise CommandError(
            f"the Prometheus at {url} can't be asked: {str(error) or 'no answer'}", "check --prometheus"
        ) from error
    if answer.status != "success":
        raise CommandError(f"the Prometheus at {url} refused: {answer.error}", "check --prometheus")
    return read_samples((sample.metric, float(sample.value[1])) for sample in answer.data.result)


def read_samples(samples: Iterable[tuple[Mapping[str, Any], float]]) -> Measured:
    """*samples* (labels with the name, value) as figures; a Prometheus also has values that are no number."""
    sums: dict[str, defaultdict[Any, float]] = {}
    for labels, value in samples:
        if not math.isfinite(value):
            continue
        name, card = labels["__name__"], labels.get("card", "")
        key = card if "_card_" in name else (labels.get("namespace", ""), labels.get("pod", ""), card)
        sums.setdefault(name, defaultdict(float))[key] += value

    def figures(name: str, factor: float) -> dict[Any, int]:
        return {key: round(value * factor) for key, value in sums.get(name, {}).items()}

    return Measured(
        figures("volcano_py_card_memory_used_bytes", 1 / _MIB),
        figures("volcano_py_card_cores_used_ratio", 100),
        figures("volcano_py_slice_memory_used_bytes", 1 / _MIB),
        figures("volcano_py_slice_cores_used_ratio", 100),
    )
