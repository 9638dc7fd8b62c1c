/* Whole processes over broken regions: each time the file is made anew from a good one, a few bytes of it are broken,
 * and a child uses the card.
 *
 * Usage: fuzz GOOD REGION COUNT SEED; REGION is the file that the library will open. A child may be refused
 * everything, but it must end by itself, and within the time of a blink. Prints how many children got memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"

#define MOST (1 << 20)
#define STOP_WORD 72

static unsigned char good[MOST], broken[MOST];

static size_t read_good(const char *path) {
	int fd = open(path, O_RDONLY);
	ssize_t size = fd < 0 ? -1 : read(fd, good, MOST);
	if (size <= 0) {
		perror(path);
		exit(2);
	}
	close(fd);
	return (size_t)size;
}

static size_t place(unsigned int *dice, size_t size) {
	/* Where something stands: the head, or a slot's or a card's words. */
	size_t reach = (unsigned int)rand_r(dice) % 3 == 0 ? size : 8192;
	return (size_t)rand_r(dice) % (reach < size ? reach : size);
}

/* Breaks a copy; its size. */
static size_t mutate(unsigned int *dice, size_t size) {
	memcpy(broken, good, size);
	for (int changes = 1 + rand_r(dice) % 6; changes > 0; changes--) {
		size_t at = place(dice, size);
		switch (rand_r(dice) % 4) {
		case 0:
			broken[at] ^= (unsigned char)(1u << (rand_r(dice) % 8));
			break;
		case 1:
			memset(broken + at, 0xff, size - at < 8 ? size - at : 8);
			break;
		case 2:
			broken[at] = (unsigned char)rand_r(dice);
			break;
		default:
			memset(broken + at, 0, size - at < 64 ? size - at : 64);
		}
	}
	/* The agent's stop word holds launches for as long as it says, so it is left alone. */
	memcpy(broken + STOP_WORD, good + STOP_WORD, 8);
	return rand_r(dice) % 16 == 0 ? (size_t)rand_r(dice) % size : size;
}

static void write_broken(const char *path, size_t size) {
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || write(fd, broken, size) != (ssize_t)size) {
		perror(path);
		exit(2);
	}
	close(fd);
}

/* 0: refused, 1: got memory */
static int use_the_card(void) {
	void *context = NULL;
	address at = 0;
	size_t unused, total;
	alarm(60);
	CALL("cuInit", (unsigned int), 0);
	if (CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0) != CU_OK) {
		return 0;
	}
	CALL("cuCtxSetCurrent", (void *), context);
	CALL("cuMemGetInfo_v2", (size_t *, size_t *), &unused, &total);
	int rc = CALL("cuMemAlloc_v2", (address *, size_t), &at, 1 << 20);
	CALL("cuLaunchKernel",
	     (address, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, void *,
	      void **, void **),
	     1, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	if (rc == CU_OK) {
		CALL("cuMemFree_v2", (address), at);
	}
	return rc == CU_OK;
}

int main(int argc, char **argv) {
	if (argc != 5) {
		return 2;
	}
	size_t size = read_good(argv[1]);
	unsigned int dice = (unsigned int)atoi(argv[4]), granted = 0;
	/* Found once, for all children. */
	entry("cuInit");
	for (int i = atoi(argv[3]); i > 0; i--) {
		int status = 0;
		write_broken(argv[2], mutate(&dice, size));
		pid_t child = fork();
		if (child == 0) {
			_exit(use_the_card());
		}
		waitpid(child, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
			fprintf(stderr, "input %d of seed %s: the child ended with %d\n", i, argv[4], status);
			return 1;
		}
		granted += (unsigned int)WEXITSTATUS(status);
	}
	printf("%u\n", granted);
	return 0;
}
