/* The stub's CUDA runtime: streams, events, graphs, and kernels, which cost the stub driver nothing. */
#include "runtime.h"

#include "driver.h"

RUNTIME cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
	*least = 0;
	*greatest = -5;
	return CU_OK;
}

RUNTIME cudaStreamCreateWithPriority(void **out, unsigned int flags, int priority) {
	BIND();
	return runtime_told(CALL(cuStreamCreateWithPriority, 5050, (void **, unsigned int, int), out, flags, priority));
}

RUNTIME cudaStreamCreate(void **out) {
	return cudaStreamCreateWithPriority(out, 0, 0);
}

RUNTIME cudaStreamDestroy(void *stream) {
	BIND();
	return runtime_told(CALL(cuStreamDestroy, 4000, (void *), stream));
}

RUNTIME cudaStreamQuery(void *stream) {
	BIND();
	return runtime_told(CALL(cuStreamQuery, 2000, (void *), stream));
}

RUNTIME cudaStreamSynchronize(void *stream) {
	BIND();
	return runtime_told(CALL(cuStreamSynchronize, 2000, (void *), stream));
}

RUNTIME cudaStreamWaitEvent(void *stream, void *event, unsigned int flags) {
	BIND();
	return runtime_told(CALL(cuStreamWaitEvent, 3020, (void *, void *, unsigned int), stream, event, flags));
}

RUNTIME cudaStreamIsCapturing(void *stream, int *out) {
	BIND();
	return runtime_told(CALL(cuStreamIsCapturing, 10000, (void *, int *), stream, out));
}

RUNTIME cudaStreamGetCaptureInfo_v2(void *stream, int *status, address *id, void **graph, const address **needs,
                                    size_t *count) {
	BIND();
	return runtime_told(CALL(cuStreamGetCaptureInfo, 11030,
	                         (void *, int *, address *, void **, const address **, size_t *), stream, status, id,
	                         graph, needs, count));
}

RUNTIME cudaStreamBeginCapture(void *stream, int mode) {
	BIND();
	return runtime_told(CALL(cuStreamBeginCapture, 10010, (void *, int), stream, mode));
}

RUNTIME cudaStreamEndCapture(void *stream, void **out) {
	BIND();
	return runtime_told(CALL(cuStreamEndCapture, 10000, (void *, void **), stream, out));
}

RUNTIME cudaThreadExchangeStreamCaptureMode(int *mode) {
	return runtime_told(CALL(cuThreadExchangeStreamCaptureMode, 10010, (int *), mode));
}

RUNTIME cudaEventCreateWithFlags(void **out, unsigned int flags) {
	BIND();
	return runtime_told(CALL(cuEventCreate, 2000, (void **, unsigned int), out, flags));
}

RUNTIME cudaEventCreate(void **out) {
	return cudaEventCreateWithFlags(out, 0);
}

RUNTIME cudaEventDestroy(void *event) {
	return runtime_told(CALL(cuEventDestroy, 4000, (void *), event));
}

RUNTIME cudaEventRecord(void *event, void *stream) {
	BIND();
	return runtime_told(CALL(cuEventRecord, 2000, (void *, void *), event, stream));
}

RUNTIME cudaEventQuery(void *event) {
	return runtime_told(CALL(cuEventQuery, 2000, (void *), event));
}

RUNTIME cudaEventSynchronize(void *event) {
	return runtime_told(CALL(cuEventSynchronize, 2000, (void *), event));
}

RUNTIME cudaGraphGetNodes(void *graph, address *nodes, size_t *count) {
	return runtime_told(CALL(cuGraphGetNodes, 10000, (void *, address *, size_t *), graph, nodes, count));
}

RUNTIME cudaGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
	BIND();
	return runtime_told(CALL(cuGraphInstantiate, 12000, (void **, void *, unsigned long long), out, graph, flags));
}

