/* CUDA: stream-ordered memory. A pool grows by whole chunks and keeps what is freed up to its threshold. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "graph.h"
#include "pool.h"

#define CHUNK (2ull << 20)

/* CUmemPool_attribute by number. */
enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };
enum { TYPE = 9, EXPORTS = 10, LOCATION_ID = 11, LOCATION_TYPE = 12 };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static struct pool *host_default;
static struct pool *defaults[STUB_CARDS];
static struct pool *currents[STUB_CARDS];

static void forget_all(void) {
	pthread_mutex_init(&guard, NULL);
	pools = NULL;
	host_default = NULL;
	memset(defaults, 0, sizeof defaults);
	memset(currents, 0, sizeof currents);
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget_all);
}

static struct pool *pool_new(int card, uint64_t most_bytes) {
	struct pool *pool = calloc(1, sizeof *pool);
	if (pool == NULL) {
		abort();
	}
	pool->handle = handle_new();
	pool->card = card;
	pool->most_bytes = most_bytes;
	pool->type = PINNED;
	pool->location = (struct location){card >= 0 ? AT_DEVICE : AT_HOST, card >= 0 ? device_of(card) : 0};
	pool->next = pools;
	pools = pool;
	return pool;
}

static struct pool *default_of(int card) {
	if (defaults[card] == NULL) {
		defaults[card] = pool_new(card, 0);
		currents[card] = defaults[card];
	}
	return defaults[card];
}

struct pool *pool_of(address handle) {
	struct pool *pool = pools;
	while (pool != NULL && pool->handle != handle) {
		pool = pool->next;
	}
	return pool;
}

address pool_of_others(void) {
	pthread_mutex_lock(&guard);
	address handle = pool_new(-1, 0)->handle;
	pthread_mutex_unlock(&guard);
	return handle;
}

static uint64_t chunks(uint64_t bytes) {
	return (bytes + CHUNK - 1) / CHUNK * CHUNK;
}

static int grow(struct pool *pool, uint64_t bytes) {
	uint64_t need = pool->used + bytes;
	if (need <= pool->reserved) {
		return CU_OK;
	}
	uint64_t more = chunks(need - pool->reserved);
	if (pool->most_bytes != 0 && pool->reserved + more > chunks(pool->most_bytes)) {
		return CU_OUT_OF_MEMORY;
	}
	if (pool->card >= 0 && memory_take(pool->card, more) != CU_OK) {
		return CU_OUT_OF_MEMORY;
	}
	pool->reserved += more;
	pool->reserved_high = pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
	return CU_OK;
}

static void shrink(struct pool *pool, uint64_t keep) {
	uint64_t least = chunks(pool->used > keep ? pool->used : keep);
	if (keep > (1ull << 62) || pool->reserved <= least) {
		return;
	}
	if (pool->card >= 0) {
		memory_give(pool->card, pool->reserved - least);
	}
	pool->reserved = least;
}

void pools_settle(int card) {
	pthread_mutex_lock(&guard);
	for (struct pool *pool = pools; pool != NULL; pool = pool->next) {
		if (pool->card == card) {
			shrink(pool, pool->threshold);
		}
	}
	pthread_mutex_unlock(&guard);
}

/* With its primary context a card's pools lose what nobody holds in them. */
void pools_end(int card) {
	pthread_mutex_lock(&guard);
	for (struct pool *pool = pools; pool != NULL; pool = pool->next) {
		if (pool->card == card) {
			shrink(pool, 0);
		}
	}
	pthread_mutex_unlock(&guard);
}

static int allocate(struct pool *pool, address *out, size_t bytes) {
	int rc = grow(pool, bytes);
	if (rc == CU_OK) {
		pool->used += bytes;
		pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
		*out = address_new(bytes);
		object_add(*out, POOLED, pool->card, bytes, NULL)->detail = pool;
	}
	return rc;
}

static int allocate_current(address *out, size_t bytes, void *stream, int per_thread) {
	NEED(out != NULL && bytes > 0);
	const struct stub_stream *queue = stream_of(stream, per_thread);
	int card = queue->card;
	if (queue->capturing) {
		*out = graph_add_memory(queue->graph, card, bytes);
		return CU_OK;
	}
	pthread_mutex_lock(&guard);
	default_of(card);
	int rc = allocate(currents[card], out, bytes);
	pthread_mutex_unlock(&guard);
	return rc;
}

CU_API cuMemAllocAsync(address *out, size_t bytes, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return allocate_current(out, bytes, stream, 0);
}

CU_API cuMemAllocAsync_ptsz(address *out, size_t bytes, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return allocate_current(out, bytes, stream, 1);
}

int pool_allocate(address *out, size_t bytes, address handle) {
	NEED(out != NULL && bytes > 0);
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	int rc = pool == NULL ? CU_INVALID_VALUE : allocate(pool, out, bytes);
	pthread_mutex_unlock(&guard);
	return rc;
}

CU_API cuMemAllocFromPoolAsync(address *out, size_t bytes, address pool, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)stream;
	return pool_allocate(out, bytes, pool);
}

CU_API cuMemAllocFromPoolAsync_ptsz(address *out, size_t bytes, address pool, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)stream;
	return pool_allocate(out, bytes, pool);
}

int pooled_free(address start) {
	struct object *object = object_remove(start, POOLED, POOLED);
	if (object == NULL) {
		return graph_memory_free(start);
	}
	pthread_mutex_lock(&guard);
	struct pool *pool = object->detail;
	pool->used -= object->bytes;
	pthread_mutex_unlock(&guard);
	address_free(object->key, object->bytes);
	free(object);
	return CU_OK;
}

