/* The ways to ask a card for memory, by name. */
#ifndef PROGRAM_FAMILIES_H
#define PROGRAM_FAMILIES_H

#include "entry.h"

struct family {
	const char *name;
	/* Asks for about `bytes` (a multiple of 2 MiB); what came is in `held`. */
	int (*take)(address *held, uint64_t bytes);
	int (*give)(address held, uint64_t bytes);
};

/* The family of that name, or NULL. */
const struct family *family_of(const char *name);

/* The names, NULL-ended. */
extern const struct family families[];

/* The device of this thread's later takes; 0 at first. */
void family_device(int device);

#endif