RUNTIME cudaGraphInstantiate(void **out, void *graph, unsigned long long flags) {
	return cudaGraphInstantiateWithFlags(out, graph, flags);
}

RUNTIME cudaGraphLaunch(void *exec, void *stream) {
	BIND();
	return runtime_told(CALL(cuGraphLaunch, 10000, (void *, void *), exec, stream));
}

RUNTIME cudaGraphDestroy(void *graph) {
	return runtime_told(CALL(cuGraphDestroy, 10000, (void *), graph));
}

RUNTIME cudaGraphExecDestroy(void *exec) {
	return runtime_told(CALL(cuGraphExecDestroy, 10000, (void *), exec));
}

struct size3 {
	unsigned int x, y, z;
};

/* Handle 1 is the stub driver's kernel that takes no time (cuda_launch.c). */
RUNTIME cudaLaunchKernel(const void *host, struct size3 grid, struct size3 block, void **parameters, size_t shared,
                         void *stream) {
	BIND();
	(void)host;
	return runtime_told(CALL(cuLaunchKernel, 4000,
	                         (address, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
	                          unsigned int, void *, void **, void **),
	                         1, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared, stream,
	                         parameters, NULL));
}

/* What <<<grid, block, shared, stream>>> leaves for the call that it makes. */
static _Thread_local struct {
	struct size3 grid, block;
	size_t shared;
	void *stream;
} configuration;

RUNTIME_API unsigned int __cudaPushCallConfiguration(struct size3 grid, struct size3 block, size_t shared,
                                                     void *stream) {
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

RUNTIME __cudaPopCallConfiguration(struct size3 *grid, struct size3 *block, size_t *shared, void **stream) {
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*stream = configuration.stream;
	return CU_OK;
}

/* Kernels and variables of the program register themselves when it is loaded. No code ever runs here. */
RUNTIME_API void **__cudaRegisterFatBinary(void *binary) {
	static void *handle;
	(void)binary;
	return &handle;
}

RUNTIME_API void __cudaRegisterFatBinaryEnd(void **handle) {
	(void)handle;
}

RUNTIME_API void __cudaUnregisterFatBinary(void **handle) {
	(void)handle;
}

RUNTIME_API void __cudaRegisterFunction(void **handle, const char *host) {
	(void)handle;
	(void)host;
}

RUNTIME_API void __cudaRegisterVar(void **handle, char *host) {
	(void)handle;
	(void)host;
}

RUNTIME_API char __cudaInitModule(void **handle) {
	(void)handle;
	return 1;
}

/* What PyTorch names and doesn't need to allocate. */
#define ABSENT(name)                                  \
	RUNTIME name(void) {                          \
		return runtime_told(CU_NOT_SUPPORTED); \
	}

ABSENT(cudaDeviceEnablePeerAccess)
ABSENT(cudaEventElapsedTime)
ABSENT(cudaFuncGetAttributes)
ABSENT(cudaFuncSetAttribute)
ABSENT(cudaGraphDebugDotPrint)
ABSENT(cudaHostGetDevicePointer)
ABSENT(cudaHostRegister)
ABSENT(cudaHostUnregister)
ABSENT(cudaIpcCloseMemHandle)
ABSENT(cudaIpcGetEventHandle)
ABSENT(cudaIpcGetMemHandle)
ABSENT(cudaIpcOpenEventHandle)
ABSENT(cudaIpcOpenMemHandle)
ABSENT(cudaLaunchKernelExC)
ABSENT(cudaMemPoolSetAccess)
ABSENT(cudaMemcpy)
ABSENT(cudaMemcpy2DAsync)
ABSENT(cudaMemcpyAsync)
ABSENT(cudaMemcpyPeerAsync)
ABSENT(cudaMemset)
ABSENT(cudaMemsetAsync)
ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
ABSENT(cudaProfilerStart)
ABSENT(cudaProfilerStop)
ABSENT(cudaStreamAddCallback)
ABSENT(cudaStreamGetPriority)
