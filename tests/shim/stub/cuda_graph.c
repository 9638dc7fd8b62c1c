/* CUDA: graphs of kernels and of memory, how they are made and ended. */
#include <stdlib.h>

#include "driver.h"
#include "graph.h"

/* CU_GRAPH_NODE_TYPE_KERNEL, _GRAPH, _MEM_ALLOC and _MEM_FREE */
enum { NODE_KERNEL = 0, NODE_GRAPH = 4, NODE_ALLOC = 10, NODE_FREE = 11 };

/* CUgraphInstantiate_flags */
enum { AUTO_FREE_ON_LAUNCH = 1, UPLOAD = 2 };

struct graph *graph_new(void) {
	struct graph *graph = calloc(1, sizeof *graph);
	if (graph == NULL) {
		abort();
	}
	return graph;
}

void graph_book(struct graph *graph, enum kind kind) {
	object_add((address)(uintptr_t)graph, kind, -1, 0, NULL)->detail = graph;
}

void graph_empty(struct graph *graph) {
	while (graph->memory != NULL) {
		struct graph_memory *next = graph->memory->next;
		free(graph->memory);
		graph->memory = next;
	}
	while (graph->kernel != NULL) {
		struct graph_kernel *next = graph->kernel->next;
		free(graph->kernel);
		graph->kernel = next;
	}
	graph->kernels_ns = 0;
}

static void graph_end(struct graph *graph) {
	graph_empty(graph);
	while (graph->child != NULL) {
		struct graph *next = graph->child->next;
		graph_end(graph->child);
		graph->child = next;
	}
	free(graph);
}

static struct graph *graph_copy(const struct graph *graph) {
	struct graph *copy = graph_new();
	copy->kernels_ns = graph->kernels_ns;
	for (const struct graph_kernel *kernel = graph->kernel; kernel != NULL; kernel = kernel->next) {
		graph_add_kernel(copy, 0, kernel->blocks);
	}
	for (const struct graph *child = graph->child; child != NULL; child = child->next) {
		struct graph *same = graph_copy(child);
		same->next = copy->child;
		copy->child = same;
	}
	for (const struct graph_memory *memory = graph->memory; memory != NULL; memory = memory->next) {
		struct graph_memory *same = malloc(sizeof *same);
		if (same == NULL) {
			abort();
		}
		*same = *memory;
		same->next = copy->memory;
		copy->memory = same;
	}
	return copy;
}

void graph_add_kernel(struct graph *graph, uint64_t duration, uint64_t blocks) {
	struct graph_kernel *kernel = malloc(sizeof *kernel);
	if (kernel == NULL) {
		abort();
	}
	*kernel = (struct graph_kernel){blocks, graph->kernel};
	graph->kernel = kernel;
	graph->kernels_ns += duration;
}

CU_API cuGraphCreate(struct graph **out, unsigned int flags) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL && flags == 0);
	*out = graph_new();
	graph_book(*out, GRAPH);
	return CU_OK;
}

static int destroy(const void *handle, enum kind kind) {
	struct object *object = object_remove((address)(uintptr_t)handle, kind, kind);
	if (object == NULL) {
		return CU_INVALID_VALUE;
	}
	graph_end(object->detail);
	free(object);
	return CU_OK;
}

CU_API cuGraphDestroy(struct graph *graph) {
	DRIVER_ENTER();
	(void)state;
	return destroy(graph, GRAPH);
}

CU_API cuGraphExecDestroy(struct graph *exec) {
	DRIVER_ENTER();
	(void)state;
	return destroy(exec, EXEC);
}

/* CUDA_KERNEL_NODE_PARAMS, as far as both versions are alike. */
struct kernel_node {
	address function;
	unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
	void **parameters, **extra;
};

