/* Ordinal to UUID to card, asked once a device. */
#define _GNU_SOURCE
#include "card.h"

#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "nvml.h"
#include "overhead.h"
#include "say.h"
#include "slice.h"

static void format_uuid(char text[64], const char *prefix, const CUuuid *uuid) {
	const unsigned char *b = (const unsigned char *)uuid->bytes;
	snprintf(text, 64,
		 "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix,
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

/* Regions made from the environment have no UUIDs: their order is NVML's. */
static bool is_by_position(const struct region_limits *limits) {
	return limits->devices[0].uuid[0] == 0;
}

int card_of_uuid(const char *uuid) {
	const struct region_limits *limits = slice_limits();
	if (limits == NULL) {
		return CARD_FOREIGN;
	}
	const uint32_t count = slice.region->header.device_count;
	if (is_by_position(limits)) {
		const int index = nvml_index_of(uuid);
		return index >= 0 && index < (int)count ? index : CARD_FOREIGN;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (strncmp(limits->devices[i].uuid, uuid, REGION_UUID_BYTES) == 0) {
			return (int)i;
		}
	}
	return CARD_FOREIGN;
}

void card_uuid(int card, char uuid[64]) {
	const struct region_limits *limits = slice_limits();
	uuid[0] = 0;
	if (limits != NULL && is_by_position(limits)) {
		nvml_uuid_at(card, uuid);
	} else if (limits != NULL) {
		memcpy(uuid, limits->devices[card].uuid, REGION_UUID_BYTES);
	}
}

/* Tries the forms that the UUID of a device can have. */
static int search(CUdevice device) {
	const fn_cuDeviceGetUuid_v2 newer = DRIVER(cuDeviceGetUuid_v2);
	const fn_cuDeviceGetUuid older = DRIVER(cuDeviceGetUuid);
	CUuuid uuid;
	char text[64];
	if (newer != NULL && newer(&uuid, device) == CUDA_SUCCESS) {
		format_uuid(text, "MIG", &uuid);
		const int card = card_of_uuid(text);
		if (card >= 0) {
			return card;
		}
	} else if (older == NULL || older(&uuid, device) != CUDA_SUCCESS) {
		return CARD_NONE;
	}
	format_uuid(text, "GPU", &uuid);
	return card_of_uuid(text);
}

/* Without NVML the order of a region by position is taken to be CUDA's. */
static int fall_back(CUdevice device, int card) {
	const struct region_limits *limits = slice_limits();
	const bool guess = card == CARD_FOREIGN && limits != NULL && is_by_position(limits) &&
			   !nvml_is_there();
	return guess && (uint32_t)device < slice.region->header.device_count ? device : card;
}

int card_of_device(CUdevice device) {
	if (slice_limits() == NULL) {
		return CARD_FOREIGN;
	}
	if (device < 0 || device >= PROCESS_ORDINALS) {
		return CARD_NONE;
	}
	_Atomic int32_t *known = &slice_process()->cards[device];
	const int32_t said = atomic_load_explicit(known, memory_order_relaxed);
	if (said != 0) {
		return said > 0 ? said - 1 : CARD_FOREIGN;
	}
	const int card = fall_back(device, search(device));
	if (card == CARD_NONE) {
		return CARD_NONE;
	}
	if (card == CARD_FOREIGN) {
		say("CUDA device %d is not in this container's slice: its memory is refused", device);
	}
	atomic_store_explicit(known, card >= 0 ? card + 1 : -1, memory_order_relaxed);
	return card;
}

int card_here(void) {
	CUdevice device;
	const fn_cuCtxGetDevice current = DRIVER(cuCtxGetDevice);
	if (current == NULL || current(&device) != CUDA_SUCCESS) {
		return CARD_NONE;
	}
	return card_of_device(device);
}

int card_of_location(const CUmemLocation *location) {
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return card_of_device(location->id);
	case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
		return card_of_device(location->id & 0xff);
	default:
		return CARD_NONE;
	}
}

int card_of_memory(int type, const CUmemLocation *location) {
	const int card = card_of_location(location);
	return card == CARD_NONE && type == CU_MEM_ALLOCATION_TYPE_MANAGED ? card_here() : card;
}

uint64_t card_context(void) {
	CUcontext context = NULL;
	const fn_cuCtxGetCurrent current = DRIVER(cuCtxGetCurrent);
	if (current == NULL || current(&context) != CUDA_SUCCESS) {
		return 0;
	}
	const uint64_t key = (uint64_t)(uintptr_t)context;
	struct process *process = slice_process();
	struct record green;
	if (atomic_load_explicit(&process->has_greens, memory_order_relaxed) != 0 &&
	    table_find(&process->table, RECORD_GREEN_CONTEXT, key, &green)) {
		return green.extra;
	}
	return key;
}

void card_reconcile(int card) {
	overhead_look_if_due(card);
}
