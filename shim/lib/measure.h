/* How long the container kept a card busy, as NVML tells it. */
#ifndef VPY_MEASURE_H
#define VPY_MEASURE_H

#include <stdint.h>

enum measure {
	MEASURE_NOTHING_NEW,
	MEASURE_TOLD,
	MEASURE_UNTOLD, /* NVML tells nothing of this card */
};

/* Reads NVML; *busy_ns* is GPU time of the container since it was last told. One caller at a time. */
enum measure measure_busy(int card, uint64_t now, uint64_t *busy_ns);

#endif
