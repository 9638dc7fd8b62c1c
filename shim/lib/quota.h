/* The books: what the container holds of each card, and whether more fits. Lock-free; a process
 * killed at any instruction leaves nothing but its own word in the region. */
#ifndef VPY_QUOTA_H
#define VPY_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "region.h"

/* Charges *bytes* on *card* if they fit. Returns whether they did. */
bool quota_reserve(int card, uint64_t bytes);

/* Charges bytes that are in use whether they fit or not. */
void quota_charge(int card, uint64_t bytes);

/* Takes back what one of the two charged. */
void quota_release(int card, uint64_t bytes);

/* Moves a charge that was *before* to *after*: more is charged whether it fits or not. */
void quota_move(int card, uint64_t before, uint64_t after);

/* Whether *bytes* more would fit now, going by what is charged. Promises nothing. */
bool quota_has_room(int card, uint64_t bytes);

/* Whether the container holds more than it may: without the dead, with what this process holds read anew, and
 * without what others are only trying to get. */
bool quota_is_over(int card);

/* What all processes of the container hold of *card*, bytes. Those that are gone are emptied. */
uint64_t quota_used(int card);

/* What the container may hold of *card*, bytes; 0 is no limit. */
uint64_t quota_limit(int card);

/* Told of bytes that are charged and that nobody knows of any more, since a thread jumped out of the call which
 * had reserved them. NULL: they stay charged. */
extern void (*const quota_lost)(int card, uint64_t bytes);

/* Asked before a refusal: reads anew what this process holds of the card and may have shrunk by
 * itself. Each library of ours defines it; NULL if there is nothing of the kind. */
extern void (*const quota_refresh)(int card);

#endif
