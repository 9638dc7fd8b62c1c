/* Contexts: what they take, and what goes with them. */
#define _GNU_SOURCE
#include "card.h"
#include "charge.h"
#include "driver.h"
#include "overhead.h"
#include "pools.h"
#include "slice.h"

CUresult hook_cuInit(fn_cuInit real, unsigned int Flags) {
	return real(Flags);
}

CUresult hook_cuDevicePrimaryCtxRetain(fn_cuDevicePrimaryCtxRetain real, CUcontext *pctx,
				       CUdevice dev) {
	unsigned int flags;
	int active = 0;
	const fn_cuDevicePrimaryCtxGetState state = DRIVER(cuDevicePrimaryCtxGetState);
	if (state != NULL && state(dev, &flags, &active) == CUDA_SUCCESS && active) {
		return real(pctx, dev);
	}
	const int card = card_of_device(dev);
	const int token = overhead_before_context(card);
	const CUresult result = real(pctx, dev);
	overhead_after_context(card, token);
	return result;
}

/* The primary context of a device as a number while it is active, else 0. */
static uint64_t primary_context(CUdevice dev) {
	unsigned int flags;
	int active = 0;
	CUcontext context = NULL;
	const fn_cuDevicePrimaryCtxGetState state = DRIVER(cuDevicePrimaryCtxGetState);
	const fn_cuDevicePrimaryCtxRetain retain = DRIVER(cuDevicePrimaryCtxRetain);
	const fn_cuDevicePrimaryCtxRelease_v2 release = DRIVER(cuDevicePrimaryCtxRelease_v2);
	if (state == NULL || state(dev, &flags, &active) != CUDA_SUCCESS || !active ||
	    retain == NULL || release == NULL || retain(&context, dev) != CUDA_SUCCESS) {
		return 0;
	}
	release(dev);
	return (uint64_t)(uintptr_t)context;
}

static bool is_active(CUdevice dev) {
	unsigned int flags;
	int active = 0;
	const fn_cuDevicePrimaryCtxGetState state = DRIVER(cuDevicePrimaryCtxGetState);
	return state == NULL || state(dev, &flags, &active) != CUDA_SUCCESS || active;
}

static void end_context(uint64_t context, int card) {
	charge_end_context(context);
	if (card >= 0) {
		pools_end_contexts(card);
		overhead_after_end(card);
	}
}

CUresult hook_cuDevicePrimaryCtxRelease(fn_cuDevicePrimaryCtxRelease real, CUdevice dev) {
	const uint64_t context = primary_context(dev);
	const CUresult result = real(dev);
	if (result == CUDA_SUCCESS && !is_active(dev)) {
		end_context(context, card_of_device(dev));
	}
	return result;
}

CUresult hook_cuDevicePrimaryCtxReset(fn_cuDevicePrimaryCtxReset real, CUdevice dev) {
	const uint64_t context = primary_context(dev);
	const CUresult result = real(dev);
	if (result == CUDA_SUCCESS) {
		end_context(context, card_of_device(dev));
	}
	return result;
}

/* After a context was made, or wasn't: its card is remembered, and what it takes is charged. */
static void context_made(CUresult result, const CUcontext *context, int card, int token) {
	if (result == CUDA_SUCCESS && card >= 0) {
		const struct record record = {
			.key = (uint64_t)(uintptr_t)*context, .kind = RECORD_CONTEXT, .card = card};
		struct record old;
		table_put(&slice_process()->table, &record, &old);
	}
	overhead_after_context(card, token);
}

CUresult hook_cuCtxCreate_v2(fn_cuCtxCreate_v2 real, CUcontext *pctx, unsigned int flags,
			     CUdevice dev) {
	const int card = card_of_device(dev);
	const int token = overhead_before_context(card);
	const CUresult result = real(pctx, flags, dev);
	context_made(result, pctx, card, token);
	return result;
}

CUresult hook_cuCtxCreate_v3(fn_cuCtxCreate_v3 real, CUcontext *pctx, void *paramsArray,
			     int numParams, unsigned int flags, CUdevice dev) {
	const int card = card_of_device(dev);
	const int token = overhead_before_context(card);
	const CUresult result = real(pctx, paramsArray, numParams, flags, dev);
	context_made(result, pctx, card, token);
	return result;
}

CUresult hook_cuCtxCreate_v4(fn_cuCtxCreate_v4 real, CUcontext *pctx, void *ctxCreateParams,
			     unsigned int flags, CUdevice dev) {
	const int card = card_of_device(dev);
	const int token = overhead_before_context(card);
	const CUresult result = real(pctx, ctxCreateParams, flags, dev);
	context_made(result, pctx, card, token);
	return result;
}

CUresult hook_cuCtxDestroy_v2(fn_cuCtxDestroy real, CUcontext ctx) {
	struct record record;
	const bool known = charge_lift(RECORD_CONTEXT, (uint64_t)(uintptr_t)ctx, &record);
	const CUresult result = real(ctx);
	if (result == CUDA_SUCCESS) {
		end_context((uint64_t)(uintptr_t)ctx, known ? record.card : CARD_NONE);
	} else if (known) {
		charge_drop(&record, result);
	}
	return result;
}

CUresult hook_cuCtxSynchronize(fn_cuCtxSynchronize real) {
	const CUresult result = real();
	pools_waited();
	return result;
}

CUresult hook_cuStreamSynchronize(fn_cuStreamSynchronize real, CUstream hStream) {
	const CUresult result = real(hStream);
	pools_waited();
	return result;
}
