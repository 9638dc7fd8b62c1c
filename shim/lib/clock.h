/* CLOCK_MONOTONIC in nanoseconds: the clock of all times in the region. */
#ifndef VPY_CLOCK_H
#define VPY_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline void clock_sleep_ns(uint64_t ns) {
	const struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	nanosleep(&pause, NULL);
}

#define CLOCK_AHEAD_NS UINT64_C(1000000000) /* what is further ahead is of before the node restarted */

/* A time of the region, or 0 if it can't be of this boot of the node: the file may outlive it. Others may
 * be a little ahead of *now*. */
static inline uint64_t clock_this_boot(uint64_t then, uint64_t now) {
	return then > now + CLOCK_AHEAD_NS ? 0 : then;
}

#endif
