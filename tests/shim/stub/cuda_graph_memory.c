/* CUDA: what launches of graphs take. A graph's memory is taken at its launch, and kept for the next one. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "graph.h"

/* CUgraphMem_attribute by number */
enum { USED = 0, USED_HIGH = 1, RESERVED = 2, RESERVED_HIGH = 3 };

/* What all graphs of this process took of a card. */
static struct {
	uint64_t used, used_high, reserved, reserved_high;
} pool[STUB_CARDS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void forget_all(void) {
	memset(pool, 0, sizeof pool);
	pthread_mutex_init(&guard, NULL);
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget_all);
}

static void raise_to(uint64_t *high, uint64_t now) {
	*high = now > *high ? now : *high;
}

/* Takes what the graph's memory needs above what earlier launches left. */
static int take_memory(const struct graph_memory *memory) {
	uint64_t more = pool[memory->card].used + memory->bytes;
	more = more > pool[memory->card].reserved ? more - pool[memory->card].reserved : 0;
	if (more > 0 && memory_take(memory->card, more) != CU_OK) {
		return CU_OUT_OF_MEMORY;
	}
	pool[memory->card].reserved += more;
	pool[memory->card].used += memory->bytes;
	raise_to(&pool[memory->card].used_high, pool[memory->card].used);
	raise_to(&pool[memory->card].reserved_high, pool[memory->card].reserved);
	return CU_OK;
}

static int take_all(const struct graph *exec) {
	int rc = CU_OK;
	const struct graph_memory *failed = NULL;
	for (const struct graph_memory *memory = exec->memory; memory != NULL && rc == CU_OK; memory = memory->next) {
		rc = take_memory(memory);
		failed = rc == CU_OK ? NULL : memory;
	}
	for (const struct graph_memory *memory = exec->memory; memory != failed; memory = memory->next) {
		if (rc != CU_OK || memory->freed) {
			pool[memory->card].used -= memory->bytes;
		}
	}
	return rc;
}

/* A graph whose memory nobody freed since its last launch can't be launched again. */
static int is_held(const struct graph *exec) {
	const struct graph_memory *memory = exec->memory;
	while (memory != NULL && object_find(memory->start, NODE_MEMORY, NODE_MEMORY) == NULL) {
		memory = memory->next;
	}
	return memory != NULL;
}

static void hand_out(const struct graph *exec) {
	for (const struct graph_memory *memory = exec->memory; memory != NULL; memory = memory->next) {
		if (!memory->freed) {
			object_add(memory->start, NODE_MEMORY, memory->card, memory->bytes, NULL);
		}
	}
}

int graph_memory_free(address start) {
	struct object *object = object_remove(start, NODE_MEMORY, NODE_MEMORY);
	NEED(object != NULL);
	pthread_mutex_lock(&guard);
	pool[object->card].used -= object->bytes;
	pthread_mutex_unlock(&guard);
	free(object);
	return CU_OK;
}

int graph_upload(const struct graph *exec) {
	if (object_find((address)(uintptr_t)exec, EXEC, EXEC) == NULL) {
		return CU_INVALID_HANDLE;
	}
	pthread_mutex_lock(&guard);
	int rc = take_all(exec);
	for (const struct graph_memory *memory = exec->memory; memory != NULL && rc == CU_OK; memory = memory->next) {
		pool[memory->card].used -= memory->freed ? 0 : memory->bytes;
	}
	pthread_mutex_unlock(&guard);
	return rc;
}

CU_API cuGraphUpload(const struct graph *exec, void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)handle;
	return graph_upload(exec);
}

CU_API cuGraphUpload_ptsz(const struct graph *exec, void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)handle;
	return graph_upload(exec);
}

static void free_held(const struct graph *exec) {
	for (const struct graph_memory *memory = exec->memory; memory != NULL; memory = memory->next) {
		graph_memory_free(memory->start);
	}
}

static int launch(struct stub_state *state, const struct graph *exec, struct stub_stream *stream) {
	if (object_find((address)(uintptr_t)exec, EXEC, EXEC) == NULL) {
		return CU_INVALID_HANDLE;
	}
	if (exec->frees_itself) {
		free_held(exec);
	}
	NEED(!is_held(exec));
	pthread_mutex_lock(&guard);
	int rc = take_all(exec);
	pthread_mutex_unlock(&guard);
	if (rc == CU_OK) {
		hand_out(exec);
	}
	if (rc == CU_OK) {
		stream_run(state, stream, exec->kernels_ns);
	}
	return rc;
}

CU_API cuGraphLaunch(const struct graph *exec, void *handle) {
	CONTEXT_ENTER();
	(void)context;
	return launch(state, exec, stream_of(handle, 0));
}

CU_API cuGraphLaunch_ptsz(const struct graph *exec, void *handle) {
	CONTEXT_ENTER();
	(void)context;
	return launch(state, exec, stream_of(handle, 1));
}

CU_API cuDeviceGraphMemTrim(int device) {
	DRIVER_ENTER();
	int card = card_of(device);
	NEED_CARD(card);
	pthread_mutex_lock(&guard);
	uint64_t spare = pool[card].reserved - pool[card].used;
	pool[card].reserved -= spare;
	memory_give(card, spare);
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

CU_API cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *out) {
	DRIVER_ENTER();
	int card = card_of(device);
	NEED_CARD(card);
	NEED(out != NULL && attribute >= USED && attribute <= RESERVED_HIGH);
	const uint64_t values[] = {pool[card].used, pool[card].used_high, pool[card].reserved, pool[card].reserved_high};
	*out = values[attribute];
	return CU_OK;
}
