/* What a process holds on a card besides what it asked for: contexts, modules, heaps. NVML tells
 * how much the process holds; what the books don't have of it is charged too. */
#ifndef VPY_OVERHEAD_H
#define VPY_OVERHEAD_H

#include <stdbool.h>

/* Around the making of a context on *card*; learns how NVML names this process. Returns whether what it
 * took fits: if not, it must go back. */
int overhead_before_context(int card);
bool overhead_after_context(int card, int token);

/* After something was made whose size nobody tells beforehand: what it took is charged. Returns whether it
 * fits: if not, it must go back, and that be told by overhead_refused. */
bool overhead_fits(int card);
void overhead_refused(int card);

/* Whether this process has been seen on the card. */
bool overhead_is_watched(int card);

/* Compares the books with NVML after a context ended. */
void overhead_after_end(int card);

/* The same at any time, if the last look is old; called now and then by allocations. */
void overhead_look_if_due(int card);

#endif
