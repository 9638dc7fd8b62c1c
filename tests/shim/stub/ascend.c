/* AscendCL over the same cards: devices, memory by address, and physical memory with its mappings. */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

enum {
	ACL_OK = 0,
	ACL_INVALID = 107000,
	ACL_NO_DEVICE = 107001,
	ACL_NOT_SET = 107002,
	ACL_NO_MEMORY = 207001,
	ACL_UNINITIALIZED = 100001,
};

#define ACL_API STUB_EXPORT int
#define GRANULARITY (2ull << 20)

/* Memory goes with its device, as CUDA's does with its context. */
static struct context devices[STUB_CARDS];
static _Atomic int started;
static _Thread_local int current = -1;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void forget_all(void) {
	started = 0;
	current = -1;
	pthread_mutex_init(&guard, NULL);
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget_all);
}

int memory_take(int card, uint64_t bytes) {
	return stub_take(stub_open(), card, bytes) ? CU_OK : CU_OUT_OF_MEMORY;
}

void memory_give(int card, uint64_t bytes) {
	stub_give(stub_open(), card, bytes);
}

#define ACL_ENTER()                                                     \
	STUB_ENTER();                                                   \
	struct stub_state *state = started ? stub_open() : NULL;        \
	if (state == NULL) {                                            \
		return ACL_UNINITIALIZED;                               \
	}

#define ACL_NEED(condition, code)     \
	do {                          \
		if (!(condition)) {   \
			return code;  \
		}                     \
	} while (0)

ACL_API aclInit(const char *path) {
	STUB_ENTER();
	(void)path;
	ACL_NEED(stub_open() != NULL, ACL_NO_DEVICE);
	started = 1;
	return ACL_OK;
}

ACL_API aclFinalize(void) {
	STUB_ENTER();
	started = 0;
	return ACL_OK;
}

ACL_API aclrtGetDeviceCount(uint32_t *out) {
	ACL_ENTER();
	ACL_NEED(out != NULL, ACL_INVALID);
	*out = state->cards;
	return ACL_OK;
}

ACL_API aclrtSetDevice(int32_t device) {
	ACL_ENTER();
	ACL_NEED(device >= 0 && (uint32_t)device < state->cards, ACL_NO_DEVICE);
	current = device;
	devices[device].card = device;
	return ACL_OK;
}

ACL_API aclrtGetDevice(int32_t *out) {
	ACL_ENTER();
	(void)state;
	ACL_NEED(out != NULL, ACL_INVALID);
	ACL_NEED(current >= 0, ACL_NOT_SET);
	*out = current;
	return ACL_OK;
}

static int reset(const struct stub_state *state, int32_t device) {
	ACL_NEED(device >= 0 && (uint32_t)device < state->cards, ACL_NO_DEVICE);
	objects_end(&devices[device]);
	current = current == device ? -1 : current;
	return ACL_OK;
}

ACL_API aclrtResetDevice(int32_t device) {
	ACL_ENTER();
	return reset(state, device);
}

ACL_API aclrtResetDeviceForce(int32_t device) {
	ACL_ENTER();
	return reset(state, device);
}

/* As the runtime does: up to 32 bytes, and 32 more. */
static int allocate(void **out, size_t size) {
	ACL_NEED(out != NULL && size > 0 && size < 1ull << 48, ACL_INVALID);
	ACL_NEED(current >= 0, ACL_NOT_SET);
	uint64_t bytes = (size + 31) / 32 * 32 + 32;
	ACL_NEED(memory_take(current, bytes) == CU_OK, ACL_NO_MEMORY);
	address start = address_new(bytes);
	object_add(start, LINEAR, current, bytes, &devices[current]);
	*out = (void *)(uintptr_t)start;
	return ACL_OK;
}

ACL_API aclrtMalloc(void **out, size_t size, int policy) {
	ACL_ENTER();
	(void)state;
	(void)policy;
	return allocate(out, size);
}

ACL_API aclrtMallocAlign32(void **out, size_t size, int policy) {
	ACL_ENTER();
	(void)state;
	(void)policy;
	return allocate(out, size);
}

ACL_API aclrtMallocCached(void **out, size_t size, int policy) {
	ACL_ENTER();
	(void)state;
	(void)policy;
	return allocate(out, size);
}

ACL_API aclrtMallocWithCfg(void **out, size_t size, int policy, void *configuration) {
	ACL_ENTER();
	(void)state;
	(void)policy;
	(void)configuration;
	return allocate(out, size);
}

ACL_API aclrtMallocForTaskScheduler(void **out, size_t size, int policy, void *configuration) {
	ACL_ENTER();
	(void)state;
	(void)policy;
	(void)configuration;
	return allocate(out, size);
}

