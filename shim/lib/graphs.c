/* How much each graph allocates, and what their launches have reserved of each card. */
#define _GNU_SOURCE
#include "graphs.h"

#include "card.h"
#include "charge.h"
#include "driver.h"
#include "graph_books.h"
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

void graph_books_instantiate(CUgraph graph, CUgraphExec exec) {
	struct record record;
	for (int card = 0; card < REGION_DEVICES; card++) {
		if (allocates_on(card) && table_find(&slice_process()->table, RECORD_GRAPH,
						     key_of(graph, card), &record)) {
			note(RECORD_EXEC, key_of(exec, card), record.bytes, card);
		}
	}
}

void graph_books_forget(bool is_exec, const void *handle) {
	struct record record;
	for (int card = 0; card < REGION_DEVICES; card++) {
		if (allocates_on(card)) {
			charge_lift(is_exec ? RECORD_EXEC : RECORD_GRAPH, key_of(handle, card), &record);
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

/* The charge of all graphs of this process on a card lies under the card's number. */
static void settle(int card, uint64_t paid) {
	struct process *process = slice_process();
	struct record record = {.kind = RECORD_NONE};
	uint64_t reserved;
	pthread_mutex_lock(&process->pools_lock);
	table_find(&process->table, RECORD_GRAPHS, (uint64_t)card, &record);
	const uint64_t before = record.kind == RECORD_GRAPHS ? record.bytes : 0;
	if (!read_attribute(card, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved)) {
		reserved = before + paid;
	}
	quota_move(card, before + paid, reserved);
	note(RECORD_GRAPHS, (uint64_t)card, reserved, card);
	pthread_mutex_unlock(&process->pools_lock);
}

void graphs_read(int card) {
	if (allocates_on(card)) {
		settle(card, 0);
	}
}

/* What a launch may take of a card beyond what graphs have reserved of it. */
static uint64_t shortage(int card, uint64_t bytes) {
	uint64_t reserved;
	uint64_t used;
	uint64_t idle = 0;
	if (read_attribute(card, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
	    read_attribute(card, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) && reserved > used) {
		idle = reserved - used;
	}
	return bytes > idle ? bytes - idle : 0;
}

bool graph_books_begin(CUgraphExec exec, struct graph_charges *charges) {
	struct record record;
	charges->count = 0;
	for (int card = 0; card < REGION_DEVICES && slice_process()->graphs_allocate != 0; card++) {
		if (!allocates_on(card) || !table_find(&slice_process()->table, RECORD_EXEC,
						       key_of(exec, card), &record)) {
			continue;
		}
		struct charge *charge = &charges->cards[charges->count];
		if (!charge_on(charge, card, shortage(card, record.bytes))) {
			graph_books_end(charges);
			return false;
		}
		charges->count++;
	}
	return true;
}

void graph_books_end(const struct graph_charges *charges) {
	for (int i = 0; i < charges->count; i++) {
		settle(charges->cards[i].card, charges->cards[i].bytes);
	}
}
