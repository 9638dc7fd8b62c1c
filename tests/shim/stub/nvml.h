/* The part of NVML's binary interface that the stub answers: codes, numbers and layouts, in our own words. */
#ifndef STUB_NVML_H
#define STUB_NVML_H

#include <stdint.h>

#include "state.h"

enum {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_IN_USE = 19,
	NVML_INSUFFICIENT_RESOURCES = 23,
	NVML_VERSION_MISMATCH = 25,
};

/* A handle: a card (mig < 0) or one of its MIG instances. */
struct nvml_device {
	int card;
	int mig;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

/* Before the third version the block ended otherwise and knew the short name only. */
struct nvml_pci_v1 {
	char bus_id[16];
	unsigned int domain, bus, device, pci_device_id, pci_subsystem_id, reserved[4];
};

struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long used_bytes;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance, compute_instance;
};

struct nvml_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};

struct nvml_event_v1 {
	struct nvml_device *device;
	unsigned long long kind, data;
};

struct nvml_event {
	struct nvml_device *device;
	unsigned long long kind, data;
	unsigned int gpu_instance, compute_instance;
};

/* The state when NVML is initialised and `device` is a handle of a card that is still there. */
int nvml_reach(struct nvml_device *device, struct stub_state **state);
struct nvml_device *nvml_handle(int card, int mig);

/* The state when NVML is initialised, else NULL. */
struct stub_state *nvml_state(void);

#define NVML_REACH(device, state)                              \
	struct stub_state *state;                              \
	do {                                                   \
		int reached_ = nvml_reach((device), &(state)); \
		if (reached_ != NVML_OK) {                     \
			return reached_;                       \
		}                                              \
	} while (0)

#define NVML_NEED(condition)                          \
	do {                                          \
		if (!(condition)) {                   \
			return NVML_INVALID_ARGUMENT; \
		}                                     \
	} while (0)

#define NVML_API STUB_EXPORT int

#endif
