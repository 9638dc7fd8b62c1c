/* Reconciles the books with NVML. Only when nothing else moves in the meantime: the books are read
 * before and after NVML, and a look that something crossed is dropped. */
#define _GNU_SOURCE
#include "overhead.h"

#include <unistd.h>

#include "card.h"
#include "clock.h"
#include "guard.h"
#include "latch.h"
#include "nvml.h"
#include "quota.h"
#include "slice.h"
#include "slot.h"

#define LOOK_EVERY_NS UINT64_C(2000000000)
#define START_PATIENCE_NS UINT64_C(200000000)
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* inode of the host's: PROC_PID_INIT_INO */

static struct region_slot *own_slot(void) {
	return &slice.region->slots[slice_slot()];
}

static bool is_on_host(void) {
	return atomic_load(&own_slot()->pid_ns) == FIRST_PID_NAMESPACE;
}

static bool is_usable(int card) {
	return card >= 0 && atomic_load(&slice.state) == SLICE_ON && slice_slot() >= 0;
}

/* The pid that is on the card now and wasn't before, if there is just one; else 0. */
static uint32_t only_new_pid(const struct nvml_view *before, const struct nvml_view *after) {
	uint32_t pid = 0;
	for (uint32_t i = 0; i < after->count; i++) {
		if (nvml_find(before, after->processes[i].pid) == NULL) {
			if (pid != 0) {
				return 0;
			}
			pid = after->processes[i].pid;
		}
	}
	return pid;
}

/* How NVML names us: by our own pid where that is the host's, else by what came with our context. */
static void learn_host_pid(const struct process *process, bool has_before) {
	const uint32_t own = (uint32_t)getpid();
	const bool is_new = has_before && nvml_find(&process->before, own) == NULL;
	uint32_t pid = 0;
	if (nvml_find(&process->view, own) != NULL && (is_on_host() || is_new)) {
		pid = own;
	} else if (has_before) {
		pid = only_new_pid(&process->before, &process->view);
	}
	if (pid != 0 && atomic_load(&own_slot()->host_pid) == 0) {
		atomic_store(&own_slot()->host_pid, pid);
	}
}

int overhead_before_context(int card) {
	char uuid[64];
	struct process *process = slice_process();
	if (!is_usable(card) || is_on_host() || atomic_load(&own_slot()->host_pid) != 0) {
		return -1;
	}
	const int token = slot_lock(slice.path, REGION_LOCK_START, START_PATIENCE_NS);
	card_uuid(card, uuid);
	latch_lock(&process->overhead_lock);
	const bool told = token >= 0 && nvml_read_processes(uuid, &process->before);
	latch_unlock(&process->overhead_lock);
	if (!told) {
		slot_unlock(token);
		return -1;
	}
	return token;
}

/* The process's word of the books: bytes and reservations being decided. */
static uint64_t own_word(int card) {
	return atomic_load(&slice.region->used[card][slice_slot()]);
}

/* What another copy of this library in the same process has on its books (dlmopen). */
static uint64_t copies_bytes(int card) {
	const struct region_slot *own = own_slot();
	uint32_t high = atomic_load(&slice.region->control.slots_high);
	high = high > REGION_SLOTS ? REGION_SLOTS : high;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < high; i++) {
		const struct region_slot *slot = &slice.region->slots[i];
		if (slot != own && atomic_load(&slot->pid) == atomic_load(&own->pid) &&
		    atomic_load(&slot->start) == atomic_load(&own->start) &&
		    atomic_load(&slot->pid_ns) == atomic_load(&own->pid_ns)) {
			bytes += atomic_load(&slice.region->used[card][i]) & REGION_BYTES_MASK;
		}
	}
	return bytes;
}

/* What the process holds by NVML; false if that can't be told. Who isn't listed holds nothing only if
 * a context has just *ended* and the books have nothing else: lists may be cut short. */
static bool held(struct process *process, int card, bool ended, uint64_t *bytes) {
	const nvmlProcessInfo_t *entry = nvml_find(&process->view, atomic_load(&own_slot()->host_pid));
	if (entry != NULL) {
		*bytes = entry->usedGpuMemory;
		return *bytes != NVML_VALUE_NOT_AVAILABLE;
	}
	*bytes = 0;
	return ended && (own_word(card) & REGION_BYTES_MASK) == atomic_load(&process->overhead[card]);
}

/* Returns false if something moved meanwhile. */
static bool settle(struct process *process, int card, bool ended, uint64_t word, bool moved) {
	uint64_t bytes;
	const uint64_t before = atomic_load(&process->overhead[card]);
	if (!held(process, card, ended, &bytes)) {
		return true;
	}
	if (word != own_word(card) || word > REGION_BYTES_MASK) {
		return false;
	}
	const uint64_t asked = (word > before ? word - before : 0) +
			       atomic_load(&process->imported[card]) + copies_bytes(card);
	const uint64_t after = bytes > asked ? bytes - asked : 0;
	if (after < before && moved) {
		return false;
	}
	atomic_store(&process->overhead[card], after);
	quota_move(card, before, after);
	return true;
}

/* Returns false if another look may tell what this one couldn't. */
static bool look(int card, bool has_before, bool ended) {
	char uuid[64];
	struct process *process = slice_process();
	bool done = true;
	if (!is_usable(card)) {
		return true;
	}
	card_uuid(card, uuid);
	latch_lock(&process->overhead_lock);
	const uint64_t word = own_word(card);
	const bool moved = guard_others_move();
	if (nvml_read_processes(uuid, &process->view)) {
		if (atomic_load(&own_slot()->host_pid) == 0) {
			learn_host_pid(process, has_before);
		}
		done = settle(process, card, ended, word, moved);
	}
	atomic_store(&process->overhead_due[card], clock_ns() + (done ? LOOK_EVERY_NS : 0));
	latch_unlock(&process->overhead_lock);
	return done;
}

#define LOOKS_MOST 8 /* where other threads move all the time; later looks charge the rest */

/* Looks, and tells whether what was found beyond the last look fits. */
static bool look_and_judge(int card, bool has_before) {
	if (!is_usable(card)) {
		return true;
	}
	_Atomic uint64_t *overhead = &slice_process()->overhead[card];
	const uint64_t before = atomic_load(overhead);
	bool done = look(card, has_before, false);
	for (int looks = 1; !done && looks < LOOKS_MOST; looks++) {
		done = look(card, false, false);
	}
	return atomic_load(overhead) <= before || !quota_is_over(card);
}

bool overhead_after_context(int card, int token) {
	const bool fits = look_and_judge(card, token >= 0);
	slot_unlock(token);
	return fits;
}

bool overhead_fits(int card) {
	return look_and_judge(card, false);
}

void overhead_refused(int card) {
	look(card, false, false);
	atomic_fetch_add(&slice.region->cards[card].refused, 1);
}

/* Whether the driver granted it or not, NVML's figure will tell. */
static void lost(int card, uint64_t bytes) {
	atomic_fetch_add(&slice_process()->overhead[card], bytes);
	for (int looks = 0; looks < LOOKS_MOST && !look(card, false, false); looks++) {
	}
}

void (*const quota_lost)(int card, uint64_t bytes) = lost;

bool overhead_is_watched(int card) {
	return atomic_load(&slice_process()->overhead_due[card]) != 0;
}

void overhead_after_end(int card) {
	look(card, false, true);
}

void overhead_look_if_due(int card) {
	if (is_usable(card) && clock_ns() >= atomic_load(&slice_process()->overhead_due[card])) {
		look(card, false, false);
	}
}
