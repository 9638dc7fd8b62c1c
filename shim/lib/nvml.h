/* What NVML knows and CUDA doesn't: who holds how much of a card, and how busy it is. */
#ifndef VPY_NVML_H
#define VPY_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "nvml_abi.h"

#define NVML_PROCESSES 1024

/* The compute processes on a card. */
struct nvml_view {
	uint32_t count;
	nvmlProcessInfo_t processes[NVML_PROCESSES];
};

/* Busy time that NVML measured. */
struct nvml_busy {
	uint64_t newest_us; /* of the samples, by NVML's clock */
	uint64_t passed_us; /* between the newest samples of the last look and of this; 0: first look */
	uint32_t percent;   /* of at most the last second, by the given processes together */
	bool others;	    /* somebody else was busy */
};

/* Whether NVML can be used in this process. */
bool nvml_is_there(void);

/* NVML's index of a UUID, or -1. */
int nvml_index_of(const char *uuid);

/* The UUID at an index of NVML; "" if there is none. */
void nvml_uuid_at(int index, char uuid[64]);

/* Reads the compute processes on the card with this UUID. Returns whether the driver told. */
bool nvml_read_processes(const char *uuid, struct nvml_view *view);

/* The entry of a pid, or NULL. */
const nvmlProcessInfo_t *nvml_find(const struct nvml_view *view, uint32_t pid);

/* What was measured on the card after *since_us* for *count* pids. Returns false where the card
 * gives no samples by process. */
bool nvml_read_busy(const char *uuid, const uint32_t *pids, uint32_t count, uint64_t since_us,
		    struct nvml_busy *busy);

/* The share of the last period in which anybody was busy on the card, percent; -1 if not told. */
int nvml_read_rate(const char *uuid);

#endif
