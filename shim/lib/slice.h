/* The slice of this container: where its region is, and this process's place in it. */
#ifndef VPY_SLICE_H
#define VPY_SLICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "process.h"
#include "region.h"

enum slice_state {
	SLICE_UNKNOWN = 0, /* nothing asked yet */
	SLICE_OFF,         /* no slice here: we are not in the way */
	SLICE_ON,
	SLICE_CLOSED, /* something is broken: nothing is granted */
};

struct slice {
	_Atomic int state; /* enum slice_state */
	_Atomic(struct process *) process;
	struct region *region; /* set before the state is SLICE_ON */
	_Atomic uint32_t checked; /* generation of limits whose checksum was right */
	char path[512];
};

extern struct slice slice;

/* Finds the region and takes a slot, as far as that is not done; the state afterwards. Where descriptors,
 * memory or places in the region are short, it is closed for now, and tried again every 100 ms. */
enum slice_state slice_start(void);

/* Gives up: says why once; from then on nothing is granted, or all if so configured. */
void slice_fail(const char *why);

/* The limits that hold, checked; NULL if they can't be believed, which closes the slice. */
const struct region_limits *slice_check_limits(void);

/* Whether hooks decide anything in this process. */
static inline bool slice_is_on(void) {
	struct process *process = atomic_load_explicit(&slice.process, memory_order_acquire);
	const int state = atomic_load_explicit(&slice.state, memory_order_acquire);
	if (state == SLICE_ON && process != NULL &&
	    atomic_load_explicit(&process->ready, memory_order_acquire)) {
		return true;
	}
	return state == SLICE_OFF ? false : slice_start() != SLICE_OFF;
}

/* This process. Only where slice_is_on. */
static inline struct process *slice_process(void) {
	return atomic_load_explicit(&slice.process, memory_order_acquire);
}

/* The limits that hold; NULL closes. */
static inline const struct region_limits *slice_limits(void) {
	if (atomic_load_explicit(&slice.state, memory_order_acquire) != SLICE_ON) {
		return NULL;
	}
	const uint32_t active =
		atomic_load_explicit(&slice.region->control.active, memory_order_acquire);
	const struct region_limits *limits = &slice.region->limits[active & 1];
	const uint32_t generation = __atomic_load_n(&limits->generation, __ATOMIC_ACQUIRE);
	if (active <= 1 &&
	    generation == atomic_load_explicit(&slice.checked, memory_order_relaxed)) {
		return limits;
	}
	return slice_check_limits();
}

/* Counters and time bucket of a card. Only where the state is SLICE_ON. */
static inline struct region_card *slice_card(int card) {
	return &slice.region->cards[card];
}

/* This process's slot, or -1. */
static inline int slice_slot(void) {
	return (int)atomic_load_explicit(&slice_process()->slot, memory_order_relaxed) - 1;
}

#endif
