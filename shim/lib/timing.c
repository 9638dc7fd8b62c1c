/* One launch of the process at a time. In the order of its stream the first event comes when what was
 * there before is done, so that between the two lies the launch alone. */
#define _GNU_SOURCE
#include "timing.h"

#include "card.h"
#include "clock.h"
#include "cores.h"
#include "driver.h"
#include "slice.h"

/* One pair a card: who launches on several in turn doesn't make new ones each time. */
static bool make_events(struct timing_events *events) {
	CUevent first;
	CUevent last;
	const uint64_t context = card_context();
	const fn_cuEventCreate create = DRIVER(cuEventCreate);
	if (events->context == context && context != 0) {
		return true;
	}
	/* Those of another context go with it. */
	if (context == 0 || create == NULL || create(&first, 0) != CUDA_SUCCESS ||
	    create(&last, 0) != CUDA_SUCCESS) {
		return false;
	}
	*events = (struct timing_events){context, first, last};
	return true;
}

bool timing_is_capturing(CUstream stream) {
	CUstreamCaptureStatus status;
	const fn_cuStreamIsCapturing ask = DRIVER(cuStreamIsCapturing);
	return ask != NULL &&
	       (ask(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

bool timing_begin(int card, uint64_t blocks, CUstream stream) {
	struct timing *timing = &slice_process()->timing;
	struct timing_events *events = &timing->events[card];
	const fn_cuEventRecord record = DRIVER(cuEventRecord);
	if (atomic_flag_test_and_set(&timing->taken)) {
		return false;
	}
	if (!timing->pending && make_events(events) && record != NULL &&
	    record(events->first, stream) == CUDA_SUCCESS) {
		timing->card = card;
		timing->started = clock_ns();
		timing->blocks = blocks;
		return true;
	}
	atomic_flag_clear(&timing->taken);
	return false;
}

void timing_end(CUstream stream, CUresult result) {
	struct timing *timing = &slice_process()->timing;
	const fn_cuEventRecord record = DRIVER(cuEventRecord);
	timing->pending = result == CUDA_SUCCESS &&
			  record(timing->events[timing->card].last, stream) == CUDA_SUCCESS;
	atomic_flag_clear(&timing->taken);
}

/* Asks for an event even while some stream is captured, which the question would spoil otherwise. */
static CUresult query(CUevent event) {
	const fn_cuEventQuery ask = DRIVER(cuEventQuery);
	const fn_cuThreadExchangeStreamCaptureMode exchange = DRIVER(cuThreadExchangeStreamCaptureMode);
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const bool exchanged = exchange != NULL && exchange(&mode) == CUDA_SUCCESS;
	const CUresult result = ask != NULL ? ask(event) : CUDA_ERROR_NOT_FOUND;
	if (exchanged) {
		exchange(&mode);
	}
	return result;
}

/* Whether the launch is done, and what it took; a fault of the driver ends the taking. */
static void finish(struct timing *timing) {
	float ms = 0;
	struct timing_events *events = &timing->events[timing->card];
	const fn_cuEventElapsedTime elapsed = DRIVER(cuEventElapsedTime);
	const CUresult result = query(events->last);
	if (result == CUDA_ERROR_NOT_READY) {
		return;
	}
	timing->pending = false;
	if (result == CUDA_SUCCESS && elapsed != NULL &&
	    elapsed(&ms, events->first, events->last) == CUDA_SUCCESS && ms > 0) {
		cores_learn(timing->card, (uint64_t)((double)ms * 1e6), timing->blocks);
	} else {
		events->context = 0;
	}
}

void timing_look(void) {
	struct timing *timing = &slice_process()->timing;
	if (!atomic_flag_test_and_set(&timing->taken)) {
		if (timing->pending) {
			finish(timing);
		}
		atomic_flag_clear(&timing->taken);
	}
}
