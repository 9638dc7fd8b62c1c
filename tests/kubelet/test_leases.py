"""Whose turn it is to renew a lease, with nodes in any number."""

from __future__ import annotations

import math

from volcano_py.simulator.kubelet.leases import Rota


def serve(rota: Rota, nodes: dict[str, str], at_s: float) -> list[str]:
    due = rota.due(nodes, at_s)
    for name in due:
        rota.served(name)
    return due


def named(count: int) -> dict[str, str]:
    return {f"n{number}": "uid" for number in range(count)}


def test_each_node_has_its_turn_once_a_period_and_the_turns_are_spread() -> None:
    rota, nodes = Rota(10.0, math.inf), named(25)
    assert serve(rota, nodes, 0.0) == list(nodes)
    turns = [serve(rota, nodes, second) for second in range(1, 21)]
    assert [name for turn in turns for name in turn] == [*nodes, *nodes]
    assert {len(turn) for turn in turns} == {2, 3}


def test_many_nodes_are_served_at_the_highest_rate_and_their_leases_hold_longer() -> None:
    rota, nodes = Rota(10.0, 4.0), named(100)
    serve(rota, nodes, 0.0)
    turns = [serve(rota, nodes, second) for second in range(1, 26)]
    assert [name for turn in turns for name in turn] == list(nodes)
    assert {len(turn) for turn in turns} == {4}
    assert (rota.period_s(100), rota.period_s(40), rota.period_s(1)) == (25.0, 10.0, 10.0)


def test_new_nodes_are_due_until_they_were_served_and_gone_ones_never() -> None:
    rota = Rota(10.0, math.inf)
    assert rota.due(named(2), 0.0) == ["n0", "n1"]
    rota.served("n0")
    assert rota.due(named(3), 0.0) == ["n1", "n2"]
    assert rota.due({"n2": "uid"}, 100.0) == ["n2"]
    assert "n0" not in rota


def test_who_was_late_owes_each_node_one_turn_only() -> None:
    rota, nodes = Rota(10.0, math.inf), named(3)
    serve(rota, nodes, 0.0)
    assert serve(rota, nodes, 1000.0) == list(nodes)
    assert serve(rota, nodes, 1000.0) == []
