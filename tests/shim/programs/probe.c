/* Does with the driver what it is told on standard input, a line each, and answers a line each.
 *
 * Usage: probe WAY TABLE (see entry.h). The first word of an answer is the driver's code, where there is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define HELD 4096

static struct held things[HELD];

struct held *thing(const char *name, int make) {
	struct held *unused = NULL;
	for (int i = 0; i < HELD; i++) {
		if (strcmp(things[i].name, name) == 0) {
			return &things[i];
		}
		if (unused == NULL && things[i].name[0] == '\0') {
			unused = &things[i];
		}
	}
	if (make && unused != NULL) {
		snprintf(unused->name, sizeof unused->name, "%s", name);
	}
	return make ? unused : NULL;
}

/* take NAME FAMILY BYTES: the code, and whether a refusal left the output alone */
static void take(char **word) {
	const struct family *family = family_of(word[2]);
	if (family == NULL) {
		printf("no family %s\n", word[2]);
		return;
	}
	address at = 0xabcdef;
	uint64_t bytes = strtoull(word[3], NULL, 10);
	int rc = family->take(&at, bytes);
	if (rc == CU_OK) {
		struct held *held = thing(word[1], 1);
		held->family = family;
		held->at = at;
		held->bytes = bytes;
	}
	printf("%d %s\n", rc, rc == CU_OK || at == 0xabcdef ? "clean" : "touched");
}

/* give NAME */
static void give(char **word) {
	struct held *held = thing(word[1], 0);
	if (held == NULL) {
		printf("nothing\n");
		return;
	}
	int rc = held->family->give(held->at, held->bytes);
	if (rc == CU_OK) {
		held->name[0] = '\0';
	}
	printf("%d\n", rc);
}

/* give_address FAMILY ADDRESS BYTES: gives what was given before, or never taken */
static void give_address(char **word) {
	printf("%d\n", family_of(word[1])->give(strtoull(word[2], NULL, 10), strtoull(word[3], NULL, 10)));
}

static void where(char **word) {
	struct held *held = thing(word[1], 0);
	printf("%llu\n", held == NULL ? 0 : held->at);
}

static void init(char **word) {
	(void)word;
	printf("%d\n", CALL("cuInit", (unsigned int), 0));
}

/* retain DEVICE: its primary context, made current */
static void retain(char **word) {
	void *context = NULL;
	int device = atoi(word[1]);
	int rc = CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
	if (rc == CU_OK) {
		rc = CALL("cuCtxSetCurrent", (void *), context);
		family_device(device);
	}
	printf("%d\n", rc);
}

/* device_call SYMBOL DEVICE: any function of one device */
static void device_call(char **word) {
	printf("%d\n", CALL(word[1], (int), atoi(word[2])));
}

static void none(char **word) {
	printf("%d\n", CALL("cuCtxSetCurrent", (void *), NULL));
	(void)word;
}

/* context NAME SYMBOL DEVICE */
static void context(char **word) {
	void *made = NULL;
	int rc, device = atoi(word[3]);
	if (strcmp(word[2], "cuCtxCreate_v3") == 0) {
		rc = CALL(word[2], (void **, void *, int, unsigned int, int), &made, NULL, 0, 0, device);
	} else if (strcmp(word[2], "cuCtxCreate_v4") == 0) {
		rc = CALL(word[2], (void **, void *, unsigned int, int), &made, NULL, 0, device);
	} else {
		rc = CALL(word[2], (void **, unsigned int, int), &made, 0, device);
	}
	if (rc == CU_OK) {
		thing(word[1], 1)->at = (address)(uintptr_t)made;
		family_device(device);
	}
	printf("%d\n", rc);
}

/* destroy NAME SYMBOL */
static void destroy(char **word) {
	struct held *held = thing(word[1], 0);
	int rc = CALL(word[2], (void *), (void *)(uintptr_t)held->at);
	held->name[0] = '\0';
	printf("%d\n", rc);
}

/* info: code, free and total of the card; code and total of the device */
static void info(char **word) {
	size_t unused = 0, total = 0, device_total = 0;
	int device = word[1] == NULL ? 0 : atoi(word[1]);
	int rc = CALL("cuMemGetInfo_v2", (size_t *, size_t *), &unused, &total);
	int device_rc = CALL("cuDeviceTotalMem_v2", (size_t *, int), &device_total, device);
	printf("%d %zu %zu %d %zu\n", rc, unused, total, device_rc, device_total);
}

