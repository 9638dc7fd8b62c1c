/* Threads that launch kernels and graphs, make graphs and end them, all at once.
 *
 * Usage: launches THREADS STEPS. Prints "done LAUNCHES". Any answer but success ends the program with 5.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"

#define CAPTURED 3
#define EVERY 8 /* steps between two graphs */
#define WAVE_US 20
#define RELAXED 2

static unsigned int steps;
static void *context;
static _Atomic unsigned int launches;

static void must(int rc, const char *what) {
	if (rc != CU_OK) {
		fprintf(stderr, "%s: %d\n", what, rc);
		_exit(5);
	}
}

static void launch(void *stream) {
	must(CALL("cuLaunchKernel",
	          (address, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
	           void *, void **, void **),
	          (address)WAVE_US + 1, 108, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
	     "cuLaunchKernel");
}

static void run_graph(void *stream) {
	void *graph = NULL, *exec = NULL;
	must(CALL("cuStreamBeginCapture_v2", (void *, int), stream, RELAXED), "cuStreamBeginCapture_v2");
	for (int i = 0; i < CAPTURED; i++) {
		launch(stream);
	}
	must(CALL("cuStreamEndCapture", (void *, void **), stream, &graph), "cuStreamEndCapture");
	must(CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &exec, graph, 0), "instantiate");
	must(CALL("cuGraphLaunch", (void *, void *), exec, stream), "cuGraphLaunch");
	must(CALL("cuGraphExecDestroy", (void *), exec), "cuGraphExecDestroy");
	must(CALL("cuGraphDestroy", (void *), graph), "cuGraphDestroy");
}

static void *run(void *unused) {
	void *stream = NULL;
	must(CALL("cuCtxSetCurrent", (void *), context), "cuCtxSetCurrent");
	must(CALL("cuStreamCreate", (void **, unsigned int), &stream, 1), "cuStreamCreate");
	for (unsigned int step = 0; step < steps; step++) {
		if (step % EVERY == 0) {
			run_graph(stream);
		} else {
			launch(stream);
		}
		launches++;
	}
	must(CALL("cuStreamSynchronize", (void *), stream), "cuStreamSynchronize");
	return unused;
}

int main(int argc, char **argv) {
	pthread_t threads[64];
	if (argc < 3 || atoi(argv[1]) > 64) {
		return 2;
	}
	int count = atoi(argv[1]);
	steps = (unsigned int)atoi(argv[2]);
	must(CALL("cuInit", (unsigned int), 0), "cuInit");
	must(CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0), "cuDevicePrimaryCtxRetain");
	for (int i = 0; i < count; i++) {
		pthread_create(&threads[i], NULL, run, NULL);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
	}
	printf("done %u\n", launches);
	return 0;
}
