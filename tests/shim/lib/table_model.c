/* Random puts, takes, finds and drains on the hash table, beside a plain array that does the same slowly.
 * Usage: table_model SEED STEPS; ends with 1 at the first difference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define KEYS 512

static struct table table;
static struct record model[2][KEYS];
static unsigned int drained;

static void differ(const char *what, unsigned int step) {
	printf("%s differs at step %u\n", what, step);
	exit(1);
}

static struct record *modelled(uint32_t kind, uint64_t key) {
	return &model[kind - RECORD_ADDRESS][key];
}

static bool is_of_context(const struct record *record, uint64_t context) {
	return record->extra == context;
}

static void take_from_model(const struct record *record) {
	struct record *place = modelled(record->kind, record->key);
	if (place->kind != record->kind || place->bytes != record->bytes) {
		differ("drain", 0);
	}
	place->kind = RECORD_NONE;
	drained++;
}

static void count(const struct record *record, void *total) {
	*(uint64_t *)total += record->bytes;
}

static void put(uint32_t kind, uint64_t key, unsigned int step) {
	const struct record record = {.key = key, .bytes = step, .extra = step % 7, .kind = kind, .card = 0};
	struct record old;
	struct record *place = modelled(kind, key);
	if (!table_put(&table, &record, &old) || old.kind != place->kind ||
	    (old.kind != RECORD_NONE && old.bytes != place->bytes)) {
		differ("put", step);
	}
	*place = record;
}

static void look(uint32_t kind, uint64_t key, unsigned int step, bool take) {
	struct record record;
	struct record *place = modelled(kind, key);
	const bool found = take ? table_take(&table, kind, key, &record) : table_find(&table, kind, key, &record);
	if (found != (place->kind != RECORD_NONE) || (found && record.bytes != place->bytes)) {
		differ("look", step);
	}
	place->kind = take ? RECORD_NONE : place->kind;
}

static void compare_sums(unsigned int step) {
	uint64_t ours = 0;
	uint64_t expected = 0;
	table_visit(&table, RECORD_ARRAY, count, &ours);
	for (int i = 0; i < KEYS; i++) {
		const struct record *record = &model[RECORD_ARRAY - RECORD_ADDRESS][i];
		expected += record->kind != RECORD_NONE ? record->bytes : 0;
	}
	if (ours != expected) {
		differ("visit", step);
	}
}

static void drain(uint64_t context, unsigned int step) {
	table_drain(&table, is_of_context, context, take_from_model);
	for (int i = 0; i < 2 * KEYS; i++) {
		const struct record *record = &model[i / KEYS][i % KEYS];
		if (record->kind != RECORD_NONE && record->extra == context) {
			differ("drained", step);
		}
	}
}

int main(int argc, char **argv) {
	srand((unsigned int)atoi(argv[argc - 2]));
	const unsigned int steps = (unsigned int)atoi(argv[argc - 1]);
	for (unsigned int step = 1; step <= steps; step++) {
		const uint32_t kind = rand() % 2 != 0 ? RECORD_ADDRESS : RECORD_ARRAY;
		const uint64_t key = (uint64_t)(rand() % KEYS);
		const int what = rand() % 1000;
		if (what < 500) {
			put(kind, key, step);
		} else if (what < 998) {
			look(kind, key, step, what < 800);
		} else if (what < 999) {
			compare_sums(step);
		} else {
			drain(key % 7, step);
		}
	}
	printf("same %s\n", drained != 0 ? "and drained" : "");
	return 0;
}
