/* How much a launch of a graph runs: the blocks of all its kernels, counted when it is instantiated. */
#ifndef VPY_GRAPH_COST_H
#define VPY_GRAPH_COST_H

#include <stdatomic.h>
#include <stdint.h>

#include "cuda_abi.h"

#define GRAPH_COST_PLACES 4096u /* graphs that are remembered */

/* Read without a lock. All zero is a valid beginning. */
struct graph_cost {
	_Atomic uintptr_t exec; /* 0: free */
	_Atomic uint64_t blocks;
};

/* *exec* runs what *graph* has. Nothing is asked where no card's time is limited. */
void graph_cost_note(CUgraph graph, CUgraphExec exec);

/* The handle is gone. */
void graph_cost_forget(CUgraphExec exec);

/* Blocks of a launch; a guess for a graph that isn't known. Lock-free. */
uint64_t graph_cost_blocks(CUgraphExec exec);

#endif
