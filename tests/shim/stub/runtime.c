/* A CUDA runtime for the stub driver, libcudart.so.12, as far as PyTorch needs one to allocate: NVIDIA's own doesn't
 * run on a driver that isn't NVIDIA's. Like it, it makes the primary context when it is first needed, asks the driver
 * for each function by cuGetProcAddress, and passes the driver's codes on, which mean the same here.
 *
 * Streams, events, graphs and launches are in runtime_streams.c. */
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

#define DEVICES 16

static void *primaries[DEVICES];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int device;
static _Thread_local int is_bound;
static _Thread_local int last_error;

typedef int (*ask_fn)(const char *, void **, int, unsigned long long, int *);

void *runtime_find(const char *name, int version, unsigned long long flags) {
	static ask_fn ask;
	void *found = NULL;
	int status;
	if (ask == NULL) {
		void *library = dlopen("libcuda.so.1", RTLD_LAZY);
		ask = library == NULL ? NULL : (ask_fn)dlsym(library, "cuGetProcAddress_v2");
	}
	if (ask != NULL) {
		ask(name, &found, version, flags, &status);
	}
	return found;
}

int runtime_told(int code) {
	last_error = code != CU_OK ? code : last_error;
	return code;
}

static int retain(void) {
	pthread_mutex_lock(&guard);
	int rc = primaries[device] != NULL ? CU_OK : CALL(cuInit, 2000, (unsigned int), 0);
	if (rc == CU_OK && primaries[device] == NULL) {
		rc = CALL(cuDevicePrimaryCtxRetain, 7000, (void **, int), &primaries[device], device);
	}
	pthread_mutex_unlock(&guard);
	return rc;
}

int runtime_bind(void) {
	if (is_bound) {
		return CU_OK;
	}
	int rc = retain();
	if (rc == CU_OK) {
		rc = CALL(cuCtxSetCurrent, 4000, (void *), primaries[device]);
	}
	is_bound = rc == CU_OK;
	return rc;
}

RUNTIME cudaGetLastError(void) {
	int code = last_error;
	last_error = CU_OK;
	return code;
}

RUNTIME cudaPeekAtLastError(void) {
	return last_error;
}

RUNTIME_API const char *cudaGetErrorString(int code) {
	const char *text = "unknown error";
	CALL(cuGetErrorString, 6000, (int, const char **), code, &text);
	return text;
}

RUNTIME_API const char *cudaGetErrorName(int code) {
	const char *text = "cudaErrorUnknown";
	CALL(cuGetErrorName, 6000, (int, const char **), code, &text);
	return text;
}

RUNTIME cudaDriverGetVersion(int *out) {
	return runtime_told(CALL(cuDriverGetVersion, 2020, (int *), out));
}

RUNTIME cudaRuntimeGetVersion(int *out) {
	*out = 12040;
	return CU_OK;
}

RUNTIME cudaGetDeviceCount(int *out) {
	int rc = CALL(cuInit, 2000, (unsigned int), 0);
	return runtime_told(rc != CU_OK ? rc : CALL(cuDeviceGetCount, 2000, (int *), out));
}

RUNTIME cudaGetDevice(int *out) {
	*out = device;
	return CU_OK;
}

/* Since CUDA 12 this makes the context too. */
RUNTIME cudaSetDevice(int ordinal) {
	int count = 0;
	int rc = cudaGetDeviceCount(&count);
	if (rc != CU_OK || ordinal < 0 || ordinal >= count || ordinal >= DEVICES) {
		return runtime_told(rc != CU_OK ? rc : CU_INVALID_DEVICE);
	}
	is_bound = is_bound && ordinal == device;
	device = ordinal;
	return runtime_told(runtime_bind());
}

RUNTIME cudaDeviceGetAttribute(int *out, int attribute, int ordinal) {
	return runtime_told(CALL(cuDeviceGetAttribute, 2000, (int *, int, int), out, attribute, ordinal));
}

RUNTIME cudaDeviceGetPCIBusId(char *out, int size, int ordinal) {
	return runtime_told(CALL(cuDeviceGetPCIBusId, 4010, (char *, int, int), out, size, ordinal));
}

RUNTIME cudaDeviceCanAccessPeer(int *out, int ordinal, int peer) {
	return runtime_told(CALL(cuDeviceCanAccessPeer, 4000, (int *, int, int), out, ordinal, peer));
}

RUNTIME cudaDeviceGetDefaultMemPool(address *out, int ordinal) {
	return runtime_told(CALL(cuDeviceGetDefaultMemPool, 11020, (address *, int), out, ordinal));
}

RUNTIME cudaDeviceSynchronize(void) {
	BIND();
	return runtime_told(CALL(cuCtxSynchronize, 2000, (void)));
}

/* cudaDeviceProp of CUDA 12; what nobody here asks for is zero. */
struct properties {
	char name[256];
	unsigned char uuid[16];
	char luid[8];
	unsigned int luid_mask;
	size_t memory, shared_per_block;
	int registers, warp;
	size_t pitch;
	int threads_per_block, block[3], grid[3], clock;
	size_t constant;
	int major, minor;
	size_t texture, texture_pitch;
	int overlap, sms, others[48], bus, slot, domain, rest[7], threads_per_sm, more[101];
};

