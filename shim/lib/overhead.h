/* What a process holds on a card besides what it asked for: contexts, modules, heaps. NVML tells
 * how much the process holds; what the books don't have of it is charged too. */
#ifndef VPY_OVERHEAD_H
#define VPY_OVERHEAD_H

/* Around the making of a context on *card*; learns how NVML names this process. */
int overhead_before_context(int card);
void overhead_after_context(int card, int token);

/* Compares the books with NVML after a context ended. */
void overhead_after_end(int card);

/* The same at any time, if the last look is old; called now and then by allocations. */
void overhead_look_if_due(int card);

#endif
