/* Launches of kernels and graphs: counted, and held back where the card's time is limited. */
#define _GNU_SOURCE
#include <time.h>

#include "card.h"
#include "cores.h"
#include "driver.h"
#include "graph_books.h"
#include "guard.h"
#include "graph_cost.h"
#include "streams.h"
#include "timing.h"

#define COARSE_NS UINT64_C(10000000)

/* Keeps the time of a recent launch, for whoever wants to know whether this process is active. */
static void note_time(int slot) {
	_Atomic uint64_t *known = &slice.region->slots[slot].launched_ns;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	const uint64_t ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	if (ns - atomic_load_explicit(known, memory_order_relaxed) > COARSE_NS) {
		atomic_store_explicit(known, ns, memory_order_relaxed);
	}
}

/* The card that a launch runs on. With one card in the slice nobody has to be asked. */
static int launch_card(void) {
	return slice.region->header.device_count == 1 ? 0 : card_here();
}

/* Whether the launch is being timed. */
static bool launch(uint64_t blocks, CUstream stream) {
	const int slot = slice_slot();
	if (slot < 0 || atomic_load_explicit(&slice.state, memory_order_relaxed) != SLICE_ON) {
		return false;
	}
	const int card = launch_card();
	if (card < 0) {
		return false;
	}
	if (!cores_note(card, slot)) {
		note_time(slot);
		return false;
	}
	if (timing_is_capturing(stream)) {
		return false;
	}
	const uint64_t now = cores_wait(card, blocks);
	note_time(slot);
	return blocks != 0 && cores_want_timing(card, now) && timing_begin(card, blocks, stream);
}

static CUresult launched(bool timed, CUstream stream, CUresult result) {
	if (timed) {
		timing_end(stream, result);
	}
	return result;
}

static uint64_t blocks_of(unsigned int x, unsigned int y, unsigned int z) {
	return (uint64_t)x * y * z;
}

CUresult hook_cuLaunchKernel(fn_cuLaunchKernel real, CUfunction f, unsigned int gridDimX,
			     unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
			     unsigned int blockDimY, unsigned int blockDimZ,
			     unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
			     void **extra) {
	const CUstream stream = stream_meant(hStream, real == DRIVER(cuLaunchKernel_ptsz));
	const bool timed = launch(blocks_of(gridDimX, gridDimY, gridDimZ), stream);
	return launched(timed, stream,
			real(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
			     sharedMemBytes, hStream, kernelParams, extra));
}

CUresult hook_cuLaunchKernelEx(fn_cuLaunchKernelEx real, const CUlaunchConfig *config,
			       CUfunction f, void **kernelParams, void **extra) {
	if (config == NULL) {
		return real(config, f, kernelParams, extra);
	}
	const CUstream stream = stream_meant(config->hStream, real == DRIVER(cuLaunchKernelEx_ptsz));
	const bool timed =
		launch(blocks_of(config->gridDimX, config->gridDimY, config->gridDimZ), stream);
	return launched(timed, stream, real(config, f, kernelParams, extra));
}

CUresult hook_cuLaunchCooperativeKernel(fn_cuLaunchCooperativeKernel real, CUfunction f,
					unsigned int gridDimX, unsigned int gridDimY,
					unsigned int gridDimZ, unsigned int blockDimX,
					unsigned int blockDimY, unsigned int blockDimZ,
					unsigned int sharedMemBytes, CUstream hStream,
					void **kernelParams) {
	const CUstream stream = stream_meant(hStream, real == DRIVER(cuLaunchCooperativeKernel_ptsz));
	const bool timed = launch(blocks_of(gridDimX, gridDimY, gridDimZ), stream);
	return launched(timed, stream,
			real(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
			     sharedMemBytes, hStream, kernelParams));
}

/* One function on several devices: the current one pays. */
CUresult hook_cuLaunchCooperativeKernelMultiDevice(fn_cuLaunchCooperativeKernelMultiDevice real,
						   CUDA_LAUNCH_PARAMS *launchParamsList,
						   unsigned int numDevices, unsigned int flags) {
	if (launchParamsList == NULL || numDevices == 0) {
		return real(launchParamsList, numDevices, flags);
	}
	const CUDA_LAUNCH_PARAMS *params = &launchParamsList[0];
	const CUstream stream = params->hStream;
	const bool timed =
		launch(blocks_of(params->gridDimX, params->gridDimY, params->gridDimZ), stream);
	return launched(timed, stream, real(launchParamsList, numDevices, flags));
}

CUresult hook_cuLaunch(fn_cuLaunch real, CUfunction f) {
	const bool timed = launch(1, NULL);
	return launched(timed, NULL, real(f));
}

static uint64_t old_blocks(int width, int height) {
	return width > 0 && height > 0 ? (uint64_t)width * (uint64_t)height : 0;
}

CUresult hook_cuLaunchGrid(fn_cuLaunchGrid real, CUfunction f, int grid_width, int grid_height) {
	const bool timed = launch(old_blocks(grid_width, grid_height), NULL);
	return launched(timed, NULL, real(f, grid_width, grid_height));
}

CUresult hook_cuLaunchGridAsync(fn_cuLaunchGridAsync real, CUfunction f, int grid_width,
				int grid_height, CUstream hStream) {
	const bool timed = launch(old_blocks(grid_width, grid_height), hStream);
	return launched(timed, hStream, real(f, grid_width, grid_height, hStream));
}

/* Memory is reserved after the wait for time: who waits keeps none from others. */
CUresult hook_cuGraphLaunch(fn_cuGraphLaunch real, CUgraphExec hGraphExec, CUstream hStream) {
	struct graph_charges charges;
	const CUstream stream = stream_meant(hStream, real == DRIVER(cuGraphLaunch_ptsz));
	const bool timed = launch(graph_cost_blocks(hGraphExec), stream);
	if (slice_process()->graphs_allocate != 0) {
		guard_moves();
	}
	if (!graph_books_begin(RECORD_EXEC, hGraphExec, &charges)) {
		return launched(timed, stream, CUDA_ERROR_OUT_OF_MEMORY);
	}
	const CUresult result = launched(timed, stream, real(hGraphExec, hStream));
	if (charges.count != 0) {
		graph_books_launched(hGraphExec, result);
	}
	graph_books_end(&charges);
	return result;
}
