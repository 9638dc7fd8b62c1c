/* Virtual memory: who creates is charged, on the card of the location. */
#define _GNU_SOURCE
#include "card.h"
#include "charge.h"
#include "driver.h"
#include "objects.h"
#include "quota.h"

CUresult hook_cuMemCreate(fn_cuMemCreate real, CUmemGenericAllocationHandle *handle, size_t size,
			  const CUmemAllocationProp *prop, unsigned long long flags) {
	struct charge charge;
	if (!charge_on(&charge, prop != NULL ? card_of_location(&prop->location) : CARD_NONE, size)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(handle, size, prop, flags);
	if (result == CUDA_SUCCESS) {
		objects_add(&charge, *handle, size);
	} else if (charge.card >= 0) {
		quota_release(charge.card, charge.bytes);
	}
	return result;
}

CUresult hook_cuMemRelease(fn_cuMemRelease real, CUmemGenericAllocationHandle handle) {
	struct record lifted;
	const bool known = objects_lift(RECORD_HANDLE, handle, &lifted);
	const CUresult result = real(handle);
	if (known) {
		objects_drop(&lifted, result);
	}
	return result;
}

CUresult hook_cuMemMap(fn_cuMemMap real, CUdeviceptr ptr, size_t size, size_t offset,
		       CUmemGenericAllocationHandle handle, unsigned long long flags) {
	const struct hold hold = {.kind = RECORD_MAPPING, .key = ptr, .bytes = size};
	const CUresult result = real(ptr, size, offset, handle, flags);
	if (result == CUDA_SUCCESS) {
		objects_hold(RECORD_HANDLE, handle, &hold);
	}
	return result;
}

#define UNMAPPED_AT_ONCE 64

/* Lifts mappings from *at* on, one behind the other, up to *end* or until *lifted* is full. Returns
 * where it stopped. */
static uint64_t lift_mappings(uint64_t at, uint64_t end, struct record *lifted, int *count) {
	*count = 0;
	while (at < end && *count < UNMAPPED_AT_ONCE &&
	       objects_lift(RECORD_MAPPING, at, &lifted[*count])) {
		at += lifted[(*count)++].bytes;
	}
	return at;
}

/* One driver's call may undo many mappings: the first ones are lifted before it, so that nobody who
 * maps there again meets them, and put back if it fails. More than fit go after it. */
CUresult hook_cuMemUnmap(fn_cuMemUnmap real, CUdeviceptr ptr, size_t size) {
	struct record lifted[UNMAPPED_AT_ONCE];
	const uint64_t end = ptr + size;
	int count;
	uint64_t at = lift_mappings(ptr, end, lifted, &count);
	const CUresult result = real(ptr, size);
	for (int i = 0; i < count; i++) {
		objects_drop(&lifted[i], result);
	}
	while (result == CUDA_SUCCESS && count == UNMAPPED_AT_ONCE && at < end) {
		at = lift_mappings(at, end, lifted, &count);
		for (int i = 0; i < count; i++) {
			objects_drop(&lifted[i], result);
		}
	}
	return result;
}

CUresult hook_cuMemRetainAllocationHandle(fn_cuMemRetainAllocationHandle real,
					  CUmemGenericAllocationHandle *handle, void *addr) {
	const CUresult result = real(handle, addr);
	if (result == CUDA_SUCCESS) {
		const struct hold hold = {.kind = RECORD_HANDLE, .key = *handle, .bytes = 1};
		struct record mapping;
		if (objects_find(RECORD_MAPPING, (uint64_t)(uintptr_t)addr, &mapping)) {
			objects_hold(RECORD_MAPPING, (uint64_t)(uintptr_t)addr, &hold);
		} else {
			objects_hold(RECORD_HANDLE, *handle, &hold);
		}
	}
	return result;
}

CUresult hook_cuMemImportFromShareableHandle(fn_cuMemImportFromShareableHandle real,
					     CUmemGenericAllocationHandle *handle, void *osHandle,
					     CUmemAllocationHandleType shHandleType) {
	const CUresult result = real(handle, osHandle, shHandleType);
	struct record known;
	if (result != CUDA_SUCCESS) {
		return result;
	}
	if (objects_find(RECORD_HANDLE, *handle, &known)) { /* our own came back */
		const struct hold hold = {.kind = RECORD_HANDLE, .key = *handle, .bytes = 1};
		objects_hold(RECORD_HANDLE, *handle, &hold);
	} else {
		const struct charge nothing = {.card = CARD_NONE};
		objects_add(&nothing, *handle, 0);
	}
	return result;
}

/* A binding is told by the multicast object, the place in it, and the device. */
static uint64_t binding_key(CUmemGenericAllocationHandle multicast, size_t offset, int card) {
	return (multicast * UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)offset << 5) ^
	       (uint64_t)(card + 1);
}

