/* NVML: start and end, handles, and what a card is. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int starts;

static struct nvml_device handles[STUB_CARDS][STUB_MIGS + 1];

struct nvml_device *nvml_handle(int card, int mig) {
	struct nvml_device *device = &handles[card][mig + 1];
	device->card = card;
	device->mig = mig;
	return device;
}

struct stub_state *nvml_state(void) {
	return starts > 0 ? stub_open() : NULL;
}

static int is_handle(const struct nvml_device *device) {
	return device >= &handles[0][0] && device <= &handles[STUB_CARDS - 1][STUB_MIGS];
}

int nvml_reach(struct nvml_device *device, struct stub_state **state) {
	*state = nvml_state();
	if (*state == NULL) {
		return NVML_UNINITIALIZED;
	}
	if (!is_handle(device)) {
		return NVML_INVALID_ARGUMENT;
	}
	return (*state)->card[device->card].lost ? NVML_GPU_IS_LOST : NVML_OK;
}

static int start(void) {
	if (stub_open() == NULL) {
		return NVML_DRIVER_NOT_LOADED;
	}
	atomic_fetch_add(&starts, 1);
	return NVML_OK;
}

NVML_API nvmlInit(void) {
	STUB_ENTER();
	return start();
}

NVML_API nvmlInit_v2(void) {
	STUB_ENTER();
	return start();
}

NVML_API nvmlInitWithFlags(unsigned int flags) {
	STUB_ENTER();
	(void)flags;
	return start();
}

NVML_API nvmlShutdown(void) {
	STUB_ENTER();
	if (starts == 0) {
		return NVML_UNINITIALIZED;
	}
	atomic_fetch_sub(&starts, 1);
	return NVML_OK;
}

STUB_EXPORT const char *nvmlErrorString(int code) {
	switch (code) {
	case NVML_OK:
		return "Success";
	case NVML_UNINITIALIZED:
		return "Uninitialized";
	case NVML_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_NOT_FOUND:
		return "Not Found";
	case NVML_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_TIMEOUT:
		return "Timeout";
	case NVML_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_IN_USE:
		return "In use by another client";
	case NVML_INSUFFICIENT_RESOURCES:
		return "Insufficient Resources";
	default:
		return "Unknown Error";
	}
}

static int tell(char *out, unsigned int size, const char *text) {
	NVML_NEED(out != NULL);
	if (strlen(text) >= size) {
		return NVML_INSUFFICIENT_SIZE;
	}
	strcpy(out, text);
	return NVML_OK;
}

NVML_API nvmlSystemGetDriverVersion(char *out, unsigned int size) {
	STUB_ENTER();
	struct stub_state *state = nvml_state();
	return state == NULL ? NVML_UNINITIALIZED : tell(out, size, state->driver_name);
}

NVML_API nvmlSystemGetNVMLVersion(char *out, unsigned int size) {
	STUB_ENTER();
	return nvml_state() == NULL ? NVML_UNINITIALIZED : tell(out, size, "12.550.54");
}

static int driver_version(int *out) {
	struct stub_state *state = stub_open();
	NVML_NEED(out != NULL);
	if (state == NULL) {
		return NVML_DRIVER_NOT_LOADED;
	}
	*out = (int)state->driver_version;
	return NVML_OK;
}

NVML_API nvmlSystemGetCudaDriverVersion(int *out) {
	STUB_ENTER();
	return driver_version(out);
}

NVML_API nvmlSystemGetCudaDriverVersion_v2(int *out) {
	STUB_ENTER();
	return driver_version(out);
}

static int count(unsigned int *out) {
	struct stub_state *state = nvml_state();
	NVML_NEED(out != NULL);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	*out = state->cards;
	return NVML_OK;
}

NVML_API nvmlDeviceGetCount(unsigned int *out) {
	STUB_ENTER();
	return count(out);
}

NVML_API nvmlDeviceGetCount_v2(unsigned int *out) {
	STUB_ENTER();
	return count(out);
}

static int by_index(unsigned int index, struct nvml_device **out) {
	struct stub_state *state = nvml_state();
	NVML_NEED(out != NULL);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	NVML_NEED(index < state->cards);
	*out = nvml_handle((int)index, -1);
	return state->card[index].lost ? NVML_GPU_IS_LOST : NVML_OK;
}

NVML_API nvmlDeviceGetHandleByIndex(unsigned int index, struct nvml_device **out) {
	STUB_ENTER();
	return by_index(index, out);
}

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct nvml_device **out) {
	STUB_ENTER();
	return by_index(index, out);
}

NVML_API nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out) {
	STUB_ENTER();
	struct stub_state *state = nvml_state();
	NVML_NEED(uuid != NULL && out != NULL);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	for (uint32_t c = 0; c < state->cards; c++) {
		if (strcmp(state->card[c].uuid, uuid) == 0) {
			*out = nvml_handle((int)c, -1);
			return state->card[c].lost ? NVML_GPU_IS_LOST : NVML_OK;
		}
		for (int m = 0; m < STUB_MIGS; m++) {
			if (uuid[0] != '\0' && strcmp(state->card[c].migs[m].uuid, uuid) == 0) {
				*out = nvml_handle((int)c, m);
				return NVML_OK;
			}
		}
	}
	return NVML_NOT_FOUND;
}

/* Bus ids are written with 4 or 8 digits of domain; the tail tells the card. */
static int by_bus(const char *bus_id, struct nvml_device **out) {
	struct stub_state *state = nvml_state();
	NVML_NEED(bus_id != NULL && out != NULL && strlen(bus_id) >= 7);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	for (uint32_t c = 0; c < state->cards; c++) {
		const char *known = state->card[c].bus_id;
		if (strcasecmp(known + strlen(known) - 7, bus_id + strlen(bus_id) - 7) == 0) {
			*out = nvml_handle((int)c, -1);
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

NVML_API nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **out) {
	STUB_ENTER();
	return by_bus(bus_id, out);
}

NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **out) {
	STUB_ENTER();
	return by_bus(bus_id, out);
}

NVML_API nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **out) {
	STUB_ENTER();
	struct stub_state *state = nvml_state();
	NVML_NEED(serial != NULL && out != NULL);
	for (uint32_t c = 0; state != NULL && c < state->cards; c++) {
		if (strcmp(state->card[c].serial, serial) == 0) {
			*out = nvml_handle((int)c, -1);
			return NVML_OK;
		}
	}
	return state == NULL ? NVML_UNINITIALIZED : NVML_NOT_FOUND;
}

