/* Memory by handle that is mapped into sparse arrays: each part of an array holds what is behind it. */
#define _GNU_SOURCE
#include "driver.h"
#include "objects.h"
#include "slice.h"

static uint64_t mix(uint64_t key, uint64_t word) {
	key = (key ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 32;
}

/* A part is told by its array, where it is in it, and the device. */
static uint64_t key_of(const CUarrayMapInfo *part) {
	uint64_t key = mix(part->resource, (uint64_t)part->subresourceType << 32 | part->deviceBitMask);
	if (part->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		key = mix(key, part->subresource.miptail.layer);
		key = mix(key, part->subresource.miptail.offset);
		return mix(key, part->subresource.miptail.size);
	}
	for (int i = 0; i < 8; i++) {
		key = mix(key, part->subresource.level[i]);
	}
	return key;
}

/* Whatever was behind the part isn't any more; what is mapped there now is held. */
static void note(const CUarrayMapInfo *part) {
	struct record before;
	const struct hold hold = {.kind = RECORD_TILE, .key = key_of(part), .bytes = part->resource};
	const bool known = objects_lift(RECORD_TILE, hold.key, &before);
	if (part->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
		objects_hold(RECORD_HANDLE, part->memHandle, &hold);
	}
	if (known) {
		objects_drop(&before, 0);
	}
}

CUresult hook_cuMemMapArrayAsync(fn_cuMemMapArrayAsync real, CUarrayMapInfo *mapInfoList,
				 unsigned int count, CUstream hStream) {
	const CUresult result = real(mapInfoList, count, hStream);
	if (result == CUDA_SUCCESS) {
		atomic_store(&slice_process()->has_tiles, 1);
	}
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
		note(&mapInfoList[i]);
	}
	return result;
}
