"""A journal holds what is needed to decide again, in bounded space, whatever instant the process ends at."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random

import pytest

from tests.run.lives import Life, other_config, random_life
from volcano_py.crds.queue import Queue
from volcano_py.crds.schedulerconfig import parse_scheduler_config
from volcano_py.scheduler.cluster.feed import Change
from volcano_py.scheduler.cluster.orders import BindFailed
from volcano_py.scheduler.framework.decision import Decision
from volcano_py.scheduler.model.kube.errors import Problem
from volcano_py.scheduler.run.carry import Carrier, EvictionStyle
from volcano_py.scheduler.run.journal import Journal, segments
from volcano_py.scheduler.run.metrics import Metrics
from volcano_py.scheduler.run.records import (
    Cycled,
    JournalError,
    Took,
    change_of,
    framed,
    item_of,
    outcomes_of,
    read_records,
    settled_of,
)
from volcano_py.scheduler.run.reload import Configured
from volcano_py.scheduler.run.replay import Note, Replayed, last_cycle, replay
from volcano_py.scheduler.run.triggers import Triggers
from volcano_py.scheduler.run.worker import Given, Turn, Worker

STEPS = 15
LARGE = 1 << 26
# Of most lives the latter half is kept; how long cycles took changes a few bytes only.
MIDDLE = 60_000


def written(document: dict[str, object]) -> Configured:
    """A configuration with its text, which JSON is as well."""
    text = str(document).replace("'", '"').replace("True", "true").replace("False", "false")
    return Configured(text, parse_scheduler_config(document))


def worker_of(life: Life, journal: Journal, cycles: int = 0) -> Worker:
    carrier, triggers = Carrier(EvictionStyle(), "test"), Triggers(1.0)
    names = life.owner.scheduler_names
    worker = Worker(written(life.configuration), names, carrier, triggers, Metrics(), journal, cycles)
    life.owner = worker.owner
    return worker


def turn(worker: Worker, life: Life, config: Configured | None = None) -> Turn:
    """One turn with what has happened to *life*; what it decided goes to the server."""
    changes, outcomes = life.take()
    return worker.turn(Given(float(life.now), changes, outcomes, config, may_cycle=True, leads=True))


def record_life(seed: str, folder: Path, size: int) -> int:
    """Live for a while with a journal; how many cycles ran."""
    life = random_life(seed)
    journal = Journal(folder, size)
    worker = worker_of(life, journal)
    ordered: list[Decision] = []
    cycle = worker.owner.cycle

    def watched(now: float) -> object:
        result = cycle(now)
        ordered.extend(result.decisions)
        life.decided(result)
        return result

    worker.owner.cycle = watched  # type: ignore[method-assign, assignment]
    for _ in range(STEPS):
        life.live(life.dice.randint(1, 5))
        config = written(other_config(life.dice)) if life.dice.random() < 0.1 else None
        turn(worker, life, config)
        life.now += life.dice.choice((0, 1, 7, 60))
    worker.close()
    return worker.cycles


def replayed(journal: Path) -> tuple[list[Replayed], list[Note]]:
    both = list(replay(journal))
    return [one for one in both if isinstance(one, Replayed)], [one for one in both if isinstance(one, Note)]


@pytest.mark.parametrize("size", [LARGE, MIDDLE], ids=["one-segment", "many-segments"])
def test_any_history_is_decided_again_as_it_was(tmp_path: Path, size: int) -> None:
    decisions, enough = 0, 20 if size == LARGE else 2
    for number in range(60):
        if number >= 6 and decisions > enough:
            break  # what is left of many segments is up to the thread that begins them
        folder = tmp_path / str(number)
        cycles = record_life(f"journal {size} {number}", folder, size)
        played, notes = replayed(folder)
        assert [one.differs for one in played] == [()] * len(played), number
        assert not notes
        if size == LARGE:
            assert len(played) == cycles
        decisions += sum(len(one.recorded.decisions) for one in played)
    assert decisions > enough


@pytest.mark.long
@pytest.mark.parametrize("block", range(30))
def test_any_history_is_decided_again_as_it_was_often(tmp_path: Path, block: int) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        record_life(f"long journal {block} {number}", folder, Random(number).choice((4000, 20_000, LARGE)))
        played, _ = replayed(folder)
        assert [one.differs for one in played] == [()] * len(played), (block, number)


def test_every_segment_can_be_replayed_alone(tmp_path: Path) -> None:
    cycles = 0
    for number in range(60):
        if number >= 3 and cycles:
            break  # the last one may have begun after the last cycle
        folder = tmp_path / str(number)
        record_life(f"alone {number}", folder, 1)
        played = [one for file in segments(folder) for one in replayed(file)[0]]
        assert not [one.differs for one in played if one.differs]
        cycles += len(played)
    assert cycles


def eventful(folder: Path) -> tuple[Path, bytes]:
    """A journal in one file, and what it says, of the first life in which something was decided."""
    for number in range(20):
        place = folder / str(number)
        record_life(f"journal other {number}", place, LARGE)
        (file,) = segments(place)
        data = file.read_bytes()
        records = [read.record for read in read_records(data)]
        if any(record.decisions for record in records if isinstance(record, Cycled)):
            return file, data
    raise AssertionError("nothing was decided in any life")


def test_another_decision_is_told(tmp_path: Path) -> None:
    file, data = eventful(tmp_path)
    out = data[: data.index(b"\n") + 1]
    for read in read_records(data):
        record = read.record
        assert record is not None
        if isinstance(record, Cycled) and record.decisions:
            first = record.decisions[0]
            moved = Decision(first.kind, first.pod, "elsewhere", first.slices, first.action, "", first.reason)
            record = Cycled(record.number, record.now, [moved, *record.decisions[1:]], {}, {})
        out += framed(record)
    file.write_bytes(out)
    played, _ = replayed(file.parent)
    told = [text for one in played for text in one.differs]
    assert any("elsewhere" in text for text in told)
    assert any(text.startswith("PodGroup ") for text in told)


def test_a_record_that_was_cut_short_ends_the_segment_quietly(tmp_path: Path) -> None:
    cycles = record_life("cut", tmp_path, LARGE)
    (file,) = segments(tmp_path)
    whole = file.read_bytes()
    ends = [read.end for read in read_records(whole)]
    for cut in (len(whole) - 1, ends[-2] + 3, ends[len(ends) // 2] + 9):
        file.write_bytes(whole[:cut])
        played, notes = replayed(tmp_path)
        assert not [one.differs for one in played if one.differs]
        assert [note.text.partition(" at ")[0] for note in notes] == ["cut off"]
        assert len(played) <= cycles
    file.write_bytes(whole[: ends[0]])
    assert any("ends before its beginning" in note.text for note in replayed(tmp_path)[1])


def test_damage_is_told_and_what_follows_is_not_believed(tmp_path: Path) -> None:
    record_life("damaged", tmp_path, LARGE)
    (file,) = segments(tmp_path)
    data = bytearray(file.read_bytes())
    at = [read.end for read in read_records(bytes(data))][-2]
    data[at + 12] ^= 1
    file.write_bytes(bytes(data))
    _, notes = replayed(tmp_path)
    assert [note.text for note in notes] == [f"damaged at byte {at}"]


def test_what_is_no_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="holds no journal"):
        list(replay(tmp_path))
    (tmp_path / "000000000001.vpj").write_bytes(b"something else entirely")
    with pytest.raises(JournalError, match="is no journal"):
        list(replay(tmp_path))


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    assert last_cycle(tmp_path / "absent") == 0
    cycles = record_life("numbers", tmp_path, LARGE)
    assert last_cycle(tmp_path) == cycles
    life = random_life("numbers more")
    worker = worker_of(life, Journal(tmp_path, LARGE), last_cycle(tmp_path))
    turn(worker, life)
    worker.close()
    played, _ = replayed(tmp_path)
    assert [one.recorded.number for one in played] == list(range(1, cycles + 2))
    assert not [one.differs for one in played if one.differs]


def test_the_folder_stays_within_its_bound(tmp_path: Path) -> None:
    life = random_life("bound")
    size = 60_000
    journal = Journal(tmp_path, size)
    worker = worker_of(life, journal)
    largest = 0
    for _ in range(60):
        life.live(3)
        turn(worker, life)
        life.now += 1
        wait_for_beginning(journal)
        largest = max(largest, sum(path.stat().st_size for path in segments(tmp_path)))
    worker.close()
    assert number_of_first(tmp_path) > 1
    assert largest <= 2 * size
    assert sum(path.stat().st_size for path in segments(tmp_path)) <= size


def wait_for_beginning(journal: Journal) -> None:
    """The thread that writes what was known is done."""
    until = time.monotonic() + 60
    while journal.is_beginning:
        assert time.monotonic() < until
        time.sleep(0.001)


def number_of_first(folder: Path) -> int:
    return int(segments(folder)[0].stem)


def test_a_disk_that_fails_interrupts_the_journal_and_not_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = random_life("disk")
    journal = Journal(tmp_path, LARGE, retry_s=0.0)
    worker = worker_of(life, journal)
    turn(worker, life)
    wait_for_beginning(journal)

    def full(file: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("volcano_py.scheduler.run.journal.os.write", full)
    for _ in range(3):
        life.live(3)
        turn(worker, life)
        life.now += 1
    wait_for_beginning(journal)
    turn(worker, life)
    assert "No space left" in journal.trouble
    monkeypatch.undo()
    turn(worker, life)
    wait_for_beginning(journal)
    turn(worker, life)
    assert journal.trouble == ""
    worker.close()
    assert not [one.differs for one in replayed(tmp_path)[0] if one.differs]


def test_a_folder_that_is_removed_is_made_again_and_told_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    life = random_life("removed")
    journal = Journal(folder, LARGE, retry_s=0.0)
    worker = worker_of(life, journal)
    turn(worker, life)
    wait_for_beginning(journal)
    shutil.rmtree(folder)
    life.live(3)
    turn(worker, life)
    assert "was deleted" in journal.trouble
    turn(worker, life)
    wait_for_beginning(journal)
    turn(worker, life)
    assert journal.trouble == ""
    worker.close()
    assert not [one.differs for one in replayed(folder)[0] if one.differs]


def test_a_segment_that_can_not_be_begun_is_not_tried_at_every_turn(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    life = random_life("no folder")
    journal = Journal(folder, LARGE)
    folder.rmdir()
    folder.write_text("in the way")
    turn(worker_of(life, journal), life)
    assert "exists" in journal.trouble
    assert not journal.wants_beginning()


def unwritable(key: str) -> Change:
    """A queue with half a character in an annotation: Python can hold that, MessagePack can't."""
    annotations = {"note": "\ud800"}
    queue = Queue.model_validate({"metadata": {"name": key, "annotations": annotations}, "spec": {}})
    return Change("Queue", key, queue, (), "1", "u")


