/* What one call costs in this process: ns of a cuMemAlloc/cuMemFree pair, and of a kernel launch that takes no time.
 *
 * Usage: cost PAIRS LAUNCHES ROUNDS. Prints, a line a round, the CPU ns of a pair and of a launch. Linked with the
 * driver, as programs are; the library stands before it when it is preloaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);
int cuLaunchKernel(unsigned long long, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                   unsigned int, void *, void **, void **);

#define NO_TIME 1 /* the stub's function that costs nothing */

static double cpu_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(int rc) {
	if (rc != 0) {
		fprintf(stderr, "the driver answers %d\n", rc);
		exit(1);
	}
}

static double pair_ns(long count) {
	double start = cpu_ns();
	for (long i = 0; i < count; i++) {
		unsigned long long at;
		must(cuMemAlloc_v2(&at, 4096));
		must(cuMemFree_v2(at));
	}
	return (cpu_ns() - start) / (double)count;
}

static double launch_ns(long count) {
	double start = cpu_ns();
	for (long i = 0; i < count; i++) {
		must(cuLaunchKernel(NO_TIME, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	}
	return (cpu_ns() - start) / (double)count;
}

int main(int argc, char **argv) {
	void *context;
	if (argc != 4) {
		return 2;
	}
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	pair_ns(1000);
	launch_ns(1000);
	for (int round = atoi(argv[3]); round > 0; round--) {
		printf("%.1f %.1f\n", pair_ns(atol(argv[1])), launch_ns(atol(argv[2])));
	}
	return 0;
}
