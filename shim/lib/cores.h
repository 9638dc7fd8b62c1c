/* The share of a card's time: a bucket of GPU time a card, common to the container. A launch takes
 * what it is thought to cost; what was really used, as NVML measured it, replaces the thought. */
#ifndef VPY_CORES_H
#define VPY_CORES_H

#include <stdint.h>

#include "slice.h"

/* Waits until launches are not blocked; and if the card's time is limited, until there is some. Returns
 * the time (CLOCK_MONOTONIC). */
uint64_t cores_wait(int card, uint64_t blocks);

/* Whether the time of any card of the slice is limited. */
bool cores_are_limited(void);

/* Learns what blocks cost from a launch whose time was taken. */
void cores_learn(int card, uint64_t ns, uint64_t blocks);

/* Whether the next launch on the card shall be timed: the first ones, some later ones to see that they
 * don't pile up in a stream, and all that can be where NVML tells nothing. */
bool cores_want_timing(int card, uint64_t now);

/* Notes the launch. Whether cores_wait is needed. No lock, and no clock that costs. */
static inline bool cores_note(int card, int slot) {
	struct region *region = slice.region;
	const struct region_limits *limits = slice_limits();
	atomic_fetch_add_explicit(&region->slots[slot].launches[card], 1, memory_order_relaxed);
	const uint32_t cores =
		limits != NULL ? __atomic_load_n(&limits->devices[card].cores, __ATOMIC_RELAXED) : 0;
	return (cores != 0 && cores < 100) ||
	       atomic_load_explicit(&region->control.blocked_until, memory_order_relaxed) != 0;
}

#endif
