/* CUDA: streams and events. What runs in them, and when, is in cuda_launch.c. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "driver.h"

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
	if (capture_forbids()) {
		return CU_CAPTURE_UNSUPPORTED;
	}
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
