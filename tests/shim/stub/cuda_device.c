/* CUDA: start, devices and contexts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define DEPTH 16

static _Atomic int started;
static struct context primaries[STUB_CARDS];
static pthread_mutex_t primary_guard = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct context *stack[DEPTH];
static _Thread_local int depth;

static int visible[STUB_CARDS];
static int visible_count;

/* CUDA_VISIBLE_DEVICES: indices or UUIDs (or their beginnings); the first that isn't one ends the list. */
static int card_named(const struct stub_state *state, const char *name) {
	char *end;
	long index = strtol(name, &end, 10);
	if (end != name && *end == '\0') {
		return index >= 0 && index < (long)state->cards ? (int)index : -1;
	}
	for (uint32_t c = 0; c < state->cards && name[0] != '\0'; c++) {
		if (strncmp(state->card[c].uuid, name, strlen(name)) == 0) {
			return (int)c;
		}
	}
	return -1;
}

static void find_visible(const struct stub_state *state) {
	const char *named = getenv("CUDA_VISIBLE_DEVICES");
	visible_count = 0;
	if (named == NULL) {
		for (uint32_t c = 0; c < state->cards; c++) {
			visible[visible_count++] = (int)c;
		}
		return;
	}
	char text[1024], *rest;
	snprintf(text, sizeof text, "%s", named);
	for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
		int card = card_named(state, word);
		if (card < 0 || visible_count == STUB_CARDS) {
			return;
		}
		visible[visible_count++] = card;
	}
}

struct stub_state *driver_state(void) {
	return started ? stub_open() : NULL;
}

/* Devices are numbered as this process sees them. */
int card_of(int device) {
	return device >= 0 && device < visible_count ? visible[device] : -1;
}

int device_of(int card) {
	for (int d = 0; d < visible_count; d++) {
		if (visible[d] == card) {
			return d;
		}
	}
	return -1;
}

struct context *context_current(void) {
	struct context *context = depth > 0 ? stack[depth - 1] : NULL;
	return context != NULL && context->alive ? context : NULL;
}

int memory_take(int card, uint64_t bytes) {
	return stub_take(driver_state(), card, bytes) ? CU_OK : CU_OUT_OF_MEMORY;
}

void memory_give(int card, uint64_t bytes) {
	stub_give(driver_state(), card, bytes);
}

static void forget_all(void) {
	started = 0;
	depth = 0;
	memset(primaries, 0, sizeof primaries);
	pthread_mutex_init(&primary_guard, NULL);
}

CU_API cuInit(unsigned int flags) {
	STUB_ENTER();
	struct stub_state *state = stub_open();
	NEED(flags == 0);
	if (state == NULL || state->cards == 0) {
		return CU_NO_DEVICE;
	}
	find_visible(state);
	if (visible_count == 0) {
		return CU_NO_DEVICE;
	}
	started = 1;
	return CU_OK;
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget_all);
}

CU_API cuDriverGetVersion(int *out) {
	STUB_ENTER();
	struct stub_state *state = stub_open();
	NEED(out != NULL);
	*out = state == NULL ? 0 : (int)state->driver_version;
	return CU_OK;
}

#define DEVICE_ENTER(device)            \
	DRIVER_ENTER();                 \
	int card = card_of(device);     \
	if (card < 0) {                 \
		return CU_INVALID_DEVICE; \
	}                               \
	struct stub_card *books = &state->card[card]

CU_API cuDeviceGet(int *out, int ordinal) {
	DEVICE_ENTER(ordinal);
	(void)books;
	NEED(out != NULL);
	*out = ordinal;
	return CU_OK;
}

CU_API cuDeviceGetCount(int *out) {
	DRIVER_ENTER();
	NEED(out != NULL);
	*out = visible_count;
	return CU_OK;
}

CU_API cuDeviceGetName(char *out, int size, int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL && size > 0);
	snprintf(out, (size_t)size, "%s", books->name);
	return CU_OK;
}

