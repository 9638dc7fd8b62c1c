/* What nearly every hook does: reserve, call, keep or take back. */
#define _GNU_SOURCE
#include "charge.h"

#include "card.h"
#include "guard.h"
#include "quota.h"
#include "slice.h"

#define LOOK_EVERY 1024u /* allocations; a look also needs some time since the last */

/* Modules that were loaded since take memory that nobody asked for by name. */
static void look_now_and_then(int card) {
	_Atomic uint32_t *count = &slice_process()->allocations;
	if ((atomic_fetch_add_explicit(count, 1, memory_order_relaxed) + 1) % LOOK_EVERY == 0) {
		card_reconcile(card);
	}
}

bool charge_on(struct charge *charge, int card, uint64_t bytes) {
	*charge = (struct charge){.card = card, .bytes = bytes};
	if (card == CARD_NONE) {
		return true;
	}
	if (card == CARD_FOREIGN) {
		return false;
	}
	look_now_and_then(card);
	return quota_reserve(card, bytes);
}

bool charge_here(struct charge *charge, uint64_t bytes) {
	if (!charge_on(charge, card_here(), bytes)) {
		return false;
	}
	charge->context = charge->card >= 0 ? card_context() : 0;
	return true;
}

bool charge_more(struct charge *charge, uint64_t more) {
	if (charge->card >= 0 && !quota_reserve(charge->card, more)) {
		return false;
	}
	charge->bytes += more;
	return true;
}

void charge_return(const struct record *record) {
	if (record->card >= 0) {
		quota_release(record->card, record->bytes);
	}
}

void charge_end(const struct charge *charge, int result, enum record_kind kind, uint64_t key) {
	if (charge->card < 0) {
		return;
	}
	const struct record record = {.key = key,
				      .bytes = charge->bytes,
				      .extra = charge->context,
				      .kind = kind,
				      .card = charge->card};
	if (result != 0) {
		charge_return(&record);
		return;
	}
	/* A record that was left under the key is of memory that went away unseen. */
	struct record old;
	const bool is_known = table_put(&slice_process()->table, &record, &old);
	guard_kept();
	if (is_known && old.kind != RECORD_NONE) {
		charge_return(&old);
	}
}

bool charge_lift(enum record_kind kind, uint64_t key, struct record *record) {
	return table_take(&slice_process()->table, kind, key, record);
}

void charge_drop(const struct record *record, int result) {
	struct record old;
	if (result == 0) {
		charge_return(record);
	} else {
		table_put(&slice_process()->table, record, &old);
	}
}

static bool goes_with(const struct record *record, uint64_t context) {
	const bool is_bound = record->kind == RECORD_ADDRESS || record->kind == RECORD_ARRAY ||
			      record->kind == RECORD_MIPMAP;
	return is_bound && record->extra == context;
}

void charge_end_context(uint64_t context) {
	if (context != 0) {
		table_drain(&slice_process()->table, goes_with, context, charge_return);
	}
}
