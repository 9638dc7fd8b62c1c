/* Memory of Ascend devices. Host memory isn't the device's; what libraries below AscendCL take for
 * themselves isn't seen here, and the node agent's look from outside has it. */
#define _GNU_SOURCE
#include "card.h"
#include "charge.h"
#include "driver.h"
#include "objects.h"
#include "quota.h"
#include "report.h"

void (*const quota_refresh)(int card) = NULL;
void (*const quota_lost)(int card, uint64_t bytes) = NULL;

/* The runtime rounds up to 32 bytes and adds as many. */
static uint64_t padded(uint64_t bytes) {
	return bytes > REGION_BYTES_MASK ? REGION_BYTES_MASK : (bytes + 31) / 32 * 32 + 32;
}

static uint64_t number(const void *handle) {
	return (uint64_t)(uintptr_t)handle;
}

aclError hook_aclrtMalloc(fn_aclrtMalloc real, void **devPtr, size_t size,
			  aclrtMemMallocPolicy policy) {
	struct charge charge;
	if (!charge_here(&charge, padded(size))) {
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	}
	const aclError result = real(devPtr, size, policy);
	charge_end(&charge, result, RECORD_ADDRESS, result == ACL_SUCCESS ? number(*devPtr) : 0);
	return result;
}

aclError hook_aclrtMallocWithCfg(fn_aclrtMallocWithCfg real, void **devPtr, size_t size,
				 aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
	struct charge charge;
	if (!charge_here(&charge, padded(size))) {
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	}
	const aclError result = real(devPtr, size, policy, cfg);
	charge_end(&charge, result, RECORD_ADDRESS, result == ACL_SUCCESS ? number(*devPtr) : 0);
	return result;
}

aclError hook_aclrtFree(fn_aclrtFree real, void *devPtr) {
	struct record record;
	const bool known = charge_lift(RECORD_ADDRESS, number(devPtr), &record);
	const aclError result = real(devPtr);
	if (known) {
		charge_drop(&record, result);
	}
	return result;
}

aclError hook_aclrtMallocPhysical(fn_aclrtMallocPhysical real, aclrtDrvMemHandle *handle,
				  size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
	const bool on_card = prop != NULL && prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
	struct charge charge;
	if (!charge_on(&charge, on_card ? card_of_device((int)prop->location.id) : CARD_NONE, size)) {
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	}
	const aclError result = real(handle, size, prop, flags);
	if (result == ACL_SUCCESS) {
		objects_add(&charge, number(*handle), size);
	} else if (charge.card >= 0) {
		quota_release(charge.card, charge.bytes);
	}
	return result;
}

aclError hook_aclrtFreePhysical(fn_aclrtFreePhysical real, aclrtDrvMemHandle handle) {
	struct record lifted;
	const bool known = objects_lift(RECORD_HANDLE, number(handle), &lifted);
	const aclError result = real(handle);
	if (known) {
		objects_drop(&lifted, result);
	}
	return result;
}

aclError hook_aclrtMapMem(fn_aclrtMapMem real, void *virPtr, size_t size, size_t offset,
			  aclrtDrvMemHandle handle, uint64_t flags) {
	const struct hold hold = {.kind = RECORD_MAPPING, .key = number(virPtr), .bytes = size};
	const aclError result = real(virPtr, size, offset, handle, flags);
	if (result == ACL_SUCCESS) {
		objects_hold(RECORD_HANDLE, number(handle), &hold);
	}
	return result;
}

aclError hook_aclrtUnmapMem(fn_aclrtUnmapMem real, void *virPtr) {
	struct record lifted;
	const bool known = objects_lift(RECORD_MAPPING, number(virPtr), &lifted);
	const aclError result = real(virPtr);
	if (known) {
		objects_drop(&lifted, result);
	}
	return result;
}

aclError hook_aclrtGetMemInfo(fn_aclrtGetMemInfo real, aclrtMemAttr attr, size_t *free,
			      size_t *total) {
	size_t real_free = 0;
	size_t real_total = 0;
	const aclError result =
		real(attr, free != NULL ? &real_free : NULL, total != NULL ? &real_total : NULL);
	if (result != ACL_SUCCESS) {
		return result;
	}
	const struct report report =
		report_memory(card_here(), total != NULL ? real_total : UINT64_MAX,
			      free != NULL ? real_free : UINT64_MAX);
	if (free != NULL) {
		*free = report.free;
	}
	if (total != NULL) {
		*total = report.total;
	}
	return result;
}

aclError hook_aclrtResetDevice(fn_aclrtResetDevice real, int32_t deviceId) {
	const aclError result = real(deviceId);
	if (result == ACL_SUCCESS) {
		charge_end_context((uint64_t)deviceId + 1);
	}
	return result;
}
