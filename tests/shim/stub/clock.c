/* A clock that stands still while anything runs and jumps to the next wake-up when all sleep.
 *
 * Preloaded before the library under test. STUB_CLOCK names a file that all processes of a test share. A thread
 * takes part from its first sleep on; one that waits for anything else than time holds the clock only for
 * PATIENCE_NS. state.py may say how many threads have to join before it runs at all. Reading the clock costs
 * READ_NS, so that a loop that waits by reading it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 256
#define PATIENCE_NS 240000000000ll
#define POLL_NS 100000000l
#define READ_NS 50
#define EXPORT __attribute__((visibility("default")))

/* Laid out by state.py. */
static struct shared {
	union {
		pthread_mutex_t lock;
		uint8_t room[64];
	};
	_Atomic uint64_t now_ns;
	_Atomic uint32_t jumps;
	uint32_t missing; /* threads that must still join before the first jump */
	_Atomic int64_t wall_ns; /* how far the wall clock is ahead of the others */
	struct {
		int32_t pid; /* 0: unused */
		int32_t padding;
		uint64_t wake_ns; /* 0: runs */
	} thread[THREADS];
} *shared;

static _Thread_local int place = -1;
static pthread_key_t ending;

static void lock(void) {
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
		pthread_mutex_consistent(&shared->lock);
	}
}

static void unlock(void) {
	pthread_mutex_unlock(&shared->lock);
}

static void leave(void *unused) {
	(void)unused;
	if (place >= 0) {
		shared->thread[place].pid = 0;
		place = -1;
	}
}

static void leave_in_child(void) {
	place = -1;
}

__attribute__((constructor)) static void map_clock(void) {
	const char *path = getenv("STUB_CLOCK");
	int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	pthread_key_create(&ending, leave);
	pthread_atfork(NULL, NULL, leave_in_child);
	shared = memory == MAP_FAILED ? NULL : memory;
}

/* Whoever sleeps on the way out sleeps by the real clock. */
__attribute__((destructor)) static void leave_at_end(void) {
	if (shared != NULL) {
		leave(NULL);
		shared = NULL;
	}
}

static int is_ours(clockid_t clock) {
	return shared != NULL && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME ||
	                          clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_BOOTTIME);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *out) {
	if (!is_ours(clock)) {
		return (int)syscall(SYS_clock_gettime, clock, out);
	}
	uint64_t now = atomic_fetch_add(&shared->now_ns, READ_NS);
	now += clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? (uint64_t)shared->wall_ns : 0;
	out->tv_sec = (time_t)(now / 1000000000ull);
	out->tv_nsec = (long)(now % 1000000000ull);
	return 0;
}

static int64_t real_ns(void) {
	struct timespec now;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void take_part(void) {
	for (int i = 0; i < THREADS && place < 0; i++) {
		if (shared->thread[i].pid == 0 || kill(shared->thread[i].pid, 0) != 0) {
			shared->thread[i].pid = getpid();
			place = i;
			shared->missing -= shared->missing > 0;
			pthread_setspecific(ending, shared);
		}
	}
	if (place < 0) {
		abort();
	}
}

/* The next wake-up, and whether all who take part sleep. */
static uint64_t next_wake(int *all_sleep) {
	uint64_t next = UINT64_MAX;
	*all_sleep = 1;
	for (int i = 0; i < THREADS; i++) {
		if (shared->thread[i].pid == 0) {
			continue;
		}
		uint64_t wake = shared->thread[i].wake_ns;
		if (wake == 0) {
			*all_sleep = 0;
		} else if (wake < next) {
			next = wake;
		}
	}
	return next;
}

/* To that time; whoever is due runs from now on. */
static void jump(uint64_t to) {
	if (to > shared->now_ns && to != UINT64_MAX) {
		shared->now_ns = to;
	}
	for (int i = 0; i < THREADS; i++) {
		if (shared->thread[i].wake_ns <= shared->now_ns) {
			shared->thread[i].wake_ns = 0;
		}
	}
	shared->jumps++;
	syscall(SYS_futex, &shared->jumps, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
}

/* Called with the lock held; comes back without it. */
static void wait_for_jump(void) {
	struct timespec pause = {0, POLL_NS};
	uint32_t seen = shared->jumps;
	unlock();
	syscall(SYS_futex, &shared->jumps, FUTEX_WAIT, seen, &pause, NULL, 0);
}

static void sleep_to(uint64_t wake) {
	int64_t patient_until = real_ns() + PATIENCE_NS;
	uint32_t before = shared->jumps;
	lock();
	if (place < 0) {
		take_part();
	}
	shared->thread[place].wake_ns = wake;
	while (shared->now_ns < wake) {
		int all_sleep;
		uint64_t next = next_wake(&all_sleep);
		if (shared->jumps != before) {
			before = shared->jumps;
			patient_until = real_ns() + PATIENCE_NS;
		}
		if ((all_sleep && shared->missing == 0) || real_ns() > patient_until) {
			jump(next);
		} else {
			wait_for_jump();
			lock();
		}
	}
	shared->thread[place].wake_ns = 0;
	unlock();
}

static int sleep_for(uint64_t duration) {
	/* Even the shortest sleep lets others run first. */
	sleep_to(shared->now_ns + (duration == 0 ? 1 : duration));
	return 0;
}

static uint64_t ns_of(const struct timespec *time) {
	return (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
}

EXPORT int nanosleep(const struct timespec *duration, struct timespec *left) {
	if (shared == NULL) {
		return (int)syscall(SYS_nanosleep, duration, left);
	}
	return sleep_for(ns_of(duration));
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
	if (!is_ours(clock)) {
		return syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
	}
	if ((flags & TIMER_ABSTIME) != 0) {
		sleep_to(ns_of(time));
		return 0;
	}
	return sleep_for(ns_of(time));
}

EXPORT int usleep(useconds_t duration) {
	struct timespec time = {duration / 1000000, (long)(duration % 1000000) * 1000};
	return nanosleep(&time, NULL);
}
