"""Cards that are not well: drained, told everywhere, and taken back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agent.node import GPU, VGPU, NodeUnderTest, node, part, until
from volcano_py.crds.cards.register import HAMI_REGISTER, VOLCANO_REGISTER, decode_hami, decode_volcano
from volcano_py.shim.agent.health import Health
from volcano_py.shim.agent.nvml import Event
from volcano_py.shim.agent.options import Paces
from volcano_py.shim.agent.publish import RECOVERED
from volcano_py.shim.agent.wire import services

FOREVER = Paces(cards=0.05, kubelet=0.05, records=0.2, slices=0.1, quiet=1e9, linger=0, patience=0)


def test_an_error_drains_the_card_at_the_kubelet_and_on_the_node(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            running = await n1.run(await n1.sliced("a", part("GPU-1")))
            n1.driver.happened.put(Event("GPU-1", 79))
            await until(lambda: told(n1, {"GPU-0"}), "drained")
            # What runs there goes on, and may start again.
            await n1.kubelet.start_container(running, "main")

    asyncio.run(case())


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_errors_of_programs_say_nothing_about_the_card(xid: int) -> None:
    health = Health(60)
    assert not health.event("GPU-0", xid, 0)
    assert health.troubles() == {}


def test_an_event_without_a_card_is_every_cards(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.happened.put(Event("", 79))
            await until(lambda: told(n1, set()), "all drained")

    asyncio.run(case())


def test_a_card_is_well_again_after_a_quiet_while(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.happened.put(Event("GPU-1", 94))
            await until(lambda: told(n1, {"GPU-0"}), "drained")
            n1.agent.cards.health._quiet_s = 0.0  # the while is over
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "taken back")

    asyncio.run(case())


def test_the_while_begins_anew_with_every_error_and_every_silence() -> None:
    health = Health(60)
    health.event("GPU-0", 94, 0)
    health.answers({"GPU-0": ""}, 59)
    assert "GPU-0" in health.troubles()
    health.event("GPU-0", 94, 59)
    health.answers({"GPU-0": ""}, 100)
    assert "GPU-0" in health.troubles()
    health.answers({"GPU-0": "does not answer"}, 110)
    health.answers({"GPU-0": ""}, 169)
    assert "GPU-0" in health.troubles()
    health.answers({"GPU-0": ""}, 170)
    assert health.troubles() == {}


def test_a_card_that_did_not_answer_is_well_as_soon_as_it_does(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.wrong["GPU-0"] = "GPU is lost"
            await until(lambda: told(n1, {"GPU-1"}), "drained")
            n1.driver.wrong.clear()
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "taken back")

    asyncio.run(case())


def test_a_card_that_fell_off_the_bus_stays_known(tmp_path: Path) -> None:
    """Its tenants are still booked on it; a list without it would free them."""

    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.hidden.add("GPU-0")
            await until(lambda: told(n1, {"GPU-1"}), "drained")
            n1.driver.hidden.clear()
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "taken back")

    asyncio.run(case())


def test_faults_of_the_driver_end_nothing(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.fault = "RM has detected an NVML/RM version mismatch"
            await until(lambda: told(n1, set()), "all drained")
            n1.driver.fault = ""
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "all taken back")
            await n1.run(await n1.sliced("a", part("GPU-0")))

    asyncio.run(case())


def test_an_agent_that_starts_without_a_driver_keeps_the_cards_and_drains_them(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "published")
            n1.driver.fault = "Driver Not Loaded"
            await n1.restart()
            await until(lambda: told(n1, set()), "drained")
            n1.driver.fault = ""
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "taken back")

    asyncio.run(case())


def test_a_node_without_cards_is_told_nothing(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, [], started=False) as n1:
            n1.driver.fault = "Driver Not Loaded"
            starting = asyncio.ensure_future(n1.start())
            await until(lambda: n1.kubelet.registrations, "registered all the same")
            assert HAMI_REGISTER not in await n1.node_notes()
            assert n1.agent.ready() != ""
            starting.cancel()

    asyncio.run(case())


def test_an_agent_that_starts_again_remembers_which_card_was_unwell(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.happened.put(Event("GPU-1", 79))
            await until(lambda: told(n1, {"GPU-0"}), "drained")
            await n1.restart()
            await until(lambda: told(n1, {"GPU-0"}), "drained still")
            assert set(n1.agent.cards.health.troubles()) == {"GPU-1"}

    asyncio.run(case())


def test_a_person_declares_a_card_well(tmp_path: Path) -> None:
    async def case() -> None:
        async with node(tmp_path, paces=FOREVER) as n1:
            n1.driver.happened.put(Event("GPU-1", 79))
            await until(lambda: told(n1, {"GPU-0"}), "drained")
            await n1.patch_node({RECOVERED: "GPU-1"})
            await until(lambda: told(n1, {"GPU-0", "GPU-1"}), "taken back")
            await until(lambda: word_is_gone(n1), "the word is taken away")

    asyncio.run(case())


async def word_is_gone(n1: NodeUnderTest) -> bool:
    return RECOVERED not in await n1.node_notes()


async def told(n1: NodeUnderTest, well: set[str]) -> bool:
    """Whether just the cards *well* are, in the kubelet's lists and in both annotations."""
    for resource in (GPU, VGPU):
        devices = n1.kubelet.endpoints[resource].devices if resource in n1.kubelet.endpoints else {}
        healthy = {each.rpartition("-")[0] for each, word in devices.items() if word == services.HEALTHY}
        if healthy != well or len(devices) != 20:
            return False
    notes = await n1.node_notes()
    families = (decode_hami(notes.get(HAMI_REGISTER, "")), decode_volcano(notes.get(VOLCANO_REGISTER, "")))
    return all(
        {each.uuid for each in family if each.healthy} == well and len(family) == 2 for family in families
    )
