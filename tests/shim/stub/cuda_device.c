/* CUDA: start, and the devices that a process sees. Contexts are in cuda_context.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static _Atomic int started;
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

int card_at(const struct location *location) {
	if (location->kind == IN_DEVICE) {
		return card_of(location->id & 0xff);
	}
	return location->kind == AT_DEVICE ? card_of(location->id) : -1;
}

int device_of(int card) {
	for (int d = 0; d < visible_count; d++) {
		if (visible[d] == card) {
			return d;
		}
	}
	return -1;
}

int memory_take(int card, uint64_t bytes) {
	return stub_take(driver_state(), card, bytes) ? CU_OK : CU_OUT_OF_MEMORY;
}

void memory_give(int card, uint64_t bytes) {
	stub_give(driver_state(), card, bytes);
}

static void forget(void) {
	started = 0;
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
	pthread_atfork(NULL, NULL, forget);
}

CU_API cuDriverGetVersion(int *out) {
	STUB_ENTER();
	struct stub_state *state = stub_open();
	NEED(out != NULL);
	*out = state == NULL ? 0 : (int)state->driver_version;
	return CU_OK;
}

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

/* A part of 00000000:10:00.0: domain, bus, device. */
static int bus_part(const struct stub_card *card, int part) {
	unsigned int parts[3] = {0};
	sscanf(card->bus_id, "%x:%x:%x", &parts[0], &parts[1], &parts[2]);
	return (int)parts[part];
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
	case 33:
		*out = bus_part(books, 1);
		break;
	case 34:
		*out = bus_part(books, 2);
		break;
	case 50:
		*out = bus_part(books, 0);
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
