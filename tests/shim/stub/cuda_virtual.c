/* CUDA: physical memory by handle and its mappings, memory of other processes, external memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

#define GRANULARITY (2ull << 20)

/* Physical memory lives while its handle or a mapping does. */
struct physical {
	int handles, mappings;
	int owned; /* 0: another process pays for it */
	struct allocation_prop prop;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void let_go(struct object *object) {
	struct physical *physical = object->detail;
	if (physical->handles > 0 || physical->mappings > 0) {
		return;
	}
	if (physical->owned && object->card >= 0) {
		memory_give(object->card, object->bytes);
	}
	object_remove(object->key, PHYSICAL, PHYSICAL);
	free(physical);
	free(object);
}

address physical_new(int card, uint64_t bytes, const struct allocation_prop *prop, int owned) {
	struct physical *physical = calloc(1, sizeof *physical);
	if (physical == NULL) {
		abort();
	}
	*physical = (struct physical){.handles = 1, .owned = owned, .prop = *prop};
	address handle = handle_new();
	object_add(handle, PHYSICAL, card, bytes, NULL)->detail = physical;
	return handle;
}

CU_API cuMemCreate(address *out, size_t bytes, const struct allocation_prop *prop, unsigned long long flags) {
	DRIVER_ENTER();
	NEED(out != NULL && prop != NULL && flags == 0 && bytes > 0 && bytes % GRANULARITY == 0);
	int card = card_at(&prop->location);
	NEED(card >= 0 || (prop->location.kind != AT_DEVICE && prop->location.kind != IN_DEVICE));
	if (card >= 0) {
		NEED_CARD(card);
		if (memory_take(card, bytes) != CU_OK) {
			return CU_OUT_OF_MEMORY;
		}
	}
	*out = physical_new(card, bytes, prop, 1);
	return CU_OK;
}

struct object *physical_hold(address handle) {
	pthread_mutex_lock(&guard);
	struct object *object = object_find(handle, PHYSICAL, PHYSICAL);
	if (object != NULL) {
		((struct physical *)object->detail)->mappings++;
	}
	pthread_mutex_unlock(&guard);
	return object;
}

struct object *physical_hold_at(address start) {
	pthread_mutex_lock(&guard);
	struct object *mapping = object_find(start, MAPPING, MAPPING);
	struct object *object = mapping == NULL ? NULL : mapping->detail;
	if (object != NULL) {
		((struct physical *)object->detail)->mappings++;
	}
	pthread_mutex_unlock(&guard);
	return object;
}

void physical_drop(struct object *object) {
	pthread_mutex_lock(&guard);
	((struct physical *)object->detail)->mappings--;
	let_go(object);
	pthread_mutex_unlock(&guard);
}

CU_API cuMemRelease(address handle) {
	DRIVER_ENTER();
	(void)state;
	pthread_mutex_lock(&guard);
	struct object *object = object_find(handle, PHYSICAL, PHYSICAL);
	int found = object != NULL && ((struct physical *)object->detail)->handles > 0;
	if (found) {
		((struct physical *)object->detail)->handles--;
		let_go(object);
	}
	pthread_mutex_unlock(&guard);
	return found ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuMemAddressReserve(address *out, size_t bytes, size_t alignment, address wanted, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	(void)alignment;
	(void)wanted;
	NEED(out != NULL && bytes > 0 && bytes % GRANULARITY == 0 && flags == 0);
	*out = address_new(bytes);
	object_add(*out, RANGE, -1, bytes, NULL);
	return CU_OK;
}

CU_API cuMemAddressFree(address start, size_t bytes) {
	DRIVER_ENTER();
	(void)state;
	struct object *object = object_find(start, RANGE, RANGE);
	NEED(object != NULL && object->bytes == bytes);
	object_remove(start, RANGE, RANGE);
	address_free(start, bytes);
	free(object);
	return CU_OK;
}

CU_API cuMemMap(address start, size_t bytes, size_t offset, address handle, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	NEED(bytes > 0 && offset == 0 && flags == 0);
	pthread_mutex_lock(&guard);
	struct object *object = object_find(handle, PHYSICAL, PHYSICAL);
	int fits = object != NULL && bytes <= object->bytes && object_find(start, MAPPING, MAPPING) == NULL;
	if (fits) {
		((struct physical *)object->detail)->mappings++;
		object_add(start, MAPPING, object->card, bytes, NULL)->detail = object;
	}
	pthread_mutex_unlock(&guard);
	return fits ? CU_OK : CU_INVALID_VALUE;
}

/* One call may unmap several neighbours. */
CU_API cuMemUnmap(address start, size_t bytes) {
	DRIVER_ENTER();
	(void)state;
	int unmapped = 0;
	pthread_mutex_lock(&guard);
	for (address at = start; at < start + bytes;) {
		struct object *mapping = object_remove(at, MAPPING, MAPPING);
		if (mapping == NULL) {
			at += GRANULARITY;
			continue;
		}
		struct object *object = mapping->detail;
		((struct physical *)object->detail)->mappings--;
		let_go(object);
		at += mapping->bytes;
		unmapped++;
		free(mapping);
	}
	pthread_mutex_unlock(&guard);
	return unmapped > 0 ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuMemSetAccess(address start, size_t bytes, const void *access, size_t count) {
	DRIVER_ENTER();
	(void)state;
	NEED(bytes > 0 && access != NULL && count > 0 && object_find(start, MAPPING, MAPPING) != NULL);
	return CU_OK;
}

CU_API cuMemGetAllocationGranularity(size_t *out, const struct allocation_prop *prop, int option) {
	DRIVER_ENTER();
	(void)state;
	(void)option;
	NEED(out != NULL && prop != NULL);
	*out = GRANULARITY;
	return CU_OK;
}

CU_API cuMemGetAllocationPropertiesFromHandle(struct allocation_prop *out, address handle) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_find(handle, PHYSICAL, PHYSICAL);
	NEED(out != NULL && object != NULL);
	*out = ((struct physical *)object->detail)->prop;
	return CU_OK;
}

CU_API cuMemRetainAllocationHandle(address *out, void *inside) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL);
	pthread_mutex_lock(&guard);
	struct object *mapping = object_find((address)(uintptr_t)inside, MAPPING, MAPPING);
	if (mapping != NULL) {
		struct object *object = mapping->detail;
		((struct physical *)object->detail)->handles++;
		*out = object->key;
	}
	pthread_mutex_unlock(&guard);
	return mapping == NULL ? CU_INVALID_VALUE : CU_OK;
}

