/* The lock of a slot belongs to an open file that nothing but a mapping keeps: no descriptor that
 * the application could close, and, as the mapping isn't inherited, no child that could keep it. */
#define _GNU_SOURCE
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

#define KEPT_BYTES 4096

static int open_region(const char *path) {
	return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
}

static bool lock_byte(int fd, int byte) {
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void unlock_byte(int fd, int byte) {
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	fcntl(fd, F_OFD_SETLK, &lock);
}

/* Zero for everyone; what the owner had launched goes to the sum of the gone. */
static void empty_slot(struct region *region, int i) {
	struct region_slot *slot = &region->slots[i];
	for (int card = 0; card < REGION_DEVICES; card++) {
		atomic_store(&region->used[card][i], 0);
		const uint64_t launches = atomic_exchange(&slot->launches[card], 0);
		if (launches != 0) {
			atomic_fetch_add(&region->cards[card].launches, launches);
		}
	}
	atomic_store(&slot->host_pid, 0);
	atomic_store(&slot->launched_ns, 0);
	atomic_store(&slot->pid, 0);
}

/* Field 22 of /proc/self/stat; 0 if it can't be read. The name before it may hold anything. */
static uint64_t start_time(void) {
	char text[1024];
	const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0) {
		close(fd);
	}
	if (length <= 0) {
		return 0;
	}
	text[length] = 0;
	char *at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t pid_namespace(void) {
	char link[64] = ""; /* pid:[4026531836] */
	const ssize_t length = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
	const char *number = length > 0 ? strchr(link, '[') : NULL;
	return number != NULL ? strtoull(number + 1, NULL, 10) : 0;
}

static void sign(struct region *region, int i) {
	struct region_slot *slot = &region->slots[i];
	empty_slot(region, i);
	atomic_store(&slot->start, start_time());
	atomic_store(&slot->pid_ns, pid_namespace());
	atomic_store(&slot->claimed_ns, clock_ns());
	uint32_t high = atomic_load(&region->control.slots_high);
	while (high <= (uint32_t)i &&
	       !atomic_compare_exchange_weak(&region->control.slots_high, &high, (uint32_t)i + 1)) {
	}
	atomic_store(&slot->pid, (uint32_t)getpid());
}

/* Ties the open file to this process's memory, and closes the descriptor. */
static bool keep(int fd) {
	void *at = mmap(NULL, KEPT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED && madvise(at, KEPT_BYTES, MADV_DONTFORK) != 0) {
		munmap(at, KEPT_BYTES);
		at = MAP_FAILED;
	}
	close(fd);
	return at != MAP_FAILED;
}

static int lock_any(int fd, const char **why) {
	for (int i = 0; i < REGION_SLOTS; i++) {
		if (lock_byte(fd, i)) {
			return i;
		}
		if (errno != EAGAIN && errno != EACCES) {
			*why = "the file system of the region has no locks";
			return -1;
		}
	}
	*why = "as many processes use cards in this container as the region has places for";
	return -1;
}

int slot_claim(struct region *region, const char *path, const char **why) {
	const int fd = open_region(path);
	if (fd < 0) {
		*why = "it can't be opened again";
		return -1;
	}
	const int i = lock_any(fd, why);
	if (i < 0) {
		close(fd);
		return -1;
	}
	if (!keep(fd)) {
		*why = "no memory for the lock of its slot";
		return -1;
	}
	sign(region, i);
	return i;
}

/* Fewer slots to sum, once the highest ones are free again. Nobody can take the slot meanwhile, since
 * its lock is ours; who took a higher one has raised the mark, and the exchange fails. */
static void lower_mark(struct region *region, int fd) {
	uint32_t high = atomic_load(&region->control.slots_high);
	bool lowered = true;
	while (lowered && high > 0 && high <= REGION_SLOTS) {
		const int last = (int)high - 1;
		lowered = false;
		if (atomic_load(&region->slots[last].pid) == 0 && lock_byte(fd, last)) {
			lowered = atomic_compare_exchange_strong(&region->control.slots_high, &high,
								 (uint32_t)last);
			unlock_byte(fd, last);
		}
		high = lowered ? (uint32_t)last : high;
	}
}

bool slot_sweep(struct region *region, const char *path, int own) {
	const int fd = open_region(path);
	if (fd < 0) {
		return false;
	}
	bool swept = false;
	uint32_t high = atomic_load(&region->control.slots_high);
	high = high > REGION_SLOTS ? REGION_SLOTS : high;
	for (int i = 0; i < (int)high; i++) {
		if (i == own || atomic_load(&region->slots[i].pid) == 0 || !lock_byte(fd, i)) {
			continue;
		}
		empty_slot(region, i);
		unlock_byte(fd, i);
		swept = true;
	}
	lower_mark(region, fd);
	close(fd);
	return swept;
}

int slot_lock(const char *path, int byte, uint64_t patience_ns) {
	const int fd = open_region(path);
	const uint64_t until = clock_ns() + patience_ns;
	while (fd >= 0 && !lock_byte(fd, byte)) {
		if (clock_ns() > until) {
			close(fd);
			return -1;
		}
		clock_sleep_ns(1000000);
	}
	return fd;
}

void slot_unlock(int lock) {
	if (lock >= 0) {
		close(lock);
	}
}
