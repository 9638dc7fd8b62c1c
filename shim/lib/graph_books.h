/* What graphs allocate, for the hooks that make and launch them. */
#ifndef VPY_GRAPH_BOOKS_H
#define VPY_GRAPH_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "region.h"
#include "table.h"

/* What a launch may take, by card. */
struct graph_charges {
	int count;
	struct {
		int card;
		uint64_t bytes;
	} cards[REGION_DEVICES];
};

/* An allocation node was added. */
void graph_books_add(CUgraph graph, uint64_t bytes, int card);

/* *child* belongs to *parent* from now on, with all that it allocates. */
void graph_books_move(CUgraph child, CUgraph parent);

/* *exec* does what *graph* does. With *frees_itself* a launch frees first what the last one left. */
void graph_books_instantiate(CUgraph graph, CUgraphExec exec, bool frees_itself);

/* The handle, RECORD_GRAPH or RECORD_EXEC, is gone. */
void graph_books_forget(enum record_kind kind, const void *handle);

/* Around whatever takes the memory of a graph: a launch, or an upload, which may be of one that isn't
 * instantiated yet. Reserves what it may take beyond what graphs have reserved already, and what others
 * that run now may take. Returns false if that doesn't fit. */
bool graph_books_begin(enum record_kind kind, const void *handle, struct graph_charges *charges);
void graph_books_end(const struct graph_charges *charges);

/* The launch was granted: from now on it may find its own memory in use. */
void graph_books_launched(CUgraphExec exec, CUresult result);

#endif
