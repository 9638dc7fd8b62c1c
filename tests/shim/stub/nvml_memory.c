/* NVML: memory, processes and how busy they are. */
#include "nvml.h"

#include <string.h>
#include <time.h>

#define MEMORY_V2 (0x02000000u | (unsigned int)sizeof(struct nvml_memory_v2))
#define NS_PER_US 1000ull
#define RATE_NS 1000000000ull    /* time over which a card's utilisation is told */
#define KEPT_NS 16000000000ull /* for so long the samples of processes are kept */

struct books {
	uint64_t total, reserved, used;
};

static struct books read_books(struct stub_state *state, const struct nvml_device *device) {
	const struct stub_card *card = &state->card[device->card];
	if (device->mig >= 0) {
		return (struct books){card->migs[device->mig].memory_bytes, 0, 0};
	}
	stub_lock(state);
	stub_sweep(state);
	struct books books = {card->memory_bytes, card->reserved_bytes, card->used_bytes};
	stub_unlock(state);
	return books;
}

NVML_API nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	struct books books = read_books(state, device);
	out->total = books.total;
	out->used = books.used + books.reserved;
	out->free = out->total - out->used;
	return NVML_OK;
}

NVML_API nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	if (out->version != MEMORY_V2) {
		return NVML_VERSION_MISMATCH;
	}
	struct books books = read_books(state, device);
	out->total = books.total;
	out->reserved = books.reserved;
	out->used = books.used;
	out->free = books.total - books.reserved - books.used;
	return NVML_OK;
}

NVML_API nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, unsigned long long out[3]) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	out[0] = 256ull << 20;
	out[1] = 255ull << 20;
	out[2] = 1ull << 20;
	return NVML_OK;
}

struct listing {
	unsigned int length;
	struct nvml_process process[STUB_SLOTS];
};

/* One line a process: two drivers in one process (dlmopen) are still one process. */
static void list_slot(struct listing *list, const struct stub_slot *slot, int card) {
	for (unsigned int i = 0; i < list->length; i++) {
		if (list->process[i].pid == (unsigned int)slot->host_pid) {
			list->process[i].used_bytes += slot->used_bytes[card];
			return;
		}
	}
	list->process[list->length++] = (struct nvml_process){
	    (unsigned int)slot->host_pid, slot->used_bytes[card], 0xffffffffu, 0xffffffffu};
}

static void list_processes(struct stub_state *state, int card, struct listing *list) {
	list->length = 0;
	stub_lock(state);
	stub_sweep(state);
	for (uint32_t s = 0; s < state->slots_high; s++) {
		const struct stub_slot *slot = &state->slot[s];
		if (slot->pid != 0 && (slot->contexts[card] != 0 || slot->used_bytes[card] != 0)) {
			list_slot(list, slot, card);
		}
	}
	stub_unlock(state);
	int most = state->card[card].process_list_most;
	if (most >= 0 && list->length > (unsigned int)most) {
		list->length = (unsigned int)most;
	}
}

/* Sizes: v1 knows no instances. NULL asks for the length. */
static int answer(struct nvml_device *device, unsigned int *count, void *out, int instances) {
	static _Thread_local struct listing list;
	NVML_REACH(device, state);
	NVML_NEED(count != NULL);
	list_processes(state, device->card, &list);
	unsigned int room = *count;
	*count = list.length;
	if (list.length == 0) {
		return NVML_OK;
	}
	if (out == NULL || room < list.length) {
		return NVML_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < list.length; i++) {
		if (instances) {
			((struct nvml_process *)out)[i] = list.process[i];
		} else {
			struct nvml_process_v1 short_line = {list.process[i].pid, list.process[i].used_bytes};
			((struct nvml_process_v1 *)out)[i] = short_line;
		}
	}
	return NVML_OK;
}

#define NVML_LIST(name, instances)                                                \
	NVML_API name(struct nvml_device *device, unsigned int *count, void *out) { \
		STUB_ENTER();                                                     \
		return answer(device, count, out, instances);                     \
	}

NVML_LIST(nvmlDeviceGetComputeRunningProcesses, 0)
NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v2, 1)
NVML_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 1)

