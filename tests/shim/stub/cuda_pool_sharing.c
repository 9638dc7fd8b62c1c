/* CUDA: pools of other processes. Their memory is that process's; the token names nothing but itself. */
#include <string.h>

#include "driver.h"
#include "pool.h"

CU_API cuMemPoolExportToShareableHandle(void *out, address handle, int kind, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL && kind == 1 && flags == 0 && pool_of(handle) != NULL);
	*(int *)out = 0;
	return CU_OK;
}

CU_API cuMemPoolImportFromShareableHandle(address *out, void *handle, int kind, unsigned long long flags) {
	DRIVER_ENTER();
	(void)state;
	(void)handle;
	NEED(out != NULL && kind == 1 && flags == 0);
	*out = pool_of_others();
	return CU_OK;
}

CU_API cuMemPoolExportPointer(address out[8], address start) {
	DRIVER_ENTER();
	(void)state;
	const struct object *object = object_find(start, POOLED, POOLED);
	NEED(out != NULL && object != NULL);
	memset(out, 0, 64);
	out[0] = start;
	out[1] = object->bytes;
	return CU_OK;
}

CU_API cuMemPoolImportPointer(address *out, address handle, const address shared[8]) {
	DRIVER_ENTER();
	(void)state;
	NEED(out != NULL && shared != NULL);
	return pool_allocate(out, shared[1], handle);
}
