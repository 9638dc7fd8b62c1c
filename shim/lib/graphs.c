/* How much each graph allocates, and what their launches have reserved of each card. */
#define _GNU_SOURCE
#include "graphs.h"

#include "card.h"
#include "charge.h"
#include "clock.h"
#include "driver.h"
#include "graph_books.h"
#include "guard.h"
#include "latch.h"
#include "pools.h"
#include "quota.h"
#include "slice.h"

static void note(enum record_kind kind, uint64_t key, uint64_t bytes, int card) {
	const struct record record = {.key = key, .bytes = bytes, .kind = kind, .card = card};
	struct record old;
	table_put(&slice_process()->table, &record, &old);
}

/* A graph may allocate on several cards: each has a record. No address has bits up there. */
static uint64_t key_of(const void *handle, int card) {
	return (uint64_t)(uintptr_t)handle ^ (uint64_t)card << 60;
}

void graph_books_add(CUgraph graph, uint64_t bytes, int card) {
	struct process *process = slice_process();
	struct record record = {0};
	if (card < 0) {
		return;
	}
	atomic_fetch_or(&process->graphs_allocate, 1u << card);
	table_find(&process->table, RECORD_GRAPH, key_of(graph, card), &record);
	const uint64_t before = record.kind == RECORD_GRAPH ? record.bytes : 0;
	note(RECORD_GRAPH, key_of(graph, card), before + bytes, card);
}

static bool allocates_on(int card) {
	return card >= 0 && (atomic_load(&slice_process()->graphs_allocate) >> card & 1) != 0;
}

void graph_books_move(CUgraph child, CUgraph parent) {
	struct record record;
	for (int card = 0; card < REGION_DEVICES; card++) {
		if (allocates_on(card) && charge_lift(RECORD_GRAPH, key_of(child, card), &record)) {
			graph_books_add(parent, record.bytes, card);
		}
	}
}

/* What a record of an instantiated graph has in `extra`. */
enum { EXEC_FREES_ITSELF = 1, EXEC_LAUNCHED = 2 };

void graph_books_instantiate(CUgraph graph, CUgraphExec exec, bool frees_itself) {
	struct record record;
	struct record old;
	for (int card = 0; card < REGION_DEVICES; card++) {
		if (allocates_on(card) && table_find(&slice_process()->table, RECORD_GRAPH,
						     key_of(graph, card), &record)) {
			record.kind = RECORD_EXEC;
			record.key = key_of(exec, card);
			record.extra = frees_itself ? EXEC_FREES_ITSELF : 0;
			table_put(&slice_process()->table, &record, &old);
		}
	}
}

void graph_books_launched(CUgraphExec exec, CUresult result) {
	struct record record;
	struct record old;
	for (int card = 0; card < REGION_DEVICES && result == CUDA_SUCCESS; card++) {
		if (allocates_on(card) && table_find(&slice_process()->table, RECORD_EXEC,
						     key_of(exec, card), &record)) {
			record.extra |= EXEC_LAUNCHED;
			table_put(&slice_process()->table, &record, &old);
		}
	}
}

void graph_books_forget(enum record_kind kind, const void *handle) {
	struct record record;
	for (int card = 0; card < REGION_DEVICES; card++) {
		if (allocates_on(card)) {
			charge_lift(kind, key_of(handle, card), &record);
		}
	}
}

bool graphs_capture(CUstream stream, uint64_t bytes) {
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	const fn_cuStreamIsCapturing is_capturing = DRIVER(cuStreamIsCapturing);
	if (is_capturing == NULL || is_capturing(stream, &status) != CUDA_SUCCESS ||
	    status == CU_STREAM_CAPTURE_STATUS_NONE) {
		return false;
	}
	const fn_cuStreamGetCaptureInfo_v2 info = DRIVER(cuStreamGetCaptureInfo_v2);
	CUgraph graph = NULL;
	cuuint64_t id;
	if (info != NULL && info(stream, &status, &id, &graph, NULL, NULL) == CUDA_SUCCESS) {
		graph_books_add(graph, bytes, card_here());
	}
	return true;
}

bool graphs_fit(int card, uint64_t bytes) {
	if (card == CARD_NONE) {
		return true;
	}
	if (card == CARD_FOREIGN || !quota_reserve(card, bytes)) {
		return false;
	}
	quota_release(card, bytes);
	return true;
}

/* The CUDA ordinal of a card that this process has used, or -1. */
static CUdevice device_of(int card) {
	for (CUdevice device = 0; device < PROCESS_ORDINALS; device++) {
		if (atomic_load(&slice_process()->cards[device]) == card + 1) {
			return device;
		}
	}
	return -1;
}

static bool read_attribute(int card, CUgraphMem_attribute attribute, uint64_t *bytes) {
	const fn_cuDeviceGetGraphMemAttribute read = DRIVER(cuDeviceGetGraphMemAttribute);
	return read != NULL && read(device_of(card), attribute, bytes) == CUDA_SUCCESS;
}

