"""The sentence of a queue's limit that an ask would pass, said of one pod or of the whole gang.

A test of a limit counts what the queue holds at the moment. While a gang is being placed that includes
its own members, who start only if all do: people are told what the gang asks together and what others hold.
Neighbours: ``queue_rules`` makes the tests, ``filling`` and ``eviction.attempt`` place gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from volcano_py.scheduler.framework.refusal import Excess, Refusal
from volcano_py.scheduler.model.cluster import ClusterState
from volcano_py.scheduler.model.wording import figure, noun

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.statement import Statement


def over_limit(state: ClusterState, reason: str, excess: Excess) -> Refusal:
    """The refusal of an ask that passes a limit by *excess*, with the code *reason*."""
    name, over = state.vocabulary.names[excess.column], excess.asked + excess.used - excess.limit
    amounts = (excess.asked, excess.used, over, excess.limit)
    wants, has, above, most = (figure(state, name, amount) for amount in amounts)
    by = f" by {excess.pods} pods" if excess.pods > 1 else ""
    return Refusal(
        reason,
        f"queue {state.queues[excess.queue].name}: {wants} {noun(state, name)} asked{by} with {has} in use, "
        f"{above} over {excess.bound} {most}",
        missing={name: over},
        excess=excess,
    )


def of_the_gang(refusal: Refusal, statement: Statement, tasks: Iterable[int]) -> Refusal:
    """*refusal*, said of the members that *statement* has placed and *tasks* of the same job.

    As it is where it names no limit of a queue, or is about one pod.
    """
    excess, state = refusal.excess, statement.session.state
    if excess is None:
        return refusal
    own = statement.placed()
    members = list(dict.fromkeys([*own, *tasks]))
    if excess.firm:
        own = [task for task in own if not state.tasks.interruptible[task]]
        members = [task for task in members if not state.tasks.interruptible[task]]
    if len(members) < 2:
        return refusal
    held, asked = (_charged(state, some, excess.column) for some in (own, members))
    whole = replace(excess, pods=len(members), asked=asked, used=excess.used - held)
    return over_limit(state, refusal.reason, whole)


def _charged(state: ClusterState, tasks: list[int], column: int) -> int:
    """What *tasks* cost their queue together, in base units of one resource."""
    total, row_of = 0, state.tasks.klass
    alike = Counter(int(row_of[task]) for task in tasks)
    for row, count in alike.items():
        klass = state.classes[row]
        if klass.cards is None:
            total += count * int(klass.charge[column])
        else:  # by the cards each has got
            own = (task for task in tasks if row_of[task] == row)
            total += sum(int(state.accounts.charge_of_task(task)[column]) for task in own)
    return total