ACL_API aclrtFree(void *start) {
	ACL_ENTER();
	(void)state;
	struct object *object = object_remove((address)(uintptr_t)start, LINEAR, LINEAR);
	ACL_NEED(object != NULL, ACL_INVALID);
	memory_give(object->card, object->bytes);
	address_free(object->key, object->bytes);
	free(object);
	return ACL_OK;
}

/* Physical memory and how many hold it: its handle, and its mappings. */
struct physical {
	int handles, mappings;
};

/* aclrtPhysicalMemProp: location kind 1 is a device */
struct physical_prop {
	int handle_type, allocation_type, attribute;
	struct {
		uint32_t id;
		int kind;
	} location;
	uint64_t reserved;
};

ACL_API aclrtMallocPhysical(void **out, size_t size, const struct physical_prop *prop, uint64_t flags) {
	ACL_ENTER();
	ACL_NEED(out != NULL && prop != NULL && flags == 0 && size > 0 && size % GRANULARITY == 0, ACL_INVALID);
	int card = prop->location.kind == AT_DEVICE ? (int)prop->location.id : -1;
	ACL_NEED(card < (int)state->cards, ACL_NO_DEVICE);
	ACL_NEED(card < 0 || memory_take(card, size) == CU_OK, ACL_NO_MEMORY);
	struct physical *physical = calloc(1, sizeof *physical);
	if (physical == NULL) {
		abort();
	}
	physical->handles = 1;
	address handle = handle_new();
	object_add(handle, PHYSICAL, card, size, NULL)->detail = physical;
	*out = (void *)(uintptr_t)handle;
	return ACL_OK;
}

static void let_go(struct object *object) {
	struct physical *physical = object->detail;
	if (physical->handles > 0 || physical->mappings > 0) {
		return;
	}
	if (object->card >= 0) {
		memory_give(object->card, object->bytes);
	}
	object_remove(object->key, PHYSICAL, PHYSICAL);
	free(physical);
	free(object);
}

ACL_API aclrtFreePhysical(void *handle) {
	ACL_ENTER();
	(void)state;
	pthread_mutex_lock(&guard);
	struct object *object = object_find((address)(uintptr_t)handle, PHYSICAL, PHYSICAL);
	int found = object != NULL && ((struct physical *)object->detail)->handles > 0;
	if (found) {
		((struct physical *)object->detail)->handles--;
		let_go(object);
	}
	pthread_mutex_unlock(&guard);
	return found ? ACL_OK : ACL_INVALID;
}

ACL_API aclrtReserveMemAddress(void **out, size_t size, size_t alignment, void *wanted, uint64_t flags) {
	ACL_ENTER();
	(void)state;
	(void)alignment;
	(void)wanted;
	ACL_NEED(out != NULL && size > 0 && flags <= 1, ACL_INVALID);
	address start = address_new(size);
	object_add(start, RANGE, -1, size, NULL);
	*out = (void *)(uintptr_t)start;
	return ACL_OK;
}

ACL_API aclrtReleaseMemAddress(void *start) {
	ACL_ENTER();
	(void)state;
	struct object *object = object_remove((address)(uintptr_t)start, RANGE, RANGE);
	ACL_NEED(object != NULL, ACL_INVALID);
	free(object);
	return ACL_OK;
}

ACL_API aclrtMapMem(void *start, size_t size, size_t offset, void *handle, uint64_t flags) {
	ACL_ENTER();
	(void)state;
	ACL_NEED(size > 0 && offset == 0 && flags == 0, ACL_INVALID);
	pthread_mutex_lock(&guard);
	struct object *object = object_find((address)(uintptr_t)handle, PHYSICAL, PHYSICAL);
	if (object != NULL) {
		((struct physical *)object->detail)->mappings++;
		object_add((address)(uintptr_t)start, MAPPING, object->card, size, NULL)->detail = object;
	}
	pthread_mutex_unlock(&guard);
	return object == NULL ? ACL_INVALID : ACL_OK;
}

ACL_API aclrtUnmapMem(void *start) {
	ACL_ENTER();
	(void)state;
	pthread_mutex_lock(&guard);
	struct object *mapping = object_remove((address)(uintptr_t)start, MAPPING, MAPPING);
	if (mapping != NULL) {
		struct object *object = mapping->detail;
		((struct physical *)object->detail)->mappings--;
		let_go(object);
		free(mapping);
	}
	pthread_mutex_unlock(&guard);
	return mapping == NULL ? ACL_INVALID : ACL_OK;
}

ACL_API aclrtGetMemInfo(int attribute, size_t *unused, size_t *total) {
	ACL_ENTER();
	ACL_NEED(unused != NULL && total != NULL && attribute >= 0 && attribute < 8, ACL_INVALID);
	ACL_NEED(current >= 0, ACL_NOT_SET);
	const struct stub_card *card = &state->card[current];
	stub_lock(state);
	stub_sweep(state);
	*total = card->memory_bytes - card->reserved_bytes;
	*unused = *total - card->used_bytes;
	stub_unlock(state);
	return ACL_OK;
}
