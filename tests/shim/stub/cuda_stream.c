/* CUDA: streams, events and launches, by the time model.
 *
 * A kernel of g blocks whose wave costs t microseconds keeps its card for t for each wave of as many blocks as the
 * card has multiprocessors. A card runs one kernel at a time; what waits in a stream runs in its order.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"
#include "graph.h"

void sleep_until(uint64_t time_ns) {
	for (uint64_t now = stub_now(); now < time_ns; now = stub_now()) {
		uint64_t left = time_ns - now;
		struct timespec pause = {(time_t)(left / 1000000000ull), (long)(left % 1000000000ull)};
		nanosleep(&pause, NULL);
	}
}

uint64_t card_tail(int card) {
	return __atomic_load_n(&driver_state()->card[card].free_at_ns, __ATOMIC_RELAXED);
}

static struct stub_stream *stream_new(struct context *context) {
	struct stub_stream *stream = calloc(1, sizeof *stream);
	if (stream == NULL) {
		abort();
	}
	stream->card = context->card;
	stream->context = context;
	return stream;
}

static struct stub_stream *default_stream(struct context *context, int per_thread) {
	static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	struct stub_stream **place = &context->streams[per_thread];
	if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == NULL) {
		pthread_mutex_lock(&guard);
		if (*place == NULL) {
			__atomic_store_n(place, stream_new(context), __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&guard);
	}
	return *place;
}

/* NULL is the default stream of the interface used; 1 and 2 name the legacy and the per-thread one. */
struct stub_stream *stream_of(void *handle, int per_thread) {
	uintptr_t number = (uintptr_t)handle;
	if (number > 2) {
		return handle;
	}
	return default_stream(context_current(), number == 0 ? per_thread : (int)number - 1);
}

static int stream_create(struct context *context, struct stub_stream **out, unsigned int flags, int priority) {
	NEED(out != NULL && flags <= 1);
	*out = stream_new(context);
	(*out)->flags = flags;
	(*out)->priority = priority;
	object_add((address)(uintptr_t)*out, STREAM, context->card, 0, context)->detail = *out;
	return CU_OK;
}

CU_API cuStreamCreate(struct stub_stream **out, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	return stream_create(context, out, flags, 0);
}

CU_API cuStreamCreateWithPriority(struct stub_stream **out, unsigned int flags, int priority) {
	CONTEXT_ENTER();
	(void)state;
	return stream_create(context, out, flags, priority);
}

static int stream_destroy(void *handle) {
	struct object *object = object_remove((address)(uintptr_t)handle, STREAM, STREAM);
	if (object == NULL) {
		return CU_INVALID_HANDLE;
	}
	free(object->detail);
	free(object);
	return CU_OK;
}

CU_API cuStreamDestroy(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return stream_destroy(handle);
}

CU_API cuStreamDestroy_v2(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return stream_destroy(handle);
}

static int synchronize(struct stub_stream *stream) {
	sleep_until(__atomic_load_n(&stream->tail_ns, __ATOMIC_RELAXED));
	pools_settle(stream->card);
	return CU_OK;
}

CU_API cuStreamSynchronize(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return synchronize(stream_of(handle, 0));
}

CU_API cuStreamSynchronize_ptsz(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return synchronize(stream_of(handle, 1));
}

static int query(const struct stub_stream *stream) {
	return stub_now() >= __atomic_load_n(&stream->tail_ns, __ATOMIC_RELAXED) ? CU_OK : CU_NOT_READY;
}

CU_API cuStreamQuery(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return query(stream_of(handle, 0));
}

CU_API cuStreamQuery_ptsz(void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return query(stream_of(handle, 1));
}

CU_API cuStreamGetCtx(void *handle, struct context **out) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(out != NULL);
	*out = stream_of(handle, 0)->context;
	return CU_OK;
}

CU_API cuStreamIsCapturing(void *handle, int *out) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(out != NULL);
	*out = stream_of(handle, 0)->capturing;
	return CU_OK;
}

CU_API cuStreamIsCapturing_ptsz(void *handle, int *out) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(out != NULL);
	*out = stream_of(handle, 1)->capturing;
	return CU_OK;
}

/* Events: the time at which what was in the stream before them ends. */
struct event {
	uint64_t time_ns;
	int recorded;
};

CU_API cuEventCreate(struct event **out, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)flags;
	NEED(out != NULL);
	*out = calloc(1, sizeof **out);
	if (*out == NULL) {
		abort();
	}
	object_add((address)(uintptr_t)*out, EVENT, context->card, 0, context)->detail = *out;
	return CU_OK;
}

static int event_destroy(struct event *event) {
	struct object *object = object_remove((address)(uintptr_t)event, EVENT, EVENT);
	if (object == NULL) {
		return CU_INVALID_HANDLE;
	}
	free(object->detail);
	free(object);
	return CU_OK;
}

CU_API cuEventDestroy(struct event *event) {
	DRIVER_ENTER();
	(void)state;
	return event_destroy(event);
}

CU_API cuEventDestroy_v2(struct event *event) {
	DRIVER_ENTER();
	(void)state;
	return event_destroy(event);
}

static int event_record(struct event *event, const struct stub_stream *stream) {
	if (event == NULL) {
		return CU_INVALID_HANDLE;
	}
	uint64_t now = stub_now(), tail = __atomic_load_n(&stream->tail_ns, __ATOMIC_RELAXED);
	event->time_ns = tail > now ? tail : now;
	event->recorded = 1;
	return CU_OK;
}

CU_API cuEventRecord(struct event *event, void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return event_record(event, stream_of(handle, 0));
}

CU_API cuEventRecord_ptsz(struct event *event, void *handle) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return event_record(event, stream_of(handle, 1));
}

CU_API cuEventQuery(const struct event *event) {
	DRIVER_ENTER();
	(void)state;
	NEED(event != NULL);
	return stub_now() >= event->time_ns ? CU_OK : CU_NOT_READY;
}

CU_API cuEventSynchronize(const struct event *event) {
	DRIVER_ENTER();
	(void)state;
	NEED(event != NULL);
	sleep_until(event->time_ns);
	return CU_OK;
}

static int elapsed(float *out, const struct event *start, const struct event *end) {
	NEED(out != NULL && start != NULL && end != NULL);
	if (!start->recorded || !end->recorded) {
		return CU_INVALID_HANDLE;
	}
	if (stub_now() < end->time_ns || stub_now() < start->time_ns) {
		return CU_NOT_READY;
	}
	*out = (float)((double)end->time_ns - (double)start->time_ns) / 1e6f;
	return CU_OK;
}

CU_API cuEventElapsedTime(float *out, const struct event *start, const struct event *end) {
	DRIVER_ENTER();
	(void)state;
	return elapsed(out, start, end);
}

CU_API cuEventElapsedTime_v2(float *out, const struct event *start, const struct event *end) {
	DRIVER_ENTER();
	(void)state;
	return elapsed(out, start, end);
}

CU_API cuStreamWaitEvent(void *handle, const struct event *event, unsigned int flags) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)flags;
	NEED(event != NULL);
	struct stub_stream *stream = stream_of(handle, 0);
	if (event->time_ns > stream->tail_ns) {
		stream->tail_ns = event->time_ns;
	}
	return CU_OK;
}

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
		graph_add_kernel(stream->graph, duration);
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