/* What all graphs of a card are charged with lies under its number. */
static uint64_t charged(int card) {
	struct record record;
	const bool known =
		table_find(&slice_process()->table, RECORD_GRAPHS, (uint64_t)card, &record);
	return known ? record.bytes : 0;
}

struct outlook {
	uint64_t reserved; /* by graphs now */
	uint64_t later;    /* when some bytes more are in use */
};

/* Looks to when *under_way* bytes more are in use. Returns false where the driver tells nothing. */
static bool look_out(int card, uint64_t under_way, struct outlook *outlook) {
	uint64_t used;
	if (!read_attribute(card, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &outlook->reserved)) {
		return false;
	}
	if (!read_attribute(card, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) ||
	    used > outlook->reserved) {
		used = outlook->reserved;
	}
	const uint64_t later = used + under_way;
	outlook->later = later > outlook->reserved ? later : outlook->reserved;
	return true;
}

/* Makes the charge what graphs have, but for what launches that run now have reserved beyond that.
 * *done* bytes were of a launch that has returned. */
static void settle(int card, uint64_t done) {
	struct process *process = slice_process();
	struct outlook outlook;
	latch_lock(&process->pools_lock);
	process->graphs_under_way[card] -= done;
	const uint64_t under_way = process->graphs_under_way[card];
	const uint64_t before = charged(card);
	if (look_out(card, under_way, &outlook)) {
		const uint64_t promised = before < outlook.later ? before : outlook.later;
		const bool keeps = under_way != 0 && promised > outlook.reserved;
		const uint64_t after = keeps ? promised : outlook.reserved;
		quota_move(card, before, after);
		note(RECORD_GRAPHS, (uint64_t)card, after, card);
	}
	latch_unlock(&process->pools_lock);
}

void graphs_read(int card) {
	if (allocates_on(card)) {
		settle(card, 0);
	}
}

enum answer { GRANTED, REFUSED, BUSY };

/* Reserves what the card must have for *bytes* more beside all launches that run now. BUSY: it doesn't
 * fit, and some of those may take less than they might. */
static enum answer reserve(int card, uint64_t bytes) {
	struct process *process = slice_process();
	struct outlook outlook;
	latch_lock(&process->pools_lock);
	const uint64_t others = process->graphs_under_way[card];
	const uint64_t before = charged(card);
	const bool told = look_out(card, others + bytes, &outlook);
	const uint64_t after = told ? outlook.later : before + bytes;
	const uint64_t more = after > before ? after - before : 0;
	const bool fits = more == 0 || quota_has_room(card, more);
	atomic_store(&process->pools_settling, 1);
	const bool granted = fits && (more == 0 || quota_reserve(card, more));
	atomic_store(&process->pools_settling, 0);
	guard_kept();
	if (granted) {
		process->graphs_under_way[card] += bytes;
		note(RECORD_GRAPHS, (uint64_t)card, before + more, card);
	}
	latch_unlock(&process->pools_lock);
	return granted ? GRANTED : others != 0 ? BUSY : REFUSED;
}

#define PATIENCE_NS UINT64_C(20000000) /* for launches of other threads to return */
#define PAUSE_NS UINT64_C(50000)

static bool begin_on(int card, uint64_t bytes) {
	const enum answer first = reserve(card, bytes);
	if (first == GRANTED) {
		return true;
	}
	quota_used(card); /* without the dead */
	pools_read(card);
	const uint64_t until = clock_ns() + PATIENCE_NS;
	enum answer answer;
	while ((answer = reserve(card, bytes)) == BUSY && clock_ns() < until) {
		clock_sleep_ns(PAUSE_NS);
	}
	if (answer != GRANTED) {
		atomic_fetch_add(&slice.region->cards[card].refused, 1);
	}
	return answer == GRANTED;
}

/* What a launch may take beyond what is in use. Of a graph that frees itself the last launch's memory goes
 * first. The program may have freed it before: then no more than what is in use can go. */
static uint64_t need_of(const struct record *record) {
	const uint64_t again = EXEC_FREES_ITSELF | EXEC_LAUNCHED;
	uint64_t used;
	if (record->kind != RECORD_EXEC || (record->extra & again) != again ||
	    !read_attribute(record->card, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used)) {
		return record->bytes;
	}
	return record->bytes > used ? record->bytes - used : 0;
}

bool graph_books_begin(enum record_kind kind, const void *handle, struct graph_charges *charges) {
	struct record record;
	charges->count = 0;
	for (int card = 0; card < REGION_DEVICES && slice_process()->graphs_allocate != 0; card++) {
		if (!allocates_on(card) ||
		    !table_find(&slice_process()->table, kind, key_of(handle, card), &record)) {
			continue;
		}
		const uint64_t bytes = need_of(&record);
		if (!begin_on(card, bytes)) {
			graph_books_end(charges);
			return false;
		}
		charges->cards[charges->count].card = card;
		charges->cards[charges->count++].bytes = bytes;
	}
	return true;
}

void graph_books_end(const struct graph_charges *charges) {
	for (int i = 0; i < charges->count; i++) {
		settle(charges->cards[i].card, charges->cards[i].bytes);
	}
}