/* nullinfo: the driver's answer to one output missing, then the other */
static void null_info(char **word) {
	size_t bytes = 0;
	(void)word;
	int one = CALL("cuMemGetInfo_v2", (size_t *, size_t *), &bytes, NULL);
	int other = CALL("cuMemGetInfo_v2", (size_t *, size_t *), NULL, &bytes);
	printf("%d %d\n", one, other);
}

/* launch SYMBOL FUNCTION_US BLOCKS COUNT */
static void launch(char **word) {
	address function = strtoull(word[2], NULL, 10) + 1;
	unsigned int blocks = (unsigned int)atoi(word[3]);
	int rc = CU_OK;
	for (int i = atoi(word[4]); i > 0 && rc == CU_OK; i--) {
		rc = CALL(word[1],
		          (address, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		           unsigned int, void *, void **, void **),
		          function, blocks, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	}
	printf("%d\n", rc);
}

static void whose(char **word) {
	printf("%s\n", owner_of(entry_find(word[1])));
}

/* fork HOW: what a child of that kind leaves behind; it ends at once */
static void fork_child(char **word) {
	pid_t child;
	fflush(stdout);
	if (strcmp(word[1], "clone") == 0) {
		child = (pid_t)syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
	} else {
		child = strcmp(word[1], "vfork") == 0 ? vfork() : fork();
	}
	if (child == 0) {
		if (strcmp(word[1], "exec") == 0) {
			execl("/bin/true", "true", (char *)NULL);
		}
		if (strcmp(word[1], "exit") == 0) {
			exit(0);
		}
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("done\n");
}

/* child: from now on we are a child of ours, which has nothing yet */
static void become_child(char **word) {
	(void)word;
	fflush(stdout);
	pid_t child = fork();
	if (child != 0) {
		int status = 0;
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	memset(things, 0, sizeof things);
	printf("%d\n", (int)getpid());
}

/* forget: a context's end was the end of all that has a name */
static void forget(char **word) {
	(void)word;
	memset(things, 0, sizeof things);
	printf("0\n");
}

static void synchronize(char **word) {
	(void)word;
	printf("%d\n", CALL("cuCtxSynchronize", (void)));
}

static const struct command commands[] = {
    {"take", take, 4},
    {"give", give, 2},
    {"give_address", give_address, 4},
    {"where", where, 2},
    {"init", init, 1},
    {"retain", retain, 2},
    {"none", none, 1},
    {"device_call", device_call, 3},
    {"context", context, 4},
    {"destroy", destroy, 3},
    {"info", info, 1},
    {"nullinfo", null_info, 1},
    {"launch", launch, 5},
    {"whose", whose, 2},
    {"fork", fork_child, 2},
    {"child", become_child, 1},
    {"forget", forget, 1},
    {"device_sync", synchronize, 1},
    {NULL, NULL, 0},
};

static const struct command *command_of(const struct command *list, const char *name) {
	while (list->name != NULL && strcmp(list->name, name) != 0) {
		list++;
	}
	return list->name != NULL ? list : NULL;
}

static void obey(char *line) {
	char *word[8] = {NULL}, *rest = NULL;
	int count = 0;
	for (char *at = strtok_r(line, " \n", &rest); at != NULL && count < 7; at = strtok_r(NULL, " \n", &rest)) {
		word[count++] = at;
	}
	const struct command *command = count == 0 ? NULL : command_of(commands, word[0]);
	if (command == NULL && count > 0) {
		command = command_of(memory_commands, word[0]);
	}
	if (command != NULL && count >= command->words) {
		command->run(word);
		return;
	}
	printf("no command\n");
}

int main(int argc, char **argv) {
	char line[512];
	if (argc != 3) {
		fprintf(stderr, "usage: probe WAY TABLE\n");
		return 2;
	}
	entry_choose(argv[1], argv[2]);
	while (fgets(line, sizeof line, stdin) != NULL) {
		obey(line);
		fflush(stdout);
	}
	return 0;
}
