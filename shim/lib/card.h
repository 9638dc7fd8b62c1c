/* Which card of the region a CUDA device is. The two number their devices on their own, so the
 * UUID decides; CUDA_VISIBLE_DEVICES in any form makes no difference. */
#ifndef VPY_CARD_H
#define VPY_CARD_H

#include <stdint.h>

#include "cuda_abi.h"

enum {
	CARD_NONE = -1,    /* no context, or the driver doesn't know the device: the driver answers */
	CARD_FOREIGN = -2, /* a device that isn't in the slice: nothing is granted */
};

/* The card of a CUDA ordinal. */
int card_of_device(CUdevice device);

/* The card of this thread's current context. */
int card_here(void);

/* The card whose memory a location is; CARD_NONE for memory of the host. */
int card_of_location(const CUmemLocation *location);

/* Who pays for memory of a type that prefers a location: managed memory without a card, the current one. */
int card_of_memory(int type, const CUmemLocation *location);

/* The current context as a number, 0 if there is none. Of a green context it is the primary one, which owns
 * what is allocated in it. */
uint64_t card_context(void);

/* Now and then: compares the books with what the driver says the process holds of the card. */
void card_reconcile(int card);

/* The card with this UUID as NVML writes it, or CARD_FOREIGN. */
int card_of_uuid(const char *uuid);

/* The UUID of a card as the region has it, or as NVML knows it by position; "" if unknown. */
void card_uuid(int card, char uuid[64]);

#endif
