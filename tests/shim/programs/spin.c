/* Launches kernels as fast as it may and says how long the card was its own.
 *
 * Usage: spin ROUTE WAVE_US BLOCKS SECONDS MODE [DEVICE]
 * ROUTE is cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel (or any of them with _ptsz), cuGraphLaunch
 * (a graph of 8 kernels, captured), or cuLaunchCooperativeKernelMultiDevice.
 * MODE is "async" (the queue is kept full) or "sync" (each launch is waited for).
 * Prints "LAUNCHES BUSY_NS ELAPSED_NS" of the time after the first second, and the same of the whole time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "entry.h"

#define CAPTURED 8

static const char *route;
static address function;
static unsigned int blocks;
static void *exec;

static uint64_t now_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void must(int rc, const char *what) {
	if (rc != CU_OK) {
		fprintf(stderr, "%s: %d\n", what, rc);
		exit(4);
	}
}

#define KERNEL_TYPES                                                                                              \
	(address, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
	 void *, void **, void **)

static int plain(const char *symbol, void *stream) {
	return CALL(symbol, KERNEL_TYPES, function, blocks, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

struct config {
	unsigned int grid[3], block[3], shared_bytes;
	void *stream;
	void *attributes;
	unsigned int attribute_count;
};

struct many {
	address function;
	unsigned int grid[3], block[3], shared_bytes;
	void *stream;
	void **parameters;
};

static int launch(void) {
	if (strncmp(route, "cuLaunchKernelEx", 16) == 0) {
		struct config config = {.grid = {blocks, 1, 1}, .block = {32, 1, 1}};
		return CALL(route, (const struct config *, address, void **, void **), &config, function, NULL, NULL);
	}
	if (strcmp(route, "cuLaunchCooperativeKernelMultiDevice") == 0) {
		struct many one = {.function = function, .grid = {blocks, 1, 1}, .block = {32, 1, 1}};
		return CALL(route, (const struct many *, unsigned int, unsigned int), &one, 1, 0);
	}
	if (strncmp(route, "cuGraphLaunch", 13) == 0) {
		return CALL(route, (void *, void *), exec, NULL);
	}
	return plain(route, NULL);
}

static void capture(void) {
	void *stream = NULL, *graph = NULL;
	must(CALL("cuStreamCreate", (void **, unsigned int), &stream, 1), "cuStreamCreate");
	must(CALL("cuStreamBeginCapture_v2", (void *, int), stream, 0), "cuStreamBeginCapture_v2");
	for (int i = 0; i < CAPTURED; i++) {
		must(plain("cuLaunchKernel", stream), "captured launch");
	}
	must(CALL("cuStreamEndCapture", (void *, void **), stream, &graph), "cuStreamEndCapture");
	must(CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &exec, graph, 0), "instantiate");
}

/* Launches until `until`; how many. */
static uint64_t run(uint64_t until, int waits) {
	uint64_t launches = 0;
	while (now_ns() < until) {
		must(launch(), route);
		launches++;
		if (waits) {
			must(CALL("cuCtxSynchronize", (void)), "cuCtxSynchronize");
		}
	}
	must(CALL("cuCtxSynchronize", (void)), "cuCtxSynchronize");
	return launches;
}

static void report(uint64_t launches, uint64_t cost, uint64_t elapsed) {
	printf("%llu %llu %llu\n", (unsigned long long)launches, (unsigned long long)(launches * cost),
	       (unsigned long long)elapsed);
}

int main(int argc, char **argv) {
	void *context = NULL;
	int sms = 0;
	if (argc < 6) {
		return 2;
	}
	int device = argc > 6 ? atoi(argv[6]) : 0;
	route = argv[1];
	function = strtoull(argv[2], NULL, 10) + 1;
	blocks = (unsigned int)atoi(argv[3]);
	must(CALL("cuInit", (unsigned int), 0), "cuInit");
	must(CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device), "retain");
	must(CALL("cuCtxSetCurrent", (void *), context), "set");
	must(CALL("cuDeviceGetAttribute", (int *, int, int), &sms, 16, device), "attribute");
	int waits = strcmp(argv[5], "sync") == 0;
	if (strncmp(route, "cuGraphLaunch", 13) == 0) {
		capture();
	}
	uint64_t wave_count = (blocks + (unsigned int)sms - 1) / (unsigned int)sms;
	uint64_t cost = (exec != NULL ? CAPTURED : 1) * wave_count * (function - 1) * 1000;
	uint64_t begin = now_ns();
	uint64_t first = run(begin + 1000000000ull, waits);
	uint64_t start = now_ns();
	uint64_t launches = run(start + (uint64_t)(atof(argv[4]) * 1e9), waits);
	uint64_t end = now_ns();
	report(launches, cost, end - start);
	report(first + launches, cost, end - begin);
	return 0;
}
