/* Finds the region on the first call that matters, never before: a process that touches no card
 * pays nothing. Files: the agent's at its fixed place, which no variable can overrule; else the
 * one that VOLCANO_PY_REGION names; else, under HAMi's device plugin, one that we make. */
#define _GNU_SOURCE
#include "slice.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment.h"
#include "guard.h"
#include "say.h"
#include "slot.h"

struct slice slice;
__thread unsigned int guard_depth __attribute__((tls_model("initial-exec")));

static void forget_in_child(void) {
	struct process *process = slice_process();
	if (process != NULL) {
		memset(process, 0, sizeof(*process));
	}
}

/* Memory that a child finds empty. */
static struct process *process_memory(void) {
	struct process *known = slice_process();
	if (known != NULL) {
		return known;
	}
	const size_t size = sizeof(struct process);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		return NULL;
	}
	const bool wiped = madvise(at, size, MADV_WIPEONFORK) == 0;
	struct process *expected = NULL;
	if (!atomic_compare_exchange_strong(&slice.process, &expected, at)) {
		munmap(at, size);
		return expected;
	}
	if (!wiped) { /* a kernel before 4.14 */
		pthread_atfork(NULL, NULL, forget_in_child);
	}
	return at;
}

static bool fault_is_open(void) {
	char value[16];
	return environment_value("VOLCANO_PY_REGION_FAULT", value, sizeof(value)) &&
	       strcmp(value, "open") == 0;
}

void slice_fail(const char *why) {
	const bool open = fault_is_open();
	int state = atomic_load(&slice.state);
	const int next = open ? SLICE_OFF : SLICE_CLOSED;
	while (state != SLICE_OFF && state != SLICE_CLOSED) {
		if (atomic_compare_exchange_weak(&slice.state, &state, next)) {
			say("%s: %s; %s", slice.path, why,
			    open ? "this process runs without limits (VOLCANO_PY_REGION_FAULT=open)"
				 : "all use of card memory is refused");
		}
	}
}

static void map_region(int fd) {
	const off_t size = lseek(fd, 0, SEEK_END);
	if (size < 0) {
		slice_fail("not a regular file");
		return;
	}
	if ((uint64_t)size < sizeof(struct region)) {
		slice_fail("file is too short");
		return;
	}
	void *at = mmap(NULL, sizeof(struct region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		slice_fail("can't be mapped");
		return;
	}
	const char *fault = region_fault(at, (size_t)size);
	if (fault != NULL) {
		munmap(at, sizeof(struct region));
		slice_fail(fault);
		return;
	}
	slice.region = at;
	atomic_store(&slice.state, SLICE_ON);
}

static void open_region(void) {
	const int fd = open(slice.path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		slice_fail(strerror(errno));
		return;
	}
	map_region(fd);
	close(fd);
}

/* Room for all of the file now: a page that the disk has no room for would end whoever touches it. */
static bool make_room(int fd, off_t size) {
	const int fault = posix_fallocate(fd, 0, size);
	return fault == EOPNOTSUPP ? ftruncate(fd, size) == 0 : fault == 0;
}

/* Writes a region from the environment, unless another process was first. */
static bool make_region(const struct environment *environment) {
	char scratch[sizeof(slice.path) + 32];
	snprintf(scratch, sizeof(scratch), "%s.%d", slice.path, (int)getpid());
	const int fd = open(scratch, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		return false;
	}
	const size_t size = sizeof(struct region);
	void *at = MAP_FAILED;
	if (make_room(fd, (off_t)size) && fchmod(fd, 0666) == 0) {
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	bool made = false;
	if (at != MAP_FAILED) {
		region_format(at, environment->devices, REGION_DEVICES, environment->priority,
			      environment->policy, 0);
		munmap(at, size);
		made = link(scratch, slice.path) == 0 || errno == EEXIST;
	}
	unlink(scratch);
	close(fd);
	return made;
}

static void find_by_environment(void) {
	struct environment environment;
	if (!environment_read(&environment)) {
		atomic_store(&slice.state, SLICE_OFF);
		return;
	}
	snprintf(slice.path, sizeof(slice.path), "%s", environment.path);
	if (access(slice.path, F_OK) != 0 && !make_region(&environment)) {
		slice_fail("can't be made");
		return;
	}
	open_region();
}

static void find_region(void) {
	snprintf(slice.path, sizeof(slice.path), "%s", REGION_PATH);
	if (access(REGION_PATH, F_OK) == 0 ||
	    environment_value("VOLCANO_PY_REGION", slice.path, sizeof(slice.path))) {
		open_region();
	} else {
		find_by_environment();
	}
}

static void take_slot(struct process *process) {
	const char *why = NULL;
	const int slot = slot_claim(slice.region, slice.path, &why);
	if (slot < 0) {
		say("%s: %s; this process gets no card memory", slice.path, why);
	}
	atomic_store(&process->slot, (uint32_t)(slot + 1));
	slot_sweep(slice.region, slice.path, slot);
}

enum slice_state slice_start(void) {
	struct process *process = process_memory();
	if (process == NULL) {
		slice_fail("no memory");
		return SLICE_CLOSED;
	}
	pthread_mutex_lock(&process->starting);
	if (!atomic_load(&process->ready)) {
		if (atomic_load(&slice.state) == SLICE_UNKNOWN) {
			find_region();
		}
		if (atomic_load(&slice.state) == SLICE_ON) {
			take_slot(process);
		}
		atomic_store(&process->ready, 1);
	}
	pthread_mutex_unlock(&process->starting);
	return (enum slice_state)atomic_load(&slice.state);
}

/* Reads the set of limits in use until two readings make sense together: the agent may be writing
 * the other set while we look. */
const struct region_limits *slice_check_limits(void) {
	const char *fault = NULL;
	for (int i = 0; i < 1000; i++) {
		const uint32_t active = atomic_load(&slice.region->control.active);
		struct region_limits copy;
		memcpy(&copy, &slice.region->limits[active & 1], sizeof(copy));
		fault = active > 1 ? "no such set of limits" : region_limits_fault(&copy);
		if (fault == NULL && active == atomic_load(&slice.region->control.active)) {
			atomic_store(&slice.checked, copy.generation);
			return &slice.region->limits[active];
		}
		sched_yield();
	}
	slice_fail(fault != NULL ? fault : "limits change without end");
	return NULL;
}
