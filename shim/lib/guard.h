/* Keeps a hook out of the way of calls that the driver makes to itself, and of processes without a
 * slice. Inside a hook a thread can't be cancelled. A signal handler may jump out of one: what it had
 * reserved is found again by the thread's next call from no deeper in its stack. */
#ifndef VPY_GUARD_H
#define VPY_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "slice.h"

/* What a thread does in the innermost hook that it is in. */
struct guard {
	const void *frame; /* of the exported function; NULL: in none */
	int cancel;	   /* whether the thread could be cancelled before */
	int card;	   /* where it has reserved... */
	uint64_t bytes;	   /* ...what no record has yet */
	bool moving;	   /* whether it counts in the process's `moving` */
};

extern __thread struct guard guard __attribute__((tls_model("initial-exec")));

/* Whether a call that meets another one of the same thread, from *caller*, is the driver's own business. */
bool guard_keeps_out(const void *frame, const void *caller);

/* Takes up what the thread left behind when it jumped out of a hook. */
void guard_take_up(const struct guard *left);

/* Whether the hook shall decide. If so, guard_leave must follow. *outer* is the caller's to keep. */
static inline bool guard_enter(struct guard *outer, const void *frame, const void *caller) {
	if (atomic_load_explicit(&slice.state, memory_order_acquire) == SLICE_OFF ||
	    (guard.frame != NULL && guard_keeps_out(frame, caller))) {
		return false;
	}
	*outer = guard;
	guard.frame = frame;
	guard.bytes = 0;
	guard.moving = false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard.cancel);
	if (slice_is_on()) {
		if (outer->frame == NULL && outer->bytes != 0) {
			guard_take_up(outer);
		}
		return true;
	}
	const int cancel = guard.cancel;
	guard = *outer;
	pthread_setcancelstate(cancel, NULL);
	return false;
}

/* While the hook is under way, less may be held than the books say, and not only because less is needed. */
static inline void guard_moves(void) {
	guard.moving = true;
	atomic_fetch_add(&slice_process()->moving, 1);
}

static inline void guard_stops_moving(void) {
	if (guard.moving) {
		atomic_fetch_sub(&slice_process()->moving, 1);
		guard.moving = false;
	}
}

/* Whether other threads' hooks that move are under way. */
static inline bool guard_others_move(void) {
	return atomic_load(&slice_process()->moving) > (guard.moving ? 1u : 0u);
}

static inline void guard_leave(const struct guard *outer) {
	guard_stops_moving();
	const int cancel = guard.cancel;
	const bool nested = outer->frame != NULL;
	guard.frame = outer->frame;
	guard.card = outer->card;
	guard.cancel = outer->cancel;
	guard.moving = outer->moving;
	guard.bytes = nested ? outer->bytes : 0;
	pthread_setcancelstate(cancel, NULL);
}

/* The hook has reserved bytes, or given some back. */
static inline void guard_reserved(int card, uint64_t bytes) {
	if (guard.frame != NULL && (guard.bytes == 0 || guard.card == card)) {
		guard.card = card;
		guard.bytes += bytes;
	}
}

static inline void guard_released(int card, uint64_t bytes) {
	if (guard.card == card) {
		guard.bytes -= guard.bytes < bytes ? guard.bytes : bytes;
	}
}

/* A record has them from now on. */
static inline void guard_kept(void) {
	guard.bytes = 0;
}

#endif
