/* CUDA: contexts, the primary ones and others, and which is current. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define DEPTH 16

static struct context primaries[STUB_CARDS];
static struct context greens[STUB_CARDS]; /* handles of green contexts */
static pthread_mutex_t primary_guard = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct context *stack[DEPTH];
static _Thread_local int depth;

struct context *context_current(void) {
	struct context *context = depth > 0 ? stack[depth - 1] : NULL;
	if (context >= greens && context < greens + STUB_CARDS) {
		context = &primaries[context->card];
	}
	return context != NULL && context->alive ? context : NULL;
}

struct context *context_primary(int card) {
	return &primaries[card];
}

static void forget(void) {
	depth = 0;
	memset(primaries, 0, sizeof primaries);
	pthread_mutex_init(&primary_guard, NULL);
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget);
}

/* A context takes what the card says that contexts take. */
static int begin(struct stub_state *state, struct context *context, int card, unsigned int flags) {
	uint64_t bytes = state->card[card].context_bytes;
	if (memory_take(card, bytes) != CU_OK) {
		return CU_OUT_OF_MEMORY;
	}
	struct stub_slot *slot = stub_slot(state);
	__atomic_add_fetch(&slot->contexts[card], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&slot->context_bytes[card], bytes, __ATOMIC_RELAXED);
	context->card = card;
	context->bytes = bytes;
	context->heap_bytes = 0;
	context->flags = flags;
	context->version = 3020;
	context->alive = 1;
	return CU_OK;
}

static void end(struct context *context) {
	struct stub_slot *slot = stub_slot(driver_state());
	context->alive = 0;
	kept_end(context);
	objects_end(context);
	free(context->streams[0]);
	free(context->streams[1]);
	context->streams[0] = context->streams[1] = NULL;
	if (context->primary) {
		pools_end(context->card);
	}
	memory_give(context->card, context->bytes);
	__atomic_sub_fetch(&slot->contexts[context->card], 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&slot->context_bytes[context->card], context->bytes, __ATOMIC_RELAXED);
}

static int retain_primary(struct stub_state *state, int card, struct context **out) {
	struct context *context = &primaries[card];
	pthread_mutex_lock(&primary_guard);
	context->primary = 1;
	int rc = context->alive ? CU_OK : begin(state, context, card, context->flags);
	if (rc == CU_OK) {
		context->retained++;
		*out = context;
	}
	pthread_mutex_unlock(&primary_guard);
	return rc;
}

CU_API cuDevicePrimaryCtxRetain(struct context **out, int device) {
	DEVICE_ENTER(device);
	(void)books;
	NEED(out != NULL);
	return retain_primary(state, card, out);
}

static int release_primary(int card) {
	struct context *context = &primaries[card];
	pthread_mutex_lock(&primary_guard);
	int rc = context->retained > 0 ? CU_OK : CU_INVALID_CONTEXT;
	if (rc == CU_OK && --context->retained == 0) {
		end(context);
	}
	pthread_mutex_unlock(&primary_guard);
	return rc;
}

CU_API cuDevicePrimaryCtxRelease(int device) {
	DEVICE_ENTER(device);
	(void)books;
	return release_primary(card);
}

CU_API cuDevicePrimaryCtxRelease_v2(int device) {
	DEVICE_ENTER(device);
	(void)books;
	return release_primary(card);
}

/* Ends all that the context has; who retained it keeps a handle to nothing. */
static int reset_primary(int card) {
	struct context *context = &primaries[card];
	pthread_mutex_lock(&primary_guard);
	if (context->alive) {
		end(context);
		context->retained = 0;
	}
	pthread_mutex_unlock(&primary_guard);
	return CU_OK;
}

CU_API cuDevicePrimaryCtxReset(int device) {
	DEVICE_ENTER(device);
	(void)books;
	return reset_primary(card);
}

CU_API cuDevicePrimaryCtxReset_v2(int device) {
	DEVICE_ENTER(device);
	(void)books;
	return reset_primary(card);
}

CU_API cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active) {
	DEVICE_ENTER(device);
	(void)books;
	NEED(flags != NULL && active != NULL);
	*flags = primaries[card].flags;
	*active = primaries[card].alive;
	return CU_OK;
}

static int flag_primary(int card, unsigned int flags) {
	primaries[card].flags = flags;
	return CU_OK;
}

CU_API cuDevicePrimaryCtxSetFlags(int device, unsigned int flags) {
	DEVICE_ENTER(device);
	(void)books;
	return flag_primary(card, flags);
}

CU_API cuDevicePrimaryCtxSetFlags_v2(int device, unsigned int flags) {
	DEVICE_ENTER(device);
	(void)books;
	return flag_primary(card, flags);
}

static int push(struct context *context) {
	if (depth == DEPTH) {
		return CU_OUT_OF_MEMORY;
	}
	stack[depth++] = context;
	return CU_OK;
}

static int create(struct context **out, unsigned int flags, int device, unsigned int version) {
	struct stub_state *state = driver_state();
	int card = card_of(device);
	NEED(out != NULL);
	if (card < 0) {
		return CU_INVALID_DEVICE;
	}
	struct context *context = calloc(1, sizeof *context);
	if (context == NULL || begin(state, context, card, flags) != CU_OK) {
		free(context);
		return CU_OUT_OF_MEMORY;
	}
	context->version = version;
	*out = context;
	return push(context);
}

CU_API cuCtxCreate(struct context **out, unsigned int flags, int device) {
	DRIVER_ENTER();
	(void)state;
	return create(out, flags, device, 3010);
}

