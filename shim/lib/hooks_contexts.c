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

/* A context took more than fits, and was given back with this result. Returns what its maker gets. */
static CUresult undone(int card, CUresult result) {
	if (result != CUDA_SUCCESS) {
		return CUDA_SUCCESS;
	}
	overhead_after_end(card);
	atomic_fetch_add(&slice.region->cards[card].refused, 1);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Drivers before 11.0 have the older one only. */
static CUresult release_primary(CUdevice dev) {
	fn_cuDevicePrimaryCtxRelease release = DRIVER(cuDevicePrimaryCtxRelease_v2);
	release = release != NULL ? release : DRIVER(cuDevicePrimaryCtxRelease);
	return release != NULL ? release(dev) : CUDA_ERROR_NOT_SUPPORTED;
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
	CUcontext made = NULL;
	CUresult result = real(pctx != NULL ? &made : NULL, dev);
	if (!overhead_after_context(card, token) && result == CUDA_SUCCESS) {
		result = undone(card, release_primary(dev));
	}
	if (result == CUDA_SUCCESS) {
		*pctx = made;
	}
	return result;
}

/* The primary context of a device as a number while it is active, else 0. */
static uint64_t primary_context(CUdevice dev) {
	unsigned int flags;
	int active = 0;
	CUcontext context = NULL;
	const fn_cuDevicePrimaryCtxGetState state = DRIVER(cuDevicePrimaryCtxGetState);
	const fn_cuDevicePrimaryCtxRetain retain = DRIVER(cuDevicePrimaryCtxRetain);
	if (state == NULL || state(dev, &flags, &active) != CUDA_SUCCESS || !active ||
	    retain == NULL || retain(&context, dev) != CUDA_SUCCESS) {
		return 0;
	}
	release_primary(dev);
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

/* After a context was made, or wasn't: what it takes is charged, and its card is remembered. */
static CUresult context_made(CUresult result, CUcontext context, int card, int token) {
	const bool fits = overhead_after_context(card, token);
	if (result != CUDA_SUCCESS || card < 0) {
		return result;
	}
	if (!fits && undone(card, DRIVER(cuCtxDestroy_v2)(context)) != CUDA_SUCCESS) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const struct record record = {
		.key = (uint64_t)(uintptr_t)context, .kind = RECORD_CONTEXT, .card = card};
	struct record old;
	table_put(&slice_process()->table, &record, &old);
	return CUDA_SUCCESS;
}

/* The body of a hook that makes a context by `real`. Nothing is written at *pctx* unless it stays. */
#define MAKE_CONTEXT(...)                                                                          \
	do {                                                                                       \
		const int card = card_of_device(dev);                                              \
		const int token = overhead_before_context(card);                                   \
		CUcontext made = NULL;                                                             \
		CUresult result = real(pctx != NULL ? &made : NULL, __VA_ARGS__);                  \
		result = context_made(result, made, card, token);                                  \
		if (result == CUDA_SUCCESS) {                                                      \
			*pctx = made;                                                              \
		}                                                                                  \
		return result;                                                                     \
	} while (0)

CUresult hook_cuCtxCreate_v2(fn_cuCtxCreate_v2 real, CUcontext *pctx, unsigned int flags,
			     CUdevice dev) {
	MAKE_CONTEXT(flags, dev);
}

CUresult hook_cuCtxCreate_v3(fn_cuCtxCreate_v3 real, CUcontext *pctx, void *paramsArray,
			     int numParams, unsigned int flags, CUdevice dev) {
	MAKE_CONTEXT(paramsArray, numParams, flags, dev);
}

CUresult hook_cuCtxCreate_v4(fn_cuCtxCreate_v4 real, CUcontext *pctx, void *ctxCreateParams,
			     unsigned int flags, CUdevice dev) {
	MAKE_CONTEXT(ctxCreateParams, flags, dev);
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

/* A green context uses the primary one, which it may bring to life. */
CUresult hook_cuGreenCtxCreate(fn_cuGreenCtxCreate real, CUgreenCtx *phCtx, void *desc, CUdevice dev,
			       unsigned int flags) {
	const int card = card_of_device(dev);
	const int token = overhead_before_context(card);
	CUgreenCtx made = NULL;
	CUresult result = real(phCtx != NULL ? &made : NULL, desc, dev, flags);
	if (!overhead_after_context(card, token) && result == CUDA_SUCCESS) {
		result = undone(card, DRIVER(cuGreenCtxDestroy)(made));
	}
	if (result == CUDA_SUCCESS) {
		const struct record record = {.key = (uint64_t)(uintptr_t)made,
					      .extra = (uint64_t)dev,
					      .kind = RECORD_GREEN,
					      .card = card};
		struct record old;
		table_put(&slice_process()->table, &record, &old);
		*phCtx = made;
	}
	return result;
}

static bool is_context_of(const struct record *record, uint64_t green) {
	return record->kind == RECORD_GREEN_CONTEXT && record->bytes == green;
}

static void forget(const struct record *record) {
	(void)record;
}

/* The driver may give the handle of its context to another one, which owns what is allocated in it. */
static void forget_context_of(CUgreenCtx green) {
	struct process *process = slice_process();
	if (atomic_load_explicit(&process->has_greens, memory_order_relaxed) != 0) {
		table_drain(&process->table, is_context_of, (uint64_t)(uintptr_t)green, forget);
	}
}

CUresult hook_cuGreenCtxDestroy(fn_cuGreenCtxDestroy real, CUgreenCtx hCtx) {
	struct record record;
	const bool known = charge_lift(RECORD_GREEN, (uint64_t)(uintptr_t)hCtx, &record);
	const uint64_t primary = known ? primary_context((CUdevice)record.extra) : 0;
	const CUresult result = real(hCtx);
	if (result == CUDA_SUCCESS) {
		forget_context_of(hCtx);
	}
	if (known && result != CUDA_SUCCESS) {
		struct record old;
		table_put(&slice_process()->table, &record, &old);
	} else if (known && !is_active((CUdevice)record.extra)) {
		end_context(primary, record.card);
	} else if (known && record.card >= 0) {
		overhead_after_end(record.card);
	}
	return result;
}

CUresult hook_cuCtxFromGreenCtx(fn_cuCtxFromGreenCtx real, CUcontext *pContext, CUgreenCtx hCtx) {
	const CUresult result = real(pContext, hCtx);
	struct process *process = slice_process();
	struct record green;
	struct record old;
	if (result == CUDA_SUCCESS &&
	    table_find(&process->table, RECORD_GREEN, (uint64_t)(uintptr_t)hCtx, &green)) {
		const struct record record = {.key = (uint64_t)(uintptr_t)*pContext,
					      .bytes = (uint64_t)(uintptr_t)hCtx,
					      .extra = primary_context((CUdevice)green.extra),
					      .kind = RECORD_GREEN_CONTEXT,
					      .card = green.card};
		table_put(&process->table, &record, &old);
		atomic_store(&process->has_greens, 1);
	}
	return result;
}

CUresult hook_cuCtxSynchronize(fn_cuCtxSynchronize real) {
	const CUresult result = real();
	pools_waited();
	return result;
}

CUresult hook_cuCtxSynchronize_v2(fn_cuCtxSynchronize_v2 real, CUcontext ctx) {
	const CUresult result = real(ctx);
	pools_waited();
	return result;
}

CUresult hook_cuStreamSynchronize(fn_cuStreamSynchronize real, CUstream hStream) {
	const CUresult result = real(hStream);
	pools_waited();
	return result;
}
