/* Which card of the region an Ascend device is: the container sees its devices from 0 on, in the
 * order in which the agent listed them. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "slice.h"

int card_of_device(CUdevice device) {
	if (slice_limits() == NULL) {
		return CARD_FOREIGN;
	}
	return device >= 0 && (uint32_t)device < slice.region->header.device_count ? device
										   : CARD_FOREIGN;
}

/* The device that is set for this thread; negative if none is. */
static int32_t device_here(void) {
	int32_t device;
	const fn_aclrtGetDevice current = DRIVER(aclrtGetDevice);
	return current != NULL && current(&device) == ACL_SUCCESS ? device : -1;
}

int card_here(void) {
	const int32_t device = device_here();
	return device >= 0 ? card_of_device(device) : CARD_NONE;
}

/* Memory goes with the device: a reset takes all that the process holds there. */
uint64_t card_context(void) {
	return (uint64_t)(device_here() + 1);
}

/* AscendCL doesn't tell what a process holds. */
void card_reconcile(int card) {
	(void)card;
}
