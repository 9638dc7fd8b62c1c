/* Asks the driver past the library: by a namespace of its own (dlmopen), or linked with nothing and loading nothing by
 * itself (static; see the tests). Takes MIB and waits for a line on standard input. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../stub/driver.h"

static void *private_driver;

static void *own(const char *symbol) {
	void *found = dlsym(private_driver, symbol);
	if (found == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return found;
}

int main(int argc, char **argv) {
	void *context = NULL;
	address at = 0;
	if (argc < 2) {
		return 2;
	}
	private_driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
	if (private_driver == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	((int (*)(unsigned int))own("cuInit"))(0);
	((int (*)(void **, int))own("cuDevicePrimaryCtxRetain"))(&context, 0);
	((int (*)(void *))own("cuCtxSetCurrent"))(context);
	int rc = ((int (*)(address *, size_t))own("cuMemAlloc_v2"))(&at, strtoull(argv[1], NULL, 10) << 20);
	printf("%d\n", rc);
	fflush(stdout);
	getchar();
	return 0;
}