/* GPU-xxxxxxxx-xxxx-... as 16 bytes */
static int uuid_bytes(const char *text, unsigned char out[16]) {
	int length = 0;
	memset(out, 0, 16);
	for (const char *at = strchr(text, '-'); at != NULL && *at != '\0' && length < 32; at++) {
		int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : -1;
		if (digit >= 0) {
			out[length / 2] = (unsigned char)(out[length / 2] << 4 | digit);
			length++;
		}
	}
	return CU_OK;
}

CU_API cuDeviceGetUuid(unsigned char out[16], int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL);
	return uuid_bytes(books->uuid, out);
}

CU_API cuDeviceGetUuid_v2(unsigned char out[16], int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL);
	return uuid_bytes(books->uuid, out);
}

CU_API cuDeviceTotalMem(unsigned int *out, int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL);
	*out = books->memory_bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)books->memory_bytes;
	return CU_OK;
}

CU_API cuDeviceTotalMem_v2(size_t *out, int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL);
	*out = books->memory_bytes;
	return CU_OK;
}

CU_API cuDeviceGetPCIBusId(char *out, int size, int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL && size >= 13);
	snprintf(out, (size_t)size, "%s", books->bus_id + 4);
	return CU_OK;
}

CU_API cuDeviceGetByPCIBusId(int *out, const char *bus_id) {
	DRIVER_ENTER();
	NEED(out != NULL && bus_id != NULL);
	for (int d = 0; d < visible_count; d++) {
		if (strstr(state->card[visible[d]].bus_id, bus_id) != NULL) {
			*out = d;
			return CU_OK;
		}
	}
	return CU_INVALID_DEVICE;
}

/* CUdevice_attribute by number. */
CU_API cuDeviceGetAttribute(int *out, int attribute, int device) {
	DEVICE_ENTER(device);
	NEED(out != NULL);
	switch (attribute) {
	case 1: /* threads in a block */
		*out = 1024;
		break;
	case 16: /* multiprocessors */
		*out = books->sms;
		break;
	case 39: /* threads on a multiprocessor */
		*out = books->threads_per_sm;
		break;
	case 75:
		*out = books->compute_major;
		break;
	case 76:
		*out = books->compute_minor;
		break;
	case 10: /* warp */
		*out = 32;
		break;
	default:
		*out = 1;
	}
	return CU_OK;
}

CU_API cuDeviceCanAccessPeer(int *out, int device, int peer) {
	DEVICE_ENTER(device);
	(void)books;
	NEED(out != NULL && card_of(peer) >= 0);
	*out = device != peer;
	return CU_OK;
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
	context->flags = flags;
	context->version = 3020;
	context->alive = 1;
	return CU_OK;
}

static void end(struct context *context) {
	struct stub_slot *slot = stub_slot(driver_state());
	context->alive = 0;
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

CU_API cuDevicePrimaryCtxRetain(struct context **out, int device) {
	DEVICE_ENTER(device);
	(void)books;
	NEED(out != NULL);
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

CU_API cuCtxSetLimit(int limit, size_t value) {
	CONTEXT_ENTER();
	(void)state;
	(void)value;
	NEED(context != NULL && limit >= 0 && limit < 16);
	return CU_OK;
}

CU_API cuCtxSynchronize(void) {
	CONTEXT_ENTER();
	(void)state;
	sleep_until(card_tail(context->card));
	pools_settle(context->card);
	return CU_OK;
}

CU_API cuGetErrorName(int code, const char **out) {
	STUB_ENTER();
	NEED(out != NULL);
	*out = code == CU_OK ? "CUDA_SUCCESS" : code == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
	return CU_OK;
}

CU_API cuGetErrorString(int code, const char **out) {
	STUB_ENTER();
	NEED(out != NULL);
	*out = code == CU_OK ? "no error" : code == CU_OUT_OF_MEMORY ? "out of memory" : "an error";
	return CU_OK;
}