static int free_async(address start, void *stream, int per_thread) {
	const struct stub_stream *queue = stream_of(stream, per_thread);
	if (queue->capturing) {
		return graph_free_memory(queue->graph, start);
	}
	return pooled_free(start) == CU_OK ? CU_OK : linear_free(start);
}

CU_API cuMemFreeAsync(address start, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return free_async(start, stream, 0);
}

CU_API cuMemFreeAsync_ptsz(address start, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return free_async(start, stream, 1);
}

CU_API cuDeviceGetDefaultMemPool(address *out, int device) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	NEED(out != NULL);
	pthread_mutex_lock(&guard);
	*out = default_of(card_of(device))->handle;
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

CU_API cuDeviceGetMemPool(address *out, int device) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	NEED(out != NULL);
	pthread_mutex_lock(&guard);
	default_of(card_of(device));
	*out = currents[card_of(device)]->handle;
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

CU_API cuDeviceSetMemPool(int device, address handle) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	int fits = pool != NULL && pool->card == card_of(device);
	if (fits) {
		default_of(card_of(device));
		currents[card_of(device)] = pool;
	}
	pthread_mutex_unlock(&guard);
	return fits ? CU_OK : CU_INVALID_VALUE;
}

/* The pool that is there without being made: a device's, or the host's. */
CU_API cuMemGetDefaultMemPool(address *out, const struct location *location, int type) {
	DRIVER_ENTER();
	NEED(out != NULL && location != NULL && type == PINNED);
	const int card = card_at(location);
	if (location->kind == AT_DEVICE) {
		NEED_CARD(card);
	}
	pthread_mutex_lock(&guard);
	if (card < 0 && host_default == NULL) {
		host_default = pool_new(-1, 0);
	}
	*out = (card < 0 ? host_default : default_of(card))->handle;
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

CU_API cuMemPoolCreate(address *out, const struct pool_prop *prop) {
	DRIVER_ENTER();
	NEED(out != NULL && prop != NULL);
	int card = card_at(&prop->location);
	if (prop->location.kind == AT_DEVICE || prop->location.kind == IN_DEVICE) {
		NEED_CARD(card);
	}
	if (card < 0 && prop->type == MANAGED_TYPE && context_current() != NULL) {
		card = context_current()->card;
	}
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_new(card, prop->most_bytes);
	pool->type = prop->type;
	pool->location = prop->location;
	*out = pool->handle;
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

/* Memory that is still held keeps its room; the pool itself is not found any more. */
CU_API cuMemPoolDestroy(address handle) {
	DRIVER_ENTER();
	(void)state;
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	for (int c = 0; pool != NULL && c < STUB_CARDS; c++) {
		if (currents[c] == pool) {
			currents[c] = defaults[c];
		}
	}
	int found = pool != NULL && pool != defaults[pool->card < 0 ? 0 : pool->card];
	if (found) {
		shrink(pool, 0);
		pool->handle = 0;
		pool->threshold = 0;
	}
	pthread_mutex_unlock(&guard);
	return found ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuMemPoolTrimTo(address handle, size_t keep) {
	DRIVER_ENTER();
	(void)state;
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	if (pool != NULL) {
		shrink(pool, keep);
	}
	pthread_mutex_unlock(&guard);
	return pool == NULL ? CU_INVALID_VALUE : CU_OK;
}

static uint64_t *attribute_of(struct pool *pool, int attribute) {
	switch (attribute) {
	case THRESHOLD:
		return &pool->threshold;
	case RESERVED:
		return &pool->reserved;
	case RESERVED_HIGH:
		return &pool->reserved_high;
	case USED:
		return &pool->used;
	case USED_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

/* What a pool was made for, and where. */
static int number_of(const struct pool *pool, int attribute) {
	switch (attribute) {
	case TYPE:
		return pool->type;
	case LOCATION_ID:
		return pool->location.id;
	case LOCATION_TYPE:
		return pool->location.kind;
	default:
		return attribute != EXPORTS;
	}
}

CU_API cuMemPoolGetAttribute(address handle, int attribute, void *out) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL);
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	uint64_t *value = pool == NULL ? NULL : attribute_of(pool, attribute);
	if (value != NULL) {
		*(uint64_t *)out = *value;
	} else if (pool != NULL && attribute >= 1 && attribute <= LOCATION_TYPE) {
		*(int *)out = number_of(pool, attribute);
	}
	pthread_mutex_unlock(&guard);
	return pool == NULL || (value == NULL && (attribute < 1 || attribute > LOCATION_TYPE)) ? CU_INVALID_VALUE : CU_OK;
}

CU_API cuMemPoolSetAttribute(address handle, int attribute, const void *value) {
	DRIVER_ENTER();
	(void)state;
	NEED(value != NULL);
	pthread_mutex_lock(&guard);
	struct pool *pool = pool_of(handle);
	if (pool != NULL && attribute == THRESHOLD) {
		pool->threshold = *(const uint64_t *)value;
	} else if (pool != NULL && attribute == RESERVED_HIGH) {
		pool->reserved_high = pool->reserved;
	} else if (pool != NULL && attribute == USED_HIGH) {
		pool->used_high = pool->used;
	}
	pthread_mutex_unlock(&guard);
	return pool == NULL ? CU_INVALID_VALUE : CU_OK;
}