static int add_kernel(struct stub_state *state, address *out, struct graph *graph, const struct kernel_node *node) {
	struct context *context = context_current();
	NEED(out != NULL && node != NULL && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	if (context == NULL) {
		return CU_INVALID_CONTEXT;
	}
	uint64_t blocks = (uint64_t)node->grid_x * node->grid_y * node->grid_z;
	graph_add_kernel(graph, kernel_ns(&state->card[context->card], node->function, blocks), blocks);
	*out = handle_new();
	return CU_OK;
}

CU_API cuGraphAddKernelNode(address *out, struct graph *graph, const address *needs, size_t count,
                            const struct kernel_node *node) {
	DRIVER_ENTER();
	NEED(needs != NULL || count == 0);
	return add_kernel(state, out, graph, node);
}

CU_API cuGraphAddKernelNode_v2(address *out, struct graph *graph, const address *needs, size_t count,
                               const struct kernel_node *node) {
	DRIVER_ENTER();
	NEED(needs != NULL || count == 0);
	return add_kernel(state, out, graph, node);
}

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct alloc_node {
	struct pool_prop pool;
	const void *access;
	size_t access_count;
	size_t bytes;
	address start;
};

address graph_add_memory(struct graph *graph, int card, uint64_t bytes) {
	struct graph_memory *memory = calloc(1, sizeof *memory);
	if (memory == NULL) {
		abort();
	}
	*memory = (struct graph_memory){address_new(bytes), bytes, card, 0, graph->memory};
	graph->memory = memory;
	return memory->start;
}

int graph_free_memory(struct graph *graph, address start) {
	struct graph_memory *memory = graph->memory;
	while (memory != NULL && memory->start != start) {
		memory = memory->next;
	}
	if (memory != NULL) {
		memory->freed = 1;
	}
	return memory != NULL ? CU_OK : CU_INVALID_VALUE;
}

static int add_alloc(address *out, struct graph *graph, struct alloc_node *node) {
	NEED(out != NULL && node != NULL && node->bytes > 0 && node->pool.location.kind == AT_DEVICE);
	int card = card_of(node->pool.location.id);
	NEED(card >= 0 && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	node->start = graph_add_memory(graph, card, node->bytes);
	*out = handle_new();
	return CU_OK;
}

CU_API cuGraphAddMemAllocNode(address *out, struct graph *graph, const address *needs, size_t count,
                              struct alloc_node *node) {
	DRIVER_ENTER();
	(void)state;
	NEED(needs != NULL || count == 0);
	return add_alloc(out, graph, node);
}

static int add_free(address *out, struct graph *graph, address start) {
	NEED(out != NULL && graph_free_memory(graph, start) == CU_OK);
	*out = handle_new();
	return CU_OK;
}

CU_API cuGraphAddMemFreeNode(address *out, struct graph *graph, const address *needs, size_t count, address start) {
	DRIVER_ENTER();
	(void)state;
	NEED((needs != NULL || count == 0) && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	return add_free(out, graph, start);
}

/* CUDA_CHILD_GRAPH_NODE_PARAMS */
struct child_node {
	struct graph *graph;
	int moved;
};

/* All that the child does, the parent does now; the child is nobody else's any more. */
static void move_child(struct graph *graph, struct graph *child) {
	free(object_remove((address)(uintptr_t)child, GRAPH, GRAPH));
	struct graph_memory **last = &graph->memory;
	while (*last != NULL) {
		last = &(*last)->next;
	}
	*last = child->memory;
	child->memory = NULL;
}

static int add_child(address *out, struct graph *graph, const struct child_node *node) {
	NEED(out != NULL && node->graph != graph && (node->moved == 0 || node->moved == 1));
	NEED(object_find((address)(uintptr_t)node->graph, GRAPH, GRAPH) != NULL);
	if (!node->moved && node->graph->memory != NULL) {
		return CU_NOT_SUPPORTED;
	}
	graph->kernels_ns += node->graph->kernels_ns;
	struct graph *child = node->moved ? node->graph : graph_copy(node->graph);
	if (node->moved) {
		move_child(graph, child);
	}
	child->next = graph->child;
	graph->child = child;
	*out = handle_new();
	return CU_OK;
}

CU_API cuGraphAddChildGraphNode(address *out, struct graph *graph, const address *needs, size_t count,
                                struct graph *child) {
	DRIVER_ENTER();
	(void)state;
	const struct child_node node = {child, 0};
	NEED((needs != NULL || count == 0) && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	return add_child(out, graph, &node);
}

/* CUgraphNodeParams: the kind, 12 bytes of nothing, and what the kind needs. */
struct node {
	int kind;
	int reserved[3];
	union {
		struct kernel_node kernel;
		struct child_node child;
		struct alloc_node alloc;
		address start;
		long long room[29];
	} of;
	long long reserved_end;
};

static int add_node(struct stub_state *state, address *out, struct graph *graph, struct node *node) {
	NEED(node != NULL && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	switch (node->kind) {
	case NODE_KERNEL:
		return add_kernel(state, out, graph, &node->of.kernel);
	case NODE_GRAPH:
		return add_child(out, graph, &node->of.child);
	case NODE_ALLOC:
		return add_alloc(out, graph, &node->of.alloc);
	case NODE_FREE:
		return add_free(out, graph, node->of.start);
	default:
		return CU_NOT_SUPPORTED;
	}
}

CU_API cuGraphAddNode(address *out, struct graph *graph, const address *needs, size_t count, struct node *node) {
	DRIVER_ENTER();
	NEED(needs != NULL || count == 0);
	return add_node(state, out, graph, node);
}

CU_API cuGraphAddNode_v2(address *out, struct graph *graph, const address *needs, const void *data, size_t count,
                         struct node *node) {
	DRIVER_ENTER();
	(void)data;
	NEED(needs != NULL || count == 0);
	return add_node(state, out, graph, node);
}

CU_API cuGraphAddNode_v3(address *out, struct graph *graph, const address *needs, const void *data, size_t count,
                         struct node *node) {
	DRIVER_ENTER();
	(void)data;
	NEED(needs != NULL || count == 0);
	return add_node(state, out, graph, node);
}

static int instantiate(struct graph **out, const struct graph *graph) {
	NEED(out != NULL && object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	*out = graph_copy(graph);
	graph_book(*out, EXEC);
	return CU_OK;
}

CU_API cuGraphInstantiate(struct graph **out, const struct graph *graph, address *failed, char *log, size_t size) {
	DRIVER_ENTER();
	(void)state;
	(void)failed;
	(void)log;
	(void)size;
	return instantiate(out, graph);
}

CU_API cuGraphInstantiate_v2(struct graph **out, const struct graph *graph, address *failed, char *log, size_t size) {
	DRIVER_ENTER();
	(void)state;
	(void)failed;
	(void)log;
	(void)size;
	return instantiate(out, graph);
}

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate_parameters {
	unsigned long long flags;
	void *upload;
	address failed;
	int result;
};

static int instantiate_flagged(struct graph **out, const struct graph *graph, unsigned long long flags) {
	int rc = instantiate(out, graph);
	if (rc == CU_OK) {
		(*out)->frees_itself = (flags & AUTO_FREE_ON_LAUNCH) != 0;
	}
	return rc == CU_OK && (flags & UPLOAD) != 0 ? graph_upload(*out) : rc;
}

static int instantiate_with(struct graph **out, const struct graph *graph, struct instantiate_parameters *parameters) {
	NEED(parameters != NULL);
	parameters->result = 0;
	return instantiate_flagged(out, graph, parameters->flags);
}

CU_API cuGraphInstantiateWithParams(struct graph **out, const struct graph *graph, struct instantiate_parameters *with) {
	DRIVER_ENTER();
	(void)state;
	return instantiate_with(out, graph, with);
}

CU_API cuGraphInstantiateWithParams_ptsz(struct graph **out, const struct graph *graph,
                                         struct instantiate_parameters *with) {
	DRIVER_ENTER();
	(void)state;
	return instantiate_with(out, graph, with);
}

CU_API cuGraphInstantiateWithFlags(struct graph **out, const struct graph *graph, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	return instantiate_flagged(out, graph, flags);
}
