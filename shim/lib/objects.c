/* Two kinds of records: an object by a number that is never used again (bytes, card, how many hold it),
 * and its holds, whose `extra` is that number. A handle that was retained several times counts in
 * its record's `bytes`. */
#define _GNU_SOURCE
#include "objects.h"

#include "guard.h"
#include "latch.h"
#include "slice.h"

static void put(const struct record *record) {
	struct record old;
	table_put(&slice_process()->table, record, &old);
}

static bool find(enum record_kind kind, uint64_t key, struct record *record) {
	return table_find(&slice_process()->table, kind, key, record);
}

/* One hold less; without any the charge goes. Under the lock. */
static void let_go(uint64_t number) {
	struct record object;
	if (!table_take(&slice_process()->table, RECORD_OBJECT, number, &object)) {
		return;
	}
	object.extra--;
	if (object.extra == 0) {
		charge_return(&object);
	} else {
		put(&object);
	}
}

/* Under the lock. */
static void hold_number(uint64_t number, const struct hold *hold) {
	struct record object;
	if (!find(RECORD_OBJECT, number, &object)) {
		return;
	}
	object.extra++;
	put(&object);
	struct record record = {.key = hold->key,
				.bytes = hold->bytes,
				.extra = number,
				.kind = hold->kind,
				.card = object.card};
	struct record old;
	if (hold->kind == RECORD_HANDLE && find(RECORD_HANDLE, hold->key, &old) &&
	    old.extra == number) {
		record.bytes = old.bytes + 1;
	}
	put(&record);
}

void objects_add(const struct charge *charge, uint64_t handle, uint64_t bytes) {
	struct process *process = slice_process();
	const struct hold hold = {.kind = RECORD_HANDLE, .key = handle, .bytes = 1};
	struct record stale;
	latch_lock(&process->handles_lock);
	guard_kept();
	if (table_take(&process->table, RECORD_HANDLE, handle, &stale)) {
		let_go(stale.extra); /* its release went unseen */
	}
	const struct record object = {.key = ++process->last_object,
				      .bytes = charge->card >= 0 ? charge->bytes : bytes,
				      .kind = RECORD_OBJECT,
				      .card = charge->card};
	put(&object);
	hold_number(object.key, &hold);
	latch_unlock(&process->handles_lock);
}

void objects_hold(enum record_kind kind, uint64_t key, const struct hold *hold) {
	struct process *process = slice_process();
	struct record holder;
	latch_lock(&process->handles_lock);
	if (find(kind, key, &holder)) {
		hold_number(holder.extra, hold);
	}
	latch_unlock(&process->handles_lock);
}

bool objects_find(enum record_kind kind, uint64_t key, struct record *hold) {
	return find(kind, key, hold);
}

bool objects_lift(enum record_kind kind, uint64_t key, struct record *lifted) {
	struct process *process = slice_process();
	latch_lock(&process->handles_lock);
	const bool known = table_take(&process->table, kind, key, lifted);
	if (known && kind == RECORD_HANDLE && lifted->bytes > 1) {
		struct record rest = *lifted;
		rest.bytes--;
		put(&rest);
	}
	latch_unlock(&process->handles_lock);
	return known;
}

void objects_drop(const struct record *lifted, int result) {
	struct process *process = slice_process();
	latch_lock(&process->handles_lock);
	if (result == 0) {
		let_go(lifted->extra);
	} else {
		put(lifted);
	}
	latch_unlock(&process->handles_lock);
}

static bool is_tile_of(const struct record *record, uint64_t array) {
	return record->kind == RECORD_TILE && record->bytes == array;
}

static void drop_tile(const struct record *tile) {
	let_go(tile->extra);
}

void objects_end_tiles(uint64_t array) {
	struct process *process = slice_process();
	if (atomic_load_explicit(&process->has_tiles, memory_order_relaxed) != 0) {
		latch_lock(&process->handles_lock);
		table_drain(&process->table, is_tile_of, array, drop_tile);
		latch_unlock(&process->handles_lock);
	}
}
