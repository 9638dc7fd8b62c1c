/* The time of some launches, taken between two events of the driver. It tells what the first launches
 * cost, whether launches pile up in a stream, and, where NVML doesn't tell how busy a card is (MIG, old
 * drivers), all that is known. */
#ifndef VPY_TIMING_H
#define VPY_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* Whether what is launched on the stream becomes part of a graph, or fails, and so runs nothing now. */
bool timing_is_capturing(CUstream stream);

/* Before a launch that isn't captured: starts to take its time, unless one is being taken
 * already. Returns whether timing_end must follow the launch. */
bool timing_begin(int card, uint64_t blocks, CUstream stream);
void timing_end(CUstream stream, CUresult result);

/* Looks whether the launch whose time is taken is done; if so, its cost is learned. */
void timing_look(void);

#endif
