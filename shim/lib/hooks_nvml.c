/* What monitoring tools are told: the slice, and the processes in it. NVML calls are answered from
 * the books and what NVML says, so that a tool needs no context. */
#define _GNU_SOURCE
#include <time.h>

#include "card.h"
#include "driver.h"
#include "quota.h"
#include "report.h"
#include "slice.h"

/* The card of an NVML device; CARD_NONE for one that isn't in the slice. */
static int card_of(nvmlDevice_t device) {
	char uuid[96] = "";
	const fn_nvmlDeviceGetUUID uuid_of = DRIVER(nvmlDeviceGetUUID);
	if (uuid_of == NULL || uuid_of(device, uuid, sizeof(uuid)) != NVML_SUCCESS) {
		return CARD_NONE;
	}
	const int card = card_of_uuid(uuid);
	return card >= 0 ? card : CARD_NONE;
}

static bool has_limit(int card) {
	return card >= 0 && quota_limit(card) != 0;
}

nvmlReturn_t hook_nvmlDeviceGetMemoryInfo(fn_nvmlDeviceGetMemoryInfo real, nvmlDevice_t device,
					  nvmlMemory_t *memory) {
	const nvmlReturn_t result = real(device, memory);
	const int card = result == NVML_SUCCESS ? card_of(device) : CARD_NONE;
	if (has_limit(card)) {
		const struct report report = report_memory(card, memory->total, UINT64_MAX);
		memory->total = report.total;
		memory->free = report.free;
		memory->used = report.total - report.free;
	}
	return result;
}

nvmlReturn_t hook_nvmlDeviceGetMemoryInfo_v2(fn_nvmlDeviceGetMemoryInfo_v2 real,
					     nvmlDevice_t device, nvmlMemory_v2_t *memory) {
	const nvmlReturn_t result = real(device, memory);
	const int card = result == NVML_SUCCESS ? card_of(device) : CARD_NONE;
	if (has_limit(card)) {
		const struct report report = report_memory(card, memory->total, UINT64_MAX);
		memory->total = report.total;
		memory->reserved = 0;
		memory->free = report.free;
		memory->used = report.total - report.free;
	}
	return result;
}

/* Whether a process, as NVML names it, has a slot in this region. */
static bool is_ours(uint32_t pid) {
	struct region *region = slice.region;
	if (region == NULL) {
		return false;
	}
	uint32_t high = atomic_load(&region->control.slots_high);
	high = high > REGION_SLOTS ? REGION_SLOTS : high;
	for (uint32_t i = 0; i < high; i++) {
		if (atomic_load(&region->slots[i].pid) != 0 &&
		    atomic_load(&region->slots[i].host_pid) == pid) {
			return true;
		}
	}
	return false;
}

/* A list for all processes of the card is fetched whole, then what is ours is handed on, under the
 * caller's own size: as NVML does it, a list that is too short gets the size that it needs. */
#define FILTERED(type, real, device, count, infos)                                                 \
	do {                                                                                       \
		type all[NVML_PROCESSES];                                                          \
		unsigned int found = NVML_PROCESSES;                                               \
		const nvmlReturn_t result = real(device, &found, all);                             \
		if (result != NVML_SUCCESS) {                                                      \
			*(count) = found;                                                          \
			return result;                                                             \
		}                                                                                  \
		unsigned int ours = 0;                                                             \
		for (unsigned int i = 0; i < found; i++) {                                         \
			if (is_ours(all[i].pid)) {                                                 \
				all[ours++] = all[i];                                              \
			}                                                                          \
		}                                                                                  \
		const bool fits = ours <= *(count);                                                \
		for (unsigned int i = 0; fits && i < ours && (infos) != NULL; i++) {               \
			(infos)[i] = all[i];                                                       \
		}                                                                                  \
		*(count) = ours;                                                                   \
		return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;                         \
	} while (0)

nvmlReturn_t hook_nvml_processes_v1(fn_nvmlDeviceGetComputeRunningProcesses real,
				    nvmlDevice_t device, unsigned int *infoCount,
				    nvmlProcessInfo_v1_t *infos) {
	if (infoCount == NULL || (infos == NULL && *infoCount != 0)) {
		return real(device, infoCount, infos);
	}
	FILTERED(nvmlProcessInfo_v1_t, real, device, infoCount, infos);
}

