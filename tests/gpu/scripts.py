"""Python programs that fill their slice, on a real card and on the stub (tests/shim/test_programs.py)."""

FILL = (
    "import torch\n"
    "torch.cuda.synchronize()\n"
    "held, refused = [], ''\n"
    "try:\n"
    "    for _ in range(100000):\n"
    "        held.append(torch.empty(32 << 20, dtype=torch.uint8, device='cuda'))\n"
    "except torch.cuda.OutOfMemoryError:\n"
    "    refused = 'refused'\n"
    "print(len(held) * 32, refused)\n"
    "print(*(value >> 20 for value in torch.cuda.mem_get_info()))\n"
    "del held\n"
    "torch.cuda.synchronize()\n"
    "torch.cuda.empty_cache()\n"
    "print(torch.empty(32 << 20, dtype=torch.uint8, device='cuda').numel() >> 20)\n"
)
"""PyTorch: MiB that it got in steps of 32, ``refused``; free and total; and 32 again, once all was let go.

The context comes first: expandable segments need none, and in a full slice it would be refused.
"""

RUNTIME = (
    "from cuda import cudart as rt\n"
    "MIB = 1 << 20\n"
    "def code(result):\n"
    "    return int(result[0])\n"
    "rt.cudaFree(0)\n"
    "free, total = (value // MIB for value in rt.cudaMemGetInfo()[1:])\n"
    "more = (free + 1) * MIB\n"
    "stream = rt.cudaStreamCreate()[1]\n"
    "pool = rt.cudaDeviceGetDefaultMemPool(0)[1]\n"
    "floats = rt.cudaCreateChannelDesc(32, 0, 0, 0, rt.cudaChannelFormatKind.cudaChannelFormatKindFloat)[1]\n"
    "ways = {\n"
    "    'cudaMalloc': lambda size: rt.cudaMalloc(size),\n"
    "    'cudaMallocManaged': lambda size: rt.cudaMallocManaged(size, rt.cudaMemAttachGlobal),\n"
    "    'cudaMallocPitch': lambda size: rt.cudaMallocPitch(MIB, size // MIB),\n"
    "    'cudaMallocArray': lambda size: rt.cudaMallocArray(floats, 1024, size // 4096, 0),\n"
    "    'cudaMallocAsync': lambda size: rt.cudaMallocAsync(size, stream),\n"
    "    'cudaMallocFromPoolAsync': lambda size: rt.cudaMallocFromPoolAsync(size, pool, stream),\n"
    "}\n"
    "back = {'cudaMallocArray': rt.cudaFreeArray}\n"
    "for name, way in ways.items():\n"
    "    over, part = code(way(more)), way(64 * MIB)\n"
    "    rt.cudaDeviceSynchronize()\n"
    "    taken = free - rt.cudaMemGetInfo()[1] // MIB\n"
    "    freed = code(back.get(name, rt.cudaFree)(part[1]))\n"
    "    rt.cudaDeviceSynchronize()\n"
    "    print(name, over, code(part), taken, freed, free - rt.cudaMemGetInfo()[1] // MIB)\n"
    "print('total', total)\n"
)
"""cuda-python: of each kind of memory, the codes for 1 MiB more than is free and for 64 MiB, MiB then taken,
the code of the free, and MiB still taken; in the end the total."""
