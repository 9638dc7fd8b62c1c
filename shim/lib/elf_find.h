/* Symbols of loaded objects, found without asking dlsym: we are dlsym. */
#ifndef VPY_ELF_FIND_H
#define VPY_ELF_FIND_H

#include <stdbool.h>

/* Address of the function *name* in the first object of our namespace that defines it, but for the
 * one that contains *own*; NULL if none does. */
void *elf_find(const char *name, const void *own);

/* Where *address* is in another namespace (dlmopen) that has a copy of the object which contains *own*:
 * that copy's function *name*. Else NULL. */
void *elf_find_beside(const void *address, const void *own, const char *name);

/* Whether *address* lies in a loaded object whose file name starts with *prefix*. */
bool elf_owner_starts_with(const void *address, const char *prefix);

#endif
