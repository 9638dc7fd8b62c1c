/* The probe's commands about pools, memory by handle, and memory of other processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

#define MIB (1ull << 20)

static uint64_t mib(const char *word) {
	return strtoull(word, NULL, 10) * MIB;
}

static address default_pool(const char *device) {
	address pool = 0;
	CALL("cuDeviceGetDefaultMemPool", (address *, int), &pool, atoi(device));
	return pool;
}

/* threshold DEVICE MIB */
static void threshold(char **word) {
	uint64_t bytes = mib(word[2]);
	printf("%d\n", CALL("cuMemPoolSetAttribute", (address, int, void *), default_pool(word[1]), 4, &bytes));
}

/* trim DEVICE MIB */
static void trim(char **word) {
	printf("%d\n", CALL("cuMemPoolTrimTo", (address, size_t), default_pool(word[1]), mib(word[2])));
}

/* create NAME DEVICE KIND MIB: kind 1 is a device, 2 host memory, 3 a host NUMA node's */
static void create(char **word) {
	struct allocation_prop prop = {.type = 1, .location = {atoi(word[3]), atoi(word[2])}};
	address handle = 0xabcdef;
	int rc = CALL("cuMemCreate", (address *, size_t, const struct allocation_prop *, unsigned long long), &handle,
	              mib(word[4]), &prop, 0);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = handle;
	}
	printf("%d\n", rc);
}

/* The answer to a call that ended the thing, if it did. */
static void end_thing(const char *name, int rc) {
	struct held *held = thing(name, 0);
	if (rc == CU_OK && held != NULL) {
		held->name[0] = '\0';
	}
	printf("%d\n", rc);
}

static address at(const char *name) {
	const struct held *held = thing(name, 0);
	return held == NULL ? 0 : held->at;
}

static void release(char **word) {
	end_thing(word[1], CALL("cuMemRelease", (address), at(word[1])));
}

/* map NAME HANDLE MIB: at a new address */
static void map(char **word) {
	address start = 0;
	CALL("cuMemAddressReserve", (address *, size_t, size_t, address, unsigned long long), &start, mib(word[3]), 0, 0, 0);
	int rc = CALL("cuMemMap", (address, size_t, size_t, address, unsigned long long), start, mib(word[3]), 0, at(word[2]), 0);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = start;
	}
	printf("%d\n", rc);
}

static void unmap(char **word) {
	end_thing(word[1], CALL("cuMemUnmap", (address, size_t), at(word[1]), mib(word[2])));
}

/* retained NAME MAPPING: another handle of what is mapped there */
static void retained(char **word) {
	address handle = 0;
	int rc = CALL("cuMemRetainAllocationHandle", (address *, void *), &handle, (void *)(uintptr_t)at(word[2]));
	if (rc == CU_OK) {
		thing(word[1], 1)->at = handle;
	}
	printf("%d\n", rc);
}

/* shared NAME HANDLE: the same memory again, by way of a file */
static void shared(char **word) {
	int fd = -1;
	address handle = 0;
	int rc = CALL("cuMemExportToShareableHandle", (void *, address, int, unsigned long long), &fd, at(word[2]), 1, 0);
	if (rc == CU_OK) {
		rc = CALL("cuMemImportFromShareableHandle", (address *, void *, int), &handle, (void *)(intptr_t)fd, 1);
	}
	if (rc == CU_OK) {
		thing(word[1], 1)->at = handle;
	}
	printf("%d\n", rc);
}

struct ipc {
	unsigned char bytes[64];
};

/* ipc NAME: the code and the handle in hexadecimal */
static void ipc(char **word) {
	struct ipc handle;
	int rc = CALL("cuIpcGetMemHandle", (struct ipc *, address), &handle, at(word[1]));
	printf("%d ", rc);
	for (size_t i = 0; rc == CU_OK && i < sizeof handle.bytes; i++) {
		printf("%02x", handle.bytes[i]);
	}
	printf("\n");
}

static void ipc_open(char **word) {
	struct ipc handle = {{0}};
	address start = 0;
	for (size_t i = 0; i < sizeof handle.bytes && strlen(word[2]) >= 2 * i + 2; i++) {
		unsigned int byte = 0;
		sscanf(word[2] + 2 * i, "%2x", &byte);
		handle.bytes[i] = (unsigned char)byte;
	}
	int rc = CALL("cuIpcOpenMemHandle_v2", (address *, struct ipc, unsigned int), &start, handle, 1);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = start;
	}
	printf("%d\n", rc);
}

