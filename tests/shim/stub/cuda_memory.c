/* CUDA: memory that is asked for and freed by address, pinned host memory, and what pointers are. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define PITCH 512ull

static int allocate(struct context *context, address *out, uint64_t bytes, enum kind kind) {
	NEED(out != NULL && bytes > 0);
	int rc = memory_take(context->card, bytes);
	if (rc == CU_OK) {
		*out = address_new(bytes);
		object_add(*out, kind, context->card, bytes, context);
	}
	return rc;
}

int linear_free(address start) {
	struct object *object = object_remove(start, LINEAR, MANAGED);
	NEED(object != NULL);
	memory_give(object->card, object->bytes);
	address_free(object->key, object->bytes);
	free(object);
	return CU_OK;
}

/* Frees what any call gave an address to, when all that runs has ended. */
static int release(address start) {
	if (start == 0 || linear_free(start) == CU_OK) {
		return CU_OK;
	}
	int rc = pooled_free(start);
	pools_settle(context_current()->card);
	return rc;
}

CU_API cuMemAlloc_v2(address *out, size_t bytes) {
	CONTEXT_ENTER();
	(void)state;
	return allocate(context, out, bytes, LINEAR);
}

CU_API cuMemFree_v2(address start) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return release(start);
}

/* The first interface has 32-bit addresses and sizes. Its addresses are in a space of their own. */
static address short_address(void) {
	static _Atomic uint32_t last = 0x10000000;
	return atomic_fetch_add(&last, 512);
}

static int allocate_short(struct context *context, unsigned int *out, uint64_t bytes) {
	NEED(out != NULL && bytes > 0);
	int rc = memory_take(context->card, bytes);
	if (rc == CU_OK) {
		*out = (unsigned int)short_address();
		object_add(*out, LINEAR, context->card, bytes, context);
	}
	return rc;
}

CU_API cuMemAlloc(unsigned int *out, unsigned int bytes) {
	CONTEXT_ENTER();
	(void)state;
	return allocate_short(context, out, bytes);
}

CU_API cuMemFree(unsigned int start) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return release(start);
}

static uint64_t pitched(uint64_t width) {
	return (width + PITCH - 1) / PITCH * PITCH;
}

CU_API cuMemAllocPitch_v2(address *out, size_t *pitch, size_t width, size_t height, unsigned int element) {
	CONTEXT_ENTER();
	(void)state;
	NEED(pitch != NULL && width > 0 && height > 0 && (element == 4 || element == 8 || element == 16));
	NEED(width < 1ull << 48 && height < 1ull << 48 && pitched(width) < (1ull << 62) / height);
	int rc = allocate(context, out, pitched(width) * height, LINEAR);
	if (rc == CU_OK) {
		*pitch = pitched(width);
	}
	return rc;
}

CU_API cuMemAllocPitch(unsigned int *out, unsigned int *pitch, unsigned int width, unsigned int height,
                       unsigned int element) {
	CONTEXT_ENTER();
	(void)state;
	NEED(pitch != NULL && width > 0 && height > 0 && (element == 4 || element == 8 || element == 16));
	int rc = allocate_short(context, out, pitched(width) * height);
	if (rc == CU_OK) {
		*pitch = (unsigned int)pitched(width);
	}
	return rc;
}

CU_API cuMemAllocManaged(address *out, size_t bytes, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	NEED(flags == 1 || flags == 2);
	return allocate(context, out, bytes, MANAGED);
}

CU_API cuMemGetInfo_v2(size_t *unused, size_t *total) {
	CONTEXT_ENTER();
	NEED(unused != NULL || total != NULL);
	const struct stub_card *card = &state->card[context->card];
	stub_lock(state);
	stub_sweep(state);
	uint64_t used = card->used_bytes + card->reserved_bytes;
	stub_unlock(state);
	if (unused != NULL) {
		*unused = card->memory_bytes - used;
	}
	if (total != NULL) {
		*total = card->memory_bytes;
	}
	return CU_OK;
}