NVML_API nvmlDeviceGetName(struct nvml_device *device, char *out, unsigned int size) {
	STUB_ENTER();
	NVML_REACH(device, state);
	const struct stub_card *card = &state->card[device->card];
	return tell(out, size, device->mig < 0 ? card->name : card->migs[device->mig].name);
}

NVML_API nvmlDeviceGetUUID(struct nvml_device *device, char *out, unsigned int size) {
	STUB_ENTER();
	NVML_REACH(device, state);
	const struct stub_card *card = &state->card[device->card];
	return tell(out, size, device->mig < 0 ? card->uuid : card->migs[device->mig].uuid);
}

NVML_API nvmlDeviceGetSerial(struct nvml_device *device, char *out, unsigned int size) {
	STUB_ENTER();
	NVML_REACH(device, state);
	return tell(out, size, state->card[device->card].serial);
}

NVML_API nvmlDeviceGetIndex(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = (unsigned int)(device->mig < 0 ? device->card : device->mig);
	return NVML_OK;
}

NVML_API nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = (unsigned int)state->card[device->card].minor;
	return NVML_OK;
}

NVML_API nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(major != NULL && minor != NULL);
	*major = state->card[device->card].compute_major;
	*minor = state->card[device->card].compute_minor;
	return NVML_OK;
}

NVML_API nvmlDeviceGetNumGpuCores(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = (unsigned int)state->card[device->card].sms * 128;
	return NVML_OK;
}

static int pci_numbers(const char *bus_id, unsigned int *domain, unsigned int *bus, unsigned int *slot) {
	return sscanf(bus_id, "%x:%x:%x", domain, bus, slot) == 3;
}

static int pci(struct nvml_device *device, struct nvml_pci *out) {
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	const char *bus_id = state->card[device->card].bus_id;
	memset(out, 0, sizeof *out);
	NVML_NEED(pci_numbers(bus_id, &out->domain, &out->bus, &out->device));
	out->pci_device_id = 0x20b010de;
	snprintf(out->bus_id, sizeof out->bus_id, "%s", bus_id);
	snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
	         out->bus & 0xff, out->device & 0xff);
	return NVML_OK;
}

NVML_API nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *out) {
	STUB_ENTER();
	return pci(device, out);
}

static int pci_short(struct nvml_device *device, struct nvml_pci_v1 *out) {
	struct nvml_pci whole;
	NVML_NEED(out != NULL);
	int rc = pci(device, &whole);
	if (rc == NVML_OK) {
		memset(out, 0, sizeof *out);
		memcpy(out->bus_id, whole.bus_id_legacy, sizeof out->bus_id);
		out->domain = whole.domain;
		out->bus = whole.bus;
		out->device = whole.device;
		out->pci_device_id = whole.pci_device_id;
	}
	return rc;
}

NVML_API nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_v1 *out) {
	STUB_ENTER();
	return pci_short(device, out);
}

NVML_API nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_v1 *out) {
	STUB_ENTER();
	return pci_short(device, out);
}

/* Brand, persistence and the like: plain numbers that never change. */
#define NVML_NUMBER(name, number)                                \
	NVML_API name(struct nvml_device *device, unsigned int *out) { \
		STUB_ENTER();                                    \
		NVML_REACH(device, state);                       \
		NVML_NEED(out != NULL);                          \
		*out = (number);                                 \
		return NVML_OK;                                  \
	}

NVML_NUMBER(nvmlDeviceGetBrand, 16)
NVML_NUMBER(nvmlDeviceGetArchitecture, 7)
NVML_NUMBER(nvmlDeviceGetComputeMode, 0)
NVML_NUMBER(nvmlDeviceGetPersistenceMode, 1)
NVML_NUMBER(nvmlDeviceGetDisplayActive, 0)
NVML_NUMBER(nvmlDeviceGetDisplayMode, 0)
NVML_NUMBER(nvmlDeviceGetPowerUsage, 71000)
NVML_NUMBER(nvmlDeviceGetEnforcedPowerLimit, 400000)
NVML_NUMBER(nvmlDeviceGetPerformanceState, 0)
NVML_NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
NVML_NUMBER(nvmlDeviceGetBoardId, (unsigned int)device->card << 8)

NVML_API nvmlDeviceGetTemperature(struct nvml_device *device, int sensor, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && sensor == 0);
	*out = 35;
	return NVML_OK;
}