/* What goes through the file of a shared handle (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR is 1). */
struct token {
	uint64_t bytes;
	int card;
	struct allocation_prop prop;
};

CU_API cuMemExportToShareableHandle(void *out, address handle, int kind, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_find(handle, PHYSICAL, PHYSICAL);
	NEED(out != NULL && kind == 1 && flags == 0 && object != NULL);
	struct token token = {object->bytes, object->card, ((struct physical *)object->detail)->prop};
	int fd = memfd_create("stub-memory", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, &token, sizeof token, 0) != (ssize_t)sizeof token) {
		return CU_OUT_OF_MEMORY;
	}
	*(int *)out = fd;
	return CU_OK;
}

CU_API cuMemImportFromShareableHandle(address *out, void *handle, int kind) {
	DRIVER_ENTER();
	(void)state;
	struct token token;
	NEED(out != NULL && kind == 1);
	NEED(pread((int)(intptr_t)handle, &token, sizeof token, 0) == (ssize_t)sizeof token);
	*out = physical_new(token.card, token.bytes, &token.prop, 0);
	return CU_OK;
}

/* An IPC handle names process, address and size; who opens it gets an address, and pays nothing. */
struct ipc_handle {
	char reserved[64];
};

CU_API cuIpcGetMemHandle(struct ipc_handle *out, address start) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	const struct object *object = object_find(start, LINEAR, POOLED);
	NEED(out != NULL && object != NULL);
	memset(out, 0, sizeof *out);
	uint64_t words[3] = {(uint64_t)getpid(), start, object->bytes};
	memcpy(out->reserved, words, sizeof words);
	return CU_OK;
}

static int ipc_open(struct context *context, address *out, const struct ipc_handle *handle) {
	uint64_t words[3];
	memcpy(words, handle->reserved, sizeof words);
	NEED(out != NULL && words[2] > 0);
	if (words[0] == (uint64_t)getpid()) {
		return CU_INVALID_CONTEXT;
	}
	*out = address_new(words[2]);
	object_add(*out, SHARED, context->card, words[2], context);
	return CU_OK;
}

CU_API cuIpcOpenMemHandle(address *out, struct ipc_handle handle, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)flags;
	return ipc_open(context, out, &handle);
}

CU_API cuIpcOpenMemHandle_v2(address *out, struct ipc_handle handle, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)flags;
	return ipc_open(context, out, &handle);
}

CU_API cuIpcCloseMemHandle(address start) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	struct object *object = object_remove(start, SHARED, SHARED);
	NEED(object != NULL);
	free(object);
	return CU_OK;
}

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC; the union in the middle takes 16 bytes. */
struct external_description {
	int kind;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} windows;
	} handle;
	unsigned long long bytes;
	unsigned int flags;
	unsigned int reserved[16];
};

struct external_buffer {
	unsigned long long offset, bytes;
	unsigned int flags;
	unsigned int reserved[16];
};

CU_API cuImportExternalMemory(address *out, const struct external_description *description) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && description != NULL && description->bytes > 0);
	*out = handle_new();
	object_add(*out, EXTERNAL, context->card, description->bytes, context);
	return CU_OK;
}

CU_API cuExternalMemoryGetMappedBuffer(address *out, address external, const struct external_buffer *buffer) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && buffer != NULL && object_find(external, EXTERNAL, EXTERNAL) != NULL);
	*out = address_new(buffer->bytes);
	object_add(*out, SHARED, context->card, buffer->bytes, context);
	return CU_OK;
}

CU_API cuDestroyExternalMemory(address external) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	struct object *object = object_remove(external, EXTERNAL, EXTERNAL);
	if (object == NULL) {
		return CU_INVALID_HANDLE;
	}
	free(object);
	return CU_OK;
}
