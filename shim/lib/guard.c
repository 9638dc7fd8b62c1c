/* Threads that jump out of a hook: found out by where their stack is. */
#define _GNU_SOURCE
#include "guard.h"

#include <signal.h>

#include "driver.h"
#include "latch.h"
#include "quota.h"

__thread struct guard guard __attribute__((tls_model("initial-exec")));

/* Whether the hook that the thread was in is gone: who calls now isn't below it on the stack. */
static bool is_left(const void *frame) {
	stack_t other;
	if ((uintptr_t)frame < (uintptr_t)guard.frame) {
		return false;
	}
	return sigaltstack(NULL, &other) != 0 || (other.ss_flags & SS_ONSTACK) == 0;
}

bool guard_keeps_out(const void *frame, const void *caller) {
	if (!is_left(frame)) {
		return latch_depth != 0 || driver_owns(caller);
	}
	pthread_setcancelstate(guard.cancel, NULL);
	guard.frame = NULL;
	guard_stops_moving();
	if (latch_depth != 0) {
		latch_depth = 0;
		slice_fail("a signal handler jumped out of a call while the books were written");
	}
	return false;
}

void guard_take_up(const struct guard *left) {
	if (quota_lost != NULL) {
		quota_lost(left->card, left->bytes);
	}
}
