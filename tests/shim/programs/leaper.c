/* Leaves a call of the driver in the middle, or calls from a signal handler, and goes on.
 *
 * Usage: leaper HOW. A first allocation of 300 MiB stays. Then one of 400 MiB managed memory, which the test makes slow,
 * meets a signal from the test:
 *   jump     the handler jumps out of it
 *   call     the handler allocates 400 MiB too, on the thread's stack
 *   aside    the same on a stack of its own
 *   cancel   a thread of its own makes the call, and is cancelled in it when the test writes a line
 * Prints the codes of the 400 MiB and the handler's (-1: it never came back, or there is none), and then those of 800 MiB
 * from deeper in the stack, of 800 MiB and of 300 MiB.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "families.h"

static const char *how;
static sigjmp_buf place;
static volatile int slow = -1, handlers = -1;
static void *context;

static int allocate(uint64_t mib) {
	address at = 0;
	return CALL("cuMemAlloc_v2", (address *, size_t), &at, mib << 20);
}

static int allocate_slowly(uint64_t mib) {
	address at = 0;
	return CALL("cuMemAllocManaged", (address *, size_t, unsigned int), &at, mib << 20, 1);
}

static void on_signal(int number) {
	(void)number;
	if (strcmp(how, "jump") == 0) {
		siglongjmp(place, 1);
	}
	handlers = allocate(400);
}

static void arm(void) {
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = strcmp(how, "aside") == 0 ? SA_ONSTACK : 0};
	stack_t aside = {.ss_sp = malloc(1 << 20), .ss_size = 1 << 20};
	sigaltstack(&aside, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

static void *in_thread(void *unused) {
	CALL("cuCtxSetCurrent", (void *), context);
	slow = allocate_slowly(400);
	pthread_testcancel();
	return unused;
}

static void cancel_it(void) {
	pthread_t thread;
	pthread_create(&thread, NULL, in_thread, NULL);
	getchar();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* The same from deeper in the stack. */
__attribute__((noinline)) static int from_below(int depth, int (*call)(uint64_t), uint64_t mib) {
	volatile char room[4096];
	room[0] = room[4095] = (char)depth;
	return depth == 0 ? call(mib) : from_below(depth - 1, call, mib) + (room[0] != room[4095]);
}

int main(int argc, char **argv) {
	if (argc != 2) {
		return 2;
	}
	how = argv[1];
	if (CALL("cuInit", (unsigned int), 0) != CU_OK || CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0) != CU_OK) {
		return 4;
	}
	CALL("cuCtxSetCurrent", (void *), context);
	if (allocate(300) != CU_OK) {
		return 5;
	}
	if (strcmp(how, "cancel") == 0) {
		cancel_it();
	} else if (sigsetjmp(place, 1) == 0) {
		arm();
		slow = from_below(4, allocate_slowly, 400);
	}
	printf("%d %d ", slow, handlers);
	int below = from_below(8, allocate, 800);
	int large = allocate(800);
	printf("%d %d %d\n", below, large, allocate(300));
	fflush(stdout);
	getchar();
	return 0;
}
