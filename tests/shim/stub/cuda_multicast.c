/* CUDA: multicast objects, and what is bound to them. */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* CUmulticastObjectProp */
struct multicast_prop {
	unsigned int devices;
	size_t bytes;
	unsigned long long handle_types, flags;
};

/* A multicast object has no memory of its own: what is bound to it has. */
CU_API cuMulticastCreate(address *out, const struct multicast_prop *prop) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL && prop != NULL && prop->devices > 0 && prop->bytes > 0);
	struct allocation_prop nowhere = {0};
	*out = physical_new(-1, prop->bytes, &nowhere, 1);
	return CU_OK;
}

CU_API cuMulticastAddDevice(address multicast, int device) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	NEED(object_find(multicast, PHYSICAL, PHYSICAL) != NULL);
	return CU_OK;
}

/* What keeps bound memory alive. */
static struct binding {
	address multicast;
	size_t offset;
	struct object *object;
	struct binding *next;
} *bindings;

/* Takes over the hold on *object*. */
static int bind(address multicast, size_t offset, struct object *object) {
	NEED(object != NULL);
	struct binding *binding = malloc(sizeof *binding);
	if (binding == NULL) {
		abort();
	}
	pthread_mutex_lock(&guard);
	*binding = (struct binding){multicast, offset, object, bindings};
	bindings = binding;
	pthread_mutex_unlock(&guard);
	return CU_OK;
}

static int bind_memory(address multicast, size_t offset, address handle, size_t memory_offset, size_t bytes,
                       unsigned long long flags) {
	(void)memory_offset;
	NEED(bytes > 0 && flags == 0 && object_find(multicast, PHYSICAL, PHYSICAL) != NULL);
	return bind(multicast, offset, physical_hold(handle));
}

CU_API cuMulticastBindMem(address multicast, size_t offset, address handle, size_t memory_offset, size_t bytes,
                          unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	return bind_memory(multicast, offset, handle, memory_offset, bytes, flags);
}

static int bind_address(address multicast, size_t offset, address start, size_t bytes, unsigned long long flags) {
	NEED(bytes > 0 && flags == 0 && object_find(multicast, PHYSICAL, PHYSICAL) != NULL);
	return bind(multicast, offset, physical_hold_at(start));
}

CU_API cuMulticastBindAddr(address multicast, size_t offset, address start, size_t bytes, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	return bind_address(multicast, offset, start, bytes, flags);
}

CU_API cuMulticastBindMem_v2(address multicast, int device, size_t offset, address handle, size_t memory_offset, size_t bytes,
                             unsigned long long flags) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	return bind_memory(multicast, offset, handle, memory_offset, bytes, flags);
}

CU_API cuMulticastBindAddr_v2(address multicast, int device, size_t offset, address start, size_t bytes,
                              unsigned long long flags) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	return bind_address(multicast, offset, start, bytes, flags);
}

CU_API cuMulticastUnbind(address multicast, int device, size_t offset, size_t bytes) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	(void)bytes;
	pthread_mutex_lock(&guard);
	struct binding **link = &bindings;
	while (*link != NULL && ((*link)->multicast != multicast || (*link)->offset != offset)) {
		link = &(*link)->next;
	}
	struct binding *binding = *link;
	if (binding != NULL) {
		*link = binding->next;
	}
	pthread_mutex_unlock(&guard);
	NEED(binding != NULL);
	physical_drop(binding->object);
	free(binding);
	return CU_OK;
}
