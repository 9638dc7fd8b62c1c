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

#include "clock.h"
#include "environment.h"
#include "latch.h"
#include "say.h"
#include "slot.h"

struct slice slice;

static void forget_in_child(void) {
	struct process *process = slice_process();
	if (process != NULL) {
		memset(process, 0, sizeof(*process));
	}
}

/* For a process whose kernel has no memory to give. */
static struct process spare;

/* Memory that a child finds empty. */
static struct process *process_memory(void) {
	struct process *known = slice_process();
	if (known != NULL) {
		return known;
	}
	const size_t size = sizeof(struct process);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool wiped = at != MAP_FAILED && madvise(at, size, MADV_WIPEONFORK) == 0;
	struct process *made = at != MAP_FAILED ? at : &spare;
	struct process *expected = NULL;
	if (!atomic_compare_exchange_strong(&slice.process, &expected, made)) {
		if (at != MAP_FAILED) {
			munmap(at, size);
		}
		return expected;
	}
	if (!wiped) { /* or a kernel before 4.14 */
		pthread_atfork(NULL, NULL, forget_in_child);
	}
	return made;
}

/* What the agent says; nothing if that can't be read. */
static void read_fault_word(char *word, size_t size) {
	const int fd = open(REGION_FAULT_PATH, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const ssize_t count = fd < 0 ? -1 : read(fd, word, size - 1);
	word[count > 0 ? count : 0] = '\0';
	word[strcspn(word, "\n")] = '\0';
	if (fd >= 0) {
		close(fd);
	}
}

/* Whether a region that can't be used lets programs run without limits. Where the agent made the region it
 * is the agent's to say: a pod that breaks its region must not also choose what follows. */
static bool fault_is_open(void) {
	char word[16] = "";
	if (strcmp(slice.path, REGION_PATH) == 0) {
		read_fault_word(word, sizeof(word));
	} else if (!environment_value("VOLCANO_PY_REGION_FAULT", word, sizeof(word))) {
		return false;
	}
	return strcmp(word, "open") == 0;
}

void slice_fail(const char *why) {
	const bool open = fault_is_open();
	int state = atomic_load(&slice.state);
	const int next = open ? SLICE_OFF : SLICE_CLOSED;
	while (state != SLICE_OFF && state != SLICE_CLOSED) {
		if (atomic_compare_exchange_weak(&slice.state, &state, next)) {
			say("%s: %s; %s", slice.path, why,
			    open ? "this process runs without limits, as is configured"
				 : "all use of card memory is refused");
		}
	}
}

#define RETRY_NS UINT64_C(100000000)

/* Something is short that may not be later: nothing is granted until a start succeeds. */
static void wait_for_better(const char *why) {
	struct process *process = slice_process();
	if (atomic_exchange(&process->retry_ns, clock_ns() + RETRY_NS) == 0) {
		say("%s: %s; no card memory is granted until that passes", slice.path, why);
	}
}

static void fail_or_wait(int fault, const char *why) {
	if (environment_passes(fault)) {
		wait_for_better(strerror(fault));
	} else {
		slice_fail(why);
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
		fail_or_wait(errno, "can't be mapped");
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
		fail_or_wait(errno, strerror(errno));
		return;
	}
	map_region(fd);
	close(fd);
}

/* Room for all of the file now: a page that the disk has no room for would end whoever touches it. */
static bool make_room(int fd, off_t size) {
	const int fault = posix_fallocate(fd, 0, size);
	errno = fault;
	return fault == EOPNOTSUPP ? ftruncate(fd, size) == 0 : fault == 0;
}

/* Writes a region from the environment, unless another process was first. Returns an errno, 0 if it's there. */
static int make_region(const struct environment *environment) {
	char scratch[sizeof(slice.path) + 32];
	snprintf(scratch, sizeof(scratch), "%s.%d", slice.path, (int)getpid());
	const int fd = open(scratch, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		return errno;
	}
	const size_t size = sizeof(struct region);
	void *at = MAP_FAILED;
	if (make_room(fd, (off_t)size) && fchmod(fd, 0666) == 0) {
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	int fault = errno;
	if (at != MAP_FAILED) {
		region_format(at, environment->devices, REGION_DEVICES, environment->priority,
			      environment->policy, 0);
		munmap(at, size);
		fault = link(scratch, slice.path) == 0 || errno == EEXIST ? 0 : errno;
	}
	unlink(scratch);
	close(fd);
	return fault;
}

static void find_by_environment(void) {
	struct environment environment;
	const bool found = environment_read(&environment);
	if (environment_was_cut()) {
		wait_for_better("what the container's first process says of it can't be read");
		return;
	}
	if (!found) {
		atomic_store(&slice.state, SLICE_OFF);
		return;
	}
	snprintf(slice.path, sizeof(slice.path), "%s", environment.path);
	const int fault = access(slice.path, F_OK) != 0 ? make_region(&environment) : 0;
	if (fault != 0) {
		fail_or_wait(fault, "can't be made");
		return;
	}
	open_region();
}

static void find_region(void) {
	environment_begin();
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
		wait_for_better(why);
		return;
	}
	atomic_store(&process->slot, (uint32_t)(slot + 1));
	slot_sweep(slice.region, slice.path, slot);
}

/* Finds the region, and takes a slot in it, as far as that is not done. Returns whether it is now. */
static bool start(struct process *process) {
	if (atomic_load(&slice.state) == SLICE_UNKNOWN) {
		find_region();
	}
	if (atomic_load(&slice.state) == SLICE_ON && slice_slot() < 0) {
		take_slot(process);
	}
	const int state = atomic_load(&slice.state);
	const bool done = state == SLICE_OFF || state == SLICE_CLOSED ||
			  (state == SLICE_ON && slice_slot() >= 0);
	if (done && state == SLICE_ON && atomic_load(&process->retry_ns) != 0) {
		say("%s: card memory is granted again", slice.path);
	}
	return done;
}

enum slice_state slice_start(void) {
	struct process *process = process_memory();
	const uint64_t retry = atomic_load(&process->retry_ns);
	if (retry != 0 && !atomic_load(&process->ready) && clock_ns() < retry) {
		return SLICE_CLOSED;
	}
	latch_lock(&process->starting);
	if (!atomic_load(&process->ready) && start(process)) {
		atomic_store(&process->ready, 1);
	}
	latch_unlock(&process->starting);
	return atomic_load(&process->ready) ? (enum slice_state)atomic_load(&slice.state)
					    : SLICE_CLOSED;
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
