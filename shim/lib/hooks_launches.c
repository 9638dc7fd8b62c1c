/* Launches of kernels and graphs: counted, and held back where the card's time is limited. */
#define _GNU_SOURCE
#include <time.h>

#include "card.h"
#include "cores.h"
#include "driver.h"
#include "graph_books.h"

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

static void launch(uint64_t blocks) {
	const int slot = slice_slot();
	if (slot < 0 || atomic_load_explicit(&slice.state, memory_order_relaxed) != SLICE_ON) {
		return;
	}
	const int card = launch_card();
	if (card < 0) {
		return;
	}
	note_time(slot);
	if (cores_note(card, slot)) {
		cores_wait(card, blocks);
	}
}

static uint64_t blocks_of(unsigned int x, unsigned int y, unsigned int z) {
	return (uint64_t)x * y * z;
}

CUresult hook_cuLaunchKernel(fn_cuLaunchKernel real, CUfunction f, unsigned int gridDimX,
			     unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
			     unsigned int blockDimY, unsigned int blockDimZ,
			     unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
			     void **extra) {
	launch(blocks_of(gridDimX, gridDimY, gridDimZ));
	return real(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
		    sharedMemBytes, hStream, kernelParams, extra);
}

CUresult hook_cuLaunchKernelEx(fn_cuLaunchKernelEx real, const CUlaunchConfig *config,
			       CUfunction f, void **kernelParams, void **extra) {
	if (config != NULL) {
		launch(blocks_of(config->gridDimX, config->gridDimY, config->gridDimZ));
	}
	return real(config, f, kernelParams, extra);
}

CUresult hook_cuLaunchCooperativeKernel(fn_cuLaunchCooperativeKernel real, CUfunction f,
					unsigned int gridDimX, unsigned int gridDimY,
					unsigned int gridDimZ, unsigned int blockDimX,
					unsigned int blockDimY, unsigned int blockDimZ,
					unsigned int sharedMemBytes, CUstream hStream,
					void **kernelParams) {
	launch(blocks_of(gridDimX, gridDimY, gridDimZ));
	return real(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
		    sharedMemBytes, hStream, kernelParams);
}

CUresult hook_cuLaunchCooperativeKernelMultiDevice(fn_cuLaunchCooperativeKernelMultiDevice real,
						   CUDA_LAUNCH_PARAMS *launchParamsList,
						   unsigned int numDevices, unsigned int flags) {
	for (unsigned int i = 0; launchParamsList != NULL && i < numDevices; i++) {
		const CUDA_LAUNCH_PARAMS *params = &launchParamsList[i];
		launch(blocks_of(params->gridDimX, params->gridDimY, params->gridDimZ));
	}
	return real(launchParamsList, numDevices, flags);
}

CUresult hook_cuLaunch(fn_cuLaunch real, CUfunction f) {
	launch(1);
	return real(f);
}

static uint64_t old_blocks(int width, int height) {
	return width > 0 && height > 0 ? (uint64_t)width * (uint64_t)height : 0;
}

CUresult hook_cuLaunchGrid(fn_cuLaunchGrid real, CUfunction f, int grid_width, int grid_height) {
	launch(old_blocks(grid_width, grid_height));
	return real(f, grid_width, grid_height);
}

CUresult hook_cuLaunchGridAsync(fn_cuLaunchGridAsync real, CUfunction f, int grid_width,
				int grid_height, CUstream hStream) {
	launch(old_blocks(grid_width, grid_height));
	return real(f, grid_width, grid_height, hStream);
}

CUresult hook_cuGraphLaunch(fn_cuGraphLaunch real, CUgraphExec hGraphExec, CUstream hStream) {
	struct charge charge;
	if (!graph_books_begin(hGraphExec, &charge)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	launch(CORES_GRAPH_BLOCKS);
	const CUresult result = real(hGraphExec, hStream);
	graph_books_end(&charge);
	return result;
}
