/* cuGetProcAddress: the driver decides which ABI the caller gets, and we answer with our function
 * of that very ABI. Names that we have no hook for, and versions that we don't know, stay as the
 * driver answered. */
#define _GNU_SOURCE
#include <string.h>

#include "driver.h"

/* Whether this entry is the function that the driver has at *address*. */
static bool is_at(const struct symbol *symbol, const void *address) {
	return driver_entry(driver_id(symbol)) == address;
}

/* A newer ABI may have a longer name: cuGraphInstantiate is cuGraphInstantiateWithFlags since 12.0. */
static bool is_called(const struct symbol *symbol, const char *name) {
	return symbol->library == DRIVER_CUDA && name[0] != '\0' &&
	       strncmp(symbol->name, name, strlen(name)) == 0;
}

static const struct symbol *by_address(const char *name, const void *address) {
	for (int i = 0; i < SYM_HOOKED; i++) {
		if (is_called(&symbols[i], name) && is_at(&symbols[i], address)) {
			return &symbols[i];
		}
	}
	return NULL;
}

/* A question to the driver, to be asked again for an ABI that we know. */
struct question {
	const char *name;
	cuuint64_t flags;
	fn_cuGetProcAddress first;
	fn_cuGetProcAddress_v2 second;
};

static void *ask(const struct question *question, const struct symbol *symbol) {
	void *function = NULL;
	CUdriverProcAddressQueryResult status;
	const CUresult result =
		question->second != NULL
			? question->second(symbol->base, &function, symbol->since, question->flags,
					   &status)
			: question->first(symbol->base, &function, symbol->since, question->flags);
	return result == CUDA_SUCCESS ? function : NULL;
}

/* Where the driver's answer is no exported function: what it answers the same under the name and the
 * version that we know. */
static const struct symbol *by_answer(const struct question *question, const void *answer,
				      int version, bool per_thread) {
	for (int i = 0; i < SYM_HOOKED; i++) {
		const struct symbol *symbol = &symbols[i];
		if (is_called(symbol, question->name) && symbol->since <= version &&
		    symbol->per_thread == per_thread && ask(question, symbol) == answer) {
			return symbol;
		}
	}
	return NULL;
}

/* Our function for the driver's answer; NULL if there is none, as for an ABI that is newer than ours. */
static const struct symbol *match(const struct question *question, void *answer, int version) {
	const struct symbol *symbol = by_address(question->name, answer);
	if (symbol == NULL &&
	    (question->flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
		symbol = by_answer(question, answer, version, true);
	}
	return symbol != NULL ? symbol : by_answer(question, answer, version, false);
}

static void replace(const struct question *question, void **function, int version) {
	if (function != NULL && *function != NULL && question->name != NULL) {
		const struct symbol *symbol = match(question, *function, version);
		*function = symbol != NULL ? symbol->hook : *function;
	}
}

CUresult hook_cuGetProcAddress(fn_cuGetProcAddress real, const char *symbol, void **pfn,
			       int cudaVersion, cuuint64_t flags) {
	const struct question question = {.name = symbol, .flags = flags, .first = real};
	const CUresult result = real(symbol, pfn, cudaVersion, flags);
	if (result == CUDA_SUCCESS) {
		replace(&question, pfn, cudaVersion);
	}
	return result;
}

CUresult hook_cuGetProcAddress_v2(fn_cuGetProcAddress_v2 real, const char *symbol, void **pfn,
				  int cudaVersion, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *symbolStatus) {
	const struct question question = {.name = symbol, .flags = flags, .second = real};
	const CUresult result = real(symbol, pfn, cudaVersion, flags, symbolStatus);
	if (result == CUDA_SUCCESS) {
		replace(&question, pfn, cudaVersion);
	}
	return result;
}
