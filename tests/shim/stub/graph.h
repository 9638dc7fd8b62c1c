/* The stub's graphs: what their nodes cost and what memory they take. */
#ifndef STUB_GRAPH_H
#define STUB_GRAPH_H

#include "driver.h"

struct graph_memory {
	address start;
	uint64_t bytes;
	int card;
	int freed; /* by a node of the same graph */
	struct graph_memory *next;
};

struct graph_kernel {
	uint64_t blocks;
	struct graph_kernel *next;
};

struct graph {
	uint64_t kernels_ns;
	struct graph_kernel *kernel;
	struct graph_memory *memory;
	struct graph *child; /* the first; they end with it */
	struct graph *next;  /* among the children of its parent */
	int frees_itself;    /* what an earlier launch left is freed by the next one */
};

/* An empty graph that nobody knows; and its entry under its handle. */
struct graph *graph_new(void);
void graph_book(struct graph *graph, enum kind kind);

/* Takes out all nodes. */
void graph_empty(struct graph *graph);

void graph_add_kernel(struct graph *graph, uint64_t duration, uint64_t blocks);
address graph_add_memory(struct graph *graph, int card, uint64_t bytes);
int graph_free_memory(struct graph *graph, address start);

/* Frees what a launched graph left allocated; INVALID_VALUE when it isn't such memory. */
int graph_memory_free(address start);

/* Takes the memory of an instantiated graph, which is idle until a launch. */
int graph_upload(const struct graph *exec);

uint64_t kernel_ns(const struct stub_card *card, address function, uint64_t blocks);
void stream_run(struct stub_state *state, struct stub_stream *stream, uint64_t duration);

#endif
