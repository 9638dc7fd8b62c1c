/* How much of a card a program is told about. */
#ifndef VPY_REPORT_H
#define VPY_REPORT_H

#include <stdint.h>

struct report {
	uint64_t total;
	uint64_t free;
};

/* What the slice shows of a card that really has *total* and *free* bytes: never more than either
 * the card or the slice has; nothing free when the slice is over its limit. */
struct report report_memory(int card, uint64_t total, uint64_t free);

/* The size of the slice on a card of *total* bytes. */
uint64_t report_total(int card, uint64_t total);

#endif
