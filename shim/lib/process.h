/* What this process knows for itself. It lies in memory that the kernel empties in a child, so that
 * a child, made by fork or by a bare clone, starts with nothing and takes a slot of its own. All
 * zero is a valid beginning. */
#ifndef VPY_PROCESS_H
#define VPY_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "graph_cost.h"
#include "nvml.h"
#include "region.h"
#include "table.h"

#define PROCESS_ORDINALS 64 /* CUDA devices that one process can see */

/* The launch whose time is taken (timing.c). */
struct timing {
	atomic_flag taken; /* by the thread that looks at it or starts it */
	_Atomic bool pending;
	_Atomic uint64_t started; /* CLOCK_MONOTONIC ns */
	_Atomic int card;
	uint64_t blocks;
	_Atomic uint64_t took_ns[REGION_DEVICES]; /* by launches that were timed, since NVML was asked */
	struct timing_events {
		uint64_t context; /* that they belong to; 0: none yet */
		CUevent first;
		CUevent last;
	} events[REGION_DEVICES];
};

struct process {
	_Atomic uint32_t ready; /* it has a slot, or never needs one */
	_Atomic uint32_t slot;  /* plus one; 0: none, nothing may be charged */
	_Atomic uint64_t retry_ns; /* CLOCK_MONOTONIC: no start is tried before; 0: none has failed */
	pthread_mutex_t starting;
	struct table table;
	/* CUDA ordinal to card of the region, plus one; 0: not asked yet; -1: none */
	_Atomic int32_t cards[PROCESS_ORDINALS];
	/* Charged on a card beyond what is in the table: contexts, modules. */
	_Atomic uint64_t overhead[REGION_DEVICES];
	_Atomic uint64_t overhead_due[REGION_DEVICES]; /* CLOCK_MONOTONIC ns of the next look */
	_Atomic uint64_t imported[REGION_DEVICES]; /* held here, paid for elsewhere */
	pthread_mutex_t overhead_lock;
	struct nvml_view before; /* under overhead_lock: who was on the card before our context */
	struct nvml_view view;	 /* under overhead_lock */
	_Atomic uint32_t nvml_ready;
	_Atomic uint64_t nvml_retry_ns; /* CLOCK_MONOTONIC ns before which it is not tried again */
	_Atomic uint32_t moving;     /* calls under way that change what is held */
	_Atomic uint32_t has_tiles;  /* some memory was mapped into an array */
	_Atomic uint32_t has_greens; /* some context is a green one */
	_Atomic uint32_t allocations; /* since the last look at the overhead */
	pthread_mutex_t handles_lock; /* handles, mappings, bindings of virtual memory */
	uint64_t last_object;
	pthread_mutex_t pools_lock; /* what pools and graphs have reserved */
	uint64_t graphs_under_way[REGION_DEVICES]; /* under pools_lock: what launches that run now may take */
	_Atomic uint32_t pools_settling; /* some thread reserves under that lock */
	_Atomic uint32_t pools_stale; /* a free is under way: look again when streams are done */
	_Atomic uint32_t graphs_allocate; /* bit by card: some graph allocates on it */
	_Atomic uint32_t untold;	  /* bit by card: NVML doesn't tell its use */
	_Atomic uint64_t behind_us[REGION_DEVICES]; /* newest sample, while none is newer than the last */
	struct timing timing;
	struct graph_cost graph_costs[GRAPH_COST_PLACES];
};

#endif
