"""Goes through a journal again with the very same engine, and says where it decides otherwise.

A segment is enough: it begins with all that was known. What differs points at what the journal does not hold:
another version of the code or of a third party's policy, or a decision that depended on something
else than state, configuration and clock, which would be a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.engine import CycleResult
from volcano_py.scheduler.run.journal import segments
from volcano_py.scheduler.run.owner import CycleFault, Owner
from volcano_py.scheduler.run.records import (
    FORMAT,
    AnyRecord,
    Configured,
    Cycled,
    JournalError,
    Knew,
    Opened,
    Remembered,
    Resumed,
    Settled,
    Took,
    change_of,
    outcomes_of,
    read_records,
)
from volcano_py.scheduler.run.reload import read_config


@dataclass(frozen=True, slots=True)
class Replayed:
    """One cycle gone through again.

    Attributes:
        segment: the file it stands in.
        recorded: as the journal has it.
        owner: of the engine, as it stands after the cycle.
        result: what was decided now; None where the cycle broke off again.
        differs: what is otherwise, in sentences; empty where nothing is.
    """

    segment: Path
    recorded: Cycled
    owner: Owner
    result: CycleResult | None
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a segment that people should know: where it breaks off, or why it can't be used."""

    segment: Path
    text: str


def replay(journal: Path) -> Iterator[Replayed | Note]:
    """All cycles of *journal*, a folder or one of its files, each once and in order.

    Raises ``JournalError`` if there is no journal.
    """
    files = segments(journal) if journal.is_dir() else [journal]
    if not files:
        raise JournalError(f"{journal} holds no journal (files named NUMBER.vpj)")
    last = 0
    for file in files:
        for one in _replay_segment(file, last if len(files) > 1 else 0):
            if isinstance(one, Replayed):
                last = one.recorded.number
            yield one


def last_cycle(folder: Path) -> int:
    """The number of the last cycle in *folder*; 0 where there is none."""
    for file in reversed(segments(folder) if folder.is_dir() else []):
        try:
            numbers = [
                record.number if isinstance(record, Cycled) else record.cycles
                for record in _records(file)
                if isinstance(record, Cycled | Opened)
            ]
        except (JournalError, OSError):
            continue
        if numbers:
            return max(numbers)
    return 0


def _records(file: Path) -> Iterator[AnyRecord | Note]:
    data = file.read_bytes()
    if not data:
        yield Note(file, "is empty")
        return
    for read in read_records(data):
        yield Note(file, read.damage) if read.record is None else read.record


def _replay_segment(file: Path, after: int) -> Iterator[Replayed | Note]:
    """The cycles of *file* with numbers above *after*; those before are gone through in silence."""
    player = _Player(file)
    for record in _records(file):
        if isinstance(record, Note):
            yield record
            continue
        played = player.play(record)
        if played is not None and played.recorded.number > after:
            yield played
    if not player.stands:
        yield Note(file, "ends before its beginning was written; the one before it goes on as far")


class _Player:
    """An owner fed by records."""

    def __init__(self, file: Path) -> None:
        self.file, self.stands = file, False
        self._opened: Opened | None = None
        self._owner: Owner | None = None
        self._known: list[Change] = []

    def play(self, record: AnyRecord) -> Replayed | None:
        """Do what *record* tells; what came of it if that is a cycle."""
        if isinstance(record, Opened):
            self._open(record)
        elif isinstance(record, Knew):
            self._known += [change_of(row) for row in record.items]
        elif isinstance(record, Remembered):
            self._begun().recall(self._known, record.memory)
            self._known, self.stands = [], True
        elif isinstance(record, Took):
            self._begun().take([change_of(row) for row in record.items])
        elif isinstance(record, Settled):
            self._begun().settle(outcomes_of(record))
        elif isinstance(record, Resumed):
            self._begun().resume(record.evictions)
        elif isinstance(record, Configured):
            self._begun().renew(read_config(record.config).config)
        else:
            return self._cycle(record)
        return None

    def _open(self, record: Opened) -> None:
        if record.format != FORMAT:
            raise JournalError(f"{self.file} is of format {record.format}, this version reads {FORMAT}")
        config = read_config(record.config).config
        self._owner = Owner(config, record.scheduler_names, record.default_queue)

    def _begun(self) -> Owner:
        if self._owner is None:
            raise JournalError(f"{self.file} does not begin with what was known")
        return self._owner

    def _cycle(self, recorded: Cycled) -> Replayed:
        owner, result, fault = self._begun(), None, ""
        try:
            result = owner.cycle(recorded.now)
        except CycleFault as error:
            fault = str(error)
        return Replayed(self.file, recorded, owner, result, tuple(_differences(recorded, result, fault)))


def _differences(recorded: Cycled, result: CycleResult | None, fault: str) -> Iterator[str]:
    if bool(fault) != bool(recorded.fault):
        yield f"broke off then: {recorded.fault or 'no'}; now: {fault or 'no'}"
    decisions = [] if result is None else result.decisions
    for number, (then, now) in enumerate(zip(recorded.decisions, decisions, strict=False), start=1):
        if then != now:
            yield f"decision {number} was {then}, is {now}"
            break
    if len(recorded.decisions) != len(decisions):
        yield f"{len(recorded.decisions)} decisions then, {len(decisions)} now"
    groups = {} if result is None else result.pod_groups
    for key in sorted(recorded.groups.keys() | groups.keys()):
        if recorded.groups.get(key) != groups.get(key):
            yield f"PodGroup {key} was {recorded.groups.get(key)}, is {groups.get(key)}"
    refused = {} if result is None else dict(Counter(one.reason for one in result.refusals.values()))
    if refused != recorded.refused:
        yield f"refused then {recorded.refused}, now {refused}"
