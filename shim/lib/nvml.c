/* A client of NVML, loaded when it is first asked. Always the driver's own functions. */
#define _GNU_SOURCE
#include "nvml.h"

#include "clock.h"
#include "driver.h"
#include "slice.h"

#define RETRY_NS UINT64_C(2000000000) /* what was missing may have been a descriptor */

bool nvml_is_there(void) {
	struct process *process = slice_process();
	if (atomic_load(&process->nvml_ready)) {
		return true;
	}
	if (clock_ns() < atomic_load(&process->nvml_retry_ns)) {
		return false;
	}
	const fn_nvmlInit_v2 init = DRIVER(nvmlInit_v2);
	const bool ready = init != NULL && init() == NVML_SUCCESS;
	atomic_store(&process->nvml_retry_ns, clock_ns() + RETRY_NS);
	if (ready) {
		atomic_store(&process->nvml_ready, 1);
	}
	return ready;
}

static nvmlDevice_t device_of(const char *uuid) {
	nvmlDevice_t device = NULL;
	const fn_nvmlDeviceGetHandleByUUID by_uuid =
		nvml_is_there() ? DRIVER(nvmlDeviceGetHandleByUUID) : NULL;
	if (by_uuid == NULL || by_uuid(uuid, &device) != NVML_SUCCESS) {
		return NULL;
	}
	return device;
}

int nvml_index_of(const char *uuid) {
	const nvmlDevice_t device = device_of(uuid);
	const fn_nvmlDeviceGetIndex index_of = DRIVER(nvmlDeviceGetIndex);
	unsigned int index;
	if (device == NULL || index_of == NULL || index_of(device, &index) != NVML_SUCCESS) {
		return -1;
	}
	return (int)index;
}

void nvml_uuid_at(int index, char uuid[64]) {
	nvmlDevice_t device;
	const fn_nvmlDeviceGetHandleByIndex_v2 by_index =
		nvml_is_there() ? DRIVER(nvmlDeviceGetHandleByIndex_v2) : NULL;
	const fn_nvmlDeviceGetUUID uuid_of = DRIVER(nvmlDeviceGetUUID);
	if (by_index == NULL || uuid_of == NULL ||
	    by_index((unsigned int)index, &device) != NVML_SUCCESS ||
	    uuid_of(device, uuid, 64) != NVML_SUCCESS) {
		uuid[0] = 0;
	}
}

/* Drivers before 11.x know only the short entries. */
static bool read_short(nvmlDevice_t device, struct nvml_view *view) {
	nvmlProcessInfo_v1_t entries[64];
	const fn_nvmlDeviceGetComputeRunningProcesses list =
		DRIVER(nvmlDeviceGetComputeRunningProcesses);
	view->count = 64;
	if (list == NULL || list(device, &view->count, entries) != NVML_SUCCESS) {
		return false;
	}
	for (uint32_t i = 0; i < view->count; i++) {
		view->processes[i].pid = entries[i].pid;
		view->processes[i].usedGpuMemory = entries[i].usedGpuMemory;
	}
	return true;
}

bool nvml_read_processes(const char *uuid, struct nvml_view *view) {
	const nvmlDevice_t device = device_of(uuid);
	view->count = 0;
	if (device == NULL) {
		return false;
	}
	fn_nvmlDeviceGetComputeRunningProcesses_v3 list =
		DRIVER(nvmlDeviceGetComputeRunningProcesses_v3);
	if (list == NULL) {
		list = DRIVER(nvmlDeviceGetComputeRunningProcesses_v2);
	}
	if (list == NULL) {
		return read_short(device, view);
	}
	view->count = NVML_PROCESSES;
	return list(device, &view->count, view->processes) == NVML_SUCCESS;
}

const nvmlProcessInfo_t *nvml_find(const struct nvml_view *view, uint32_t pid) {
	for (uint32_t i = 0; i < view->count; i++) {
		if (view->processes[i].pid == pid) {
			return &view->processes[i];
		}
	}
	return NULL;
}

static bool is_one_of(uint32_t pid, const uint32_t *pids, uint32_t count) {
	for (uint32_t i = 0; i < count; i++) {
		if (pids[i] == pid) {
			return true;
		}
	}
	return false;
}

/* A sample says the share of time since the last look. Several of one process are its mean. */
static uint64_t share_of(const nvmlProcessUtilizationSample_t *samples, uint32_t count,
			 uint32_t pid) {
	uint64_t sum = 0;
	uint64_t found = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (samples[i].pid == pid) {
			sum += samples[i].smUtil;
			found++;
		}
	}
	return found != 0 ? sum / found : 0;
}

bool nvml_read_busy(const char *uuid, const uint32_t *pids, uint32_t count, uint64_t since_us,
		    struct nvml_busy *busy) {
	nvmlProcessUtilizationSample_t samples[256];
	unsigned int sample_count = 256;
	const nvmlDevice_t device = device_of(uuid);
	const fn_nvmlDeviceGetProcessUtilization read = DRIVER(nvmlDeviceGetProcessUtilization);
	*busy = (struct nvml_busy){.newest_us = since_us};
	if (device == NULL || read == NULL) {
		return false;
	}
	const nvmlReturn_t result = read(device, samples, &sample_count, since_us);
	if (result != NVML_SUCCESS) {
		return result == NVML_ERROR_NOT_FOUND;
	}
	for (uint32_t i = 0; i < sample_count; i++) {
		const bool ours = is_one_of(samples[i].pid, pids, count);
		busy->others |= !ours && samples[i].smUtil != 0;
		if (samples[i].timeStamp > busy->newest_us) {
			busy->newest_us = samples[i].timeStamp;
		}
	}
	uint64_t percent = 0;
	for (uint32_t i = 0; i < count; i++) {
		percent += share_of(samples, sample_count, pids[i]);
	}
	busy->percent = (uint32_t)(percent > 100 ? 100 : percent);
	busy->passed_us = since_us != 0 ? busy->newest_us - since_us : 0;
	return true;
}

int nvml_read_rate(const char *uuid) {
	nvmlUtilization_t rate;
	const nvmlDevice_t device = device_of(uuid);
	const fn_nvmlDeviceGetUtilizationRates read = DRIVER(nvmlDeviceGetUtilizationRates);
	if (device == NULL || read == NULL || read(device, &rate) != NVML_SUCCESS) {
		return -1;
	}
	return (int)rate.gpu;
}
