/* Memory that graphs allocate when they run. The driver keeps it by device; what it has reserved
 * is charged, and a launch that would take more than fits is refused before it starts. */
#ifndef VPY_GRAPHS_H
#define VPY_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* Whether the stream is capturing; if so, the allocation is noted with the graph being made. */
bool graphs_capture(CUstream stream, uint64_t bytes);

/* Whether *bytes* could be had on the card now. Nothing stays charged. */
bool graphs_fit(int card, uint64_t bytes);

/* Makes the charge what graphs have reserved on the card. */
void graphs_read(int card);

#endif
