/* NVML: where cards sit, what links them, and their MIG instances. */
#include "nvml.h"

#include <string.h>

#define MOST_LINKS 18

NVML_API nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *one, struct nvml_device *other, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(other, unused);
	(void)unused;
	NVML_REACH(one, state);
	NVML_NEED(out != NULL);
	*out = one->card == other->card ? 0 : state->card[one->card].level[other->card];
	return NVML_OK;
}

NVML_API nvmlDeviceOnSameBoard(struct nvml_device *one, struct nvml_device *other, int *out) {
	STUB_ENTER();
	NVML_REACH(one, state);
	NVML_NEED(out != NULL && other != NULL);
	*out = one->card == other->card;
	return NVML_OK;
}

NVML_API nvmlDeviceGetP2PStatus(struct nvml_device *one, struct nvml_device *other, int kind, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(one, state);
	NVML_NEED(out != NULL && other != NULL);
	(void)kind;
	/* 0: both can; 4: no common root that would let them. */
	*out = state->card[one->card].level[other->card] < 40 ? 0 : 4;
	return NVML_OK;
}

/* The card at the other end of a link, or -1. Links are numbered through the cards in their order. */
static int peer_of(const struct stub_state *state, int card, unsigned int link) {
	unsigned int first = 0;
	for (uint32_t peer = 0; peer < state->cards; peer++) {
		first += state->card[card].links[peer];
		if (link < first) {
			return (int)peer;
		}
	}
	return -1;
}

NVML_API nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned int link, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && link < MOST_LINKS);
	if (peer_of(state, device->card, 0) < 0) {
		return NVML_NOT_SUPPORTED;
	}
	*out = peer_of(state, device->card, link) >= 0;
	return NVML_OK;
}

NVML_API nvmlDeviceGetNvLinkVersion(struct nvml_device *device, unsigned int link, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && link < MOST_LINKS);
	*out = 3;
	return peer_of(state, device->card, 0) < 0 ? NVML_NOT_SUPPORTED : NVML_OK;
}

NVML_API nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, unsigned int link, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && link < MOST_LINKS);
	*out = 0;
	return peer_of(state, device->card, link) < 0 ? NVML_NOT_SUPPORTED : NVML_OK;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *out);

NVML_API nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned int link, struct nvml_pci *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && link < MOST_LINKS);
	int peer = peer_of(state, device->card, link);
	return peer < 0 ? NVML_NOT_SUPPORTED : nvmlDeviceGetPciInfo_v3(nvml_handle(peer, -1), out);
}

NVML_API nvmlDeviceGetNumaNodeId(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	if (state->card[device->card].numa < 0) {
		return NVML_NOT_SUPPORTED;
	}
	*out = (unsigned int)state->card[device->card].numa;
	return NVML_OK;
}

NVML_API nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned int size, unsigned long *nodes, int scope) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(nodes != NULL && size > 0);
	(void)scope;
	if (state->card[device->card].numa < 0) {
		return NVML_NOT_SUPPORTED;
	}
	memset(nodes, 0, size * sizeof *nodes);
	nodes[0] = 1ul << state->card[device->card].numa;
	return NVML_OK;
}

NVML_API nvmlDeviceGetCpuAffinity(struct nvml_device *device, unsigned int size, unsigned long *cpus) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(cpus != NULL && size > 0);
	memset(cpus, 0, size * sizeof *cpus);
	cpus[0] = 0xfful << (8 * (state->card[device->card].numa < 0 ? 0 : state->card[device->card].numa));
	return NVML_OK;
}

NVML_API nvmlDeviceGetMigMode(struct nvml_device *device, unsigned int *current, unsigned int *pending) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(current != NULL && pending != NULL);
	if (state->card[device->card].mig_mode < 0) {
		return NVML_NOT_SUPPORTED;
	}
	*current = *pending = (unsigned int)state->card[device->card].mig_mode;
	return NVML_OK;
}

NVML_API nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = state->card[device->card].mig_mode < 0 ? 0 : STUB_MIGS - 1;
	return NVML_OK;
}

NVML_API nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned int index, struct nvml_device **out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && index < STUB_MIGS);
	if (state->card[device->card].mig_mode != 1 || state->card[device->card].migs[index].uuid[0] == '\0') {
		return NVML_NOT_FOUND;
	}
	*out = nvml_handle(device->card, (int)index);
	return NVML_OK;
}

NVML_API nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL);
	*out = device->mig >= 0;
	return NVML_OK;
}

NVML_API nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *device, struct nvml_device **out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && device->mig >= 0);
	*out = nvml_handle(device->card, -1);
	return NVML_OK;
}

NVML_API nvmlDeviceGetGpuInstanceId(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && device->mig >= 0);
	*out = state->card[device->card].migs[device->mig].gpu_instance;
	return NVML_OK;
}

NVML_API nvmlDeviceGetComputeInstanceId(struct nvml_device *device, unsigned int *out) {
	STUB_ENTER();
	NVML_REACH(device, state);
	NVML_NEED(out != NULL && device->mig >= 0);
	*out = state->card[device->card].migs[device->mig].compute_instance;
	return NVML_OK;
}
