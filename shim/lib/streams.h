/* Which stream a caller means. */
#ifndef VPY_STREAMS_H
#define VPY_STREAMS_H

#include <stdbool.h>

#include "cuda_abi.h"

/* The driver's own handle for the calling thread's default stream. */
#define STREAM_PER_THREAD ((CUstream)2)

/* The stream that a handle means to this variant of a function: NULL isn't the same to all. */
static inline CUstream stream_meant(CUstream stream, bool per_thread) {
	return stream == NULL && per_thread ? STREAM_PER_THREAD : stream;
}

#endif
