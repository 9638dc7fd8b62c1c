/* A pretend AscendCL: one process, devices of 1 GiB, handles that count up. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define GIB (1ull << 30)
#define OUT_OF_MEMORY 207001
#define INVALID 107000
#define MOST 256

struct held {
	uintptr_t at;
	size_t bytes;
	int device;
	int holds; /* of physical memory: its handle and its mappings */
};

static struct held held[MOST];
static struct {
	uintptr_t at;
	int of;
} mapped[MOST];
static size_t used[4];
static int32_t current = -1;
static uintptr_t next = 0x100000;

struct location {
	uint32_t id;
	int type;
};

struct prop {
	int handle_type, allocation_type, attribute;
	struct location location;
	uint64_t reserve;
};

int aclrtSetDevice(int32_t device) {
	current = device;
	return 0;
}

int aclrtGetDevice(int32_t *device) {
	*device = current;
	return current < 0 ? INVALID : 0;
}

static int take(void **out, size_t bytes, int device) {
	for (int i = 0; i < MOST; i++) {
		if (held[i].at == 0) {
			if (device >= 0 && used[device] + bytes > GIB) {
				return OUT_OF_MEMORY;
			}
			held[i] = (struct held){next, bytes, device, 1};
			next += 0x1000;
			*out = (void *)held[i].at;
			used[device < 0 ? 3 : device] += bytes;
			return 0;
		}
	}
	abort();
}

static int index_of(void *at) {
	for (int i = 0; i < MOST; i++) {
		if (held[i].at == (uintptr_t)at && at != NULL) {
			return i;
		}
	}
	return -1;
}

static void let_go(int i) {
	if (--held[i].holds == 0) {
		used[held[i].device < 0 ? 3 : held[i].device] -= held[i].bytes;
		held[i].at = 0;
	}
}

static size_t padded(size_t bytes) {
	return (bytes + 31) / 32 * 32 + 32;
}

int aclrtMalloc(void **out, size_t bytes, int policy) {
	(void)policy;
	return out == NULL || bytes == 0 ? INVALID : take(out, padded(bytes), current);
}

int aclrtMallocAlign32(void **out, size_t bytes, int policy) {
	return aclrtMalloc(out, bytes, policy);
}

int aclrtMallocCached(void **out, size_t bytes, int policy) {
	return aclrtMalloc(out, bytes, policy);
}

int aclrtMallocWithCfg(void **out, size_t bytes, int policy, void *configuration) {
	(void)configuration;
	return aclrtMalloc(out, bytes, policy);
}

int aclrtFree(void *at) {
	int i = index_of(at);
	if (i < 0) {
		return INVALID;
	}
	let_go(i);
	return 0;
}

int aclrtMallocPhysical(void **handle, size_t bytes, const struct prop *prop, uint64_t flags) {
	(void)flags;
	return take(handle, bytes, prop->location.type == 1 ? (int)prop->location.id : -1);
}

int aclrtFreePhysical(void *handle) {
	return aclrtFree(handle);
}

int aclrtMapMem(void *at, size_t bytes, size_t offset, void *handle, uint64_t flags) {
	int of = index_of(handle);
	(void)bytes;
	(void)offset;
	(void)flags;
	for (int i = 0; i < MOST && of >= 0; i++) {
		if (mapped[i].at == 0) {
			mapped[i].at = (uintptr_t)at;
			mapped[i].of = of;
			held[of].holds++;
			return 0;
		}
	}
	return INVALID;
}

int aclrtUnmapMem(void *at) {
	for (int i = 0; i < MOST; i++) {
		if (mapped[i].at == (uintptr_t)at && at != NULL) {
			mapped[i].at = 0;
			let_go(mapped[i].of);
			return 0;
		}
	}
	return INVALID;
}

int aclrtGetMemInfo(int attribute, size_t *left, size_t *total) {
	(void)attribute;
	*total = GIB;
	*left = GIB - used[current];
	return 0;
}

int aclrtResetDevice(int32_t device) {
	for (int i = 0; i < MOST; i++) {
		if (held[i].at != 0 && held[i].device == device) {
			held[i] = (struct held){0};
		}
	}
	used[device] = 0;
	return 0;
}
