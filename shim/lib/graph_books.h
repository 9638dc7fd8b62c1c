/* What graphs allocate, for the hooks that make and launch them. */
#ifndef VPY_GRAPH_BOOKS_H
#define VPY_GRAPH_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "charge.h"
#include "cuda_abi.h"

/* What a launch has reserved, by card. */
struct graph_charges {
	int count;
	struct charge cards[REGION_DEVICES];
};

/* An allocation node was added. */
void graph_books_add(CUgraph graph, uint64_t bytes, int card);

/* *exec* does what *graph* does. */
void graph_books_instantiate(CUgraph graph, CUgraphExec exec);

/* The handle is gone. */
void graph_books_forget(bool is_exec, const void *handle);

/* Around a launch: reserves what it may take beyond what graphs have reserved already. Returns
 * false if that doesn't fit. */
bool graph_books_begin(CUgraphExec exec, struct graph_charges *charges);
void graph_books_end(const struct graph_charges *charges);

#endif
