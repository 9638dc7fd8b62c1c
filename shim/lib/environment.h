/* What HAMi's device plugin tells a container: limits in the environment. Read only where the node
 * agent made no region. */
#ifndef VPY_ENVIRONMENT_H
#define VPY_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "region.h"

struct environment {
	struct region_device devices[REGION_DEVICES]; /* by position; UUIDs are empty */
	uint32_t priority;
	uint32_t policy;
	char path[512]; /* where the region shall be */
};

/* The value of a variable of this process, or else of the container's first process, whose
 * environment a login shell doesn't inherit. Returns false if neither has it. */
bool environment_value(const char *name, char *value, size_t size);

/* Whether, since environment_begin, the first process's environment could not be read for a reason that
 * passes: then a value that wasn't found may be there all the same. */
void environment_begin(void);
bool environment_was_cut(void);

/* Whether an errno says that something is short now and may not be later. */
bool environment_passes(int fault);

/* Reads the limits. Returns false if there are none. */
bool environment_read(struct environment *environment);

#endif
