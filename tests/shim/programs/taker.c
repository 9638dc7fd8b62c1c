/* Takes card memory in steps of 64 MiB until the driver refuses, and prints how many MiB that were.
 *
 *     taker DRIVER          a driver by name or path
 *     taker DRIVER clear    the same in a program that was executed with nothing in its environment
 *     taker DRIVER fork     in a child that executes nothing, then in the parent while the child holds its part
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_MIB 64
#define MOST_MIB 16384

static int take(const char *driver) {
	void *handle = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	int (*init)(unsigned) = dlsym(handle, "cuInit");
	int (*get)(int *, int) = dlsym(handle, "cuDeviceGet");
	int (*create)(void **, unsigned, int) = dlsym(handle, "cuCtxCreate_v2");
	int (*allocate)(uint64_t *, size_t) = dlsym(handle, "cuMemAlloc_v2");
	int device = 0;
	void *context = NULL;
	if (init(0) != 0 || get(&device, 0) != 0 || create(&context, 0, device) != 0) {
		return -1;
	}
	int got = 0;
	uint64_t block = 0;
	while (got < MOST_MIB && allocate(&block, (size_t)STEP_MIB << 20) == 0) {
		got += STEP_MIB;
	}
	return got;
}

static void in_a_child_first(const char *driver) {
	int told[2], keep[2];
	if (pipe(told) != 0 || pipe(keep) != 0) {
		exit(2);
	}
	char word = 0;
	if (fork() == 0) {
		close(keep[1]);
		printf("%d ", take(driver));
		fflush(stdout);
		_exit(write(told[1], &word, 1) != 1 || read(keep[0], &word, 1) != 0);
	}
	if (read(told[0], &word, 1) != 1) {
		exit(2);
	}
	printf("%d\n", take(driver));
	close(keep[1]);
	wait(NULL);
}

int main(int count, char **words) {
	const char *how = count > 2 ? words[2] : "";
	if (strcmp(how, "clear") == 0) {
		const char *stub = getenv("STUB_DRIVER");
		clearenv();
		setenv("STUB_DRIVER", stub == NULL ? "" : stub, 1);
		execl(words[0], words[0], words[1], (char *)NULL);
		return 2;
	}
	if (strcmp(how, "fork") == 0) {
		in_a_child_first(words[1]);
		return 0;
	}
	printf("%d\n", take(words[1]));
	return 0;
}
