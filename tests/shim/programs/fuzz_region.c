/* The library's judgement of region files, compiled by itself: any bytes are an input.
 *
 * Usage: fuzz_region COUNT SEED. What is broken where a checksum reaches must be found out; what is broken elsewhere
 * must do no harm. Compiled with the sanitizers.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

static struct region good;

static unsigned int draw(unsigned int *dice) {
	return (unsigned int)rand_r(dice);
}

/* Changes one byte below `reach`; 0 when the value was the same. */
static int change(unsigned char *bytes, size_t reach, unsigned int *dice) {
	size_t at = draw(dice) % reach;
	unsigned char before = bytes[at];
	bytes[at] = (unsigned char)draw(dice);
	return before != bytes[at];
}

/* In a buffer of exactly that size, so that a read past its end is seen. */
static int judge_short(const unsigned char *bytes, size_t size) {
	unsigned char *exact = malloc(size == 0 ? 1 : size);
	if (exact == NULL) {
		abort();
	}
	memcpy(exact, bytes, size);
	int faulty = region_fault(exact, size) != NULL;
	free(exact);
	return faulty;
}

int main(int argc, char **argv) {
	static unsigned char bytes[sizeof good];
	struct region_device device = {.uuid = "GPU-0", .memory_limit = 1 << 30, .cores = 50};
	if (argc != 3) {
		return 2;
	}
	unsigned int dice = (unsigned int)atoi(argv[2]);
	region_format(&good, &device, 1, 1, 1, REGION_BY_AGENT);
	for (int i = atoi(argv[1]); i > 0; i--) {
		size_t reach = i % 2 == 0 ? sizeof good.header : sizeof good.header + sizeof good.control + sizeof good.limits;
		memcpy(bytes, &good, sizeof good.header + sizeof good.control + sizeof good.limits);
		int changed = change(bytes, reach, &dice);
		if (changed && i % 2 == 0 && region_fault(bytes, sizeof good) == NULL) {
			fprintf(stderr, "a changed header was believed: input %d of seed %s\n", i, argv[2]);
			return 1;
		}
		for (unsigned int set = 0; set < 2; set++) {
			struct region_limits limits;
			memcpy(&limits, bytes + offsetof(struct region, limits) + set * sizeof limits, sizeof limits);
			size_t start = offsetof(struct region, limits) + set * sizeof limits;
			int touched = memcmp(bytes + start, (unsigned char *)&good + start, sizeof limits) != 0;
			if (set == 0 && touched && region_limits_fault(&limits) == NULL) {
				fprintf(stderr, "changed limits were believed: input %d of seed %s\n", i, argv[2]);
				return 1;
			}
		}
		if (i % 256 == 0) {
			judge_short(bytes, draw(&dice) % sizeof good);
		}
	}
	printf("done\n");
	return 0;
}
