/* Finds the drivers' own functions. Nothing is looked up before it is needed, so a process that
 * never touches a card pays for nothing. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "elf_find.h"
#include "old_libc.h"

OLD_LIBC(dlopen, "2.2.5");

_Atomic(void *) driver_entries[SYM_COUNT];
_Atomic(void *) driver_real_dlsym;
_Atomic(void *) driver_real_dlvsym;
static _Atomic(void *) handles[DRIVER_LIBRARIES];
static const char *const sonames[DRIVER_LIBRARIES] = {"libcuda.so.1", "libnvidia-ml.so.1",
							 "libascendcl.so"};

typedef void *(*lookup_fn)(void *, const char *);

/* Stands in for libc's functions in a process that has none. */
static void *no_lookup(void *handle, const char *name) {
	(void)handle;
	(void)name;
	return NULL;
}

void driver_find_lookup(void) {
	if (atomic_load_explicit(&driver_real_dlsym, memory_order_acquire) != NULL) {
		return;
	}
	void *versioned = elf_find("dlvsym", (const void *)(uintptr_t)driver_find_lookup);
	void *plain = elf_find("dlsym", (const void *)(uintptr_t)driver_find_lookup);
	plain = plain != NULL ? plain : (void *)(uintptr_t)no_lookup;
	versioned = versioned != NULL ? versioned : plain;
	atomic_store_explicit(&driver_real_dlvsym, versioned, memory_order_release);
	atomic_store_explicit(&driver_real_dlsym, plain, memory_order_release);
}

void *driver_dlsym(void *handle, const char *name) {
	driver_find_lookup();
	const uintptr_t real = (uintptr_t)atomic_load_explicit(&driver_real_dlsym, memory_order_acquire);
	return ((lookup_fn)real)(handle, name);
}

/* The driver that the process has loaded, or would load. */
static void *library_handle(enum driver_library library) {
	void *handle = atomic_load_explicit(&handles[library], memory_order_acquire);
	if (handle == NULL) {
		handle = dlopen(sonames[library], RTLD_LAZY | RTLD_LOCAL);
		atomic_store_explicit(&handles[library], handle, memory_order_release);
	}
	return handle;
}

void *driver_find(enum symbol_id id) {
	void *handle = library_handle(symbols[id].library);
	if (handle == NULL) {
		return NULL;
	}
	void *at = driver_dlsym(handle, symbols[id].name);
	atomic_store_explicit(&driver_entries[id], at, memory_order_release);
	return at;
}

bool driver_owns(const void *address) {
	/* Where a driver's function ends in a call of another one, that one returns to us. */
	static const char *const names[] = {"libcuda.so",    "libnvidia-", "libascendcl",
					    "libruntime.so", "libvgpu.so", "libvnpu.so"};
	bool owns = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		owns |= elf_owner_starts_with(address, names[i]);
	}
	return owns;
}

static int by_name(const void *name, const void *symbol) {
	return strcmp(name, ((const struct symbol *)symbol)->name);
}

const struct symbol *driver_hook(const char *name) {
	return bsearch(name, symbols, SYM_HOOKED, sizeof(symbols[0]), by_name);
}

enum symbol_id driver_id(const struct symbol *symbol) {
	return (enum symbol_id)(symbol - symbols);
}
