"""The NVML half of the stub driver, by itself: what an agent sees of pretend cards through pynvml."""

import os
import subprocess
import sys
from pathlib import Path

from tests.shim.harness import DEADLINE_S
from tests.shim.scripts import says
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card, Container, Driver, MigInstance, card_uuid

BEGIN = "import pynvml as n\nn.nvmlInit()\n"


def test_an_agent_lists_the_cards(tmp_path: Path) -> None:
    cards = [Card(memory_mib=1024, name="Card One"), Card(memory_mib=2048, minor=7, numa=1, links=(4, 0))]
    with Driver.create(tmp_path / "state", cards) as driver:
        told = says(
            driver,
            BEGIN + "for i in range(n.nvmlDeviceGetCount()):\n"
            "    h = n.nvmlDeviceGetHandleByIndex(i)\n"
            "    print(n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetName(h), n.nvmlDeviceGetMinorNumber(h),\n"
            "          n.nvmlDeviceGetMemoryInfo(h).total, n.nvmlDeviceGetNumaNodeId(h),\n"
            "          n.nvmlDeviceGetPciInfo(h).busId, n.nvmlDeviceGetMigMode(h))\n"
            "print(n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetCudaDriverVersion())\n"
            "two = n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h))\n"
            "one = n.nvmlDeviceGetHandleByIndex(0)\n"
            "print(n.nvmlDeviceGetNvLinkRemotePciInfo(two, 3).bus, n.nvmlDeviceGetNvLinkState(two, 4),\n"
            "      n.nvmlDeviceGetTopologyCommonAncestor(one, two), n.nvmlDeviceGetP2PStatus(one, two, 0))",
        )
    assert told == [
        f"{card_uuid(0)} Card One 0 {1024 * MIB} 0 00000000:10:00.0 [0, 0]",
        f"{card_uuid(1)} NVIDIA A100-SXM4-80GB 7 {2048 * MIB} 1 00000000:11:00.0 [0, 0]",
        "550.54.14 12040",
        "16 0 50 4",
    ]


def test_mig_instances_are_devices_of_their_own(tmp_path: Path) -> None:
    card = Card(mig_mode=1, migs=(MigInstance("MIG-a", 9728), MigInstance("MIG-b", 19968, gpu_instance=2)))
    with Driver.create(tmp_path / "state", [card]) as driver:
        told = says(
            driver,
            BEGIN + "h = n.nvmlDeviceGetHandleByIndex(0)\n"
            "for i in range(2):\n"
            "    m = n.nvmlDeviceGetMigDeviceHandleByIndex(h, i)\n"
            "    print(n.nvmlDeviceGetUUID(m), n.nvmlDeviceGetMemoryInfo(m).total >> 20,\n"
            "          n.nvmlDeviceGetGpuInstanceId(m))\n",
        )
    assert told == ["MIG-a 9728 1", "MIG-b 19968 2"]


def test_events_reach_who_registered_for_the_card(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "s = n.nvmlEventSetCreate()\n"
        "h = n.nvmlDeviceGetHandleByIndex(1)\n"
        "n.nvmlDeviceRegisterEvents(h, n.nvmlEventTypeXidCriticalError, s)\n"
        "print('ready', flush=True)\n"
        "e = n.nvmlEventSetWait_v2(s, 60000)\n"
        "print(n.nvmlDeviceGetUUID(e.device), e.eventData)\n"
        "try:\n    n.nvmlEventSetWait_v2(s, 10)\n"
        "except n.NVMLError as error:\n    print(error.value == n.NVML_ERROR_TIMEOUT)\n"
    )
    with Driver.create(tmp_path / "state", [Card(), Card()]) as driver:
        command = [sys.executable, "-c", BEGIN + script]
        environment = {**os.environ, **driver.environment(build.build())}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as waiter:
            assert waiter.stdout is not None
            assert waiter.stdout.readline() == "ready\n"
            driver.raise_event(0, 48)
            driver.raise_event(1, 79)
            told, _ = waiter.communicate(timeout=DEADLINE_S)
    assert told.splitlines() == [f"{card_uuid(1)} 79", "True"]


def test_a_lost_card_is_an_error_of_that_card_alone(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", [Card(), Card()]) as driver:
        driver.lose(0)
        told = says(
            driver,
            BEGIN + "try:\n    n.nvmlDeviceGetHandleByIndex(0)\n"
            "except n.NVMLError as error:\n    print(error.value == n.NVML_ERROR_GPU_IS_LOST)\n"
            "print(n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(1)).used)",
        )
    assert told == ["True", "0"]


def test_faults_answer_the_calls_they_name(tmp_path: Path) -> None:
    with Driver.create(tmp_path / "state", containers=[Container("a")]) as driver:
        fault = driver.fail("nvmlDeviceGetCount_v2", 999, first=2, times=1)
        told = says(
            driver,
            BEGIN + "for i in range(3):\n"
            "    try:\n        print(n.nvmlDeviceGetCount())\n"
            "    except n.NVMLError as error:\n        print('error', error.value)\n",
        )
        assert told == ["1", "error 999", "1"]
        assert fault.calls == 3
