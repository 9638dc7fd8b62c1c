/* The charge of one pool. */
#ifndef VPY_POOL_BOOKS_H
#define VPY_POOL_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

/* The card that pays for a pool. */
int pool_books_card(CUmemoryPool pool);

/* Bytes that the pool has to take from the card to serve *bytes* more, as far as can be told. */
uint64_t pool_books_shortage(CUmemoryPool pool, uint64_t bytes);

/* After an allocation for which *paid* bytes were reserved: makes the charge what the pool has
 * reserved now. Returns false if it has more than fits; then only what was paid is charged. */
bool pool_books_settle(CUmemoryPool pool, int card, uint64_t paid);

/* Makes the charge what the pool has reserved, whether it fits or not. */
void pool_books_read(CUmemoryPool pool);

/* A new pool on this card, negative for one that isn't charged here; one that is gone. */
void pool_books_open(CUmemoryPool pool, int card);
void pool_books_close(CUmemoryPool pool);

#endif
