/* Stream-ordered memory: a pool is charged with what it has reserved from the card, not with what
 * of it is in use, since that is what others can't have. */
#ifndef VPY_POOLS_H
#define VPY_POOLS_H

#include "cuda_abi.h"

/* A free is under way: pools may shrink once the stream gets there. */
void pools_freed(void);

/* Streams were waited for: reads what pools have reserved now, if some free was under way. */
void pools_waited(void);

/* Reads what all pools, and graphs on the card, have reserved. */
void pools_read(int card);

/* The card's contexts are gone: pools that can't be read any more hold nothing. */
void pools_end_contexts(int card);

#endif
