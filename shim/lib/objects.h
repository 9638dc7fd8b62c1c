/* Allocations of virtual memory: each is charged once, and held by handles, mappings and bindings.
 * When nothing holds one any more, its charge goes. */
#ifndef VPY_OBJECTS_H
#define VPY_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "charge.h"

/* What holds an object: a handle by its value, a mapping by its address, a binding by place. */
struct hold {
	enum record_kind kind;
	uint64_t key;
	uint64_t bytes; /* of a mapping; of a tile, its array */
};

/* A new object with its first handle. *charge* has what was reserved for it. */
void objects_add(const struct charge *charge, uint64_t handle, uint64_t bytes);

/* One more hold on the object that *holder* of this kind and key holds. */
void objects_hold(enum record_kind kind, uint64_t key, const struct hold *hold);

/* Takes a hold away before the driver does. Returns false if it isn't known. */
bool objects_lift(enum record_kind kind, uint64_t key, struct record *lifted);

/* After the driver's answer: the hold is gone, or it is put back. */
void objects_drop(const struct record *lifted, int result);

/* Ends all holds of an array that is gone. */
void objects_end_tiles(uint64_t array);

/* The hold without taking it; false if it isn't known. */
bool objects_find(enum record_kind kind, uint64_t key, struct record *hold);

#endif
