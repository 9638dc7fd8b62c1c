/* Memory of contexts, by address: cuMemAlloc and its kin. */
#define _GNU_SOURCE
#include "charge.h"
#include "driver.h"
#include "imported.h"
#include "pools.h"

#define PITCH 512u /* what drivers align rows to; the driver's own pitch decides afterwards */

CUresult hook_cuMemAlloc(fn_cuMemAlloc real, CUdeviceptr_v1 *dptr, unsigned int bytesize) {
	struct charge charge;
	if (!charge_here(&charge, bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(dptr, bytesize);
	charge_end(&charge, result, RECORD_ADDRESS, result == CUDA_SUCCESS ? *dptr : 0);
	return result;
}

CUresult hook_cuMemAlloc_v2(fn_cuMemAlloc_v2 real, CUdeviceptr *dptr, size_t bytesize) {
	struct charge charge;
	if (!charge_here(&charge, bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(dptr, bytesize);
	charge_end(&charge, result, RECORD_ADDRESS, result == CUDA_SUCCESS ? *dptr : 0);
	return result;
}

CUresult hook_cuMemAllocManaged(fn_cuMemAllocManaged real, CUdeviceptr *dptr, size_t bytesize,
				unsigned int flags) {
	struct charge charge;
	if (!charge_here(&charge, bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(dptr, bytesize, flags);
	charge_end(&charge, result, RECORD_ADDRESS, result == CUDA_SUCCESS ? *dptr : 0);
	return result;
}

/* Rows of *width* bytes; more than any card has where that overflows. */
static uint64_t pitched(uint64_t width, uint64_t height) {
	uint64_t bytes;
	const uint64_t pitch = (width + PITCH - 1) / PITCH * PITCH;
	return pitch < width || __builtin_mul_overflow(pitch, height, &bytes) ? REGION_BYTES_MASK
									      : bytes;
}

/* The rows are there; now the driver's pitch is known. Returns whether they fit. */
static bool settle_pitch(struct charge *charge, uint64_t bytes) {
	if (bytes > charge->bytes) {
		return charge_more(charge, bytes - charge->bytes);
	}
	const struct record spare = {.card = charge->card, .bytes = charge->bytes - bytes};
	charge_return(&spare);
	charge->bytes = bytes;
	return true;
}

/* The body of both widths of the call: `real` is asked for values of our own, so that an allocation whose
 * rows turn out too long can go back by *free_call* with nothing written. */
#define PITCHED(address_type, pitch_type, free_call)                                               \
	do {                                                                                       \
		struct charge charge;                                                              \
		if (!charge_here(&charge, pitched(WidthInBytes, Height))) {                        \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		}                                                                                  \
		address_type address = 0;                                                          \
		pitch_type pitch = 0;                                                              \
		CUresult result =                                                                  \
			real(dptr != NULL ? &address : NULL, pPitch != NULL ? &pitch : NULL,       \
			     WidthInBytes, Height, ElementSizeBytes);                              \
		if (result == CUDA_SUCCESS && !settle_pitch(&charge, (uint64_t)pitch * Height)) {  \
			const fn_##free_call undo = DRIVER(free_call);                             \
			result = undo != NULL && undo(address) == CUDA_SUCCESS                     \
					 ? CUDA_ERROR_OUT_OF_MEMORY                                \
					 : CUDA_SUCCESS;                                           \
		}                                                                                  \
		charge_end(&charge, result, RECORD_ADDRESS, address);                              \
		if (result == CUDA_SUCCESS) {                                                      \
			*dptr = address;                                                           \
			*pPitch = pitch;                                                           \
		}                                                                                  \
		return result;                                                                     \
	} while (0)

CUresult hook_cuMemAllocPitch(fn_cuMemAllocPitch real, CUdeviceptr_v1 *dptr, unsigned int *pPitch,
			      unsigned int WidthInBytes, unsigned int Height,
			      unsigned int ElementSizeBytes) {
	PITCHED(CUdeviceptr_v1, unsigned int, cuMemFree);
}

CUresult hook_cuMemAllocPitch_v2(fn_cuMemAllocPitch_v2 real, CUdeviceptr *dptr, size_t *pPitch,
				 size_t WidthInBytes, size_t Height,
				 unsigned int ElementSizeBytes) {
	PITCHED(CUdeviceptr, size_t, cuMemFree_v2);
}

CUresult hook_cuMemFree(fn_cuMemFree real, CUdeviceptr_v1 dptr) {
	struct record record;
	const bool known = charge_lift(RECORD_ADDRESS, dptr, &record);
	const CUresult result = real(dptr);
	if (known) {
		charge_drop(&record, result);
	}
	pools_waited();
	return result;
}

CUresult hook_cuMemFree_v2(fn_cuMemFree_v2 real, CUdeviceptr dptr) {
	struct record record;
	const bool known = charge_lift(RECORD_ADDRESS, dptr, &record);
	const CUresult result = real(dptr);
	if (known) {
		charge_drop(&record, result);
	} else if (result == CUDA_SUCCESS) {
		imported_drop(dptr);
		pools_freed();
	}
	pools_waited(); /* the driver waited for the card */
	return result;
}
