/* CUDA: entry points by name, as cuGetProcAddress gives them: the newest ABI that is not newer than asked for; and
 * those without a name. */
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
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuMulticastBindMem", 12010, "cuMulticastBindMem"},
    {"cuMulticastBindMem", 13010, "cuMulticastBindMem_v2"},
    {"cuMulticastBindAddr", 12010, "cuMulticastBindAddr"},
    {"cuMulticastBindAddr", 13010, "cuMulticastBindAddr_v2"},
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

/* From here on: the tables of functions without names that NVIDIA's runtime asks for, as far as runtimes before CUDA
 * 11.2 need them. Later ones also ask for a proof that the driver is NVIDIA's, and get none here. */

/* The primary context of a device, which this doesn't make. */
static int primary_handle(struct context **out, int device) {
	DRIVER_ENTER();
	int card = card_of(device);
	NEED_CARD(card);
	*out = context_primary(card);
	return CU_OK;
}

/* Loads the compilers that come with a driver. */
static int no_compilers(void) {
	return CU_OK;
}

/* What profilers set where they want to be told of calls; nobody does. */
static void no_callbacks(void **out, size_t *count) {
	static unsigned int wanted[1024];
	*out = wanted;
	*count = sizeof wanted / sizeof wanted[0];
}

static void no_events(void **out, size_t *count) {
	static unsigned int wanted[14];
	*out = wanted;
	*count = sizeof wanted / sizeof wanted[0];
}

/* What a library keeps of a context under a key of its own, until the context ends. */
struct kept {
	struct context *context;
	const void *key;
	void *value;
	void (*end)(struct context *, const void *key, void *value);
	struct kept *next;
};

static pthread_mutex_t kept_guard = PTHREAD_MUTEX_INITIALIZER;
static struct kept *kept;

static struct kept **place_of(const struct context *context, const void *key) {
	struct kept **place = &kept;
	while (*place != NULL && ((*place)->context != context || (key != NULL && (*place)->key != key))) {
		place = &(*place)->next;
	}
	return place;
}

static struct kept *unkeep(const struct context *context, const void *key) {
	pthread_mutex_lock(&kept_guard);
	struct kept **place = place_of(context, key);
	struct kept *found = *place;
	if (found != NULL) {
		*place = found->next;
	}
	pthread_mutex_unlock(&kept_guard);
	return found;
}

static int keep(struct context *context, const void *key, void *value,
                void (*end)(struct context *, const void *, void *)) {
	struct kept *entry = malloc(sizeof *entry);
	context = context != NULL ? context : context_current();
	if (context == NULL || entry == NULL) {
		free(entry);
		return CU_INVALID_CONTEXT;
	}
	pthread_mutex_lock(&kept_guard);
	*entry = (struct kept){context, key, value, end, kept};
	kept = entry;
	pthread_mutex_unlock(&kept_guard);
	return CU_OK;
}

static int forget_kept(struct context *context, const void *key) {
	struct kept *found = unkeep(context != NULL ? context : context_current(), key);
	free(found);
	return found != NULL ? CU_OK : CU_INVALID_HANDLE;
}

static int find_kept(void **out, struct context *context, const void *key) {
	pthread_mutex_lock(&kept_guard);
	struct kept *found = *place_of(context != NULL ? context : context_current(), key);
	if (found != NULL) {
		*out = found->value;
	}
	pthread_mutex_unlock(&kept_guard);
	return found != NULL ? CU_OK : CU_INVALID_HANDLE;
}

void kept_end(struct context *context) {
	struct kept *found;
	while ((found = unkeep(context, NULL)) != NULL) {
		if (found->end != NULL) {
			found->end(context, found->key, found->value);
		}
		free(found);
	}
}

/* Most begin with their size. */
static void *const of_runtime[13] = {
    (void *)sizeof of_runtime, [2] = (void *)primary_handle, [12] = (void *)no_compilers};
static void *const of_tools[7] = {(void *)sizeof of_tools, [2] = (void *)no_callbacks, [6] = (void *)no_events};
static void *const of_threads[4] = {(void *)sizeof of_threads};
static void *const of_contexts[] = {(void *)keep, (void *)forget_kept, (void *)find_kept};

static const struct {
	unsigned char id[16];
	void *const *table;
} tables[] = {
    {"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9", of_runtime},
    {"\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66", of_tools},
    {"\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc", of_threads},
    {"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93", of_contexts},
};

CU_API cuGetExportTable(const void **out, const void *id) {
	STUB_ENTER();
	NEED(out != NULL && id != NULL);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		if (memcmp(tables[i].id, id, sizeof tables[i].id) == 0) {
			*out = tables[i].table;
			return CU_OK;
		}
	}
	return CU_NOT_FOUND;
}
