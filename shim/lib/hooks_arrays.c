/* Arrays and mipmapped arrays, by handle. The driver doesn't tell their size, so it is computed:
 * rows of whole 512 bytes. What a driver takes beyond that shows in NVML's figure. */
#define _GNU_SOURCE
#include "charge.h"
#include "driver.h"
#include "objects.h"

#define ROW 512u

/* Bits of one element of a format that doesn't count channels apart; 0 for one that does. */
static uint64_t packed_bits(int format) {
	if (format >= 0xc0 && format <= 0xcb) { /* (U|S)NORM_INT(8|16)X(1|2|4) */
		const int place = format - 0xc0;
		return (place / 3 % 2 == 0 ? 8u : 16u) << place % 3;
	}
	if (format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98) { /* BC1, BC4 */
		return 4;
	}
	if (format >= 0x93 && format <= 0x9e) { /* the other block formats */
		return 8;
	}
	if (format == 0xb0) { /* NV12 */
		return 12;
	}
	return 0;
}

static uint64_t channel_bits(int format) {
	switch (format) {
	case 0x01: /* UNSIGNED_INT8 */
	case 0x08: /* SIGNED_INT8 */
		return 8;
	case 0x02: /* UNSIGNED_INT16 */
	case 0x09: /* SIGNED_INT16 */
	case 0x10: /* HALF */
		return 16;
	default:
		return 32;
	}
}

static uint64_t at_least_one(uint64_t count) {
	return count == 0 ? 1 : count;
}

/* Bytes of one level; more than any card has where that overflows. */
static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array) {
	const uint64_t packed = packed_bits(array->Format);
	const uint64_t bits = packed != 0 ? packed
					  : channel_bits(array->Format) *
						    at_least_one(array->NumChannels);
	uint64_t row;
	uint64_t rows;
	uint64_t bytes;
	if (__builtin_mul_overflow(at_least_one(array->Width), bits, &row) ||
	    __builtin_mul_overflow(at_least_one(array->Height), at_least_one(array->Depth), &rows) ||
	    __builtin_mul_overflow((row / 8 + (row % 8 != 0) + ROW - 1) / ROW * ROW, rows, &bytes)) {
		return REGION_BYTES_MASK;
	}
	return bytes;
}

static bool holds_nothing(const CUDA_ARRAY3D_DESCRIPTOR *array) {
	return (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array) {
	return array == NULL || holds_nothing(array) ? 0 : level_bytes(array);
}

static uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels) {
	if (array == NULL || holds_nothing(array)) {
		return 0;
	}
	CUDA_ARRAY3D_DESCRIPTOR level = *array;
	const bool keeps_depth = (array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
	uint64_t bytes = 0;
	for (unsigned int i = 0; i < levels && i < 64; i++) {
		bytes += level_bytes(&level);
		level.Width /= 2;
		level.Height /= 2;
		level.Depth = keeps_depth ? level.Depth : level.Depth / 2;
	}
	return bytes < REGION_BYTES_MASK ? bytes : REGION_BYTES_MASK;
}

/* A descriptor of two dimensions, of whichever width its numbers are, as one of three. */
#define FLAT(array)                                                                                \
	(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = (array)->Width,                                       \
				    .Height = (array)->Height,                                     \
				    .Format = (array)->Format,                                     \
				    .NumChannels = (array)->NumChannels})

/* The body of a hook that makes something of *bytes* by `real`, and charges it under its handle. */
#define CREATE(record, bytes, handle, ...)                                                         \
	do {                                                                                       \
		struct charge charge;                                                              \
		if (!charge_here(&charge, bytes)) {                                                \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		}                                                                                  \
		const CUresult result = real(handle, __VA_ARGS__);                                 \
		charge_end(&charge, result, record,                                                \
			   result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*(handle) : 0);           \
		return result;                                                                     \
	} while (0)

CUresult hook_cuArrayCreate(fn_cuArrayCreate real, CUarray *pHandle,
			    const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray) {
	CREATE(RECORD_ARRAY, pAllocateArray != NULL ? array_bytes(FLAT(pAllocateArray)) : 0, pHandle,
	       pAllocateArray);
}

CUresult hook_cuArrayCreate_v2(fn_cuArrayCreate_v2 real, CUarray *pHandle,
			       const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
	CREATE(RECORD_ARRAY, pAllocateArray != NULL ? array_bytes(FLAT(pAllocateArray)) : 0, pHandle,
	       pAllocateArray);
}

CUresult hook_cuArray3DCreate(fn_cuArray3DCreate real, CUarray *pHandle,
			      const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray) {
	CUDA_ARRAY3D_DESCRIPTOR array = {0};
	if (pAllocateArray != NULL) {
		array = *FLAT(pAllocateArray);
		array.Depth = pAllocateArray->Depth;
		array.Flags = pAllocateArray->Flags;
	}
	CREATE(RECORD_ARRAY, pAllocateArray != NULL ? array_bytes(&array) : 0, pHandle,
	       pAllocateArray);
}

CUresult hook_cuArray3DCreate_v2(fn_cuArray3DCreate_v2 real, CUarray *pHandle,
				 const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
	CREATE(RECORD_ARRAY, array_bytes(pAllocateArray), pHandle, pAllocateArray);
}

CUresult hook_cuArrayDestroy(fn_cuArrayDestroy real, CUarray hArray) {
	struct record record;
	const bool known = charge_lift(RECORD_ARRAY, (uint64_t)(uintptr_t)hArray, &record);
	const CUresult result = real(hArray);
	if (known) {
		charge_drop(&record, result);
	}
	if (result == CUDA_SUCCESS) {
		objects_end_tiles((uint64_t)(uintptr_t)hArray);
	}
	return result;
}

CUresult hook_cuMipmappedArrayCreate(fn_cuMipmappedArrayCreate real, CUmipmappedArray *pHandle,
				     const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
				     unsigned int numMipmapLevels) {
	CREATE(RECORD_MIPMAP, mipmap_bytes(pMipmappedArrayDesc, numMipmapLevels), pHandle,
	       pMipmappedArrayDesc, numMipmapLevels);
}

CUresult hook_cuMipmappedArrayDestroy(fn_cuMipmappedArrayDestroy real,
				      CUmipmappedArray hMipmappedArray) {
	struct record record;
	const bool known = charge_lift(RECORD_MIPMAP, (uint64_t)(uintptr_t)hMipmappedArray, &record);
	const CUresult result = real(hMipmappedArray);
	if (known) {
		charge_drop(&record, result);
	}
	if (result == CUDA_SUCCESS) {
		objects_end_tiles((uint64_t)(uintptr_t)hMipmappedArray);
	}
	return result;
}
