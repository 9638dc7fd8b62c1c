/* Code and heaps: what they take, nobody tells beforehand. It is read from NVML after the call, and goes back
 * where it doesn't fit. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "overhead.h"
#include "slice.h"

/* Undoes what took more than fits. Returns what the caller of the hook gets. */
#define UNDONE(card, undo, ...)                                                                    \
	(DRIVER(undo) != NULL && DRIVER(undo)(__VA_ARGS__) == CUDA_SUCCESS                         \
		 ? (overhead_refused(card), CUDA_ERROR_OUT_OF_MEMORY)                              \
		 : CUDA_SUCCESS)

/* The card of the slice, of those where this process has contexts, on which a library took more than fits. */
static int overfull_card(void) {
	const int count = (int)slice.region->header.device_count;
	for (int card = 0; card < count; card++) {
		if (overhead_is_watched(card) && !overhead_fits(card)) {
			return card;
		}
	}
	return CARD_NONE;
}

static int overfull_here(void) {
	const int card = card_here();
	return card >= 0 && !overhead_fits(card) ? card : CARD_NONE;
}

static bool has_region(void) {
	return atomic_load_explicit(&slice.state, memory_order_relaxed) == SLICE_ON;
}

/* The body of a hook that loads by `real` into *handle*. Nothing is written there unless it stays. */
#define LOAD(type, handle, find_overfull, undo, ...)                                               \
	do {                                                                                       \
		type made = NULL;                                                                  \
		CUresult result = real((handle) != NULL ? &made : NULL, __VA_ARGS__);              \
		const int card = result == CUDA_SUCCESS && has_region() ? find_overfull()          \
									: CARD_NONE;               \
		if (card >= 0) {                                                                   \
			result = UNDONE(card, undo, made);                                         \
		}                                                                                  \
		if (result == CUDA_SUCCESS) {                                                      \
			*(handle) = made;                                                          \
		}                                                                                  \
		return result;                                                                     \
	} while (0)

CUresult hook_cuModuleLoad(fn_cuModuleLoad real, CUmodule *module, const char *fname) {
	LOAD(CUmodule, module, overfull_here, cuModuleUnload, fname);
}

CUresult hook_cuModuleLoadData(fn_cuModuleLoadData real, CUmodule *module, const void *image) {
	LOAD(CUmodule, module, overfull_here, cuModuleUnload, image);
}

CUresult hook_cuModuleLoadDataEx(fn_cuModuleLoadDataEx real, CUmodule *module, const void *image,
				 unsigned int numOptions, void *options, void **optionValues) {
	LOAD(CUmodule, module, overfull_here, cuModuleUnload, image, numOptions, options, optionValues);
}

CUresult hook_cuLibraryLoadData(fn_cuLibraryLoadData real, CUlibrary *library, const void *code,
				void *jitOptions, void **jitOptionsValues,
				unsigned int numJitOptions, void *libraryOptions,
				void **libraryOptionValues, unsigned int numLibraryOptions) {
	LOAD(CUlibrary, library, overfull_card, cuLibraryUnload, code, jitOptions, jitOptionsValues,
	     numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
}

CUresult hook_cuLibraryLoadFromFile(fn_cuLibraryLoadFromFile real, CUlibrary *library,
				    const char *fileName, void *jitOptions, void **jitOptionsValues,
				    unsigned int numJitOptions, void *libraryOptions,
				    void **libraryOptionValues, unsigned int numLibraryOptions) {
	LOAD(CUlibrary, library, overfull_card, cuLibraryUnload, fileName, jitOptions, jitOptionsValues,
	     numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
}

CUresult hook_cuModuleUnload(fn_cuModuleUnload real, CUmodule hmod) {
	const CUresult result = real(hmod);
	const int card = card_here();
	if (result == CUDA_SUCCESS && card >= 0) {
		overhead_fits(card);
	}
	return result;
}

CUresult hook_cuLibraryUnload(fn_cuLibraryUnload real, CUlibrary library) {
	const CUresult result = real(library);
	if (result == CUDA_SUCCESS && has_region()) {
		overfull_card();
	}
	return result;
}

/* Stacks, heaps and buffers of a context, which the driver takes when their size is set. */
CUresult hook_cuCtxSetLimit(fn_cuCtxSetLimit real, int limit, size_t value) {
	size_t before = 0;
	const fn_cuCtxGetLimit read = DRIVER(cuCtxGetLimit);
	const bool can_undo = read != NULL && read(&before, limit) == CUDA_SUCCESS;
	const CUresult result = real(limit, value);
	const int card = result == CUDA_SUCCESS && has_region() ? overfull_here() : CARD_NONE;
	return card >= 0 && can_undo ? UNDONE(card, cuCtxSetLimit, limit, before) : result;
}
