/* The stub's pools of stream-ordered memory. */
#ifndef STUB_POOL_H
#define STUB_POOL_H

#include "driver.h"

struct pool {
	address handle;
	int card; /* -1: host memory */
	int type;
	struct location location;
	uint64_t threshold, reserved, reserved_high, used, used_high, most_bytes;
	struct pool *next;
};

/* The pool of a handle, or NULL. */
struct pool *pool_of(address handle);

/* Allocates of the pool of a handle; INVALID_VALUE if there is none. */
int pool_allocate(address *out, size_t bytes, address handle);

/* A new pool whose memory another process pays for. */
address pool_of_others(void);

#endif
