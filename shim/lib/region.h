/* The region: one file a container, mapped by every process in it.
 *
 * It says what the container may hold (limits, written by the node agent before the
 * container starts) and what its processes hold (slots, written by the library). The
 * layout is described in docs/shim-region.md and mirrored in shim/agent/region.py; a
 * test compares every offset. Little endian, fixed size, no pointers.
 *
 * A process owns slot i as long as it holds the lock on byte i of the file. The kernel
 * drops that lock with the last mapping of the process, however it dies, so no owner has
 * to be guessed from a pid, and a lock never outlives its owner. What a dead process had
 * charged counts until someone who needs the room takes the slot's lock and empties it. */
#ifndef VPY_REGION_H
#define VPY_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_MAGIC "VPYQUOTA"
#define REGION_VERSION 2u
#define REGION_DEVICES 16
#define REGION_SLOTS 1024
#define REGION_UUID_BYTES 64
#define REGION_PATH "/usr/local/vgpu/slice/region"
#define REGION_FAULT_PATH "/usr/local/vgpu/region-fault" /* the agent's word, read-only to containers */

/* Bytes of the file that are locked though no slot belongs to them. */
#define REGION_LOCK_START 1025  /* who measures what a new context costs */

enum region_flags {
	REGION_BY_AGENT = 1, /* made by the node agent: the environment isn't asked */
};

enum region_policy {
	REGION_CORES_SHARED = 0, /* cores are limited while others use the card */
	REGION_CORES_ALWAYS = 1,
	REGION_CORES_NEVER = 2,
};

/* What never changes after creation; `crc` covers what follows it. */
struct region_header {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t size;
	uint32_t device_count;
	uint32_t flags;      /* enum region_flags */
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint8_t reserved[24];
};

/* Launches are never held for longer by one word: what is further ahead is garbage, or of another clock. */
#define REGION_MOST_BLOCKED_NS UINT64_C(60000000000)

/* What the agent may say while processes run. */
struct region_control {
	_Atomic uint32_t active;        /* which of the two sets of limits holds: 0 or 1 */
	_Atomic uint32_t slots_high;    /* no slot at or above has an owner */
	_Atomic uint64_t blocked_until; /* no launch before this CLOCK_MONOTONIC ns; 0 is free */
	_Atomic uint64_t disbelieved;	/* words there that no agent would have written */
	uint8_t reserved[40];
};

struct region_device {
	char uuid[REGION_UUID_BYTES]; /* as NVML writes it, zero-ended; empty: by position */
	uint64_t memory_limit;        /* bytes; 0 is no limit */
	uint32_t cores;               /* percent of the card's time; 0 and 100 are no limit */
	uint32_t flags;               /* none yet */
	uint8_t reserved[48];
};

/* One set of limits; `crc` covers what follows it. The set in use is never written:
 * the agent fills the other one and then turns `active`. */
struct region_limits {
	uint32_t crc;
	uint32_t generation; /* grows by one with each set */
	uint32_t priority;   /* 0 goes first */
	uint32_t policy;     /* enum region_policy */
	uint8_t reserved[48];
	struct region_device devices[REGION_DEVICES];
};

/* Counters and the time bucket of a card, one cache line each. */
struct region_card {
	_Atomic uint64_t refused;      /* allocations that didn't fit */
	_Atomic uint64_t throttled_ns; /* time that launches waited, summed over threads */
	_Atomic uint64_t launches;     /* of processes that are gone */
	_Atomic uint64_t busy_ns;      /* measured time of the container on the card */
	_Atomic uint64_t recent_ns;    /* measured, older measurements fading */
	_Atomic uint64_t recent_blocks; /* 1024ths of a block launched meanwhile, fading alike */
	_Atomic uint64_t contended_ns; /* CLOCK_MONOTONIC when another container was last busy there */
	_Atomic uint64_t starved_ns; /* CLOCK_MONOTONIC when a launch last went though nothing got better */
	_Atomic int64_t tokens;      /* GPU ns that may be spent; negative: owed */
	_Atomic uint64_t refill_ns;  /* CLOCK_MONOTONIC of the last refill */
	_Atomic uint64_t sample_ns;  /* CLOCK_MONOTONIC when the next measurement is due */
	_Atomic uint64_t seen_us;    /* newest sample of NVML that was counted */
	_Atomic uint64_t spent_ns;   /* estimates charged since that sample */
	_Atomic uint64_t cost;       /* estimate: GPU ns of 1024 blocks */
	_Atomic uint64_t blocks;     /* launched since that sample */
	_Atomic uint64_t looked_ns;  /* CLOCK_MONOTONIC of that sample */
};

/* A process. Who holds the lock on byte i of the file owns slot i and alone writes it. */
struct region_slot {
	_Atomic uint32_t pid;      /* in the owner's pid namespace; 0: free */
	_Atomic uint32_t host_pid; /* as NVML lists it; 0: not known yet */
	_Atomic uint64_t start;    /* field 22 of /proc/<pid>/stat: clock ticks since boot */
	_Atomic uint64_t pid_ns;   /* inode of the owner's pid namespace */
	_Atomic uint64_t claimed_ns; /* CLOCK_MONOTONIC */
	_Atomic uint64_t launched_ns; /* CLOCK_MONOTONIC of a recent launch, 10 ms coarse */
	uint8_t reserved[24];
	_Atomic uint64_t launches[REGION_DEVICES];
	uint8_t reserved_end[64];
};

/* A word of `used`: bytes in the low 48 bits; above, how many reservations of the slot
 * are being decided. */
#define REGION_BYTES_MASK ((UINT64_C(1) << 48) - 1)
#define REGION_DECIDING (UINT64_C(1) << 48)

struct region {
	struct region_header header;
	struct region_control control;
	struct region_limits limits[2];
	struct region_card cards[REGION_DEVICES];
	struct region_slot slots[REGION_SLOTS];
	/* By device and then slot: who reserves reads one device of all slots. */
	_Atomic uint64_t used[REGION_DEVICES][REGION_SLOTS];
};

_Static_assert(sizeof(struct region_header) == 64, "header is one line");
_Static_assert(sizeof(struct region_control) == 64, "control is one line");
_Static_assert(sizeof(struct region_device) == 128, "device is two lines");
_Static_assert(sizeof(struct region_limits) == 64 + 16 * 128, "limits have no holes");
_Static_assert(sizeof(struct region_card) == 128, "card is two lines");
_Static_assert(sizeof(struct region_slot) == 256, "slot is four lines");
_Static_assert(offsetof(struct region, used) % 64 == 0, "used is aligned");

/* Why *bytes* (*size* of them) are no region that this library can use, in a few words,
 * or NULL. Never reads past *size*; any content is fine. */
const char *region_fault(const void *bytes, size_t size);

/* Why this set of limits is not to be believed, or NULL. */
const char *region_limits_fault(const struct region_limits *limits);

/* CRC-32 as zlib computes it. */
uint32_t region_crc(const void *bytes, size_t size);

/* Fills *region* (zeroed memory) with these limits; the other fields are as after
 * creation. *devices* has *count* entries, at most REGION_DEVICES. */
void region_format(struct region *region, const struct region_device *devices, uint32_t count,
		   uint32_t priority, uint32_t policy, uint32_t flags);

#endif
