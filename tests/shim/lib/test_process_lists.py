"""The newer process lists of NVML, which come in structures of their own, show the slice's processes only."""

from tests.shim.harness import Probe, Slice

SCRIPT = """
import ctypes as c

class Detail(c.Structure):
    _fields_ = [("pid", c.c_uint), ("used", c.c_ulonglong)]
    _fields_ += [("gi", c.c_uint), ("ci", c.c_uint), ("cc", c.c_ulonglong)]

class Details(c.Structure):
    _fields_ = [("version", c.c_uint), ("mode", c.c_uint), ("count", c.c_uint), ("list", c.POINTER(Detail))]

class Use(c.Structure):
    _fields_ = [("time", c.c_ulonglong)] + [(n, c.c_uint) for n in ("pid", "sm", "m", "e", "d", "j", "o")]

class Uses(c.Structure):
    _fields_ = [("version", c.c_uint), ("count", c.c_uint)]
    _fields_ += [("since", c.c_ulonglong), ("list", c.POINTER(Use))]

nvml = c.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
card = c.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(card))
details = Details(0x1000018, 0, 8, (Detail * 8)())
code = nvml.nvmlDeviceGetRunningProcessDetailList(card, c.byref(details))
print(code, *((details.list[i].pid, details.list[i].used >> 20) for i in range(details.count)))
uses = Uses(0x1000018, 8, 0, (Use * 8)())
code = nvml.nvmlDeviceGetProcessesUtilizationInfo(card, c.byref(uses))
print(code, *(uses.list[i].pid for i in range(uses.count)))
"""


def test_newer_lists_show_our_processes_only(pod: Slice, probe: Probe) -> None:
    assert probe.take("a", 300) == 0
    assert probe.ask("launch cuLaunchKernel 50 108 3") == ["0"]
    with pod.probe(changes={"LD_PRELOAD": "", "STUB_CONTAINER": ""}) as stranger:
        assert stranger.start().take("b", 2000) == 0
        assert stranger.ask("launch cuLaunchKernel 50 108 3") == ["0"]
        told = pod.python(SCRIPT).splitlines()
        bare = pod.python(SCRIPT, {"LD_PRELOAD": ""}).splitlines()
        assert str(stranger.process.pid) in bare[0]
        assert str(stranger.process.pid) in bare[1]
    assert told == [f"0 ({probe.process.pid}, 300)", f"0 {probe.process.pid}"]
