/* Takes and gives memory in every way, in any order, until it is told to stop or is killed.
 *
 * Usage: storm SEED THREADS STEPS MOST_MIB [DEVICES]; STEPS 0 is without end.
 * Only success and OUT_OF_MEMORY are answers; any other ends the program with 5. Prints "ready" when its contexts
 * are made, and "done GRANTED REFUSED" when all is given back.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "families.h"

#define HELD 24

static unsigned int seed, steps, most_mib, devices = 1;
static void *contexts[16];
static _Atomic unsigned int granted, refused;

static const char *const names[] = {"alloc", "pitch", "managed", "array",    "array3d", "mipmap",
                                    "async", "pool",  "alloc",   "physical", "mapped",  "async_free"};

struct thing {
	const struct family *family;
	address at;
	uint64_t bytes;
};

static void give(struct thing *thing) {
	int rc = thing->family->give(thing->at, thing->bytes);
	if (rc != CU_OK) {
		fprintf(stderr, "%s: giving back answers %d\n", thing->family->name, rc);
		_exit(5);
	}
	thing->family = NULL;
}

static void take(struct thing *thing, unsigned int *dice) {
	const struct family *family = family_of(names[(unsigned int)rand_r(dice) % (sizeof names / sizeof names[0])]);
	thing->bytes = (uint64_t)(1 + (unsigned int)rand_r(dice) % most_mib) * 2 << 20;
	int rc = family->take(&thing->at, thing->bytes);
	if (rc != CU_OK && rc != CU_OUT_OF_MEMORY) {
		fprintf(stderr, "%s: taking answers %d\n", family->name, rc);
		_exit(5);
	}
	thing->family = rc == CU_OK ? family : NULL;
	*(rc == CU_OK ? &granted : &refused) += 1;
}

static void *run(void *number) {
	unsigned int dice = seed * 1000 + (unsigned int)(uintptr_t)number;
	struct thing things[HELD] = {{0}};
	CALL("cuCtxSetCurrent", (void *), contexts[(uintptr_t)number % devices]);
	family_device((int)((uintptr_t)number % devices));
	for (unsigned int step = 0; steps == 0 || step < steps; step++) {
		struct thing *thing = &things[(unsigned int)rand_r(&dice) % HELD];
		if (thing->family != NULL) {
			give(thing);
		} else {
			take(thing, &dice);
		}
	}
	for (int i = 0; i < HELD; i++) {
		if (things[i].family != NULL) {
			give(&things[i]);
		}
	}
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t threads[64];
	if (argc < 5) {
		return 2;
	}
	seed = (unsigned int)atoi(argv[1]);
	uintptr_t count = (uintptr_t)atoi(argv[2]);
	steps = (unsigned int)atoi(argv[3]);
	most_mib = (unsigned int)atoi(argv[4]);
	devices = argc > 5 ? (unsigned int)atoi(argv[5]) : 1;
	if (CALL("cuInit", (unsigned int), 0) != CU_OK) {
		return 4;
	}
	for (unsigned int d = 0; d < devices; d++) {
		if (CALL("cuDevicePrimaryCtxRetain", (void **, int), &contexts[d], (int)d) != CU_OK) {
			return 4;
		}
	}
	printf("ready\n");
	fflush(stdout);
	for (uintptr_t i = 1; i < count; i++) {
		pthread_create(&threads[i], NULL, run, (void *)i);
	}
	run((void *)0);
	for (uintptr_t i = 1; i < count; i++) {
		pthread_join(threads[i], NULL);
	}
	CALL("cuCtxSynchronize", (void));
	printf("done %u %u\n", granted, refused);
	return 0;
}
