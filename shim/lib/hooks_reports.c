/* What CUDA tells a program about its card. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "overhead.h"
#include "pools.h"
#include "report.h"

/* As the slice has it on the current context's card, with the books made fresh. */
static struct report here(uint64_t total, uint64_t free) {
	const int card = card_here();
	if (card >= 0) {
		pools_read(card);
		overhead_look_if_due(card);
	}
	return report_memory(card, total, free);
}

static unsigned int narrow(uint64_t bytes) {
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

/* The body of both widths of the call. The driver is asked with all its pointers, so that it answers
 * for a missing one as it always does. */
#define MEMORY_INFO(type, fitted)                                                                  \
	do {                                                                                       \
		type real_free = 0;                                                                \
		type real_total = 0;                                                               \
		const CUresult result = real(free != NULL ? &real_free : NULL,                     \
					     total != NULL ? &real_total : NULL);                  \
		if (result != CUDA_SUCCESS) {                                                      \
			return result;                                                             \
		}                                                                                  \
		const struct report report = here(total != NULL ? real_total : UINT64_MAX,         \
						  free != NULL ? real_free : UINT64_MAX);          \
		if (free != NULL) {                                                                \
			*free = fitted(report.free);                                               \
		}                                                                                  \
		if (total != NULL) {                                                               \
			*total = fitted(report.total);                                             \
		}                                                                                  \
		return result;                                                                     \
	} while (0)

CUresult hook_cuMemGetInfo_v2(fn_cuMemGetInfo_v2 real, size_t *free, size_t *total) {
	MEMORY_INFO(size_t, (size_t));
}

CUresult hook_cuMemGetInfo(fn_cuMemGetInfo real, unsigned int *free, unsigned int *total) {
	MEMORY_INFO(unsigned int, narrow);
}

CUresult hook_cuDeviceTotalMem_v2(fn_cuDeviceTotalMem_v2 real, size_t *bytes, CUdevice dev) {
	const CUresult result = real(bytes, dev);
	if (result == CUDA_SUCCESS) {
		*bytes = report_total(card_of_device(dev), *bytes);
	}
	return result;
}

CUresult hook_cuDeviceTotalMem(fn_cuDeviceTotalMem real, unsigned int *bytes, CUdevice dev) {
	const CUresult result = real(bytes, dev);
	if (result == CUDA_SUCCESS) {
		*bytes = narrow(report_total(card_of_device(dev), *bytes));
	}
	return result;
}
