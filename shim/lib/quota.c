/* Reserve: add to our word, with a mark that it isn't decided; sum the card; keep it or take it
 * back. Of two that see each other, at least one sees both, so the sum of what is kept never
 * exceeds the limit. Where a refusal might be due to somebody undecided, it is tried again. */
#define _GNU_SOURCE
#include "quota.h"

#include "clock.h"
#include "guard.h"
#include "slice.h"
#include "slot.h"

#define PATIENCE_NS UINT64_C(20000000) /* for others to decide; they may be frozen */

struct sum {
	uint64_t bytes;
	uint64_t deciding; /* reservations in it that may yet be taken back */
};

static _Atomic uint64_t *word_of(int card) {
	return &slice.region->used[card][slice_slot()];
}

static struct sum sum_card(int card) {
	struct region *region = slice.region;
	uint32_t high = atomic_load(&region->control.slots_high);
	high = high > REGION_SLOTS ? REGION_SLOTS : high;
	uint64_t bytes = 0;
	uint64_t deciding = 0;
	for (uint32_t i = 0; i < high; i++) {
		const uint64_t word = atomic_load_explicit(&region->used[card][i], memory_order_seq_cst);
		bytes += word & REGION_BYTES_MASK;
		deciding += word >> 48;
	}
	return (struct sum){bytes, deciding};
}

static bool has_books(void) {
	return atomic_load_explicit(&slice.state, memory_order_acquire) == SLICE_ON &&
	       slice_slot() >= 0;
}

uint64_t quota_limit(int card) {
	const struct region_limits *limits = slice_limits();
	return limits != NULL ? __atomic_load_n(&limits->devices[card].memory_limit, __ATOMIC_RELAXED)
			      : 1;
}

enum verdict { FITS, FULL, UNDECIDED };

static enum verdict try_reserve(int card, uint64_t bytes, uint64_t limit) {
	_Atomic uint64_t *word = word_of(card);
	atomic_fetch_add(word, bytes + REGION_DECIDING);
	const struct sum sum = sum_card(card);
	if (sum.bytes <= limit) {
		atomic_fetch_sub(word, REGION_DECIDING);
		return FITS;
	}
	atomic_fetch_sub(word, bytes + REGION_DECIDING);
	return sum.deciding > 1 ? UNDECIDED : FULL;
}

/* Lets others decide: they need some ten nanoseconds if they run. If they don't, sleeping gives way
 * to them and to nobody else's whole time slice; not equally long for all. */
static void give_way(unsigned int tries) {
	const uint64_t spread = (clock_ns() >> 4) * 2654435761u % 64;
	if (tries < 8) {
		for (volatile uint64_t i = 0; i < spread; i++) {
		}
		return;
	}
	clock_sleep_ns((20 + spread) * 1000);
}

static bool reserve_among_others(int card, uint64_t bytes, uint64_t limit) {
	const uint64_t until = clock_ns() + PATIENCE_NS;
	for (unsigned int tries = 0;; tries++) {
		const enum verdict verdict = try_reserve(card, bytes, limit);
		if (verdict != UNDECIDED) {
			return verdict == FITS;
		}
		if (clock_ns() > until) {
			return false;
		}
		give_way(tries);
	}
}

/* Without the dead, and without what is no longer held. */
static void refresh(int card) {
	slot_sweep(slice.region, slice.path, slice_slot());
	if (quota_refresh != NULL) {
		quota_refresh(card);
	}
}

static bool reserve_afresh(int card, uint64_t bytes, uint64_t limit) {
	refresh(card);
	return reserve_among_others(card, bytes, limit);
}

bool quota_reserve(int card, uint64_t bytes) {
	const uint64_t limit = quota_limit(card);
	if (!has_books()) {
		return false;
	}
	if (limit == 0 && bytes <= (REGION_BYTES_MASK >> 2)) {
		quota_charge(card, bytes);
		guard_reserved(card, bytes);
		return true;
	}
	if (bytes <= limit && (try_reserve(card, bytes, limit) == FITS ||
			       reserve_afresh(card, bytes, limit))) {
		guard_reserved(card, bytes);
		return true;
	}
	atomic_fetch_add_explicit(&slice.region->cards[card].refused, 1, memory_order_relaxed);
	return false;
}

void quota_charge(int card, uint64_t bytes) {
	if (has_books()) {
		atomic_fetch_add(word_of(card), bytes);
	}
}

void quota_release(int card, uint64_t bytes) {
	guard_released(card, bytes);
	if (has_books()) {
		atomic_fetch_sub(word_of(card), bytes);
	}
}

void quota_move(int card, uint64_t before, uint64_t after) {
	if (after > before) {
		quota_charge(card, after - before);
	} else if (before > after) {
		quota_release(card, before - after);
	}
}

bool quota_has_room(int card, uint64_t bytes) {
	const uint64_t limit = quota_limit(card);
	return limit == 0 || (bytes <= limit && has_books() && sum_card(card).bytes <= limit - bytes);
}

bool quota_is_over(int card) {
	const uint64_t limit = quota_limit(card);
	if (limit == 0 || !has_books() || sum_card(card).bytes <= limit) {
		return false;
	}
	refresh(card);
	const uint64_t until = clock_ns() + PATIENCE_NS;
	for (unsigned int tries = 0;; tries++) {
		const struct sum sum = sum_card(card);
		if (sum.bytes <= limit || sum.deciding == 0 || clock_ns() > until) {
			return sum.bytes > limit;
		}
		give_way(tries);
	}
}

uint64_t quota_used(int card) {
	if (!has_books()) {
		return 0;
	}
	slot_sweep(slice.region, slice.path, slice_slot());
	return sum_card(card).bytes;
}
