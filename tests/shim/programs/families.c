#include "families.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 4096u

static _Thread_local int device;
static _Thread_local address pool;

static int take_alloc(address *held, uint64_t bytes) {
	return CALL("cuMemAlloc_v2", (address *, size_t), held, bytes);
}

static int give_alloc(address held, uint64_t bytes) {
	(void)bytes;
	return CALL("cuMemFree_v2", (address), held);
}

static int take_alloc_v1(address *held, uint64_t bytes) {
	unsigned int start = (unsigned int)*held;
	int rc = CALL("cuMemAlloc", (unsigned int *, unsigned int), &start, (unsigned int)bytes);
	*held = rc == CU_OK ? start : *held;
	return rc;
}

static int give_alloc_v1(address held, uint64_t bytes) {
	(void)bytes;
	return CALL("cuMemFree", (unsigned int), (unsigned int)held);
}

static int take_pitch(address *held, uint64_t bytes) {
	size_t pitch = 0;
	return CALL("cuMemAllocPitch_v2", (address *, size_t *, size_t, size_t, unsigned int), held, &pitch, WIDTH - 3,
	            bytes / WIDTH, 4);
}

static int take_pitch_v1(address *held, uint64_t bytes) {
	unsigned int pitch = 0, start = (unsigned int)*held;
	int rc = CALL("cuMemAllocPitch", (unsigned int *, unsigned int *, unsigned int, unsigned int, unsigned int), &start,
	              &pitch, WIDTH - 3, (unsigned int)(bytes / WIDTH), 4);
	*held = rc == CU_OK ? start : *held;
	return rc;
}

static int take_managed(address *held, uint64_t bytes) {
	return CALL("cuMemAllocManaged", (address *, size_t, unsigned int), held, bytes, 1);
}

static int take_array(address *held, uint64_t bytes) {
	struct array_shape shape = {WIDTH / 4, bytes / WIDTH, 0x20, 1};
	return CALL("cuArrayCreate_v2", (address *, const struct array_shape *), held, &shape);
}

struct flat_v1 {
	unsigned int width, height;
	int format;
	unsigned int channels;
};

struct deep_v1 {
	unsigned int width, height, depth;
	int format;
	unsigned int channels, flags;
};

static int take_array_v1(address *held, uint64_t bytes) {
	struct flat_v1 shape = {WIDTH / 4, (unsigned int)(bytes / WIDTH), 0x20, 1};
	return CALL("cuArrayCreate", (address *, const struct flat_v1 *), held, &shape);
}

static int take_array3d(address *held, uint64_t bytes) {
	struct array3d_shape shape = {WIDTH / 16, 16, bytes / WIDTH / 16, 0x20, 4, 0};
	return CALL("cuArray3DCreate_v2", (address *, const struct array3d_shape *), held, &shape);
}

static int take_array3d_v1(address *held, uint64_t bytes) {
	struct deep_v1 shape = {WIDTH / 16, 16, (unsigned int)(bytes / WIDTH / 16), 0x20, 4, 0};
	return CALL("cuArray3DCreate", (address *, const struct deep_v1 *), held, &shape);
}

static int give_array(address held, uint64_t bytes) {
	(void)bytes;
	return CALL("cuArrayDestroy", (address), held);
}

static int take_mipmap(address *held, uint64_t bytes) {
	struct array3d_shape shape = {WIDTH / 4, bytes / WIDTH, 0, 0x20, 1, 0};
	return CALL("cuMipmappedArrayCreate", (address *, const struct array3d_shape *, unsigned int), held, &shape, 1);
}

static int give_mipmap(address held, uint64_t bytes) {
	(void)bytes;
	return CALL("cuMipmappedArrayDestroy", (address), held);
}

/* Stream-ordered memory comes back to the card at a synchronisation. */
static int settle(int rc, const char *synchronize) {
	return rc != CU_OK ? rc : CALL(synchronize, (void *), NULL);
}

static int take_async(address *held, uint64_t bytes) {
	return CALL("cuMemAllocAsync", (address *, size_t, void *), held, bytes, NULL);
}

static int give_async(address held, uint64_t bytes) {
	(void)bytes;
	return settle(CALL("cuMemFreeAsync", (address, void *), held, NULL), "cuStreamSynchronize");
}

