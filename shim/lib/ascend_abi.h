/* The part of AscendCL's binary interface that the library meets. */
#ifndef VPY_ASCEND_ABI_H
#define VPY_ASCEND_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int aclError;
enum {
	ACL_SUCCESS = 0,
	ACL_ERROR_API_NOT_SUPPORT = 200001,
	ACL_ERROR_RT_MEMORY_ALLOCATION = 207001, /* what frameworks take for "out of memory" */
};

typedef int aclrtMemMallocPolicy;
typedef int aclrtMemAttr;
typedef struct aclrtMallocConfig aclrtMallocConfig;
typedef void *aclrtDrvMemHandle;

enum { ACL_MEM_LOCATION_TYPE_HOST = 0, ACL_MEM_LOCATION_TYPE_DEVICE = 1 };

typedef struct {
	uint32_t id;
	int type;
} aclrtMemLocation;

typedef struct {
	int handleType;
	int allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

_Static_assert(sizeof(aclrtPhysicalMemProp) == 32, "as the runtime has it");

#endif
