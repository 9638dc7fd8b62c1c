/* Kills a process after each so many instructions of an allocation and its free, and sees what it leaves behind.
 *
 * Usage: stepkill POINTS STRIDE FAMILY MIB [start]. The victim stops itself before it begins; from there it is run one
 * instruction at a time. With "start" that is before it has touched the driver at all, and POINTS may end there. After
 * each death a new process must get all of MIB at once. Prints the instructions of the longest run, and "done".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "families.h"

static void start(void) {
	void *context = NULL;
	if (CALL("cuInit", (unsigned int), 0) != CU_OK || CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0) != CU_OK) {
		_exit(4);
	}
	CALL("cuCtxSetCurrent", (void *), context);
}

/* Once before the stop, so that what is found but once is found; the last is what is stepped through. */
static void stop_here(void) {
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
		_exit(7);
	}
	raise(SIGSTOP);
}

static void victim(const struct family *family, uint64_t bytes, int from_start) {
	if (from_start) {
		stop_here();
	}
	start();
	for (int i = 0; i < 2; i++) {
		address at = 0;
		if (family->take(&at, bytes) != CU_OK || (i == 0 && family->give(at, bytes) != CU_OK)) {
			_exit(5);
		}
		if (i == 0 && !from_start) {
			stop_here();
		} else if (i == 1) {
			family->give(at, bytes);
		}
	}
	_exit(0);
}

static int heir(const struct family *family, uint64_t bytes) {
	address at = 0;
	start();
	return family->take(&at, bytes);
}

/* Runs the child for so many instructions, then kills it; 1 when it ended before that. */
static int run_and_kill(pid_t child, long instructions) {
	int status = 0;
	waitpid(child, &status, 0);
	for (long i = 0; i < instructions && WIFSTOPPED(status); i++) {
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) {
			break;
		}
		waitpid(child, &status, 0);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
		fprintf(stderr, "the victim ended with %d (7: it may not be traced)\n", WEXITSTATUS(status));
		exit(7);
	}
	if (!WIFSTOPPED(status)) {
		return 1;
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return 0;
}

static pid_t fork_or_die(void) {
	pid_t child = fork();
	if (child < 0) {
		perror("fork");
		exit(6);
	}
	return child;
}

int main(int argc, char **argv) {
	if (argc < 5 || family_of(argv[3]) == NULL) {
		return 2;
	}
	const struct family *family = family_of(argv[3]);
	uint64_t bytes = strtoull(argv[4], NULL, 10) << 20;
	/* Found once, for all children. */
	entry("cuInit");
	entry("cuDevicePrimaryCtxRetain");
	entry("cuCtxSetCurrent");
	long stride = atol(argv[2]), at = 0, longest = 0;
	for (int point = atoi(argv[1]); point > 0; point--, at += stride) {
		int status = 0;
		pid_t child = fork_or_die();
		if (child == 0) {
			victim(family, bytes, argc > 5);
		}
		if (run_and_kill(child, at)) {
			longest = at;
			at = at % stride + 1;
		}
		child = fork_or_die();
		if (child == 0) {
			alarm(300);
			_exit(heir(family, bytes));
		}
		waitpid(child, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != CU_OK) {
			fprintf(stderr, "after %ld instructions the next process ended with %x\n", at, status);
			return 1;
		}
	}
	printf("%ld done\n", longest > at ? longest : at);
	return 0;
}
