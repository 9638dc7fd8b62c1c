/* Takes memory in each way of a CUDA runtime: 1 MiB more than is free, then 64 MiB, which it gives back.
 *
 * A line for each way: NAME, the code of the first, the code of the second, MiB that the second took, the code of the
 * free, and MiB that are missing then; in the end "total MIB". What a runtime doesn't have answers 801. Linked to a runtime (LINKED), or told its file and
 * whether it shall have a namespace of its own ("private"). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

/* What is called of the runtime. */
#define CALLS(call)                                          \
	call(cudaFree, (void *))                             \
	call(cudaMemGetInfo, (size_t *, size_t *))           \
	call(cudaDeviceSynchronize, (void))                  \
	call(cudaMalloc, (void **, size_t))                  \
	call(cudaMallocManaged, (void **, size_t, unsigned)) \
	call(cudaMallocPitch, (void **, size_t *, size_t, size_t)) \
	call(cudaMallocAsync, (void **, size_t, void *))     \
	call(cudaMallocAsync_ptsz, (void **, size_t, void *))

#ifdef LINKED
#define CALL(name, types) int name types;
CALLS(CALL)

static void find(char **arguments) {
	(void)arguments;
}
#else
#define CALL(name, types) static int(*name) types;
CALLS(CALL)

static int absent(void) {
	return 801;
}

static void *wanted(void *runtime, const char *name) {
	void *found = dlsym(runtime, name);
	return found != NULL ? found : (void *)absent;
}

static void find(char **arguments) {
	void *runtime = strcmp(arguments[2], "private") == 0 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW)
	                                                     : dlopen(arguments[1], RTLD_NOW);
	if (runtime == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
#define FIND(name, types) name = (int(*) types)wanted(runtime, #name);
	CALLS(FIND)
}
#endif

static int by_malloc(void **out, size_t bytes) {
	return cudaMalloc(out, bytes);
}

static int managed(void **out, size_t bytes) {
	return cudaMallocManaged(out, bytes, 1);
}

static int pitch(void **out, size_t bytes) {
	size_t bytes_a_row;
	return cudaMallocPitch(out, &bytes_a_row, MIB, bytes / MIB);
}

static int async(void **out, size_t bytes) {
	return cudaMallocAsync(out, bytes, NULL);
}

static int async_per_thread(void **out, size_t bytes) {
	return cudaMallocAsync_ptsz(out, bytes, NULL);
}

static const struct {
	const char *name;
	int (*take)(void **, size_t);
} ways[] = {{"cudaMalloc", by_malloc},
            {"cudaMallocManaged", managed},
            {"cudaMallocPitch", pitch},
            {"cudaMallocAsync", async},
            {"cudaMallocAsync_ptsz", async_per_thread}};

static long long unused_mib(void) {
	size_t unused = 0, total = 0;
	cudaDeviceSynchronize();
	cudaMemGetInfo(&unused, &total);
	return (long long)(unused / MIB);
}

int main(int argc, char **argv) {
	size_t unused = 0, total = 0;
	(void)argc;
	find(argv);
	int rc = cudaFree(NULL);
	if (rc != 0) {
		fprintf(stderr, "the runtime answers %d\n", rc);
		return 4;
	}
	const long long before = unused_mib();
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		void *at = NULL;
		int over = ways[i].take(&at, (size_t)(before + 1) * MIB), part = ways[i].take(&at, 64 * MIB);
		long long taken = before - unused_mib();
		int freed = cudaFree(at);
		printf("%s %d %d %lld %d %lld\n", ways[i].name, over, part, taken, freed, before - unused_mib());
	}
	cudaMemGetInfo(&unused, &total);
	printf("total %llu\n", total / MIB);
	return 0;
}
