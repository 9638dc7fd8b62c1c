"""Programs of others on the stub driver: PyTorch's allocators, and the runtime of cuda-python.

By hand, where ``GPU_PYTHON`` names an interpreter that has them (docs/shim.md). PyTorch runs on the stub's
runtime (stub/runtime.c): NVIDIA's wants NVIDIA's driver. cuda-python 12.6.0 has a runtime in Cython,
NVIDIA's own too, which asks nothing of the driver. ``CUDART`` names a runtime's file from before CUDA 11.2,
which asks for no proof.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu.card import PYTHON, has
from tests.gpu.scripts import FILL, RUNTIME
from tests.shim.harness import DEADLINE_S, LIBRARY, OUT_OF_MEMORY, Probe, Slice, agree, one_slice
from tests.shim.runtimes import Runtime
from tests.shim.stub import build
from tests.shim.stub.state import MIB, Card
from tests.shim.test_processes import bury

LIMIT_MIB = 1024
CONTEXT_MIB = 300
ALLOCATORS = ("", "expandable_segments:True", "backend:cudaMallocAsync")

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def torch() -> None:
    """Skips where there is no PyTorch."""
    if not has("torch"):
        pytest.skip("no PyTorch (GPU_PYTHON)")


@pytest.fixture(scope="session")
def cuda_python() -> None:
    """Skips where there is no cuda-python with a runtime of its own."""
    if not has("cuda._lib.ccudart.ccudart"):
        pytest.skip("no cuda-python 12.6.0 (GPU_PYTHON)")


@pytest.fixture
def old_runtime() -> Runtime:
    """NVIDIA's runtime of the file CUDART, or a skip."""
    if "CUDART" not in os.environ:
        pytest.skip("no CUDA runtime from before 11.2 (CUDART)")
    return Runtime("old", Path(os.environ["CUDART"]), ())


@pytest.fixture
def pod_with_context(library: Path, tmp_path: Path) -> Iterator[Slice]:
    """A container with 1 GiB of a card on which a context takes 300 MiB."""
    with one_slice(tmp_path, (LIMIT_MIB,), cards=[Card(context_mib=CONTEXT_MIB)]) as slice_:
        yield slice_


def torch_environment(allocator: str) -> dict[str, str]:
    """What puts the stub's runtime in the place of the one that PyTorch brings."""
    runtime = build.OUTPUT / "runtime" / "libcudart.so.12"
    return {"LD_PRELOAD": f"{LIBRARY}:{runtime}", "PYTORCH_CUDA_ALLOC_CONF": allocator}


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_pytorch_fills_its_slice_and_goes_on(pod_with_context: Slice, allocator: str) -> None:
    filled, seen, again = pod_with_context.run(
        [PYTHON, "-c", FILL], torch_environment(allocator)
    ).splitlines()
    mib, refused = filled.split()
    assert refused == "refused"
    assert LIMIT_MIB - CONTEXT_MIB - 32 < int(mib) <= LIMIT_MIB - CONTEXT_MIB
    assert int(seen.split()[1]) == LIMIT_MIB
    assert again == "32"
    assert pod_with_context.driver.violations == 0
    assert pod_with_context.driver.container("pod").peak_bytes[0] > (LIMIT_MIB - 32) * MIB


STEPS = (
    "import gc, torch\n"
    "MIB = 1 << 20\n"
    "def take(mib):\n"
    "    return torch.empty(mib * MIB, dtype=torch.uint8, device='cuda')\n"
    "def step(name):\n"
    "    gc.collect()\n"
    "    torch.cuda.synchronize()\n"
    "    print(name, flush=True)\n"
    "    input()\n"
    "def captured(mib):\n"
    "    graph = torch.cuda.CUDAGraph()\n"
    "    with torch.cuda.graph(graph):\n"
    "        held = take(mib)\n"
    "        held.fill_(1)\n"
    "    return graph, held\n"
    "step('context')\n"
    "one, two = take(100), torch.zeros(16 * MIB, device='cuda', dtype=torch.uint8)\n"
    "with torch.cuda.stream(torch.cuda.Stream()):\n"
    "    three = take(50)\n"
    "step('tensors')\n"
    "graph, held = captured(64)\n"
    "step('captured')\n"
    "graph.replay(), graph.replay()\n"
    "step('replayed')\n"
    "graph.reset()\n"
    "del graph, held\n"
    "step('forgotten')\n"
    "for turn in range(30):\n"
    "    churned = [take((turn * 7 + place * 13) % 60 + 1) for place in range(6)]\n"
    "step('churned')\n"
    "try:\n"
    "    several = [take(300) for _ in range(5)]\n"
    "except torch.cuda.OutOfMemoryError:\n"
    "    step('refused')\n"
    "try:\n"
    "    captured(1000)\n"
    "except (torch.cuda.OutOfMemoryError, RuntimeError):\n"
    "    step('refused to a graph')\n"
    "pinned = torch.empty(10 * MIB, dtype=torch.uint8, pin_memory=True)\n"
    "step('pinned')\n"
    "del one, two, three, churned\n"
    "torch.cuda.empty_cache()\n"
    "step('emptied')\n"
)
"""PyTorch: tensors, graphs and refusals; after each step it says its name and waits for a line."""

