/* Sharded by key, a short lock a shard, linear probing without tombstones. Memory comes from the
 * kernel, not from malloc: a hook may run while the application's allocator is locked. Children
 * don't get it. */
#define _GNU_SOURCE
#include "table.h"

#include <string.h>
#include <sys/mman.h>

#include "latch.h"

#define FIRST_CAPACITY 128u

__thread unsigned int latch_depth __attribute__((tls_model("initial-exec")));

static uint64_t hash(uint32_t kind, uint64_t key) {
	uint64_t mixed = (key ^ ((uint64_t)kind << 56)) * UINT64_C(0x9e3779b97f4a7c15);
	mixed ^= mixed >> 32;
	return mixed * UINT64_C(0xd6e8feb86659fd93);
}

static struct shard *shard_of(struct table *table, uint64_t hashed) {
	return &table->shards[hashed >> 58];
}

static struct record *new_records(uint32_t capacity) {
	const size_t size = capacity * sizeof(struct record);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		return NULL;
	}
	madvise(at, size, MADV_DONTFORK);
	return at;
}

static uint32_t find(const struct shard *shard, uint32_t kind, uint64_t key, uint64_t hashed) {
	const uint32_t mask = shard->capacity - 1;
	uint32_t i = (uint32_t)hashed & mask;
	while (shard->records[i].kind != RECORD_NONE &&
	       (shard->records[i].kind != kind || shard->records[i].key != key)) {
		i = (i + 1) & mask;
	}
	return i;
}

static bool grow(struct shard *shard) {
	const uint32_t capacity = shard->capacity == 0 ? FIRST_CAPACITY : shard->capacity * 2;
	struct record *records = new_records(capacity);
	if (records == NULL) {
		return false;
	}
	const struct shard old = *shard;
	shard->records = records;
	shard->capacity = capacity;
	for (uint32_t i = 0; i < old.capacity; i++) {
		const struct record *record = &old.records[i];
		if (record->kind != RECORD_NONE) {
			const uint64_t hashed = hash(record->kind, record->key);
			records[find(shard, record->kind, record->key, hashed)] = *record;
		}
	}
	if (old.records != NULL) {
		munmap(old.records, old.capacity * sizeof(struct record));
	}
	return true;
}

/* Empties place *i* and moves up what its emptiness would hide. */
static void erase(struct shard *shard, uint32_t i) {
	const uint32_t mask = shard->capacity - 1;
	uint32_t next = i;
	for (;;) {
		next = (next + 1) & mask;
		const struct record *record = &shard->records[next];
		if (record->kind == RECORD_NONE) {
			break;
		}
		const uint32_t home = (uint32_t)hash(record->kind, record->key) & mask;
		if (((next - home) & mask) >= ((next - i) & mask)) {
			shard->records[i] = *record;
			i = next;
		}
	}
	shard->records[i].kind = RECORD_NONE;
	shard->count--;
}

bool table_put(struct table *table, const struct record *record, struct record *old) {
	const uint64_t hashed = hash(record->kind, record->key);
	struct shard *shard = shard_of(table, hashed);
	old->kind = RECORD_NONE;
	latch_lock(&shard->lock);
	const bool has_room = shard->count * 2 < shard->capacity || grow(shard);
	if (has_room) {
		struct record *place = &shard->records[find(shard, record->kind, record->key, hashed)];
		*old = *place;
		shard->count += place->kind == RECORD_NONE;
		*place = *record;
	}
	latch_unlock(&shard->lock);
	return has_room;
}

static bool look(struct table *table, enum record_kind kind, uint64_t key, struct record *record,
		 bool take) {
	const uint64_t hashed = hash(kind, key);
	struct shard *shard = shard_of(table, hashed);
	bool found = false;
	latch_lock(&shard->lock);
	if (shard->count != 0) {
		const uint32_t i = find(shard, kind, key, hashed);
		*record = shard->records[i];
		found = record->kind != RECORD_NONE;
		if (found && take) {
			erase(shard, i);
		}
	}
	latch_unlock(&shard->lock);
	return found;
}

bool table_take(struct table *table, enum record_kind kind, uint64_t key, struct record *record) {
	return look(table, kind, key, record, true);
}

bool table_find(struct table *table, enum record_kind kind, uint64_t key, struct record *record) {
	return look(table, kind, key, record, false);
}

/* Takes the next match at or after *from* out of the shard. */
static bool take_next(struct shard *shard, bool (*matches)(const struct record *, uint64_t),
		      uint64_t argument, struct record *record) {
	bool found = false;
	latch_lock(&shard->lock);
	for (uint32_t i = 0; i < shard->capacity && !found; i++) {
		*record = shard->records[i];
		found = record->kind != RECORD_NONE && matches(record, argument);
		if (found) {
			erase(shard, i);
		}
	}
	latch_unlock(&shard->lock);
	return found;
}

void table_drain(struct table *table, bool (*matches)(const struct record *, uint64_t),
		 uint64_t argument, void (*use)(const struct record *)) {
	for (int i = 0; i < TABLE_SHARDS; i++) {
		struct record record;
		while (take_next(&table->shards[i], matches, argument, &record)) {
			use(&record);
		}
	}
}

/* Copies up to *room* records of the kind from place *from* on; where to go on. */
static uint32_t copy_some(struct shard *shard, enum record_kind kind, uint32_t from,
			  struct record *copies, uint32_t room, uint32_t *count) {
	*count = 0;
	latch_lock(&shard->lock);
	while (from < shard->capacity && *count < room) {
		if (shard->records[from].kind == kind) {
			copies[(*count)++] = shard->records[from];
		}
		from++;
	}
	const bool done = from >= shard->capacity;
	latch_unlock(&shard->lock);
	return done ? UINT32_MAX : from;
}

void table_visit(struct table *table, enum record_kind kind,
		 void (*use)(const struct record *, void *), void *argument) {
	for (int i = 0; i < TABLE_SHARDS; i++) {
		for (uint32_t from = 0; from != UINT32_MAX;) {
			struct record copies[16];
			uint32_t count = 0;
			from = copy_some(&table->shards[i], kind, from, copies, 16, &count);
			for (uint32_t j = 0; j < count; j++) {
				use(&copies[j], argument);
			}
		}
	}
}
