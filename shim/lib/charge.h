/* A charge around a driver's call: reserved before it, kept with what it returned, or taken back. */
#ifndef VPY_CHARGE_H
#define VPY_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "region.h"
#include "table.h"

struct charge {
	int card;	  /* of the region; negative: nothing is charged */
	uint64_t bytes;	  /* reserved */
	uint64_t context; /* that the memory goes with; 0: none */
};

/* Reserves on the card of the current context. Returns false if it doesn't fit, which is
 * CUDA_ERROR_OUT_OF_MEMORY to the caller. Without a context nothing is charged, and the driver answers. */
bool charge_here(struct charge *charge, uint64_t bytes);

/* Reserves on a card, for no context. */
bool charge_on(struct charge *charge, int card, uint64_t bytes);

/* Reserves *more* bytes for the same charge. */
bool charge_more(struct charge *charge, uint64_t more);

/* Ends the charge: kept under (kind, key) if the driver succeeded, else taken back. */
void charge_end(const struct charge *charge, int result, enum record_kind kind, uint64_t key);

/* Gives back what a record had charged. */
void charge_return(const struct record *record);

/* Takes the record out before the driver frees, so that nobody who gets the same key meets it. Returns
 * whether there is one. */
bool charge_lift(enum record_kind kind, uint64_t key, struct record *record);

/* After the driver's answer: gives back what was charged, or puts the record in again. */
void charge_drop(const struct record *record, int result);

/* Gives back all that goes with a context that is gone. */
void charge_end_context(uint64_t context);

#endif
