/* Stream-ordered allocation and its pools. */
#define _GNU_SOURCE
#include "card.h"
#include "charge.h"
#include "driver.h"
#include "graphs.h"
#include "imported.h"
#include "pool_books.h"
#include "pools.h"
#include "quota.h"
#include "slice.h"
#include "streams.h"

/* The pool took more than fits: the allocation goes back, and what the pool can spare. */
static CUresult undo(CUmemoryPool pool, int card, CUdeviceptr address, CUstream stream,
		     fn_cuMemFreeAsync give_back) {
	const fn_cuMemPoolTrimTo trim = DRIVER(cuMemPoolTrimTo);
	if (give_back == NULL || give_back(address, stream) != CUDA_SUCCESS) {
		pool_books_read(pool);
		return CUDA_SUCCESS;
	}
	if (trim != NULL) {
		trim(pool, 0);
	}
	pool_books_read(pool);
	pools_freed();
	atomic_fetch_add(&slice.region->cards[card].refused, 1);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What an allocation needs to know: the pool it comes from, and what it pays. */
struct order {
	CUmemoryPool pool;
	struct charge charge;
};

/* Idle memory of a pool may serve an allocation or not, and another thread may take it first: only the
 * driver knows. So all bytes are reserved as if none did. Where they don't fit, what is idle goes back to
 * the card first; what a stream has yet to give back can't, and counts as idle. */
static uint64_t growth(CUmemoryPool pool, int card, uint64_t bytes) {
	const fn_cuMemPoolTrimTo trim = DRIVER(cuMemPoolTrimTo);
	if (quota_has_room(card, bytes) || pool_books_shortage(pool, bytes) == bytes) {
		return bytes;
	}
	if (trim != NULL) {
		trim(pool, 0);
		pool_books_read(pool);
	}
	return quota_has_room(card, bytes) ? bytes : pool_books_shortage(pool, bytes);
}

/* Reserves what the pool may take. Returns false if it doesn't fit. */
static bool begin(struct order *order, CUmemoryPool pool, uint64_t bytes) {
	order->pool = pool;
	const int card = pool != NULL ? pool_books_card(pool) : CARD_NONE;
	return charge_on(&order->charge, card, card >= 0 ? growth(pool, card, bytes) : bytes);
}

static CUresult end(struct order *order, CUresult result, const CUdeviceptr *address,
		    CUstream stream, fn_cuMemFreeAsync give_back) {
	const struct charge *charge = &order->charge;
	if (charge->card < 0) {
		return result;
	}
	if (result != CUDA_SUCCESS) {
		quota_release(charge->card, charge->bytes);
		pool_books_read(order->pool);
		return result;
	}
	if (pool_books_settle(order->pool, charge->card, charge->bytes)) {
		return CUDA_SUCCESS;
	}
	return undo(order->pool, charge->card, *address, stream, give_back);
}

/* The pool that cuMemAllocAsync takes from: the current one of the current device. */
static CUmemoryPool current_pool(void) {
	CUdevice device;
	CUmemoryPool pool;
	const fn_cuCtxGetDevice here = DRIVER(cuCtxGetDevice);
	const fn_cuDeviceGetMemPool pool_of = DRIVER(cuDeviceGetMemPool);
	if (here == NULL || pool_of == NULL || here(&device) != CUDA_SUCCESS ||
	    pool_of(&pool, device) != CUDA_SUCCESS) {
		return NULL;
	}
	return pool;
}

static fn_cuMemFreeAsync free_of(bool per_thread) {
	return per_thread ? DRIVER(cuMemFreeAsync_ptsz) : DRIVER(cuMemFreeAsync);
}

CUresult hook_cuMemAllocAsync(fn_cuMemAllocAsync real, CUdeviceptr *dptr, size_t bytesize,
			      CUstream hStream) {
	const bool per_thread = real == DRIVER(cuMemAllocAsync_ptsz);
	struct order order;
	if (graphs_capture(stream_meant(hStream, per_thread), bytesize)) {
		return graphs_fit(card_here(), bytesize) ? real(dptr, bytesize, hStream)
							 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUmemoryPool pool = current_pool();
	if (pool == NULL ? !charge_here(&order.charge, bytesize) : !begin(&order, pool, bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(dptr, bytesize, hStream);
	if (pool == NULL) { /* the driver can't tell its pool: the bytes, until they are freed */
		charge_end(&order.charge, result, RECORD_ADDRESS,
			   result == CUDA_SUCCESS ? *dptr : 0);
		return result;
	}
	return end(&order, result, dptr, hStream, free_of(per_thread));
}

CUresult hook_cuMemAllocFromPoolAsync(fn_cuMemAllocFromPoolAsync real, CUdeviceptr *dptr,
				      size_t bytesize, CUmemoryPool pool, CUstream hStream) {
	const bool per_thread = real == DRIVER(cuMemAllocFromPoolAsync_ptsz);
	struct order order;
	if (graphs_capture(stream_meant(hStream, per_thread), bytesize)) {
		return graphs_fit(card_here(), bytesize) ? real(dptr, bytesize, pool, hStream)
							 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!begin(&order, pool, bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(dptr, bytesize, pool, hStream);
	return end(&order, result, dptr, hStream, free_of(per_thread));
}

CUresult hook_cuMemFreeAsync(fn_cuMemFreeAsync real, CUdeviceptr dptr, CUstream hStream) {
	struct record record;
	const bool known = charge_lift(RECORD_ADDRESS, dptr, &record);
	const CUresult result = real(dptr, hStream);
	if (known) {
		charge_drop(&record, result);
	} else if (result == CUDA_SUCCESS) {
		imported_drop(dptr);
		pools_freed();
	}
	return result;
}

CUresult hook_cuMemPoolCreate(fn_cuMemPoolCreate real, CUmemoryPool *pool,
			      const CUmemPoolProps *poolProps) {
	const CUresult result = real(pool, poolProps);
	if (result == CUDA_SUCCESS) {
		pool_books_open(*pool, card_of_memory(poolProps->allocType, &poolProps->location));
	}
	return result;
}

CUresult hook_cuMemPoolDestroy(fn_cuMemPoolDestroy real, CUmemoryPool pool) {
	const CUresult result = real(pool);
	if (result == CUDA_SUCCESS) {
		pool_books_close(pool);
	}
	return result;
}

CUresult hook_cuMemPoolTrimTo(fn_cuMemPoolTrimTo real, CUmemoryPool pool, size_t minBytesToKeep) {
	const CUresult result = real(pool, minBytesToKeep);
	pool_books_read(pool);
	return result;
}

CUresult hook_cuMemPoolSetAttribute(fn_cuMemPoolSetAttribute real, CUmemoryPool pool,
				    CUmemPool_attribute attr, void *value) {
	const CUresult result = real(pool, attr, value);
	pool_books_read(pool);
	return result;
}

CUresult hook_cuMemPoolImportFromShareableHandle(fn_cuMemPoolImportFromShareableHandle real,
						 CUmemoryPool *pool_out, void *handle,
						 CUmemAllocationHandleType handleType,
						 unsigned long long flags) {
	const CUresult result = real(pool_out, handle, handleType, flags);
	if (result == CUDA_SUCCESS) {
		pool_books_open(*pool_out, CARD_NONE);
	}
	return result;
}
