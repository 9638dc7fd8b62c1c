/* NVML: event sets, which tell of XID errors and the like. */
#include "nvml.h"

#include <stdlib.h>
#include <time.h>

#define EVENT_KINDS 0x1fful
#define POLL_NS 2000000l

/* What a caller waits for. An event counts from the moment its card was registered. */
struct event_set {
	uint64_t kinds[STUB_CARDS];
	uint64_t seen;
};

NVML_API nvmlEventSetCreate(struct event_set **out) {
	STUB_ENTER();
	struct stub_state *state = nvml_state();
	NVML_NEED(out != NULL);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	*out = calloc(1, sizeof **out);
	NVML_NEED(*out != NULL);
	(*out)->seen = state->events_seen;
	return NVML_OK;
}

NVML_API nvmlEventSetFree(struct event_set *set) {
	STUB_ENTER();
	free(set);
	return NVML_OK;
}

NVML_API nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = EVENT_KINDS;
	return NVML_OK;
}

NVML_API nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long kinds, struct event_set *set) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(set != NULL);
	if ((kinds & ~EVENT_KINDS) != 0) {
		return NVML_NOT_SUPPORTED;
	}
	set->kinds[device->card] |= kinds;
	return NVML_OK;
}

/* The next event that the set waits for, or NULL. */
static const struct stub_event *next(struct stub_state *state, struct event_set *set) {
	while (set->seen < state->events_seen) {
		if (state->events_seen - set->seen > STUB_EVENTS) {
			set->seen = state->events_seen - STUB_EVENTS;
		}
		const struct stub_event *event = &state->event[set->seen % STUB_EVENTS];
		set->seen++;
		if (event->card < state->cards && (set->kinds[event->card] & event->kind) != 0) {
			return event;
		}
	}
	return NULL;
}

static int wait_for(struct event_set *set, unsigned int timeout_ms, const struct stub_event **event) {
	struct stub_state *state = nvml_state();
	NVML_NEED(set != NULL);
	if (state == NULL) {
		return NVML_UNINITIALIZED;
	}
	uint64_t deadline = stub_now() + (uint64_t)timeout_ms * 1000000;
	while ((*event = next(state, set)) == NULL) {
		struct timespec pause = {0, POLL_NS};
		if (stub_now() >= deadline) {
			return NVML_TIMEOUT;
		}
		nanosleep(&pause, NULL);
	}
	return NVML_OK;
}

NVML_API nvmlEventSetWait_v2(struct event_set *set, struct nvml_event *out, unsigned int timeout_ms) {
	STUB_ENTER();
	const struct stub_event *event = NULL;
	NVML_NEED(out != NULL);
	int rc = wait_for(set, timeout_ms, &event);
	if (rc == NVML_OK) {
		*out = (struct nvml_event){nvml_handle((int)event->card, -1), event->kind, event->data, event->instance,
		                           event->instance};
	}
	return rc;
}

NVML_API nvmlEventSetWait(struct event_set *set, struct nvml_event_v1 *out, unsigned int timeout_ms) {
	STUB_ENTER();
	const struct stub_event *event = NULL;
	NVML_NEED(out != NULL);
	int rc = wait_for(set, timeout_ms, &event);
	if (rc == NVML_OK) {
		*out = (struct nvml_event_v1){nvml_handle((int)event->card, -1), event->kind, event->data};
	}
	return rc;
}