static int take_async_ptsz(address *held, uint64_t bytes) {
	return CALL("cuMemAllocAsync_ptsz", (address *, size_t, void *), held, bytes, NULL);
}

static int give_async_ptsz(address held, uint64_t bytes) {
	(void)bytes;
	return settle(CALL("cuMemFreeAsync_ptsz", (address, void *), held, NULL), "cuStreamSynchronize_ptsz");
}

static int make_pool(void) {
	struct pool_prop prop = {.type = 1, .location = {AT_DEVICE, device}};
	return CALL("cuMemPoolCreate", (address *, const struct pool_prop *), &pool, &prop);
}

void family_device(int of) {
	device = of;
}

static int take_pool(address *held, uint64_t bytes) {
	if (pool == 0 && make_pool() != CU_OK) {
		return CU_INVALID_VALUE;
	}
	return CALL("cuMemAllocFromPoolAsync", (address *, size_t, address, void *), held, bytes, pool, NULL);
}

static int take_pool_ptsz(address *held, uint64_t bytes) {
	if (pool == 0 && make_pool() != CU_OK) {
		return CU_INVALID_VALUE;
	}
	return CALL("cuMemAllocFromPoolAsync_ptsz", (address *, size_t, address, void *), held, bytes, pool, NULL);
}

static int take_physical(address *held, uint64_t bytes) {
	struct allocation_prop prop = {.type = 1, .location = {AT_DEVICE, device}};
	return CALL("cuMemCreate", (address *, size_t, const struct allocation_prop *, unsigned long long), held, bytes, &prop,
	            0);
}

static int give_physical(address held, uint64_t bytes) {
	(void)bytes;
	return CALL("cuMemRelease", (address), held);
}

/* Mapped and then released, as most programs do: the mapping alone keeps the memory. */
static int take_mapped(address *held, uint64_t bytes) {
	address handle = 0, start = 0;
	int rc = take_physical(&handle, bytes);
	if (rc != CU_OK) {
		return rc;
	}
	CALL("cuMemAddressReserve", (address *, size_t, size_t, address, unsigned long long), &start, bytes, 0, 0, 0);
	rc = CALL("cuMemMap", (address, size_t, size_t, address, unsigned long long), start, bytes, 0, handle, 0);
	give_physical(handle, bytes);
	*held = rc == CU_OK ? start : *held;
	return rc;
}

static int give_mapped(address held, uint64_t bytes) {
	int rc = CALL("cuMemUnmap", (address, size_t), held, bytes);
	return rc != CU_OK ? rc : CALL("cuMemAddressFree", (address, size_t), held, bytes);
}

struct alloc_node {
	struct pool_prop pool;
	const void *access;
	size_t access_count;
	size_t bytes;
	address start;
};

struct any_node {
	int kind;
	int reserved[3];
	union {
		struct alloc_node alloc;
		long long room[29];
	} of;
	long long reserved_end;
};

enum { NODE_ALLOC = 10 };

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate {
	unsigned long long flags;
	void *upload;
	void *failed;
	int result;
};

static int instantiate(const char *symbol, void **exec, void *graph) {
	struct instantiate parameters = {0};
	if (strcmp(symbol, "cuGraphInstantiateWithFlags") == 0) {
		return CALL(symbol, (void **, void *, unsigned long long), exec, graph, 0);
	}
	if (strcmp(symbol, "cuGraphInstantiateWithParams") == 0) {
		return CALL(symbol, (void **, void *, struct instantiate *), exec, graph, &parameters);
	}
	return CALL(symbol, (void **, void *, void **, char *, size_t), exec, graph, NULL, NULL, 0);
}

/* A graph with one allocation, which is launched; what it allocated is freed by hand. */
static int run_graph(const char *symbol, void *graph) {
	void *exec = NULL;
	int rc = instantiate(symbol, &exec, graph);
	if (rc == CU_OK) {
		rc = CALL("cuGraphLaunch", (void *, void *), exec, NULL);
		int end = CALL("cuGraphExecDestroy", (void *), exec);
		rc = rc == CU_OK ? end : rc;
	}
	CALL("cuGraphDestroy", (void *), graph);
	return rc;
}