def test_a_turn_that_begins_a_segment_is_not_light(tmp_path: Path) -> None:
    """It copies all that is known, which is no work for the loop's thread."""
    life = random_life("light")
    worker = worker_of(life, Journal(tmp_path, LARGE))
    assert not worker.is_light()
    turn(worker, life)
    assert worker.is_light()
    worker.close()


def test_an_object_that_cannot_be_written_interrupts_the_journal_only(
    tmp_path: Path,
) -> None:
    life = random_life("half a character")
    journal = Journal(tmp_path, LARGE)
    worker = worker_of(life, journal)
    turn(worker, life)
    wait_for_beginning(journal)
    life.changes.append(unwritable("odd"))
    turn(worker, life)
    assert "a record can't be written" in journal.trouble
    assert not journal.wants_beginning()  # not at once
    turn(worker, life)
    worker.close()
    assert not [one.differs for one in replayed(tmp_path)[0] if one.differs]


def test_a_beginning_that_cannot_be_written_ends_and_keeps_nothing_waiting(tmp_path: Path) -> None:
    life = random_life("half a beginning")
    journal = Journal(tmp_path, LARGE)
    worker = worker_of(life, journal)
    worker.owner.known["Queue"] = {"odd": unwritable("odd")}
    turn(worker, life)
    wait_for_beginning(journal)
    turn(worker, life)
    assert "what is known can't be written" in journal.trouble
    assert not journal.is_beginning
    worker.close()


