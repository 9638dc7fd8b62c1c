/* The probe's commands: each reads its words and prints one line. */
#ifndef PROGRAM_PROBE_H
#define PROGRAM_PROBE_H

#include "families.h"

/* What the program holds, by a name of the test's. */
struct held {
	char name[32];
	const struct family *family;
	address at;
	uint64_t bytes;
};

/* The thing of that name; if there is none, a new one or (without `make`) NULL. */
struct held *thing(const char *name, int make);

struct command {
	const char *name;
	void (*run)(char **word);
	int words;
};

/* Commands about pools and memory by handle; ends with a NULL name. */
extern const struct command memory_commands[];

#endif
