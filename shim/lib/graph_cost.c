/* The driver is asked for the nodes of a graph once, never at a launch. Parameters that are changed in an
 * instantiated graph aren't seen; the measured time corrects what they make wrong. */
#define _GNU_SOURCE
#include "graph_cost.h"

#include <sys/mman.h>

#include "cores.h"
#include "driver.h"
#include "slice.h"

#define UNKNOWN_BLOCKS 4096u
#define DEEPEST 8 /* graphs in graphs that are looked into */
#define REACH 16u /* places that a handle may have */
#define TAKEN 1u  /* a place that is being filled: no handle */

static uint64_t kernel_blocks(CUgraphNode node) {
	CUDA_KERNEL_NODE_PARAMS params = {0};
	fn_cuGraphKernelNodeGetParams read = DRIVER(cuGraphKernelNodeGetParams_v2);
	read = read != NULL ? read : DRIVER(cuGraphKernelNodeGetParams);
	if (read == NULL || read(node, &params) != CUDA_SUCCESS) {
		return 0;
	}
	return (uint64_t)params.gridDimX * params.gridDimY * params.gridDimZ;
}

static uint64_t graph_blocks(CUgraph graph, int depth);

static uint64_t node_blocks(CUgraphNode node, int depth) {
	int type;
	CUgraph child = NULL;
	const fn_cuGraphNodeGetType type_of = DRIVER(cuGraphNodeGetType);
	const fn_cuGraphChildGraphNodeGetGraph graph_of = DRIVER(cuGraphChildGraphNodeGetGraph);
	if (type_of == NULL || type_of(node, &type) != CUDA_SUCCESS) {
		return 0;
	}
	if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
		return kernel_blocks(node);
	}
	if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < DEEPEST && graph_of != NULL &&
	    graph_of(node, &child) == CUDA_SUCCESS) {
		return graph_blocks(child, depth + 1);
	}
	return 0;
}

/* The blocks of all kernels of a graph; UNKNOWN_BLOCKS if the driver doesn't tell its nodes. */
static uint64_t graph_blocks(CUgraph graph, int depth) {
	size_t count = 0;
	const fn_cuGraphGetNodes list = DRIVER(cuGraphGetNodes);
	if (list == NULL || list(graph, NULL, &count) != CUDA_SUCCESS) {
		return UNKNOWN_BLOCKS;
	}
	if (count == 0) {
		return 0;
	}
	const size_t size = count * sizeof(CUgraphNode);
	CUgraphNode *nodes =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nodes == MAP_FAILED) {
		return UNKNOWN_BLOCKS;
	}
	size_t told = count;
	const bool is_told = list(graph, nodes, &told) == CUDA_SUCCESS;
	uint64_t blocks = 0;
	for (size_t i = 0; is_told && i < count && i < told; i++) {
		blocks += node_blocks(nodes[i], depth);
	}
	munmap(nodes, size);
	return is_told ? blocks : UNKNOWN_BLOCKS;
}

static struct graph_cost *place(uintptr_t exec, uint32_t step) {
	const uint64_t hashed = (uint64_t)exec * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	return &slice_process()->graph_costs[(hashed + step) % GRAPH_COST_PLACES];
}

/* The place of a handle, or of nothing (0), among those that *exec* may have; NULL if there is none. */
static struct graph_cost *find(uintptr_t exec, uintptr_t wanted) {
	for (uint32_t step = 0; step < REACH; step++) {
		struct graph_cost *cost = place(exec, step);
		if (atomic_load_explicit(&cost->exec, memory_order_acquire) == wanted) {
			return cost;
		}
	}
	return NULL;
}

void graph_cost_note(CUgraph graph, CUgraphExec exec) {
	const uintptr_t key = (uintptr_t)exec;
	if (!cores_are_limited()) {
		return;
	}
	const uint64_t blocks = graph_blocks(graph, 0);
	graph_cost_forget(exec);
	for (struct graph_cost *cost; (cost = find(key, 0)) != NULL;) {
		uintptr_t nothing = 0;
		if (atomic_compare_exchange_strong(&cost->exec, &nothing, TAKEN)) {
			atomic_store(&cost->blocks, blocks);
			atomic_store_explicit(&cost->exec, key, memory_order_release);
			return;
		}
	}
}

void graph_cost_forget(CUgraphExec exec) {
	struct graph_cost *cost = find((uintptr_t)exec, (uintptr_t)exec);
	if (cost != NULL) {
		atomic_store(&cost->exec, 0);
	}
}

uint64_t graph_cost_blocks(CUgraphExec exec) {
	const struct graph_cost *cost = find((uintptr_t)exec, (uintptr_t)exec);
	return cost != NULL ? atomic_load_explicit(&cost->blocks, memory_order_relaxed)
			    : UNKNOWN_BLOCKS;
}