def test_changes_and_outcomes_come_back_as_they_were() -> None:
    problems = (Problem("spec.x", "is no number"),)
    changes = [
        Change("Pod", "a/b", None, problems, "7", "u"),
        Change("Node", "n", None, (), "8"),
        *random_life("round trip").changes,
    ]
    record = next(read_records(b"volcano-py journal\n" + framed(Took([item_of(c) for c in changes])))).record
    assert isinstance(record, Took)
    again = [change_of(row) for row in record.items]
    assert [(c.kind, c.key, c.problems, c.version, c.uid) for c in again] == [
        (c.kind, c.key, c.problems, c.version, c.uid) for c in changes
    ]
    assert [c.item for c in again] == [c.item for c in changes]
    outcomes = [BindFailed("a/b", "u", "n", "a/g", "no", "refused")]
    settled = next(read_records(b"volcano-py journal\n" + framed(settled_of(list(outcomes))))).record
    assert outcomes_of(settled) == outcomes  # type: ignore[arg-type]


def test_a_journal_says_which_queue_was_the_default(tmp_path: Path) -> None:
    life = random_life("default queue")
    carrier, triggers = Carrier(EvictionStyle(), "test"), Triggers(1.0)
    journal, config = Journal(tmp_path, LARGE), written(life.configuration)
    worker = Worker(config, ("volcano-py",), carrier, triggers, Metrics(), journal, default_queue="batch")
    life.owner = worker.owner
    life.live(3)
    turn(worker, life)
    worker.close()
    played, _ = replayed(tmp_path)
    assert played[-1].owner.default_queue == "batch"
