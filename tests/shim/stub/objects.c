/* What this process allocated, by address or handle. */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

#define BUCKETS 65536
#define GRAIN 512ull
#define KEPT 1024

static struct object *table[BUCKETS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static uint32_t bucket_of(address key) {
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 48) % BUCKETS;
}

struct object *object_add(address key, enum kind kind, int card, uint64_t bytes, struct context *context) {
	struct object *object = calloc(1, sizeof *object);
	if (object == NULL) {
		abort();
	}
	*object = (struct object){.key = key, .kind = kind, .card = card, .bytes = bytes, .context = context};
	uint32_t bucket = bucket_of(key);
	pthread_mutex_lock(&guard);
	object->next = table[bucket];
	table[bucket] = object;
	pthread_mutex_unlock(&guard);
	return object;
}

static int is_wanted(const struct object *object, address key, enum kind kind, enum kind other) {
	return object->key == key && (kind == 0 || object->kind == kind || object->kind == other);
}

struct object *object_find(address key, enum kind kind, enum kind other) {
	pthread_mutex_lock(&guard);
	struct object *object = table[bucket_of(key)];
	while (object != NULL && !is_wanted(object, key, kind, other)) {
		object = object->next;
	}
	pthread_mutex_unlock(&guard);
	return object;
}

struct object *object_holding(address inside) {
	struct object *found = NULL;
	pthread_mutex_lock(&guard);
	for (int b = 0; b < BUCKETS && found == NULL; b++) {
		for (struct object *object = table[b]; object != NULL; object = object->next) {
			int holds = inside >= object->key && inside - object->key < object->bytes;
			if (holds && object->kind != RANGE && object->kind != PHYSICAL) {
				found = object;
			}
		}
	}
	pthread_mutex_unlock(&guard);
	return found;
}

struct object *object_remove(address key, enum kind kind, enum kind other) {
	pthread_mutex_lock(&guard);
	struct object **link = &table[bucket_of(key)];
	while (*link != NULL && !is_wanted(*link, key, kind, other)) {
		link = &(*link)->next;
	}
	struct object *object = *link;
	if (object != NULL) {
		*link = object->next;
	}
	pthread_mutex_unlock(&guard);
	return object;
}

static struct object *next_of(const struct context *context) {
	struct object *found = NULL;
	pthread_mutex_lock(&guard);
	for (int b = 0; b < BUCKETS && found == NULL; b++) {
		struct object **link = &table[b];
		while (*link != NULL && (*link)->context != context) {
			link = &(*link)->next;
		}
		found = *link;
		if (found != NULL) {
			*link = found->next;
		}
	}
	pthread_mutex_unlock(&guard);
	return found;
}

static int holds_card_memory(const struct object *object) {
	return object->kind == LINEAR || object->kind == MANAGED || object->kind == ARRAY || object->kind == MIPMAP ||
	       object->kind == MODULE;
}

void objects_end(struct context *context) {
	struct object *object;
	while ((object = next_of(context)) != NULL) {
		if (holds_card_memory(object)) {
			memory_give(object->card, object->bytes);
		}
		free(object->detail);
		free(object);
	}
}

/* The last freed addresses by size; what doesn't fit is never given out again. */
static struct {
	address start;
	uint64_t bytes;
} kept[KEPT];
static pthread_mutex_t kept_guard = PTHREAD_MUTEX_INITIALIZER;
static address next_address = 0x700000000000ull;

static uint64_t rounded(uint64_t bytes) {
	return bytes == 0 ? GRAIN : (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

address address_new(uint64_t bytes) {
	uint64_t size = rounded(bytes);
	uint32_t place = bucket_of(size) % KEPT;
	address start;
	pthread_mutex_lock(&kept_guard);
	if (kept[place].bytes == size) {
		start = kept[place].start;
		kept[place].bytes = 0;
	} else {
		start = next_address;
		next_address += size;
	}
	pthread_mutex_unlock(&kept_guard);
	return start;
}

void address_free(address start, uint64_t bytes) {
	uint64_t size = rounded(bytes);
	pthread_mutex_lock(&kept_guard);
	kept[bucket_of(size) % KEPT].start = start;
	kept[bucket_of(size) % KEPT].bytes = size;
	pthread_mutex_unlock(&kept_guard);
}

address handle_new(void) {
	static _Atomic address last = 0x10000;
	return atomic_fetch_add(&last, 16) + 16;
}

static void forget_all(void) {
	pthread_mutex_init(&guard, NULL);
	pthread_mutex_init(&kept_guard, NULL);
	for (int b = 0; b < BUCKETS; b++) {
		table[b] = NULL;
	}
}

/* A forked child has nothing of its parent's on the card. */
__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, forget_all);
}