static int take_graph_by(const char *symbol, const char *instantiate_by, address *held, uint64_t bytes) {
	struct any_node node = {.kind = NODE_ALLOC};
	void *graph = NULL;
	address made = 0;
	node.of.alloc = (struct alloc_node){.pool = {.type = 1, .location = {AT_DEVICE, device}}, .bytes = bytes};
	int rc = CALL("cuGraphCreate", (void **, unsigned int), &graph, 0);
	if (rc != CU_OK) {
		return rc;
	}
	if (strcmp(symbol, "cuGraphAddMemAllocNode") == 0) {
		rc = CALL(symbol, (address *, void *, const address *, size_t, struct alloc_node *), &made, graph, NULL, 0,
		          &node.of.alloc);
	} else if (strcmp(symbol, "cuGraphAddNode") == 0) {
		rc = CALL(symbol, (address *, void *, const address *, size_t, struct any_node *), &made, graph, NULL, 0, &node);
	} else {
		rc = CALL(symbol, (address *, void *, const address *, const void *, size_t, struct any_node *), &made, graph, NULL,
		          NULL, 0, &node);
	}
	if (rc != CU_OK) {
		CALL("cuGraphDestroy", (void *), graph);
		return rc;
	}
	rc = run_graph(instantiate_by, graph);
	*held = rc == CU_OK ? node.of.alloc.start : *held;
	return rc;
}

static int take_graph(address *held, uint64_t bytes) {
	return take_graph_by("cuGraphAddMemAllocNode", "cuGraphInstantiateWithFlags", held, bytes);
}

static int take_node(address *held, uint64_t bytes) {
	return take_graph_by("cuGraphAddNode", "cuGraphInstantiate_v2", held, bytes);
}

static int take_node_v2(address *held, uint64_t bytes) {
	return take_graph_by("cuGraphAddNode_v2", "cuGraphInstantiateWithParams", held, bytes);
}

/* A stream-ordered allocation that is captured, and happens when the graph is launched. */
static int take_captured(address *held, uint64_t bytes) {
	void *stream = NULL, *graph = NULL;
	address start = 0;
	CALL("cuStreamCreate", (void **, unsigned int), &stream, 1);
	CALL("cuStreamBeginCapture_v2", (void *, int), stream, 0);
	int rc = CALL("cuMemAllocAsync", (address *, size_t, void *), &start, bytes, stream);
	CALL("cuStreamEndCapture", (void *, void **), stream, &graph);
	CALL("cuStreamDestroy_v2", (void *), stream);
	if (rc != CU_OK) {
		CALL("cuGraphDestroy", (void *), graph);
		return rc;
	}
	rc = run_graph("cuGraphInstantiate", graph);
	*held = rc == CU_OK ? start : *held;
	return rc;
}

static int give_graph(address held, uint64_t bytes) {
	(void)bytes;
	int rc = CALL("cuMemFreeAsync", (address, void *), held, NULL);
	return rc != CU_OK ? rc : CALL("cuDeviceGraphMemTrim", (int), device);
}

const struct family families[] = {
    {"alloc", take_alloc, give_alloc},
    {"alloc_v1", take_alloc_v1, give_alloc_v1},
    {"pitch", take_pitch, give_alloc},
    {"pitch_v1", take_pitch_v1, give_alloc_v1},
    {"managed", take_managed, give_alloc},
    {"array", take_array, give_array},
    {"array_v1", take_array_v1, give_array},
    {"array3d", take_array3d, give_array},
    {"array3d_v1", take_array3d_v1, give_array},
    {"mipmap", take_mipmap, give_mipmap},
    {"async", take_async, give_async},
    {"async_ptsz", take_async_ptsz, give_async_ptsz},
    {"async_free", take_async, give_alloc},
    {"pool", take_pool, give_async},
    {"pool_ptsz", take_pool_ptsz, give_async_ptsz},
    {"physical", take_physical, give_physical},
    {"mapped", take_mapped, give_mapped},
    {"graph", take_graph, give_graph},
    {"node", take_node, give_graph},
    {"node_v2", take_node_v2, give_graph},
    {"captured", take_captured, give_graph},
    {NULL, NULL, NULL},
};

const struct family *family_of(const char *name) {
	for (const struct family *family = families; family->name != NULL; family++) {
		if (strcmp(family->name, name) == 0) {
			return family;
		}
	}
	return NULL;
}
