/* dlsym, dlvsym and dlmopen of the process. A driver's function that the driver has is answered with our
 * hook; everything else goes to libc by a jump, so that libc sees the caller itself and RTLD_NEXT
 * keeps its meaning. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>

#include "driver.h"
#include "elf_find.h"
#include "old_libc.h"
#include "slice.h"

OLD_LIBC(dladdr, "2.2.5");
OLD_LIBC(dlclose, "2.2.5");
OLD_LIBC(dlinfo, "2.3.3");

typedef void *(*dlmopen_fn)(Lmid_t, const char *, int);

void *interpose_find(void *handle, const char *name, const void *caller);

static bool may_be_driver(const char *name) {
	return (name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v') ||
	       (name[0] == 'a' && name[1] == 'c');
}

/* What libc would say. Where it searches by our place in the program, the driver is asked. */
static void *looked_up(void *handle, const struct symbol *symbol) {
	void *drivers = driver_entry(driver_id(symbol));
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
		return drivers;
	}
	void *found = driver_dlsym(handle, symbol->name);
	return found == symbol->hook ? drivers : found;
}

/* The hook to answer a lookup with, or NULL to let libc answer. */
void *interpose_find(void *handle, const char *name, const void *caller) {
	driver_find_lookup();
	if (name == NULL || !may_be_driver(name)) {
		return NULL;
	}
	const struct symbol *symbol = driver_hook(name);
	if (symbol == NULL || driver_owns(caller)) {
		return NULL;
	}
	void *found = looked_up(handle, symbol);
	if (found == NULL || found == driver_entry(driver_id(symbol))) {
		return found != NULL ? symbol->hook : NULL;
	}
	return elf_find_beside(found, symbol->hook, symbol->name);
}

/* Opens *file* in a new namespace behind a copy of this library, which is the first that others in
 * there find. NULL if that can't be done. */
static void *open_behind_us(dlmopen_fn real, const char *file, int flags) {
	Dl_info info;
	Lmid_t space;
	if (dladdr((const void *)(uintptr_t)interpose_find, &info) == 0) {
		return NULL;
	}
	void *ours = real(LM_ID_NEWLM, info.dli_fname, RTLD_NOW);
	if (ours == NULL || dlinfo(ours, RTLD_DI_LMID, &space) != 0) {
		return NULL;
	}
	void *handle = real(space, file, flags);
	if (handle == NULL) {
		dlclose(ours);
	}
	return handle;
}

/* dlmopen of the process: a private copy of the driver is held to the slice as well. */
__attribute__((visibility("default"))) void *dlmopen(Lmid_t space, const char *file, int flags) {
	const dlmopen_fn real =
		(dlmopen_fn)(uintptr_t)elf_find("dlmopen", (const void *)(uintptr_t)interpose_find);
	if (real == NULL) {
		return NULL;
	}
	void *handle = NULL;
	if (space == LM_ID_NEWLM && file != NULL && slice_is_on()) {
		handle = open_behind_us(real, file, flags);
	}
	return handle != NULL ? handle : real(space, file, flags);
}

/* Each trampoline keeps its arguments, asks interpose_find with the caller's address, and returns
 * its answer or jumps to libc's function. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n.type dlsym,@function\n"
	"dlsym:\n"
	"	endbr64\n"
	"	pushq %rdi\n	pushq %rsi\n	subq $8, %rsp\n"
	"	movq 24(%rsp), %rdx\n"
	"	call interpose_find\n"
	"	addq $8, %rsp\n	popq %rsi\n	popq %rdi\n"
	"	testq %rax, %rax\n	jnz 1f\n"
	"	movq driver_real_dlsym(%rip), %rax\n"
	"	jmpq *%rax\n"
	"1:	ret\n"
	".size dlsym, .-dlsym\n"
	".globl dlvsym\n.type dlvsym,@function\n"
	"dlvsym:\n"
	"	endbr64\n"
	"	pushq %rdi\n	pushq %rsi\n	pushq %rdx\n"
	"	movq 24(%rsp), %rdx\n"
	"	call interpose_find\n"
	"	popq %rdx\n	popq %rsi\n	popq %rdi\n"
	"	testq %rax, %rax\n	jnz 1f\n"
	"	movq driver_real_dlvsym(%rip), %rax\n"
	"	jmpq *%rax\n"
	"1:	ret\n"
	".size dlvsym, .-dlvsym\n");
#elif defined(__aarch64__)
#define TRAMPOLINE(name)                                                                           \
	".globl " #name "\n.type " #name ",%function\n" #name ":\n"                                \
	"	stp x29, x30, [sp, #-48]!\n"                                                       \
	"	stp x0, x1, [sp, #16]\n	str x2, [sp, #32]\n"                                       \
	"	mov x2, x30\n	mov x29, sp\n"                                                     \
	"	bl interpose_find\n"                                                               \
	"	mov x9, x0\n"                                                                      \
	"	ldp x0, x1, [sp, #16]\n	ldr x2, [sp, #32]\n"                                       \
	"	ldp x29, x30, [sp], #48\n"                                                         \
	"	cbnz x9, 1f\n"                                                                     \
	"	adrp x9, driver_real_" #name "\n"                                                  \
	"	ldr x9, [x9, :lo12:driver_real_" #name "]\n"                                       \
	"	br x9\n"                                                                           \
	"1:	mov x0, x9\n	ret\n"                                                             \
	".size " #name ", .-" #name "\n"
__asm__(".text\n" TRAMPOLINE(dlsym) TRAMPOLINE(dlvsym));
#else
#error "no trampoline for this machine"
#endif
