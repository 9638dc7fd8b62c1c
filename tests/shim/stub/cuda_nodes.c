/* CUDA: what nodes a graph has. A node's handle is the address of what it does, and its kind in the lowest bits. */
#include "driver.h"
#include "graph.h"

enum { KERNEL = 0, CHILD = 1, MEMORY = 2, FREE = 3, KIND = 3 };

/* CUgraphNodeType of each kind. */
static const int types[] = {0, 4, 10, 11};

static void list(address *nodes, size_t room, size_t *count, const void *what, address kind) {
	if (nodes != NULL && *count < room) {
		nodes[*count] = (address)(uintptr_t)what | kind;
	}
	++*count;
}

CU_API cuGraphGetNodes(const struct graph *graph, address *nodes, size_t *count) {
	DRIVER_ENTER();
	(void)state;
	NEED(count != NULL && graph != NULL);
	const size_t room = *count;
	*count = 0;
	for (const struct graph_kernel *kernel = graph->kernel; kernel != NULL; kernel = kernel->next) {
		list(nodes, room, count, kernel, KERNEL);
	}
	for (const struct graph *child = graph->child; child != NULL; child = child->next) {
		list(nodes, room, count, child, CHILD);
	}
	for (const struct graph_memory *memory = graph->memory; memory != NULL; memory = memory->next) {
		list(nodes, room, count, memory, MEMORY);
		if (memory->freed) {
			list(nodes, room, count, memory, FREE);
		}
	}
	return CU_OK;
}

CU_API cuGraphNodeGetType(address node, int *type) {
	DRIVER_ENTER();
	(void)state;
	NEED(node > KIND && type != NULL);
	*type = types[node & KIND];
	return CU_OK;
}

CU_API cuGraphChildGraphNodeGetGraph(address node, struct graph **graph) {
	DRIVER_ENTER();
	(void)state;
	NEED(node > KIND && (node & KIND) == CHILD && graph != NULL);
	*graph = (struct graph *)(uintptr_t)(node & ~(address)KIND);
	return CU_OK;
}

/* CUDA_KERNEL_NODE_PARAMS, as far as both versions are alike. */
struct kernel_parameters {
	address function;
	unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
};

static int kernel_parameters(address node, struct kernel_parameters *out) {
	NEED(node > KIND && (node & KIND) == KERNEL && out != NULL);
	const struct graph_kernel *kernel = (const struct graph_kernel *)(uintptr_t)node;
	*out = (struct kernel_parameters){.grid_x = (unsigned int)kernel->blocks, .grid_y = 1, .grid_z = 1};
	return CU_OK;
}

CU_API cuGraphKernelNodeGetParams(address node, struct kernel_parameters *out) {
	DRIVER_ENTER();
	(void)state;
	return kernel_parameters(node, out);
}

CU_API cuGraphKernelNodeGetParams_v2(address node, struct kernel_parameters *out) {
	DRIVER_ENTER();
	(void)state;
	return kernel_parameters(node, out);
}