/* Binds what *kind* and *key* hold. */
static void bind(enum record_kind kind, uint64_t key, CUmemGenericAllocationHandle multicast,
		 size_t offset, size_t size) {
	struct record holder;
	if (objects_find(kind, key, &holder) && holder.card >= 0) {
		const struct hold hold = {.kind = RECORD_BINDING,
					  .key = binding_key(multicast, offset, holder.card),
					  .bytes = size};
		objects_hold(kind, key, &hold);
	}
}

CUresult hook_cuMulticastBindMem(fn_cuMulticastBindMem real, CUmemGenericAllocationHandle mcHandle,
				 size_t mcOffset, CUmemGenericAllocationHandle memHandle,
				 size_t memOffset, size_t size, unsigned long long flags) {
	const CUresult result = real(mcHandle, mcOffset, memHandle, memOffset, size, flags);
	if (result == CUDA_SUCCESS) {
		bind(RECORD_HANDLE, memHandle, mcHandle, mcOffset, size);
	}
	return result;
}

CUresult hook_cuMulticastBindAddr(fn_cuMulticastBindAddr real,
				  CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
				  CUdeviceptr memptr, size_t size, unsigned long long flags) {
	const CUresult result = real(mcHandle, mcOffset, memptr, size, flags);
	if (result == CUDA_SUCCESS) {
		bind(RECORD_MAPPING, memptr, mcHandle, mcOffset, size);
	}
	return result;
}

/* Since 13.1 the caller says for which device. */
CUresult hook_cuMulticastBindMem_v2(fn_cuMulticastBindMem_v2 real,
				    CUmemGenericAllocationHandle mcHandle, CUdevice dev,
				    size_t mcOffset, CUmemGenericAllocationHandle memHandle,
				    size_t memOffset, size_t size, unsigned long long flags) {
	const CUresult result = real(mcHandle, dev, mcOffset, memHandle, memOffset, size, flags);
	if (result == CUDA_SUCCESS) {
		bind(RECORD_HANDLE, memHandle, mcHandle, mcOffset, size);
	}
	return result;
}

CUresult hook_cuMulticastBindAddr_v2(fn_cuMulticastBindAddr_v2 real,
				     CUmemGenericAllocationHandle mcHandle, CUdevice dev,
				     size_t mcOffset, CUdeviceptr memptr, size_t size,
				     unsigned long long flags) {
	const CUresult result = real(mcHandle, dev, mcOffset, memptr, size, flags);
	if (result == CUDA_SUCCESS) {
		bind(RECORD_MAPPING, memptr, mcHandle, mcOffset, size);
	}
	return result;
}

CUresult hook_cuMulticastUnbind(fn_cuMulticastUnbind real, CUmemGenericAllocationHandle mcHandle,
				CUdevice dev, size_t mcOffset, size_t size) {
	struct record lifted;
	const uint64_t key = binding_key(mcHandle, mcOffset, card_of_device(dev));
	const bool known = objects_lift(RECORD_BINDING, key, &lifted);
	const CUresult result = real(mcHandle, dev, mcOffset, size);
	if (known) {
		objects_drop(&lifted, result);
	}
	return result;
}
