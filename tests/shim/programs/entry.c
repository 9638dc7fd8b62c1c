#include "entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 256

static const char *chosen = "dlsym";

static struct {
	char symbol[96];
	char base[96];
	int version;
	unsigned long long flags;
} names[NAMES];
static int name_count;

static int (*proc_v1)(const char *, void **, int, unsigned long long);
static int (*proc_v2)(const char *, void **, int, unsigned long long, int *);

#ifdef LINKED
/* Made by the tests' build: the address of every name in the list, as the linker gives it. */
#include "linked.h"
#else
static void *linked(const char *symbol) {
	fprintf(stderr, "this program is not linked with the driver: %s\n", symbol);
	exit(3);
}
#endif

static void read_table(const char *table) {
	FILE *file = fopen(table, "r");
	if (file == NULL) {
		perror(table);
		exit(3);
	}
	while (name_count < NAMES && fscanf(file, "%95s %95s %d %llu", names[name_count].symbol, names[name_count].base,
	                                    &names[name_count].version, &names[name_count].flags) == 4) {
		name_count++;
	}
	fclose(file);
}

/* NVML is always found by dlsym: it has no other lookup. */
static void *library(const char *symbol) {
	static void *cuda, *nvml;
	void **place = strncmp(symbol, "nvml", 4) == 0 ? &nvml : &cuda;
	if (*place == NULL) {
		*place = dlopen(place == &nvml ? "libnvidia-ml.so.1" : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	}
	if (*place == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return *place;
}

void entry_choose(const char *way, const char *table) {
	chosen = way;
	read_table(table);
	if (strcmp(way, "proc") == 0 || strcmp(way, "proc2") == 0) {
		*(void **)&proc_v1 = dlsym(library("cu"), "cuGetProcAddress");
		*(void **)&proc_v2 = dlsym(library("cu"), "cuGetProcAddress_v2");
	}
}

static void *by_driver(const char *symbol) {
	void *found = NULL;
	int status = 0, name = 0;
	while (name < name_count && strcmp(names[name].symbol, symbol) != 0) {
		name++;
	}
	if (name == name_count) {
		return dlsym(library(symbol), symbol);
	}
	int rc = strcmp(chosen, "proc") == 0
	             ? proc_v1(names[name].base, &found, names[name].version, names[name].flags)
	             : proc_v2(names[name].base, &found, names[name].version, names[name].flags, &status);
	return rc == 0 && status == 0 ? found : NULL;
}

static void *find(const char *symbol) {
	if (strcmp(chosen, "direct") == 0) {
		return linked(symbol);
	}
	if (strcmp(chosen, "dlvsym") == 0) {
		return dlvsym(library(symbol), symbol, "libcuda.so.1");
	}
	if (strcmp(chosen, "default") == 0) {
		library(symbol);
		return dlsym(RTLD_DEFAULT, symbol);
	}
	if (strncmp(chosen, "proc", 4) == 0 && strncmp(symbol, "nvml", 4) != 0) {
		return by_driver(symbol);
	}
	return dlsym(library(symbol), symbol);
}

static void *find_once(const char *symbol) {
	static struct {
		char symbol[96];
		void *found;
	} known[NAMES];
	static int count;
	for (int i = 0; i < count; i++) {
		if (strcmp(known[i].symbol, symbol) == 0) {
			return known[i].found;
		}
	}
	void *found = find(symbol);
	if (count < NAMES) {
		snprintf(known[count].symbol, sizeof known[count].symbol, "%s", symbol);
		known[count++].found = found;
	}
	return found;
}

void *entry_find(const char *symbol) {
	static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&guard);
	void *found = find_once(symbol);
	pthread_mutex_unlock(&guard);
	return found;
}

void *entry(const char *symbol) {
	void *found = entry_find(symbol);
	if (found == NULL) {
		fprintf(stderr, "no %s by %s\n", symbol, chosen);
		exit(3);
	}
	return found;
}

const char *owner_of(const void *at) {
	Dl_info info;
	if (at == NULL || dladdr(at, &info) == 0) {
		return "nowhere";
	}
	const char *slash = strrchr(info.dli_fname, '/');
	return slash == NULL ? info.dli_fname : slash + 1;
}