SEEN = (
    *("context", "tensors", "captured", "replayed", "forgotten", "churned"),
    *("refused", "refused to a graph", "pinned", "emptied"),
)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_books_of_pytorch_are_the_drivers(pod_with_context: Slice, allocator: str) -> None:
    program = pod_with_context.start([PYTHON, "-W", "ignore", "-c", STEPS], torch_environment(allocator))
    with Probe(program) as probe:
        for step in SEEN:
            assert probe.hear() == step.split()
            agree(pod_with_context)
            probe.tell("")
    assert pod_with_context.counted() == 0


RIVAL = (
    "import random, sys, torch\n"
    "torch.cuda.synchronize()\n"
    "print('ready', flush=True)\n"
    "input()\n"
    "random.seed(int(sys.argv[1]))\n"
    "held, refused = [], 0\n"
    "for _ in range(400):\n"
    "    try:\n"
    "        held.append(torch.empty(random.randrange(1, 60) << 20, dtype=torch.uint8, device='cuda'))\n"
    "    except torch.cuda.OutOfMemoryError:\n"
    "        held, refused = held[len(held) // 2 :], refused + 1\n"
    "    if held and random.random() < 0.3:\n"
    "        held.pop(random.randrange(len(held)))\n"
    "print(refused)\n"
)
"""PyTorch: makes its context, waits for a line, takes and lets go by dice; how often it was refused."""


def talk_to_all(programs: "list[subprocess.Popen[str]]") -> list[str]:
    """Lets all go on at once; what each says until its end."""
    for program in programs:
        Probe(program).tell("")
    return [program.communicate(timeout=DEADLINE_S)[0] for program in programs]


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_three_programs_share_a_slice(library: Path, tmp_path: Path, allocator: str) -> None:
    with one_slice(tmp_path, (2048,), cards=[Card(context_mib=100)]) as slice_:
        environment = torch_environment(allocator)
        rivals = [slice_.start([PYTHON, "-c", RIVAL, str(seed)], environment) for seed in range(3)]
        try:
            assert [Probe(rival).hear() for rival in rivals] == [["ready"]] * 3
            told = talk_to_all(rivals)
        finally:
            bury(rivals)
        assert [rival.returncode for rival in rivals] == [0, 0, 0], told
        assert any(int(refused) > 0 for refused in told)
        assert slice_.driver.violations == 0
        assert slice_.counted() == slice_.held() == 0


@pytest.mark.usefixtures("cuda_python")
def test_cuda_python_gets_its_slice_by_every_call_of_the_runtime(pod_with_context: Slice) -> None:
    *ways, total = pod_with_context.run([PYTHON, "-c", RUNTIME]).splitlines()
    assert total == f"total {LIMIT_MIB}"
    assert len(ways) == 6
    for way in ways:
        name, over, part, taken, freed, left = way.split()
        assert (name, int(over), int(part), int(freed)) == (name, OUT_OF_MEMORY, 0, 0)
        assert (name, int(taken), int(left)) == (name, 64, 0)
    agree(pod_with_context)


@pytest.mark.parametrize("form", ["shared", "private"])
def test_an_old_runtime_gets_the_slice_and_no_more(
    pod_with_context: Slice, old_runtime: Runtime, form: str
) -> None:
    *ways, total = pod_with_context.run(old_runtime.program("runtime.c", form)).splitlines()
    assert total == f"total {LIMIT_MIB}"
    told = dict(way.split(maxsplit=1) for way in ways)
    for name in ("cudaMalloc", "cudaMallocManaged", "cudaMallocPitch"):
        assert told[name] == f"{OUT_OF_MEMORY} 0 64 0 0"
    agree(pod_with_context)