_Static_assert(sizeof(struct properties) == 1032, "cudaDeviceProp");
_Static_assert(offsetof(struct properties, threads_per_sm) == 624, "cudaDeviceProp");

RUNTIME cudaGetDeviceProperties_v2(struct properties *out, int ordinal) {
	memset(out, 0, sizeof *out);
	int rc = CALL(cuDeviceGetName, 2000, (char *, int, int), out->name, sizeof out->name, ordinal);
	CALL(cuDeviceTotalMem, 12000, (size_t *, int), &out->memory, ordinal);
	CALL(cuDeviceGetUuid, 12000, (unsigned char *, int), out->uuid, ordinal);
	struct {
		int number, *place;
	} wanted[] = {{1, &out->threads_per_block}, {10, &out->warp}, {16, &out->sms},
	              {33, &out->bus},              {34, &out->slot},  {50, &out->domain},
	              {39, &out->threads_per_sm},   {75, &out->major}, {76, &out->minor}};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		cudaDeviceGetAttribute(wanted[i].place, wanted[i].number, ordinal);
	}
	return runtime_told(rc);
}

RUNTIME cudaMalloc(address *out, size_t bytes) {
	BIND();
	*out = 0;
	return bytes == 0 ? CU_OK : runtime_told(CALL(cuMemAlloc, 12000, (address *, size_t), out, bytes));
}

RUNTIME cudaFree(address start) {
	BIND();
	return start == 0 ? CU_OK : runtime_told(CALL(cuMemFree, 12000, (address), start));
}

RUNTIME cudaMallocManaged(address *out, size_t bytes, unsigned int flags) {
	BIND();
	return runtime_told(CALL(cuMemAllocManaged, 6000, (address *, size_t, unsigned int), out, bytes, flags));
}

RUNTIME cudaMallocPitch(address *out, size_t *pitch, size_t width, size_t height) {
	BIND();
	return runtime_told(CALL(cuMemAllocPitch, 12000, (address *, size_t *, size_t, size_t, unsigned int), out, pitch,
	                         width, height, 4));
}

RUNTIME cudaMemGetInfo(size_t *unused, size_t *total) {
	BIND();
	return runtime_told(CALL(cuMemGetInfo, 12000, (size_t *, size_t *), unused, total));
}

RUNTIME cudaHostAlloc(void **out, size_t bytes, unsigned int flags) {
	BIND();
	return runtime_told(CALL(cuMemHostAlloc, 2020, (void **, size_t, unsigned int), out, bytes, flags));
}

RUNTIME cudaFreeHost(void *memory) {
	BIND();
	return runtime_told(CALL(cuMemFreeHost, 2000, (void *), memory));
}

RUNTIME cudaMallocAsync(address *out, size_t bytes, void *stream) {
	BIND();
	return runtime_told(CALL(cuMemAllocAsync, 11020, (address *, size_t, void *), out, bytes, stream));
}

RUNTIME cudaMallocAsync_ptsz(address *out, size_t bytes, void *stream) {
	BIND();
	return runtime_told(CALL_PTSZ(cuMemAllocAsync, 11020, (address *, size_t, void *), out, bytes, stream));
}

RUNTIME cudaFreeAsync(address start, void *stream) {
	BIND();
	return runtime_told(CALL(cuMemFreeAsync, 11020, (address, void *), start, stream));
}

/* cudaMemPoolAttr numbers as the driver does. */
RUNTIME cudaMemPoolGetAttribute(address pool, int attribute, void *out) {
	return runtime_told(CALL(cuMemPoolGetAttribute, 11020, (address, int, void *), pool, attribute, out));
}

RUNTIME cudaMemPoolSetAttribute(address pool, int attribute, void *value) {
	return runtime_told(CALL(cuMemPoolSetAttribute, 11020, (address, int, void *), pool, attribute, value));
}

RUNTIME cudaMemPoolTrimTo(address pool, size_t keep) {
	return runtime_told(CALL(cuMemPoolTrimTo, 11020, (address, size_t), pool, keep));
}

/* cudaPointerAttributes: 0 is memory that the driver doesn't know, 1 the host's, 2 a device's, 3 managed. */
struct pointer_attributes {
	int type, ordinal;
	void *on_device, *on_host;
};

RUNTIME cudaPointerGetAttributes(struct pointer_attributes *out, address pointer) {
	BIND();
	*out = (struct pointer_attributes){0, -1, NULL, (void *)(uintptr_t)pointer};
	unsigned int kind = 0;
	if (CALL(cuPointerGetAttribute, 4000, (void *, int, address), &kind, 2, pointer) == CU_OK) {
		CALL(cuPointerGetAttribute, 4000, (void *, int, address), &out->ordinal, 9, pointer);
		out->type = (int)kind;
		out->on_device = (void *)(uintptr_t)pointer;
	}
	return CU_OK;
}
