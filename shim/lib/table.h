/* What the process holds: a concurrent hash table from handles and addresses to charges. */
#ifndef VPY_TABLE_H
#define VPY_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_SHARDS 64

enum record_kind {
	RECORD_NONE = 0,
	RECORD_ADDRESS,  /* memory of a context, by address */
	RECORD_ARRAY,    /* by handle */
	RECORD_MIPMAP,   /* by handle */
	RECORD_POOL,     /* reserved by a pool, by handle */
	RECORD_GRAPH,    /* what its launch allocates, by handle; not charged */
	RECORD_EXEC,     /* the same of an instantiated graph */
	RECORD_GRAPHS,   /* what all graphs have reserved, by card */
	RECORD_HANDLE,   /* of virtual memory; extra: object */
	RECORD_MAPPING,  /* by address; extra: object */
	RECORD_BINDING,  /* of a multicast object; extra: object */
	RECORD_TILE,     /* a part of a sparse array, by place; extra: object, bytes: the array */
	RECORD_OBJECT,   /* virtual memory, by number; extra: how many hold it */
	RECORD_CONTEXT,  /* made by the process, by handle: its card */
	RECORD_GREEN,    /* a green context; extra: its device */
	RECORD_GREEN_CONTEXT, /* a context of such a one; bytes: that one, extra: the primary context */
	RECORD_IMPORTED, /* somebody else's memory, by address or handle */
};

struct record {
	uint64_t key;
	uint64_t bytes;
	uint64_t extra; /* the context it goes with, or as the kind says */
	uint32_t kind;  /* enum record_kind */
	int32_t card;   /* of the region; -1: not charged */
};

struct shard {
	pthread_mutex_t lock;
	struct record *records; /* a power of two of them; open addressing */
	uint32_t capacity;
	uint32_t count;
};

struct table {
	struct shard shards[TABLE_SHARDS];
};

/* Puts *record* in; one of the same kind and key that is there goes to *old* (its kind is
 * RECORD_NONE if there was none). Returns false if there is no memory for it. */
bool table_put(struct table *table, const struct record *record, struct record *old);

/* Takes the record out; false if it isn't there. */
bool table_take(struct table *table, enum record_kind kind, uint64_t key, struct record *record);

/* Reads the record; false if it isn't there. */
bool table_find(struct table *table, enum record_kind kind, uint64_t key, struct record *record);

/* Takes out, one by one, records that *matches* and hands each to *use*. */
void table_drain(struct table *table, bool (*matches)(const struct record *, uint64_t),
		 uint64_t argument, void (*use)(const struct record *));

/* Hands a copy of each record that *matches* to *use*, which may use the table. */
void table_visit(struct table *table, enum record_kind kind,
		 void (*use)(const struct record *, void *), void *argument);

#endif