/* Nobody draws on these cards. */
#define NVML_EMPTY(name)                                                          \
	NVML_API name(struct nvml_device *device, unsigned int *count, void *out) { \
		STUB_ENTER();                                                     \
		NVML_REACH(device, state);                                        \
		NVML_NEED(count != NULL);                                         \
		(void)out;                                                        \
		*count = 0;                                                       \
		return NVML_OK;                                                   \
	}

NVML_EMPTY(nvmlDeviceGetGraphicsRunningProcesses)
NVML_EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v2)
NVML_EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v3)
NVML_EMPTY(nvmlDeviceGetMPSComputeRunningProcesses)
NVML_EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NVML_EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_API nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned int out[2]) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	if (state->card[device->card].hide_utilisation || device->mig >= 0) {
		return NVML_NOT_SUPPORTED;
	}
	uint64_t now = stub_now();
	stub_lock(state);
	out[0] = stub_utilisation(state, NULL, device->card, now - RATE_NS, now);
	stub_unlock(state);
	out[1] = out[0] / 2;
	return NVML_OK;
}

/* Samples carry the time of the wall clock, as a real driver's do. */
static uint64_t wall_now(void) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static unsigned int list_samples(struct stub_state *state, int card, uint64_t since, struct nvml_sample *out) {
	unsigned int length = 0;
	uint64_t now = stub_now();
	uint64_t wall = wall_now();
	uint64_t span = since < wall && wall - since < KEPT_NS ? wall - since : KEPT_NS;
	uint64_t from = now - span;
	if (since / NS_PER_US >= wall / NS_PER_US) {
		return 0;
	}
	stub_lock(state);
	stub_sweep(state);
	for (uint32_t s = 0; s < state->slots_high; s++) {
		const struct stub_slot *slot = &state->slot[s];
		if (slot->pid == 0 || slot->busy_ns[card] == 0) {
			continue;
		}
		uint32_t share = stub_utilisation(state, slot, card, from, now);
		out[length++] =
		    (struct nvml_sample){(unsigned int)slot->host_pid, wall / NS_PER_US, share, share / 2, 0, 0};
	}
	stub_unlock(state);
	return length;
}

NVML_API nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_sample *out, unsigned int *count,
                                         unsigned long long since_us) {
	static _Thread_local struct nvml_sample samples[STUB_SLOTS];
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(count != NULL);
	if (state->card[device->card].hide_utilisation || device->mig >= 0) {
		return NVML_NOT_SUPPORTED;
	}
	unsigned int length = list_samples(state, device->card, since_us * NS_PER_US, samples);
	unsigned int room = *count;
	*count = length;
	if (length == 0) {
		return NVML_NOT_FOUND;
	}
	if (out == NULL || room < length) {
		return NVML_INSUFFICIENT_SIZE;
	}
	memcpy(out, samples, length * sizeof *out);
	return NVML_OK;
}

/* The newer lists, in structures of their own. */
struct nvml_detail {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance, compute_instance;
	unsigned long long protected_bytes;
};

struct nvml_details {
	unsigned int version, mode, length;
	struct nvml_detail *list;
};

NVML_API nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_details *out) {
	static _Thread_local struct listing list;
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	list_processes(state, device->card, &list);
	unsigned int room = out->length;
	out->length = list.length;
	if (room < list.length) {
		return NVML_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < list.length && out->list != NULL; i++) {
		out->list[i] = (struct nvml_detail){list.process[i].pid, list.process[i].used_bytes, ~0u, ~0u, 0};
	}
	return NVML_OK;
}

struct nvml_use {
	unsigned long long time_us;
	unsigned int pid, sm, memory, encoder, decoder, jpeg, flow;
};

struct nvml_uses {
	unsigned int version, length;
	unsigned long long since_us;
	struct nvml_use *list;
};

NVML_API nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device, struct nvml_uses *out) {
	static _Thread_local struct nvml_sample samples[STUB_SLOTS];
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	unsigned int length = list_samples(state, device->card, out->since_us * NS_PER_US, samples);
	unsigned int room = out->length;
	out->length = length;
	if (length == 0 || room < length) {
		return length == 0 ? NVML_NOT_FOUND : NVML_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < length && out->list != NULL; i++) {
		const struct nvml_sample *sample = &samples[i];
		out->list[i] = (struct nvml_use){.time_us = sample->time_us, .pid = sample->pid, .sm = sample->sm};
	}
	return NVML_OK;
}
