/* A process's place in the region, owned by a lock that the kernel takes back. */
#ifndef VPY_SLOT_H
#define VPY_SLOT_H

#include <stdbool.h>

#include "region.h"

/* Takes a free slot and empties it. Returns its number; -1 with *why* set if there is none. */
int slot_claim(struct region *region, const char *path, const char **why);

/* Empties the slots of processes that are gone, but for *own*. Returns whether any was. */
bool slot_sweep(struct region *region, const char *path, int own);

/* Waits at most *patience_ns* for the lock on a byte of the file that belongs to no slot. Returns
 * what slot_unlock takes; -1 if it can't be had. The kernel drops it if its owner dies. */
int slot_lock(const char *path, int byte, uint64_t patience_ns);
void slot_unlock(int lock);

#endif
