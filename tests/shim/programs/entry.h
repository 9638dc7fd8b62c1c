/* How a program comes by the driver's functions. */
#ifndef PROGRAM_ENTRY_H
#define PROGRAM_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "../stub/driver.h"

/* `way`: "direct" (linked), "dlsym", "default" (dlsym of RTLD_DEFAULT), "dlvsym", "proc" (cuGetProcAddress) or "proc2"
 * (its second version). `table` has a line "SYMBOL BASE VERSION FLAGS" for each name that the last two may be
 * asked for. */
void entry_choose(const char *way, const char *table);

/* The function of that exported name, found in the chosen way; ends the program when there is none. */
void *entry(const char *symbol);

/* The same, or NULL. */
void *entry_find(const char *symbol);

/* The file name of the library in which an address lies. */
const char *owner_of(const void *at);

/* CALL(name, (types), values...) */
#define CALL(name, types, ...) ((int(*) types)entry(name))(__VA_ARGS__)

#endif
