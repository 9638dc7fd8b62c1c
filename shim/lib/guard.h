/* Keeps a hook out of the way of calls that the driver makes to itself, and of processes without a
 * slice. */
#ifndef VPY_GUARD_H
#define VPY_GUARD_H

#include <stdbool.h>

#include "slice.h"

extern __thread unsigned int guard_depth __attribute__((tls_model("initial-exec")));

/* Whether this thread is inside a hook already. */
static inline bool guard_is_nested(void) {
	return guard_depth != 0;
}

/* Whether the hook shall decide. If so, guard_leave must follow. */
static inline bool guard_enter(void) {
	if (guard_depth != 0) {
		return false;
	}
	guard_depth = 1;
	if (slice_is_on()) {
		return true;
	}
	guard_depth = 0;
	return false;
}

static inline void guard_leave(void) {
	guard_depth = 0;
}

#endif
