/* The shared state: mapping it, claiming a slot, noticing deaths, and faults. Accounts are in books.c. */
#include "state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Slot bytes are locked beyond the end of the file, where nobody reads or writes. */
#define SLOT_LOCKS (1ll << 40)

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct stub_state *mapped;
static int tried;
static char path[PATH_MAX];

/* Zero in a child made by any kind of fork, so that the child claims a slot of its own. */
static struct own_page {
	_Atomic(struct stub_slot *) slot;
} *own;

/* STUB_DRIVER, else the file `state` beside this library (a login shell has no environment). */
static void find_path(void) {
	const char *named = getenv("STUB_DRIVER");
	Dl_info self;
	if (named != NULL) {
		snprintf(path, PATH_MAX, "%s", named);
		return;
	}
	if (dladdr((void *)find_path, &self) != 0) {
		const char *slash = strrchr(self.dli_fname, '/');
		int length = slash == NULL ? 0 : (int)(slash - self.dli_fname) + 1;
		snprintf(path, PATH_MAX, "%.*sstate", length, self.dli_fname);
	}
}

static struct stub_state *map_state(int fd) {
	struct stat status;
	if (fstat(fd, &status) != 0 || status.st_size != (off_t)sizeof(struct stub_state)) {
		return NULL;
	}
	void *memory = mmap(NULL, sizeof(struct stub_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		return NULL;
	}
	struct stub_state *state = memory;
	return state->magic == STUB_MAGIC && state->size == sizeof *state ? state : NULL;
}

static void open_once(void) {
	find_path();
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	struct stub_state *state = map_state(fd);
	close(fd);
	own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (state == NULL || own == MAP_FAILED) {
		return;
	}
	madvise(own, 4096, MADV_WIPEONFORK);
	__atomic_store_n(&mapped, state, __ATOMIC_RELEASE);
}

struct stub_state *stub_open(void) {
	struct stub_state *state = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);
	if (state != NULL) {
		return state;
	}
	pthread_mutex_lock(&opening);
	if (!tried) {
		open_once();
		tried = 1;
	}
	state = mapped;
	pthread_mutex_unlock(&opening);
	return state;
}

/* The sums of what living slots hold. A process that died with the lock may have left them half changed. */
static void recount(struct stub_state *state) {
	for (uint32_t c = 0; c < state->cards; c++) {
		state->card[c].used_bytes = 0;
		for (uint32_t k = 0; k < STUB_CONTAINERS; k++) {
			state->container[k].used_bytes[c] = 0;
		}
		for (uint32_t s = 0; s < state->slots_high; s++) {
			const struct stub_slot *slot = &state->slot[s];
			uint64_t bytes = slot->pid == 0 ? 0 : slot->used_bytes[c];
			state->card[c].used_bytes += bytes;
			state->container[slot->container].used_bytes[c] += bytes;
		}
	}
}

void stub_lock(struct stub_state *state) {
	int rc = pthread_mutex_lock(&state->lock);
	if (rc == EOWNERDEAD) {
		pthread_mutex_consistent(&state->lock);
		recount(state);
	} else if (rc != 0) {
		fprintf(stderr, "stub driver: the state's lock answers %s\n", strerror(rc));
		abort();
	}
}

void stub_unlock(struct stub_state *state) {
	pthread_mutex_unlock(&state->lock);
}

static int own_host_pid(void) {
	char text[32] = "";
	ssize_t length = readlink("/proc/self", text, sizeof text - 1);
	return length > 0 ? atoi(text) : (int)getpid();
}

/* The lock is the open file's, which only a mapping keeps open: children don't inherit it, and the kernel drops it
 * with the memory of the process. */
static int hold(int s) {
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SLOT_LOCKS + s, .l_len = 1};
	if (fd < 0) {
		return 0;
	}
	int held = fcntl(fd, F_OFD_SETLK, &lock) == 0;
	void *page = held ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (page != MAP_FAILED) {
		madvise(page, 4096, MADV_DONTFORK);
	}
	close(fd);
	return page != MAP_FAILED;
}

