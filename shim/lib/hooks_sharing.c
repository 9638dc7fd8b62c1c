/* Memory that other processes, or other libraries of this one, allocated. It isn't charged here,
 * and NVML's figure for this process is read without it. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "imported.h"
#include "slice.h"

void imported_note(uint64_t key, uint64_t bytes) {
	struct process *process = slice_process();
	const int card = card_here();
	const struct record record = {
		.key = key, .bytes = bytes, .kind = RECORD_IMPORTED, .card = card};
	struct record old;
	if (card < 0 || !table_put(&process->table, &record, &old)) {
		return;
	}
	if (old.kind != RECORD_NONE) {
		atomic_fetch_sub(&process->imported[old.card], old.bytes);
	}
	atomic_fetch_add(&process->imported[card], bytes);
}

void imported_drop(uint64_t key) {
	struct process *process = slice_process();
	struct record record;
	if (table_take(&process->table, RECORD_IMPORTED, key, &record)) {
		atomic_fetch_sub(&process->imported[record.card], record.bytes);
	}
}

/* The size of the allocation behind an address; 0 if the driver doesn't tell. */
static uint64_t size_at(CUdeviceptr address) {
	CUdeviceptr base;
	size_t size;
	const fn_cuMemGetAddressRange_v2 range = DRIVER(cuMemGetAddressRange_v2);
	return range != NULL && range(&base, &size, address) == CUDA_SUCCESS ? size : 0;
}

CUresult hook_cuIpcOpenMemHandle_v2(fn_cuIpcOpenMemHandle real, CUdeviceptr *pdptr,
				    CUipcMemHandle handle, unsigned int Flags) {
	const CUresult result = real(pdptr, handle, Flags);
	if (result == CUDA_SUCCESS) {
		imported_note(*pdptr, size_at(*pdptr));
	}
	return result;
}

CUresult hook_cuIpcCloseMemHandle(fn_cuIpcCloseMemHandle real, CUdeviceptr dptr) {
	const CUresult result = real(dptr);
	if (result == CUDA_SUCCESS) {
		imported_drop(dptr);
	}
	return result;
}

CUresult hook_cuImportExternalMemory(fn_cuImportExternalMemory real, CUexternalMemory *extMem_out,
				     const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
	const CUresult result = real(extMem_out, memHandleDesc);
	if (result == CUDA_SUCCESS) {
		imported_note((uint64_t)(uintptr_t)*extMem_out, memHandleDesc->size);
	}
	return result;
}

CUresult hook_cuDestroyExternalMemory(fn_cuDestroyExternalMemory real, CUexternalMemory extMem) {
	const CUresult result = real(extMem);
	if (result == CUDA_SUCCESS) {
		imported_drop((uint64_t)(uintptr_t)extMem);
	}
	return result;
}

CUresult hook_cuMemPoolImportPointer(fn_cuMemPoolImportPointer real, CUdeviceptr *ptr_out,
				     CUmemoryPool pool, CUmemPoolPtrExportData *shareData) {
	const CUresult result = real(ptr_out, pool, shareData);
	if (result == CUDA_SUCCESS) {
		imported_note(*ptr_out, size_at(*ptr_out));
	}
	return result;
}
