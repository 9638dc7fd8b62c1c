/* Locks of the books. A thread knows how many it holds, so that a signal handler which calls us amid them is
 * kept out, and one that jumps out of them is found out. */
#ifndef VPY_LATCH_H
#define VPY_LATCH_H

#include <pthread.h>
#include <stdatomic.h>

extern __thread unsigned int latch_depth __attribute__((tls_model("initial-exec")));

static inline void latch_lock(pthread_mutex_t *lock) {
	latch_depth++;
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(lock);
}

static inline void latch_unlock(pthread_mutex_t *lock) {
	pthread_mutex_unlock(lock);
	atomic_signal_fence(memory_order_seq_cst);
	latch_depth--;
}

#endif