CU_API cuMemGetInfo(unsigned int *unused, unsigned int *total) {
	size_t free_bytes = 0, all = 0;
	STUB_ENTER();
	int rc = cuMemGetInfo_v2(&free_bytes, &all);
	if (rc == CU_OK && unused != NULL) {
		*unused = free_bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)free_bytes;
	}
	if (rc == CU_OK && total != NULL) {
		*total = all > UINT32_MAX ? UINT32_MAX : (unsigned int)all;
	}
	return rc;
}

/* Host memory is the host's: no card pays for it. */
static int host_allocate(struct context *context, void **out, size_t bytes) {
	NEED(out != NULL && bytes > 0);
	void *memory = malloc(bytes);
	if (memory == NULL) {
		return CU_OUT_OF_MEMORY;
	}
	object_add((address)(uintptr_t)memory, HOST, context->card, bytes, context)->detail = memory;
	*out = memory;
	return CU_OK;
}

CU_API cuMemAllocHost(void **out, unsigned int bytes) {
	CONTEXT_ENTER();
	(void)state;
	return host_allocate(context, out, bytes);
}

CU_API cuMemAllocHost_v2(void **out, size_t bytes) {
	CONTEXT_ENTER();
	(void)state;
	return host_allocate(context, out, bytes);
}

CU_API cuMemHostAlloc(void **out, size_t bytes, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	NEED((flags & ~7u) == 0);
	return host_allocate(context, out, bytes);
}

CU_API cuMemFreeHost(void *memory) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	struct object *object = object_remove((address)(uintptr_t)memory, HOST, HOST);
	NEED(object != NULL);
	free(object->detail);
	free(object);
	return CU_OK;
}

static int host_register(struct context *context, void *memory, size_t bytes) {
	NEED(memory != NULL && bytes > 0);
	object_add((address)(uintptr_t)memory, HOST, context->card, bytes, context);
	return CU_OK;
}

CU_API cuMemHostRegister(void *memory, size_t bytes, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)flags;
	return host_register(context, memory, bytes);
}

CU_API cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)flags;
	return host_register(context, memory, bytes);
}

CU_API cuMemHostUnregister(void *memory) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	struct object *object = object_remove((address)(uintptr_t)memory, HOST, HOST);
	NEED(object != NULL);
	free(object);
	return CU_OK;
}

CU_API cuMemHostGetDevicePointer_v2(address *out, void *memory, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(out != NULL && flags == 0 && object_find((address)(uintptr_t)memory, HOST, HOST) != NULL);
	*out = (address)(uintptr_t)memory;
	return CU_OK;
}

CU_API cuMemGetAddressRange_v2(address *start, size_t *bytes, address inside) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	const struct object *object = object_holding(inside);
	if (object == NULL) {
		return CU_NOT_FOUND;
	}
	if (start != NULL) {
		*start = object->key;
	}
	if (bytes != NULL) {
		*bytes = object->bytes;
	}
	return CU_OK;
}

/* CUpointer_attribute: 1 context, 2 memory type (1 host, 2 device), 8 managed, 9 device, 11 start, 12 size. */
static int pointer_attribute(void *out, int attribute, const struct object *object) {
	switch (attribute) {
	case 1:
		*(struct context **)out = object->context;
		return CU_OK;
	case 2:
		*(unsigned int *)out = object->kind == HOST ? 1 : 2;
		return CU_OK;
	case 8:
		*(unsigned int *)out = object->kind == MANAGED;
		return CU_OK;
	case 9:
		*(int *)out = device_of(object->card);
		return CU_OK;
	case 11:
		*(address *)out = object->key;
		return CU_OK;
	case 12:
		*(size_t *)out = object->bytes;
		return CU_OK;
	default:
		return CU_INVALID_VALUE;
	}
}

CU_API cuPointerGetAttribute(void *out, int attribute, address pointer) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_holding(pointer);
	NEED(out != NULL && object != NULL);
	return pointer_attribute(out, attribute, object);
}

CU_API cuPointerGetAttributes(unsigned int count, const int *attributes, void **out, address pointer) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_holding(pointer);
	NEED(attributes != NULL && out != NULL && object != NULL);
	int rc = CU_OK;
	for (unsigned int i = 0; i < count && rc == CU_OK; i++) {
		rc = pointer_attribute(out[i], attributes[i], object);
	}
	return rc;
}
