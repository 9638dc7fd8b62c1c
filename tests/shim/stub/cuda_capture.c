/* CUDA: graphs that grow by what is called on a stream. */
#include <stdatomic.h>
#include <stdlib.h>

#include "driver.h"
#include "graph.h"

/* Streams that capture in the mode that forbids calls of all threads, and whether one was made all the same. */
static _Atomic int strict_captures;
static _Atomic int spoilt;
static _Thread_local int thread_mode = MODE_GLOBAL;

CU_API cuThreadExchangeStreamCaptureMode(int *mode) {
	NEED(mode != NULL);
	const int before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CU_OK;
}

int capture_forbids(void) {
	if (strict_captures == 0 || thread_mode == MODE_RELAXED) {
		return 0;
	}
	spoilt = 1;
	return 1;
}

static int capture(struct stub_stream *stream, int mode) {
	if (stream->capturing) {
		return CU_ILLEGAL_STATE;
	}
	stream->strict = mode == MODE_GLOBAL;
	strict_captures += stream->strict;
	stream->graph = graph_new();
	stream->capturing = 1;
	return CU_OK;
}

CU_API cuStreamBeginCapture(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return capture(stream_of(handle, 0), MODE_GLOBAL);
}

CU_API cuStreamBeginCapture_v2(void *handle, int mode) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return capture(stream_of(handle, 0), mode);
}

CU_API cuStreamBeginCapture_v2_ptsz(void *handle, int mode) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return capture(stream_of(handle, 1), mode);
}

/* The nodes of an existing graph are captured again. */
static int recapture(struct stub_stream *stream, int mode, struct graph *graph) {
	NEED(object_find((address)(uintptr_t)graph, GRAPH, GRAPH) != NULL);
	int rc = capture(stream, mode);
	if (rc == CU_OK) {
		free(stream->graph);
		graph_empty(graph);
		stream->graph = graph;
	}
	return rc;
}

CU_API cuStreamBeginRecaptureToGraph(void *handle, int mode, struct graph *graph, void *callback, void *data) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)callback;
	(void)data;
	return recapture(stream_of(handle, 0), mode, graph);
}

CU_API cuStreamBeginRecaptureToGraph_ptsz(void *handle, int mode, struct graph *graph, void *callback, void *data) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)callback;
	(void)data;
	return recapture(stream_of(handle, 1), mode, graph);
}

static int end_capture(struct stub_stream *stream, struct graph **out) {
	NEED(out != NULL);
	if (!stream->capturing) {
		return CU_ILLEGAL_STATE;
	}
	*out = stream->graph;
	if (object_find((address)(uintptr_t)*out, GRAPH, GRAPH) == NULL) {
		graph_book(*out, GRAPH);
	}
	stream->capturing = 0;
	stream->graph = NULL;
	strict_captures -= stream->strict;
	if (stream->strict && atomic_exchange(&spoilt, 0)) {
		*out = NULL;
		return CU_CAPTURE_INVALIDATED;
	}
	return CU_OK;
}

CU_API cuStreamEndCapture(void *handle, struct graph **out) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return end_capture(stream_of(handle, 0), out);
}

CU_API cuStreamEndCapture_ptsz(void *handle, struct graph **out) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return end_capture(stream_of(handle, 1), out);
}

/* Status 1: captures; the graph grows as calls are made. */
static int capture_status(const struct stub_stream *stream, int *status, uint64_t *id, struct graph **graph, size_t *count) {
	NEED(status != NULL);
	*status = stream->capturing;
	if (id != NULL) {
		*id = (uint64_t)(uintptr_t)stream->graph;
	}
	if (graph != NULL) {
		*graph = stream->graph;
	}
	if (count != NULL) {
		*count = 0;
	}
	return CU_OK;
}

CU_API cuStreamGetCaptureInfo_v2(void *handle, int *status, uint64_t *id, struct graph **graph, const address **needs,
                                 size_t *count) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)needs;
	return capture_status(stream_of(handle, 0), status, id, graph, count);
}

CU_API cuStreamGetCaptureInfo_v2_ptsz(void *handle, int *status, uint64_t *id, struct graph **graph,
                                      const address **needs, size_t *count) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)needs;
	return capture_status(stream_of(handle, 1), status, id, graph, count);
}
