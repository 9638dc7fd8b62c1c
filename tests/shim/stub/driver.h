/* The stub's CUDA driver inside one process: contexts, and what was allocated in them.
 *
 * Codes, numbers and layouts of the driver API stand here in our own words, as far as the stub needs them.
 */
#ifndef STUB_DRIVER_H
#define STUB_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "state.h"

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_CONTEXT = 201,
	CU_ALREADY_MAPPED = 208,
	CU_INVALID_HANDLE = 400,
	CU_ILLEGAL_STATE = 401,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_UNSUPPORTED = 900,
	CU_CAPTURE_INVALIDATED = 901,
};

typedef unsigned long long address;

/* CUmemLocation: 1 is a device, 2 host, 3 a host NUMA node, 6 a part of a device's memory (`id`: the device in the low
 * byte). */
enum { AT_DEVICE = 1, AT_HOST = 2, IN_DEVICE = 6 };

/* CUmemAllocationType */
enum { PINNED = 1, MANAGED_TYPE = 2 };

struct location {
	int kind, id;
};

/* CUmemAllocationProp */
struct allocation_prop {
	int type, handle_types;
	struct location location;
	void *windows;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
};

/* CUmemPoolProps */
struct pool_prop {
	int type, handle_types;
	struct location location;
	void *windows;
	size_t most_bytes;
	unsigned short usage;
	unsigned char reserved[54];
};

/* CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR */
struct array_shape {
	size_t width, height;
	int format;
	unsigned int channels;
};

struct array3d_shape {
	size_t width, height, depth;
	int format;
	unsigned int channels, flags;
};

enum kind {
	LINEAR = 1,
	MANAGED,
	HOST,
	ARRAY,
	MIPMAP,
	LEVEL,
	MODULE,
	POOLED,
	POOL,
	SHARED,
	PHYSICAL,
	RANGE,
	MAPPING,
	EXTERNAL,
	STREAM,
	EVENT,
	GRAPH,
	EXEC,
	NODE_MEMORY,
	GREEN,
};

struct context {
	int card;
	int primary;
	int retained;
	int alive;
	unsigned int flags;
	unsigned int version;
	uint64_t bytes;
	uint64_t heap_bytes; /* of them, for what kernels allocate */
	struct stub_stream *streams[2]; /* the legacy and the per-thread default */
};

/* One thing that has a handle or an address. */
struct object {
	address key;
	enum kind kind;
	int card;
	uint64_t bytes;
	struct context *context; /* it dies with it; NULL: it doesn't */
	void *detail;
	struct object *next;
};

/* Books a new object under `key`; never fails. */
struct object *object_add(address key, enum kind kind, int card, uint64_t bytes, struct context *context);
/* The object with exactly that key and one of two kinds (0: any kind), or NULL. */
struct object *object_find(address key, enum kind kind, enum kind other);
/* The object into which an address points, or NULL. Slow. */
struct object *object_holding(address inside);
/* Takes it out of the books (who frees it is the caller); NULL when it isn't there any more. */
struct object *object_remove(address key, enum kind kind, enum kind other);
/* Removes, gives back and frees all that die with the context. */
void objects_end(struct context *context);

/* Addresses are made up. A freed one is given out again soon, as a real driver does. */
address address_new(uint64_t bytes);
void address_free(address start, uint64_t bytes);

/* A handle that no other object has. */
address handle_new(void);

struct stub_state *driver_state(void); /* NULL before cuInit */

/* CUDA_VISIBLE_DEVICES gives cards other numbers; -1 for what is not visible. */
int card_of(int device);
/* The card whose memory a location is; -1: not a card's. */
int card_at(const struct location *location);
int device_of(int card);

struct context *context_current(void); /* NULL: none, or destroyed */
struct context *context_primary(int card); /* whether it is made or not */

/* Ends what libraries keep of a context by themselves (cuda_tables.c). */
void kept_end(struct context *context);

/* Takes card memory of this process; OUT_OF_MEMORY when there is none. */
int memory_take(int card, uint64_t bytes);
void memory_give(int card, uint64_t bytes);

/* Frees memory of cuMemAlloc's kind, or of cuMemAllocAsync's; INVALID_VALUE when it isn't. */
int linear_free(address start);
int pooled_free(address start);

/* New physical memory, which somebody else may own. */
address physical_new(int card, uint64_t bytes, const struct allocation_prop *prop, int owned);

/* Physical memory by its handle or a mapping's start, or NULL; it lives until it is dropped. */
struct object *physical_hold(address handle);
struct object *physical_hold_at(address start);
void physical_drop(struct object *object);

/* An array that is gone holds no memory of handles any more. */
void tiles_end(address resource);

/* Pools let go of what they keep above their threshold, as at every synchronisation. */
void pools_settle(int card);
void pools_end(int card);

struct stub_stream {
	int card;
	int capturing;
	int strict; /* captures in MODE_GLOBAL */
	int priority;
	unsigned int flags;
	uint64_t tail_ns;
	uint64_t ends[1024]; /* of the last launches: a real queue is as long */
	uint32_t launches;
	struct graph *graph;
	struct context *context;
};

struct stub_stream *stream_of(void *handle, int per_thread);

/* Of captures: what other calls a thread may make meanwhile. */
enum { MODE_GLOBAL = 0, MODE_THREAD_LOCAL = 1, MODE_RELAXED = 2 };

/* Whether a call that isn't safe while somebody captures is forbidden now; it spoils the capture. */
int capture_forbids(void);
void sleep_until(uint64_t time_ns);
uint64_t card_tail(int card);

#define DRIVER_ENTER()                             \
	STUB_ENTER();                              \
	struct stub_state *state = driver_state(); \
	if (state == NULL) {                       \
		return CU_NOT_INITIALIZED;         \
	}

#define DEVICE_ENTER(device)            \
	DRIVER_ENTER();                 \
	int card = card_of(device);     \
	if (card < 0) {                 \
		return CU_INVALID_DEVICE; \
	}                               \
	struct stub_card *books = &state->card[card]

#define CONTEXT_ENTER()                                \
	DRIVER_ENTER();                                \
	struct context *context = context_current();   \
	if (context == NULL) {                         \
		return CU_INVALID_CONTEXT;             \
	}

#define NEED(condition)                          \
	do {                                     \
		if (!(condition)) {              \
			return CU_INVALID_VALUE; \
		}                                \
	} while (0)

#define NEED_CARD(card)                                              \
	do {                                                         \
		if ((card) < 0 || (uint32_t)(card) >= state->cards) { \
			return CU_INVALID_DEVICE;                    \
		}                                                    \
	} while (0)

#define CU_API STUB_EXPORT int

#endif