static int is_dead(int fd, int s) {
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SLOT_LOCKS + s, .l_len = 1};
	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static void bury(struct stub_state *state, struct stub_slot *slot) {
	for (uint32_t c = 0; c < state->cards; c++) {
		state->card[c].used_bytes -= slot->used_bytes[c];
		state->container[slot->container].used_bytes[c] -= slot->used_bytes[c];
	}
	for (uint32_t t = 0; t < STUB_TIMELINES; t++) {
		if (state->timeline[t].slot == (int32_t)(slot - state->slot) + 1) {
			memset(&state->timeline[t], 0, sizeof state->timeline[t]);
		}
	}
	memset(slot, 0, sizeof *slot);
}

void stub_sweep(struct stub_state *state) {
	int fd = open(path, O_RDWR | O_CLOEXEC);
	for (uint32_t s = 0; fd >= 0 && s < state->slots_high; s++) {
		if (state->slot[s].pid != 0 && is_dead(fd, (int)s)) {
			bury(state, &state->slot[s]);
		}
	}
	if (fd >= 0) {
		close(fd);
	}
}

static int own_container(const struct stub_state *state) {
	const char *name = getenv("STUB_CONTAINER");
	for (uint32_t k = 0; name != NULL && k < state->containers; k++) {
		if (strcmp(state->container[k].name, name) == 0) {
			return (int)k;
		}
	}
	return 0;
}

static struct stub_slot *claim(struct stub_state *state) {
	for (int s = 0; s < STUB_SLOTS; s++) {
		struct stub_slot *slot = &state->slot[s];
		if (slot->pid != 0 || !hold(s)) {
			continue;
		}
		slot->container = own_container(state);
		slot->host_pid = own_host_pid();
		slot->pid = getpid();
		if ((uint32_t)s >= state->slots_high) {
			state->slots_high = (uint32_t)s + 1;
		}
		return slot;
	}
	return NULL;
}

struct stub_slot *stub_slot(struct stub_state *state) {
	struct stub_slot *slot = own->slot;
	if (slot != NULL) {
		return slot;
	}
	stub_lock(state);
	slot = own->slot;
	if (slot == NULL) {
		stub_sweep(state);
		slot = claim(state);
		own->slot = slot;
	}
	stub_unlock(state);
	return slot;
}

uint64_t stub_now(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static int fault_code(struct stub_fault *fault) {
	uint64_t call = atomic_fetch_add(&fault->calls, 1) + 1;
	if (fault->delay_us != 0) {
		struct timespec delay = {fault->delay_us / 1000000, (long)(fault->delay_us % 1000000) * 1000};
		nanosleep(&delay, NULL);
	}
	return call >= fault->first && call - fault->first < fault->times ? fault->code : 0;
}

int stub_fault(struct stub_site *site) {
	struct stub_state *state = stub_open();
	atomic_fetch_add_explicit(&site->calls, 1, memory_order_relaxed);
	if (state == NULL) {
		return 0;
	}
	for (uint32_t f = 0; f < state->faults; f++) {
		if (strcmp(state->fault[f].symbol, site->symbol) == 0) {
			return fault_code(&state->fault[f]);
		}
	}
	return 0;
}

extern struct stub_site *const __start_stub_sites[];
extern struct stub_site *const __stop_stub_sites[];

/* How often this process reached the stub's function of that name; -1: there is no such function. */
STUB_EXPORT int64_t stub_calls(const char *symbol);

int64_t stub_calls(const char *symbol) {
	for (struct stub_site *const *site = __start_stub_sites; site < __stop_stub_sites; site++) {
		if (strcmp((*site)->symbol, symbol) == 0) {
			return (int64_t)(*site)->calls;
		}
	}
	return -1;
}
