/* CUDA: entry points by name, as cuGetProcAddress gives them: the newest ABI that is not newer than asked for. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

/* Which version brought which ABI of a name that has several; oldest first within a name. */
static const struct abi {
	const char *base;
	int since;
	const char *symbol;
} abis[] = {
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuDeviceTotalMem", 2000, "cuDeviceTotalMem"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxReset", 7000, "cuDevicePrimaryCtxReset"},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxSetFlags", 7000, "cuDevicePrimaryCtxSetFlags"},
    {"cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2"},
    {"cuCtxCreate", 2000, "cuCtxCreate"},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxDestroy", 2000, "cuCtxDestroy"},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
    {"cuCtxPushCurrent", 2000, "cuCtxPushCurrent"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuCtxPopCurrent", 2000, "cuCtxPopCurrent"},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuMemGetInfo", 2000, "cuMemGetInfo"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemAlloc", 2000, "cuMemAlloc"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemAllocPitch", 2000, "cuMemAllocPitch"},
    {"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2"},
    {"cuMemFree", 2000, "cuMemFree"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemAllocManaged", 6000, "cuMemAllocManaged"},
    {"cuMemAllocHost", 2000, "cuMemAllocHost"},
    {"cuMemAllocHost", 3020, "cuMemAllocHost_v2"},
    {"cuMemHostRegister", 4000, "cuMemHostRegister"},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2"},
    {"cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2"},
    {"cuArrayCreate", 2000, "cuArrayCreate"},
    {"cuArrayCreate", 3020, "cuArrayCreate_v2"},
    {"cuArray3DCreate", 2000, "cuArray3DCreate"},
    {"cuArray3DCreate", 3020, "cuArray3DCreate_v2"},
    {"cuMipmappedArrayCreate", 5000, "cuMipmappedArrayCreate"},
    {"cuIpcOpenMemHandle", 4010, "cuIpcOpenMemHandle"},
    {"cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2"},
    {"cuStreamDestroy", 2000, "cuStreamDestroy"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamBeginCapture", 10000, "cuStreamBeginCapture"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuEventDestroy", 2000, "cuEventDestroy"},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync"},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync"},
    {"cuMemAllocFromPoolAsync", 11020, "cuMemAllocFromPoolAsync"},
    {"cuMemCreate", 10020, "cuMemCreate"},
    {"cuMemRelease", 10020, "cuMemRelease"},
    {"cuMemMap", 10020, "cuMemMap"},
    {"cuMemUnmap", 10020, "cuMemUnmap"},
    {"cuLaunchKernel", 4000, "cuLaunchKernel"},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx"},
    {"cuLaunchCooperativeKernel", 9000, "cuLaunchCooperativeKernel"},
    {"cuGraphLaunch", 10000, "cuGraphLaunch"},
    {"cuGraphInstantiate", 10000, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuGraphAddKernelNode", 10000, "cuGraphAddKernelNode"},
    {"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"},
    {"cuGraphAddNode", 12020, "cuGraphAddNode"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
    {"cuGraphAddNode", 13040, "cuGraphAddNode_v3"},
    {"cuGraphAddMemAllocNode", 11040, "cuGraphAddMemAllocNode"},
};

enum { FOUND = 0, NO_SYMBOL = 1, TOO_OLD = 2 };
enum { PER_THREAD = 2 };

/* What this very library exports under that name. */
static void *exported(const char *symbol) {
	static void *self;
	Dl_info found;
	if (self == NULL && dladdr((void *)exported, &found) != 0) {
		self = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	}
	return self == NULL ? NULL : dlsym(self, symbol);
}

static void *of_stream(const char *symbol, unsigned long long flags) {
	char name[128];
	void *found = NULL;
	if ((flags & PER_THREAD) != 0) {
		snprintf(name, sizeof name, "%s_ptsz", symbol);
		found = exported(name);
	}
	return found != NULL ? found : exported(symbol);
}

#define WAYS 1024
#define WAY_BYTES 16

/* The way to a function: code that jumps there. One for each, so that the same question has the same answer. */
static void *way_to(void *function) {
	static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
	static void *functions[WAYS];
	static unsigned char *code;
	int i = 0;
	pthread_mutex_lock(&guard);
	if (code == NULL) {
		code = mmap(NULL, WAYS * WAY_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	while (functions[i] != function && functions[i] != NULL) {
		i++;
	}
	unsigned char *way = code + i * WAY_BYTES;
	if (functions[i] == NULL) {
		functions[i] = function;
#if defined(__x86_64__) /* movabs $function, %rax; jmp *%rax */
		memcpy(way, "\x48\xb8", 2);
		memcpy(way + 2, &function, sizeof function);
		memcpy(way + 10, "\xff\xe0", 2);
#else /* ldr x16, .+8; br x16; .quad function */
		memcpy(way, "\x50\x00\x00\x58\x00\x02\x1f\xd6", 8);
		memcpy(way + 8, &function, sizeof function);
		__builtin___clear_cache((char *)way, (char *)way + WAY_BYTES);
#endif
	}
	pthread_mutex_unlock(&guard);
	return way;
}

/* With STUB_HIDDEN_ENTRIES set, answers are no addresses that this library exports, but ways to them. */
static void *answer(void *function) {
	return function != NULL && getenv("STUB_HIDDEN_ENTRIES") != NULL ? way_to(function) : function;
}

static void *resolve(const char *base, int version, unsigned long long flags, int *status) {
	const char *symbol = NULL;
	*status = NO_SYMBOL;
	for (size_t i = 0; i < sizeof abis / sizeof abis[0]; i++) {
		if (strcmp(abis[i].base, base) == 0) {
			*status = TOO_OLD;
			if (abis[i].since <= version) {
				symbol = abis[i].symbol;
			}
		}
	}
	if (symbol == NULL && *status == TOO_OLD) {
		return NULL;
	}
	void *found = of_stream(symbol != NULL ? symbol : base, flags);
	*status = found != NULL ? FOUND : NO_SYMBOL;
	return found;
}

CU_API cuGetProcAddress(const char *symbol, void **out, int version, unsigned long long flags) {
	int status;
	STUB_ENTER();
	NEED(symbol != NULL && out != NULL && (flags & ~3ull) == 0);
	*out = answer(resolve(symbol, version, flags, &status));
	return *out != NULL ? CU_OK : CU_NOT_FOUND;
}

CU_API cuGetProcAddress_v2(const char *symbol, void **out, int version, unsigned long long flags, int *status) {
	int unwanted;
	STUB_ENTER();
	NEED(symbol != NULL && out != NULL && (flags & ~3ull) == 0);
	*out = answer(resolve(symbol, version, flags, status != NULL ? status : &unwanted));
	return *out != NULL ? CU_OK : CU_NOT_FOUND;
}

CU_API cuGetExportTable(const void **out, const void *id) {
	STUB_ENTER();
	NEED(out != NULL && id != NULL);
	return CU_NOT_FOUND;
}