nvmlReturn_t hook_nvml_processes(fn_nvmlDeviceGetComputeRunningProcesses_v2 real,
				 nvmlDevice_t device, unsigned int *infoCount,
				 nvmlProcessInfo_t *infos) {
	if (infoCount == NULL || (infos == NULL && *infoCount != 0)) {
		return real(device, infoCount, infos);
	}
	FILTERED(nvmlProcessInfo_t, real, device, infoCount, infos);
}

/* Moves what is ours of *count* entries to the front, and counts it. */
#define KEEP_OURS(entries, count)                                                                  \
	do {                                                                                       \
		unsigned int ours = 0;                                                             \
		for (unsigned int i = 0; i < (count); i++) {                                       \
			if (is_ours((entries)[i].pid)) {                                           \
				(entries)[ours++] = (entries)[i];                                  \
			}                                                                          \
		}                                                                                  \
		(count) = ours;                                                                    \
	} while (0)

/* A list that is too short is told the size for all, which has room for ours. */
nvmlReturn_t hook_nvmlDeviceGetProcessUtilization(fn_nvmlDeviceGetProcessUtilization real,
						  nvmlDevice_t device,
						  nvmlProcessUtilizationSample_t *utilization,
						  unsigned int *processSamplesCount,
						  unsigned long long lastSeenTimeStamp) {
	const nvmlReturn_t result =
		real(device, utilization, processSamplesCount, lastSeenTimeStamp);
	if (result == NVML_SUCCESS && utilization != NULL) {
		KEEP_OURS(utilization, *processSamplesCount);
	}
	return result;
}

nvmlReturn_t hook_nvmlDeviceGetProcessesUtilizationInfo(
	fn_nvmlDeviceGetProcessesUtilizationInfo real, nvmlDevice_t device,
	nvmlProcessesUtilizationInfo_t *procesesUtilInfo) {
	const nvmlReturn_t result = real(device, procesesUtilInfo);
	if (result == NVML_SUCCESS && procesesUtilInfo->procUtilArray != NULL) {
		KEEP_OURS(procesesUtilInfo->procUtilArray, procesesUtilInfo->processSamplesCount);
	}
	return result;
}

nvmlReturn_t hook_nvmlDeviceGetRunningProcessDetailList(
	fn_nvmlDeviceGetRunningProcessDetailList real, nvmlDevice_t device,
	nvmlProcessDetailList_t *plist) {
	const nvmlReturn_t result = real(device, plist);
	if (result == NVML_SUCCESS && plist->procArray != NULL) {
		KEEP_OURS(plist->procArray, plist->numProcArrayEntries);
	}
	return result;
}

#define RATE_S 1 /* NVML's own period is between a sixth of a second and one */

static unsigned long long recently_us(void) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)(now.tv_sec - RATE_S) * 1000000ull +
	       (unsigned long long)now.tv_nsec / 1000;
}

/* Adds up what the processes of *samples* used; several samples of one are its mean. */
static nvmlUtilization_t sum_of(const nvmlProcessUtilizationSample_t *samples, unsigned int count) {
	nvmlUtilization_t sum = {0, 0};
	for (unsigned int i = 0; i < count; i++) {
		unsigned int of_same = 0;
		for (unsigned int k = 0; k < count; k++) {
			of_same += samples[k].pid == samples[i].pid;
		}
		sum.gpu += samples[i].smUtil / of_same;
		sum.memory += samples[i].memUtil / of_same;
	}
	return sum;
}

nvmlReturn_t hook_nvmlDeviceGetUtilizationRates(fn_nvmlDeviceGetUtilizationRates real,
						nvmlDevice_t device,
						nvmlUtilization_t *utilization) {
	nvmlProcessUtilizationSample_t samples[NVML_PROCESSES];
	unsigned int count = NVML_PROCESSES;
	const nvmlReturn_t result = real(device, utilization);
	const fn_nvmlDeviceGetProcessUtilization read = DRIVER(nvmlDeviceGetProcessUtilization);
	if (result != NVML_SUCCESS || read == NULL || card_of(device) < 0) {
		return result;
	}
	const nvmlReturn_t told = read(device, samples, &count, recently_us());
	if (told == NVML_SUCCESS || told == NVML_ERROR_NOT_FOUND) {
		count = told == NVML_SUCCESS ? count : 0;
		KEEP_OURS(samples, count);
		const nvmlUtilization_t ours = sum_of(samples, count);
		utilization->gpu = ours.gpu < 100 ? ours.gpu : 100;
		utilization->memory = ours.memory < 100 ? ours.memory : 100;
	}
	return result;
}
