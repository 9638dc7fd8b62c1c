/* One of many processes that allocate at once: as fast as it can, until the time is over, keeping some. It calls
 * LEAST times at least, however little of that time the machine gave it.
 *
 * Usage: crowd SECONDS SEED KEEP. Starts at a line on standard input, prints "PAIRS REFUSED KEPT_BYTES LONGEST_US"
 * when the time is over, and keeps what it has until the next line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);

#define MOST 64
#define LEAST 10000

static struct {
	unsigned long long at;
	size_t bytes;
} held[MOST];

static double now_s(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(int rc) {
	if (rc != 0) {
		fprintf(stderr, "the driver answers %d\n", rc);
		exit(1);
	}
}

int main(int argc, char **argv) {
	void *context;
	unsigned long calls = 0, pairs = 0, refused = 0;
	double longest = 0;
	if (argc != 4) {
		return 2;
	}
	unsigned int dice = (unsigned int)atoi(argv[2]);
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	printf("ready\n");
	fflush(stdout);
	getchar();
	for (double end = now_s() + atof(argv[1]), last = now_s(); last < end || calls < LEAST; calls++) {
		int i = (int)((unsigned int)rand_r(&dice) % (unsigned int)atoi(argv[3]));
		if (held[i].bytes != 0) {
			must(cuMemFree_v2(held[i].at));
			held[i].bytes = 0;
			pairs++;
		} else {
			held[i].bytes = 4096 * (1 + (unsigned int)rand_r(&dice) % 512);
			int rc = cuMemAlloc_v2(&held[i].at, held[i].bytes);
			if (rc != 0) {
				held[i].bytes = 0;
				refused += rc == 2;
				must(rc == 2 ? 0 : rc);
			}
		}
		double now = now_s();
		longest = now - last > longest ? now - last : longest;
		last = now;
	}
	unsigned long long kept = 0;
	for (int i = 0; i < MOST; i++) {
		kept += held[i].bytes;
	}
	printf("%lu %lu %llu %.0f\n", pairs, refused, kept, longest * 1e6);
	fflush(stdout);
	getchar();
	return 0;
}
