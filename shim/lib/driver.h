/* The real drivers: where their functions are, behind the names that we export. */
#ifndef VPY_DRIVER_H
#define VPY_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks.h"

enum driver_library { DRIVER_CUDA, DRIVER_NVML, DRIVER_ASCEND, DRIVER_LIBRARIES };

/* One entry of the list; made by generate.py. */
struct symbol {
	const char *name;
	const char *base;  /* what cuGetProcAddress is asked for */
	int since;         /* CUDA version of this ABI, 11020 for 11.2 */
	bool per_thread;   /* the variant for per-thread default streams */
	enum driver_library library;
	void *hook; /* our exported function; NULL for what we only call */
};

/* The first SYM_HOOKED are hooks, sorted by name. */
extern const struct symbol symbols[];

/* Addresses in the drivers; NULL until asked for. */
extern _Atomic(void *) driver_entries[];

/* Looks *id* up in its driver, which is loaded if need be; NULL if it isn't there. */
void *driver_find(enum symbol_id id);

/* The driver's own function of this id, or NULL. */
static inline void *driver_entry(enum symbol_id id) {
	void *at = atomic_load_explicit(&driver_entries[id], memory_order_acquire);
	return at != NULL ? at : driver_find(id);
}

/* The driver's own function of this name, typed, or NULL. */
#define DRIVER(name) ((fn_##name)(uintptr_t)driver_entry(SYM_##name))

/* The hook of the exported *name*, or NULL. */
const struct symbol *driver_hook(const char *name);

/* The id of an entry of `symbols`. */
enum symbol_id driver_id(const struct symbol *symbol);

/* Whether an address is in one of the drivers' own libraries. */
bool driver_owns(const void *address);

/* dlsym and dlvsym as libc has them. */
void *driver_dlsym(void *handle, const char *name);

/* Finds libc's own lookup functions; harmless when repeated. */
void driver_find_lookup(void);
extern _Atomic(void *) driver_real_dlsym;
extern _Atomic(void *) driver_real_dlvsym;

#endif