static void ipc_close(char **word) {
	end_thing(word[1], CALL("cuIpcCloseMemHandle", (address), at(word[1])));
}

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
struct external {
	int kind;
	union {
		int fd;
		void *windows[2];
	} handle;
	unsigned long long bytes;
	unsigned int flags;
	unsigned int reserved[16];
};

/* external NAME MIB */
static void import_external(char **word) {
	struct external description = {.kind = 1, .bytes = mib(word[2])};
	address handle = 0;
	int rc = CALL("cuImportExternalMemory", (address *, const struct external *), &handle, &description);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = handle;
	}
	printf("%d\n", rc);
}

static void destroy_external(char **word) {
	end_thing(word[1], CALL("cuDestroyExternalMemory", (address), at(word[1])));
}

/* pointer NAME: what the driver says of it, one question at a time, all at once, and for no memory at all */
static void pointer(char **word) {
	unsigned int kind = 0, managed = 9, kind_all = 0, managed_all = 9, untouched = 9;
	int attributes[] = {2, 8};
	void *both[] = {&kind_all, &managed_all};
	void *none[] = {&untouched, &untouched};
	int one = CALL("cuPointerGetAttribute", (void *, int, address), &kind, 2, at(word[1]));
	CALL("cuPointerGetAttribute", (void *, int, address), &managed, 8, at(word[1]));
	int all = CALL("cuPointerGetAttributes", (unsigned int, const int *, void **, address), 2, attributes, both, at(word[1]));
	int bad = CALL("cuPointerGetAttributes", (unsigned int, const int *, void **, address), 2, attributes, none, 1);
	printf("%d %u %u %d %u %u %d %u\n", one, kind, managed, all, kind_all, managed_all, bad, untouched);
}

/* host NAME MIB: pinned host memory */
static void host(char **word) {
	void *memory = NULL;
	int rc = CALL("cuMemHostAlloc", (void **, size_t, unsigned int), &memory, mib(word[2]), 3);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = (address)(uintptr_t)memory;
	}
	printf("%d\n", rc);
}

static void free_host(char **word) {
	end_thing(word[1], CALL("cuMemFreeHost", (void *), (void *)(uintptr_t)at(word[1])));
}

/* CUmulticastObjectProp */
struct multicast {
	unsigned int devices;
	size_t bytes;
	unsigned long long handle_types, flags;
};

/* multicast NAME MIB */
static void multicast(char **word) {
	struct multicast prop = {.devices = 1, .bytes = mib(word[2])};
	address handle = 0;
	int rc = CALL("cuMulticastCreate", (address *, const struct multicast *), &handle, &prop);
	if (rc == CU_OK) {
		thing(word[1], 1)->at = handle;
	}
	printf("%d\n", rc);
}

/* bind MULTICAST HANDLE MIB: the memory of a handle; bind_at MULTICAST MAPPING MIB: what is mapped there */
static void bind(char **word) {
	printf("%d\n", CALL("cuMulticastBindMem", (address, size_t, address, size_t, size_t, unsigned long long), at(word[1]), 0,
	                    at(word[2]), 0, mib(word[3]), 0));
}

static void bind_at(char **word) {
	printf("%d\n", CALL("cuMulticastBindAddr", (address, size_t, address, size_t, unsigned long long), at(word[1]), 0,
	                    at(word[2]), mib(word[3]), 0));
}

/* unbind MULTICAST DEVICE MIB */
static void unbind(char **word) {
	printf("%d\n", CALL("cuMulticastUnbind", (address, int, size_t, size_t), at(word[1]), atoi(word[2]), 0, mib(word[3])));
}

/* module: one more of whatever, never unloaded */
static void module(char **word) {
	address handle = 0;
	(void)word;
	printf("%d\n", CALL("cuModuleLoadData", (address *, const void *), &handle, "code"));
}

const struct command memory_commands[] = {
    {"threshold", threshold, 3},
    {"trim", trim, 3},
    {"create", create, 5},
    {"release", release, 2},
    {"map", map, 4},
    {"unmap", unmap, 3},
    {"retained", retained, 3},
    {"shared", shared, 3},
    {"ipc", ipc, 2},
    {"ipc_open", ipc_open, 3},
    {"ipc_close", ipc_close, 2},
    {"external", import_external, 3},
    {"destroy_external", destroy_external, 2},
    {"pointer", pointer, 2},
    {"module", module, 1},
    {"host", host, 3},
    {"free_host", free_host, 2},
    {"multicast", multicast, 3},
    {"bind", bind, 4},
    {"bind_at", bind_at, 4},
    {"unbind", unbind, 4},
    {NULL, NULL, 0},
};
