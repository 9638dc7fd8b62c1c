/* Parses HAMi's variables. */
#define _GNU_SOURCE
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static _Atomic bool cut;

void environment_begin(void) {
	atomic_store(&cut, false);
}

bool environment_was_cut(void) {
	return atomic_load(&cut);
}

bool environment_passes(int fault) {
	return fault == EMFILE || fault == ENFILE || fault == ENOMEM || fault == EAGAIN ||
	       fault == EINTR || fault == ENOSPC;
}

/* Copies the value of *name* in a block of zero-ended NAME=VALUE. */
static bool value_in(const char *block, size_t size, const char *name, char *value, size_t room) {
	const size_t length = strlen(name);
	for (size_t at = 0; at < size; at += strnlen(block + at, size - at) + 1) {
		const char *entry = block + at;
		if (size - at > length && strncmp(entry, name, length) == 0 && entry[length] == '=') {
			snprintf(value, room, "%s", entry + length + 1);
			return true;
		}
	}
	return false;
}

static bool value_of_first_process(const char *name, char *value, size_t size) {
	char block[16384];
	const int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (environment_passes(errno)) {
			atomic_store(&cut, true);
		}
		return false;
	}
	size_t length = 0;
	ssize_t got;
	while (length < sizeof(block) - 1 &&
	       (got = read(fd, block + length, sizeof(block) - 1 - length)) > 0) {
		length += (size_t)got;
	}
	close(fd);
	block[length] = 0;
	return value_in(block, length, name, value, size);
}

bool environment_value(const char *name, char *value, size_t size) {
	const char *own = getenv(name);
	if (own != NULL) {
		snprintf(value, size, "%s", own);
		return true;
	}
	return value_of_first_process(name, value, size);
}

/* The variable for position *i*, or else the one for all. */
static bool value_at(const char *name, int i, char *value, size_t size) {
	char numbered[64];
	snprintf(numbered, sizeof(numbered), "%s_%d", name, i);
	return environment_value(numbered, value, size) || environment_value(name, value, size);
}

/* Bytes, with g, m or k for powers of 1024; 0 where it is none. */
static uint64_t parse_bytes(const char *text) {
	char *end = NULL;
	const unsigned long long number = strtoull(text, &end, 10);
	const int shift = strcasecmp(end, "g") == 0   ? 30
			  : strcasecmp(end, "m") == 0 ? 20
			  : strcasecmp(end, "k") == 0 ? 10
						      : 0;
	return number > (REGION_BYTES_MASK >> shift) ? 0 : (uint64_t)number << shift;
}

static uint32_t parse_percent(const char *text) {
	const unsigned long percent = strtoul(text, NULL, 10);
	return percent > 100 ? 0 : (uint32_t)percent;
}

static uint32_t read_policy(void) {
	char value[32];
	if (!environment_value("GPU_CORE_UTILIZATION_POLICY", value, sizeof(value))) {
		return REGION_CORES_SHARED;
	}
	if (strcasecmp(value, "force") == 0) {
		return REGION_CORES_ALWAYS;
	}
	return strcasecmp(value, "disable") == 0 ? REGION_CORES_NEVER : REGION_CORES_SHARED;
}

static bool read_device(struct region_device *device, int i) {
	char value[64];
	bool found = false;
	if (value_at("CUDA_DEVICE_MEMORY_LIMIT", i, value, sizeof(value))) {
		device->memory_limit = parse_bytes(value);
		found = true;
	}
	if (environment_value("NPU_MEM_QUOTA", value, sizeof(value))) { /* MiB, of each device */
		device->memory_limit = strtoull(value, NULL, 10) << 20 & REGION_BYTES_MASK >> 1;
		found = true;
	}
	if (value_at("CUDA_DEVICE_SM_LIMIT", i, value, sizeof(value))) {
		device->cores = parse_percent(value);
		found = true;
	}
	return found;
}

bool environment_read(struct environment *environment) {
	char value[480];
	memset(environment, 0, sizeof(*environment));
	bool found = environment_value("CUDA_DEVICE_MEMORY_SHARED_CACHE", value, sizeof(value));
	snprintf(environment->path, sizeof(environment->path), "%s.quota",
		 found ? value : "/tmp/cudevshr.cache");
	for (int i = 0; i < REGION_DEVICES; i++) {
		found |= read_device(&environment->devices[i], i);
	}
	const bool has_priority = environment_value("CUDA_TASK_PRIORITY", value, sizeof(value));
	environment->priority = has_priority ? (uint32_t)strtoul(value, NULL, 10) : 1;
	environment->policy = read_policy();
	return found || access(environment->path, F_OK) == 0;
}
