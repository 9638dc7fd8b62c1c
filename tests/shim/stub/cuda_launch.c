/* CUDA: launches, by the time model.
 *
 * A kernel of g blocks whose wave costs t microseconds keeps its card for t for each wave of as many blocks as the
 * card has multiprocessors. A card runs one kernel at a time; what waits in a stream runs in its order.
 */
#include <stddef.h>

#include "driver.h"
#include "graph.h"

uint64_t kernel_ns(const struct stub_card *card, address function, uint64_t blocks) {
	uint64_t wave_us = function - 1;
	uint64_t sms = card->sms > 0 ? (uint64_t)card->sms : 1;
	return wave_us * 1000 * ((blocks + sms - 1) / sms);
}

/* A queue holds 1024 launches; who launches more waits for the oldest. */
void stream_run(struct stub_state *state, struct stub_stream *stream, uint64_t duration) {
	uint64_t *place = &stream->ends[stream->launches++ % 1024];
	sleep_until(*place);
	uint64_t now = stub_now();
	stream->tail_ns = stub_occupy(state, stream->card, stream->tail_ns > now ? stream->tail_ns : now, duration);
	*place = stream->tail_ns;
}

static void count_only(struct stub_state *state) {
	__atomic_add_fetch(&stub_slot(state)->launches, 1, __ATOMIC_RELAXED);
}

static int launch(struct stub_state *state, struct stub_stream *stream, address function, uint64_t blocks) {
	if (function == 0) {
		return CU_INVALID_HANDLE;
	}
	NEED(blocks > 0);
	uint64_t duration = kernel_ns(&state->card[stream->card], function, blocks);
	if (stream->capturing) {
		graph_add_kernel(stream->graph, duration, blocks);
	} else if (duration == 0) {
		count_only(state);
	} else {
		stream_run(state, stream, duration);
	}
	return CU_OK;
}

#define KERNEL_ARGUMENTS                                                                                         \
	address function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,   \
	    unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *handle, void **parameters

#define KERNEL(per_thread)                                                    \
	CONTEXT_ENTER();                                                      \
	(void)context;                                                        \
	(void)shared_bytes;                                                   \
	(void)parameters;                                                     \
	NEED(block_x > 0 && block_y > 0 && block_z > 0);                      \
	return launch(state, stream_of(handle, per_thread), function, (uint64_t)grid_x * grid_y * grid_z)

CU_API cuLaunchKernel(KERNEL_ARGUMENTS, void **extra) {
	(void)extra;
	KERNEL(0);
}

CU_API cuLaunchKernel_ptsz(KERNEL_ARGUMENTS, void **extra) {
	(void)extra;
	KERNEL(1);
}

CU_API cuLaunchCooperativeKernel(KERNEL_ARGUMENTS) {
	KERNEL(0);
}

CU_API cuLaunchCooperativeKernel_ptsz(KERNEL_ARGUMENTS) {
	KERNEL(1);
}

/* CUlaunchConfig */
struct launch_config {
	unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
	void *stream;
	void *attributes;
	unsigned int attribute_count;
};

static int launch_config(struct stub_state *state, const struct launch_config *config, address function, int per_thread) {
	NEED(config != NULL);
	uint64_t blocks = (uint64_t)config->grid_x * config->grid_y * config->grid_z;
	return launch(state, stream_of(config->stream, per_thread), function, blocks);
}

CU_API cuLaunchKernelEx(const struct launch_config *config, address function, void **parameters, void **extra) {
	CONTEXT_ENTER();
	(void)context;
	(void)parameters;
	(void)extra;
	return launch_config(state, config, function, 0);
}

CU_API cuLaunchKernelEx_ptsz(const struct launch_config *config, address function, void **parameters, void **extra) {
	CONTEXT_ENTER();
	(void)context;
	(void)parameters;
	(void)extra;
	return launch_config(state, config, function, 1);
}

/* CUDA_LAUNCH_PARAMS */
struct launch_parameters {
	address function;
	unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
	void *stream;
	void **parameters;
};

CU_API cuLaunchCooperativeKernelMultiDevice(const struct launch_parameters *list, unsigned int count, unsigned int flags) {
	CONTEXT_ENTER();
	(void)context;
	(void)flags;
	NEED(list != NULL && count > 0);
	int rc = CU_OK;
	for (unsigned int i = 0; i < count && rc == CU_OK; i++) {
		uint64_t blocks = (uint64_t)list[i].grid_x * list[i].grid_y * list[i].grid_z;
		rc = launch(state, stream_of(list[i].stream, 0), list[i].function, blocks);
	}
	return rc;
}

CU_API cuLaunch(address function) {
	CONTEXT_ENTER();
	(void)context;
	return launch(state, stream_of(NULL, 0), function, 1);
}

CU_API cuLaunchGrid(address function, int width, int height) {
	CONTEXT_ENTER();
	(void)context;
	return launch(state, stream_of(NULL, 0), function, (uint64_t)width * (uint64_t)height);
}

CU_API cuLaunchGridAsync(address function, int width, int height, void *handle) {
	CONTEXT_ENTER();
	(void)context;
	return launch(state, stream_of(handle, 0), function, (uint64_t)width * (uint64_t)height);
}

CU_API cuLaunchHostFunc(void *handle, void (*function)(void *), void *argument) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(function != NULL);
	sleep_until(stream_of(handle, 0)->tail_ns);
	function(argument);
	return CU_OK;
}