CU_API cuCtxCreate_v2(struct context **out, unsigned int flags, int device) {
	DRIVER_ENTER();
	(void)state;
	return create(out, flags, device, 3020);
}

CU_API cuCtxCreate_v3(struct context **out, void *affinity, int count, unsigned int flags, int device) {
	DRIVER_ENTER();
	(void)state;
	NEED(affinity != NULL || count == 0);
	return create(out, flags, device, 3020);
}

CU_API cuCtxCreate_v4(struct context **out, void *parameters, unsigned int flags, int device) {
	DRIVER_ENTER();
	(void)state;
	(void)parameters;
	return create(out, flags, device, 3020);
}

/* Destroyed contexts are never freed: others may still hold their handle. */
static int destroy(struct context *context) {
	if (context == NULL || context->primary || !context->alive) {
		return CU_INVALID_CONTEXT;
	}
	end(context);
	if (depth > 0 && stack[depth - 1] == context) {
		depth--;
	}
	return CU_OK;
}

CU_API cuCtxDestroy(struct context *context) {
	DRIVER_ENTER();
	(void)state;
	return destroy(context);
}

CU_API cuCtxDestroy_v2(struct context *context) {
	DRIVER_ENTER();
	(void)state;
	return destroy(context);
}

CU_API cuCtxPushCurrent(struct context *context) {
	DRIVER_ENTER();
	(void)state;
	NEED(context != NULL);
	return push(context);
}

CU_API cuCtxPushCurrent_v2(struct context *context) {
	DRIVER_ENTER();
	(void)state;
	NEED(context != NULL);
	return push(context);
}

static int pop(struct context **out) {
	if (depth == 0) {
		return CU_INVALID_CONTEXT;
	}
	depth--;
	if (out != NULL) {
		*out = stack[depth];
	}
	return CU_OK;
}

CU_API cuCtxPopCurrent(struct context **out) {
	DRIVER_ENTER();
	(void)state;
	return pop(out);
}

CU_API cuCtxPopCurrent_v2(struct context **out) {
	DRIVER_ENTER();
	(void)state;
	return pop(out);
}

CU_API cuCtxSetCurrent(struct context *context) {
	DRIVER_ENTER();
	(void)state;
	if (depth == 0) {
		return context == NULL ? CU_OK : push(context);
	}
	stack[depth - 1] = context;
	return CU_OK;
}

CU_API cuCtxGetCurrent(struct context **out) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL);
	*out = depth > 0 ? stack[depth - 1] : NULL;
	return CU_OK;
}

CU_API cuCtxGetDevice(int *out) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL);
	*out = device_of(context->card);
	return CU_OK;
}

CU_API cuCtxGetApiVersion(struct context *context, unsigned int *out) {
	DRIVER_ENTER();
	(void)state;
	context = context == NULL ? context_current() : context;
	NEED(out != NULL && context != NULL);
	*out = context->version;
	return CU_OK;
}

/* CU_LIMIT_MALLOC_HEAP_SIZE: the only limit that takes memory here. */
enum { LIMIT_HEAP = 2 };

CU_API cuCtxSetLimit(int limit, size_t value) {
	CONTEXT_ENTER();
	(void)state;
	NEED(limit >= 0 && limit < 16);
	if (limit != LIMIT_HEAP) {
		return CU_OK;
	}
	if (memory_take(context->card, value) != CU_OK) {
		return CU_OUT_OF_MEMORY;
	}
	memory_give(context->card, context->heap_bytes);
	context->bytes += value - context->heap_bytes;
	context->heap_bytes = value;
	return CU_OK;
}

CU_API cuCtxGetLimit(size_t *out, int limit) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && limit >= 0 && limit < 16);
	*out = limit == LIMIT_HEAP ? context->heap_bytes : 0;
	return CU_OK;
}

/* A green context retains the primary one, and takes what a module takes. */
CU_API cuGreenCtxCreate(address *out, const void *resources, int device, unsigned int flags) {
	DEVICE_ENTER(device);
	struct context *primary = NULL;
	NEED(out != NULL && resources != NULL && flags == 1);
	int rc = retain_primary(state, card, &primary);
	if (rc == CU_OK && memory_take(card, books->module_bytes) != CU_OK) {
		release_primary(card);
		rc = CU_OUT_OF_MEMORY;
	}
	if (rc == CU_OK) {
		*out = handle_new();
		object_add(*out, GREEN, card, books->module_bytes, NULL);
	}
	return rc;
}

CU_API cuGreenCtxDestroy(address green) {
	DRIVER_ENTER();
	(void)state;
	struct object *object = object_remove(green, GREEN, GREEN);
	NEED(object != NULL);
	memory_give(object->card, object->bytes);
	int rc = release_primary(object->card);
	free(object);
	return rc;
}

/* Its context has a handle of its own, and all else of the primary one. */
CU_API cuCtxFromGreenCtx(struct context **out, address green) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_find(green, GREEN, GREEN);
	NEED(out != NULL && object != NULL);
	*out = &greens[object->card];
	greens[object->card] = primaries[object->card];
	return CU_OK;
}

static int synchronize(const struct context *context) {
	sleep_until(card_tail(context->card));
	pools_settle(context->card);
	return CU_OK;
}

CU_API cuCtxSynchronize(void) {
	CONTEXT_ENTER();
	(void)state;
	return synchronize(context);
}

CU_API cuCtxSynchronize_v2(const struct context *given) {
	CONTEXT_ENTER();
	(void)state;
	return synchronize(given != NULL ? given : context);
}
