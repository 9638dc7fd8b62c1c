/* The pretend cards' state: one file, mapped by every process that loads a stub library.
 *
 * state.py lays the file out and reads it; the numbers and the order of fields below are repeated there, and
 * both sides compare the size. What a process holds stands in its slot; a slot lives as long as its process
 * holds the lock on the slot's byte, so the kernel tells us of every death, kill -9 and exec included. Nothing of
 * that hangs on file descriptors, which programs close as they like.
 */
#ifndef STUB_STATE_H
#define STUB_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define STUB_MAGIC 0x5354554244525631ull
#define STUB_CARDS 16
#define STUB_MIGS 8
#define STUB_CONTAINERS 64
#define STUB_SLOTS 2048
#define STUB_FAULTS 32
#define STUB_EVENTS 64
#define STUB_TIMELINES 256
#define STUB_BUCKETS 16384 /* of queues of a quarter of an hour the whole trace is kept */
#define STUB_BUCKET_NS 50000000ull

/* A MIG instance of a card, as NVML lists it. An empty uuid means none, or a GPU instance without a compute
 * instance where `size` is not 0. What a test laid down has no place. */
struct stub_mig {
	char uuid[64];
	char name[64];
	uint64_t memory_bytes;
	uint32_t gpu_instance;
	uint32_t compute_instance;
	uint32_t profile; /* NVML's id */
	uint32_t start;   /* in memory slices */
	uint32_t size;    /* 0: not made through NVML */
	uint32_t users;   /* programs that run on it */
};

struct stub_card {
	char uuid[64];
	char name[64];
	char bus_id[32];
	char serial[32];
	uint64_t memory_bytes;   /* what the card has */
	uint64_t reserved_bytes; /* of that, never given to anyone */
	uint64_t context_bytes;  /* taken by a process's first context */
	uint64_t module_bytes;   /* taken by each loaded module */
	uint64_t used_bytes;     /* by all processes; under the lock */
	uint64_t peak_bytes;
	uint64_t free_at_ns;     /* when the last launched kernel ends */
	uint64_t busy_ns;        /* kernels launched so far, together */
	int32_t sms;
	int32_t threads_per_sm;
	int32_t minor;
	int32_t numa;
	int32_t compute_major;
	int32_t compute_minor;
	int32_t mig_mode;
	int32_t lost;              /* NVML answers that the card fell off the bus */
	int32_t hide_utilisation;  /* NVML has no utilisation to tell */
	int32_t process_list_most; /* longest process list; negative: all */
	uint8_t links[STUB_CARDS]; /* NVLinks to card i */
	uint8_t level[STUB_CARDS]; /* NVML's common ancestor with card i */
	struct stub_mig migs[STUB_MIGS];
};

/* A container as the oracle sees it: what its processes may hold together, and what they held at most. */
struct stub_container {
	char name[64];
	uint64_t limit_bytes[STUB_CARDS]; /* 0: no limit */
	uint64_t used_bytes[STUB_CARDS];
	uint64_t peak_bytes[STUB_CARDS];
	uint64_t busy_ns[STUB_CARDS];
	uint64_t launches;
	uint64_t violations; /* grants that went past a limit */
	uint64_t worst_bytes;
};

struct stub_slot {
	int32_t pid;      /* as the process itself sees it; 0: free */
	int32_t host_pid; /* as /proc shows it */
	int32_t container;
	int32_t padding;
	uint64_t used_bytes[STUB_CARDS];
	uint64_t context_bytes[STUB_CARDS];
	uint32_t contexts[STUB_CARDS];
	uint64_t busy_ns[STUB_CARDS];
	uint64_t launches;
};

/* Answers `code` to the calls from the `first`th (1 is the first) on, `times` of them; counts all calls. */
struct stub_fault {
	char symbol[64];
	uint64_t first;
	uint64_t times;
	int32_t code; /* 0: only count and delay */
	uint32_t delay_us;
	_Atomic uint64_t calls;
};

struct stub_event {
	uint32_t card;
	uint32_t instance;
	uint64_t kind;
	uint64_t data;
};

/* How busy one process kept one card, in buckets of STUB_BUCKET_NS. */
struct stub_timeline {
	int32_t slot; /* index + 1; 0: free */
	int32_t card;
	struct {
		uint64_t epoch; /* time / STUB_BUCKET_NS */
		uint64_t busy_ns;
	} buckets[STUB_BUCKETS];
};

struct stub_state {
	uint64_t magic;
	uint64_t size;
	uint32_t cards;
	uint32_t containers;
	uint32_t faults;
	uint32_t driver_version; /* as cuDriverGetVersion tells it: 12040 is 12.4 */
	char driver_name[32];
	union {
		pthread_mutex_t lock; /* shared and robust; made by state.py */
		uint8_t room[64];
	};
	_Atomic uint64_t events_seen; /* events ever put in the ring */
	_Atomic uint32_t slots_high;  /* no slot at or above this was ever used */
	_Atomic uint32_t clock_virtual;
	struct stub_card card[STUB_CARDS];
	struct stub_container container[STUB_CONTAINERS];
	struct stub_fault fault[STUB_FAULTS];
	struct stub_event event[STUB_EVENTS];
	struct stub_slot slot[STUB_SLOTS];
	struct stub_timeline timeline[STUB_TIMELINES];
};

/* The mapped state, or NULL when no file is named or it isn't one of ours. Never unmapped. */
struct stub_state *stub_open(void);

void stub_lock(struct stub_state *state);
void stub_unlock(struct stub_state *state);

/* This process's slot, claimed at the first call and again in a forked child; NULL when all are taken. */
struct stub_slot *stub_slot(struct stub_state *state);

/* Frees what dead processes hold. Call with the lock held. */
void stub_sweep(struct stub_state *state);

/* Takes bytes of a card for this process; 0 when the card is too full, else 1. */
int stub_take(struct stub_state *state, int card, uint64_t bytes);
void stub_give(struct stub_state *state, int card, uint64_t bytes);

/* Books a kernel that may start at `earliest` and runs for `duration`; answers when it ends. */
uint64_t stub_occupy(struct stub_state *state, int card, uint64_t earliest, uint64_t duration);

/* The share, 0 to 100, of [from, to) in which this slot (or, for NULL, any slot) kept the card busy. */
uint32_t stub_utilisation(struct stub_state *state, const struct stub_slot *slot, int card, uint64_t from, uint64_t to);

uint64_t stub_now(void);

/* One place of a stub library that a fault may name; counts this process's calls. */
struct stub_site {
	const char *symbol;
	_Atomic uint64_t calls;
};

/* The code that this call shall answer, 0 for none. */
int stub_fault(struct stub_site *site);

/* First line of every exported function. */
#define STUB_ENTER()                                                                          \
	do {                                                                                  \
		static struct stub_site site_ = {__func__, 0};                                \
		static struct stub_site *const listed_ __attribute__((section("stub_sites"), used)) = &site_; \
		int fault_ = stub_fault(&site_);                                              \
		if (fault_ != 0) {                                                            \
			return fault_;                                                        \
		}                                                                             \
	} while (0)

#define STUB_EXPORT __attribute__((visibility("default")))

#endif
