/* What each pool has reserved, kept under its handle. The lock is held over reading an attribute,
 * which waits for nobody, never over an allocation. */
#define _GNU_SOURCE
#include "pools.h"

#include "card.h"
#include "charge.h"
#include "driver.h"
#include "graphs.h"
#include "guard.h"
#include "latch.h"
#include "pool_books.h"
#include "quota.h"
#include "slice.h"

static bool read_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t *bytes) {
	const fn_cuMemPoolGetAttribute read = DRIVER(cuMemPoolGetAttribute);
	return read != NULL && read(pool, attribute, bytes) == CUDA_SUCCESS;
}

/* Attributes that are of type int; drivers before 13.0 don't know those that we ask for. */
static bool read_number(CUmemoryPool pool, CUmemPool_attribute attribute, int *number) {
	uint64_t room = 0;
	const bool told = read_attribute(pool, attribute, &room);
	*number = (int)room;
	return told;
}

uint64_t pool_books_shortage(CUmemoryPool pool, uint64_t bytes) {
	uint64_t reserved;
	uint64_t used;
	if (!read_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) ||
	    !read_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) || used > reserved) {
		return bytes;
	}
	const uint64_t idle = reserved - used;
	return bytes > idle ? bytes - idle : 0;
}

static struct record record_of(CUmemoryPool pool, int card) {
	struct record record;
	const uint64_t key = (uint64_t)(uintptr_t)pool;
	if (!table_find(&slice_process()->table, RECORD_POOL, key, &record)) {
		record = (struct record){.key = key, .kind = RECORD_POOL, .card = card};
	}
	return record;
}

static void keep(const struct record *record) {
	struct record old;
	table_put(&slice_process()->table, record, &old);
}

bool pool_books_settle(CUmemoryPool pool, int card, uint64_t paid) {
	struct process *process = slice_process();
	uint64_t reserved;
	bool fits = true;
	latch_lock(&process->pools_lock);
	guard_kept();
	struct record record = record_of(pool, card);
	if (!read_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) {
		reserved = record.bytes + paid;
	}
	const uint64_t covered = record.bytes + paid;
	if (reserved > covered) {
		atomic_store(&process->pools_settling, 1);
		fits = quota_reserve(record.card, reserved - covered);
		atomic_store(&process->pools_settling, 0);
	} else {
		quota_release(record.card, covered - reserved);
	}
	record.bytes = fits ? reserved : covered;
	keep(&record);
	latch_unlock(&process->pools_lock);
	return fits;
}

/* A pool that has more than is in use may shrink when another stream, of whichever device, is done. */
static void expect_shrinking(CUmemoryPool pool, uint64_t reserved) {
	uint64_t used;
	if (read_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && used < reserved) {
		pools_freed();
	}
}

/* Reads one pool, whatever it has. Under the lock. */
static void read_pool(const struct record *known, void *gone) {
	struct record record = *known;
	const CUmemoryPool pool = (CUmemoryPool)(uintptr_t)record.key;
	uint64_t reserved;
	if (record.card < 0) {
		return;
	}
	if (!read_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) {
		reserved = gone != NULL ? 0 : record.bytes;
	}
	quota_move(record.card, record.bytes, reserved);
	record.bytes = reserved;
	keep(&record);
	expect_shrinking(pool, reserved);
}

void pool_books_read(CUmemoryPool pool) {
	struct process *process = slice_process();
	struct record record;
	latch_lock(&process->pools_lock);
	if (table_find(&process->table, RECORD_POOL, (uint64_t)(uintptr_t)pool, &record)) {
		read_pool(&record, NULL);
	}
	latch_unlock(&process->pools_lock);
}

static void read_all(bool gone) {
	struct process *process = slice_process();
	latch_lock(&process->pools_lock);
	table_visit(&process->table, RECORD_POOL, read_pool, gone ? process : NULL);
	latch_unlock(&process->pools_lock);
}

void pools_freed(void) {
	atomic_store_explicit(&slice_process()->pools_stale, 1, memory_order_release);
}

void pools_waited(void) {
	_Atomic uint32_t *stale = &slice_process()->pools_stale;
	if (atomic_load_explicit(stale, memory_order_acquire) != 0) {
		atomic_store(stale, 0);
		read_all(false);
	}
}

void pools_read(int card) {
	(void)card;
	read_all(false);
	graphs_read(card);
}

void pools_end_contexts(int card) {
	(void)card;
	read_all(true);
}

/* Whether a device's own pool is this one. */
static bool belongs_to(CUmemoryPool pool, CUdevice device) {
	CUmemoryPool own;
	const fn_cuDeviceGetDefaultMemPool first = DRIVER(cuDeviceGetDefaultMemPool);
	const fn_cuDeviceGetMemPool current = DRIVER(cuDeviceGetMemPool);
	return (first != NULL && first(&own, device) == CUDA_SUCCESS && own == pool) ||
	       (current != NULL && current(&own, device) == CUDA_SUCCESS && own == pool);
}

int pool_books_card(CUmemoryPool pool) {
	struct record record;
	int count = 0;
	const fn_cuDeviceGetCount devices = DRIVER(cuDeviceGetCount);
	if (table_find(&slice_process()->table, RECORD_POOL, (uint64_t)(uintptr_t)pool, &record)) {
		return record.card;
	}
	CUmemLocation location;
	int type;
	if (read_number(pool, CU_MEMPOOL_ATTR_ALLOCATION_TYPE, &type) &&
	    read_number(pool, CU_MEMPOOL_ATTR_LOCATION_TYPE, &location.type) &&
	    read_number(pool, CU_MEMPOOL_ATTR_LOCATION_ID, &location.id)) {
		return card_of_memory(type, &location);
	}
	if (devices != NULL && devices(&count) != CUDA_SUCCESS) {
		count = 0;
	}
	for (CUdevice device = 0; device < count; device++) {
		if (belongs_to(pool, device)) {
			return card_of_device(device);
		}
	}
	return card_here();
}

void pool_books_open(CUmemoryPool pool, int card) {
	const struct record record = {
		.key = (uint64_t)(uintptr_t)pool, .kind = RECORD_POOL, .card = card};
	keep(&record);
}

void pool_books_close(CUmemoryPool pool) {
	struct record record;
	if (charge_lift(RECORD_POOL, (uint64_t)(uintptr_t)pool, &record)) {
		charge_return(&record);
	}
}

/* Who settles a pool asks for room under the lock: then pools are fresh enough. */
static void refresh(int card) {
	if (atomic_load(&slice_process()->pools_settling) == 0) {
		pools_read(card);
	}
}

void (*const quota_refresh)(int card) = refresh;
