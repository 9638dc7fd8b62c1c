/* NVML: cutting cards in MIG mode. Which instances a model has and where they may lie, making and ending them.
 *
 * As NVIDIA's guide tells of A100 and H100: seven compute slices, eight memory slices, the places of each profile
 * fixed. A GPU instance whose place overlaps another's is refused; one with a compute instance in it, and a
 * compute instance that a program uses, can't be ended. An instance of the same place has the same numbers and
 * UUID each time. Not modelled: compute instances smaller than their GPU instance.
 */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

#define PROFILES 18 /* NVML's numbers of GPU instance profiles end before this */
#define PLACES 7
#define MADE (STUB_MIGS - 1) /* as many as a card may have */

struct profile {
	int number; /* NVML_GPU_INSTANCE_PROFILE_... */
	unsigned int id;
	const char *name;
	unsigned int slices, most, sms, size; /* size: memory slices */
	unsigned long long memory_mib;
	int starts[PLACES + 1]; /* ended by -1 */
};

/* As `nvidia-smi mig -lgip` and `-lgipp` list them. */
static const struct profile a100_80[] = {
	{0, 19, "1g.10gb", 1, 7, 14, 1, 9728, {0, 1, 2, 3, 4, 5, 6, -1}},
	{7, 20, "1g.10gb+me", 1, 1, 14, 1, 9728, {0, 1, 2, 3, 4, 5, 6, -1}},
	{9, 15, "1g.20gb", 1, 4, 14, 2, 19968, {0, 2, 4, 6, -1}},
	{1, 14, "2g.20gb", 2, 3, 28, 2, 19968, {0, 2, 4, -1}},
	{2, 9, "3g.40gb", 3, 2, 42, 4, 40192, {0, 4, -1}},
	{3, 5, "4g.40gb", 4, 1, 56, 4, 40192, {0, -1}},
	{4, 0, "7g.80gb", 7, 1, 98, 8, 80896, {0, -1}},
	{.name = NULL},
};

static const struct profile a100_40[] = {
	{0, 19, "1g.5gb", 1, 7, 14, 1, 4864, {0, 1, 2, 3, 4, 5, 6, -1}},
	{7, 20, "1g.5gb+me", 1, 1, 14, 1, 4864, {0, 1, 2, 3, 4, 5, 6, -1}},
	{9, 15, "1g.10gb", 1, 4, 14, 2, 9856, {0, 2, 4, 6, -1}},
	{1, 14, "2g.10gb", 2, 3, 28, 2, 9856, {0, 2, 4, -1}},
	{2, 9, "3g.20gb", 3, 2, 42, 4, 19968, {0, 4, -1}},
	{3, 5, "4g.20gb", 4, 1, 56, 4, 19968, {0, -1}},
	{4, 0, "7g.40gb", 7, 1, 98, 8, 40192, {0, -1}},
	{.name = NULL},
};

static const struct profile h100_80[] = {
	{0, 19, "1g.10gb", 1, 7, 16, 1, 9856, {0, 1, 2, 3, 4, 5, 6, -1}},
	{7, 20, "1g.10gb+me", 1, 1, 16, 1, 9856, {0, 1, 2, 3, 4, 5, 6, -1}},
	{9, 15, "1g.20gb", 1, 4, 26, 2, 20096, {0, 2, 4, 6, -1}},
	{1, 14, "2g.20gb", 2, 3, 32, 2, 20096, {0, 2, 4, -1}},
	{2, 9, "3g.40gb", 3, 2, 60, 4, 40448, {0, 4, -1}},
	{3, 5, "4g.40gb", 4, 1, 64, 4, 40448, {0, -1}},
	{4, 0, "7g.80gb", 7, 1, 132, 8, 81152, {0, -1}},
	{.name = NULL},
};

static const unsigned int compute_slices[] = {1, 2, 3, 4, 7, 8, 6};

struct placement {
	unsigned int start, size;
};

struct profile_info {
	unsigned int version, id, p2p, slices, most, sms, copy, decoders, encoders, jpeg, ofa;
	unsigned long long memory_mib;
	char name[96];
};

struct compute_profile_info {
	unsigned int version, id, slices, most, sms, copy, decoders, encoders, jpeg, ofa;
	char name[96];
};

/* A GPU instance, or the compute instance in it. */
struct nvml_instance {
	int card, at;
};

struct instance_info {
	struct nvml_device *device;
	unsigned int id, profile;
	struct placement place;
};

struct compute_info {
	struct nvml_device *device;
	struct nvml_instance *whole;
	unsigned int id, profile;
	struct placement place;
};

static struct nvml_instance wholes[STUB_CARDS][STUB_MIGS], computes[STUB_CARDS][STUB_MIGS];

static struct nvml_instance *handle(struct nvml_instance table[STUB_CARDS][STUB_MIGS], int card, int at) {
	table[card][at] = (struct nvml_instance){card, at};
	return &table[card][at];
}

static const struct profile *profiles_of(const struct stub_card *card) {
	if (strstr(card->name, "H100") != NULL) {
		return h100_80;
	}
	return strstr(card->name, "40GB") != NULL ? a100_40 : a100_80;
}

static const struct profile *by_id(const struct stub_card *card, unsigned int id) {
	for (const struct profile *p = profiles_of(card); p->name != NULL; p++) {
		if (p->id == id) {
			return p;
		}
	}
	return NULL;
}

static int may_lie(const struct profile *profile, struct placement place) {
	for (int i = 0; profile->starts[i] >= 0; i++) {
		if ((unsigned int)profile->starts[i] == place.start && place.size == profile->size) {
			return 1;
		}
	}
	return 0;
}

/* Whether `profile` may be made at `place` beside what is there. */
static int has_room(const struct stub_card *card, const struct profile *profile, struct placement place) {
	unsigned int same = 0;
	for (int at = 0; at < MADE; at++) {
		const struct stub_mig *mig = &card->migs[at];
		if (mig->size == 0) {
			continue;
		}
		if (mig->start < place.start + place.size && place.start < mig->start + mig->size) {
			return 0;
		}
		same += mig->profile == profile->id;
	}
	return same < profile->most;
}

/* Numbers go from the largest to the smallest places, as the driver gives them. */
static unsigned int number_of(struct placement place) {
	return place.size == 8 ? 0 : (place.size == 4 ? 1 : place.size == 2 ? 3 : 7) + place.start / place.size;
}

/* The card when it is one in MIG mode and `device` is the card itself. */
#define CARD_IN_MIG_MODE(device, name)                                      \
	NVML_REACH(device, state);                                          \
	struct stub_card *name = &state->card[(device)->card];              \
	if ((device)->mig >= 0 || name->mig_mode < 0) {                     \
		return NVML_NOT_SUPPORTED;                                  \
	}

NVML_API nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, unsigned int number, struct profile_info *out) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	NVML_NEED(out != NULL && number < PROFILES);
	if (out->version != (sizeof *out | 2u << 24)) {
		return NVML_VERSION_MISMATCH;
	}
	for (const struct profile *p = profiles_of(card); p->name != NULL; p++) {
		if (p->number == (int)number) {
			*out = (struct profile_info){
				.version = out->version, .id = p->id, .slices = p->slices, .most = p->most,
				.sms = p->sms, .copy = p->slices, .memory_mib = p->memory_mib,
			};
			snprintf(out->name, sizeof out->name, "MIG %s", p->name);
			return NVML_OK;
		}
	}
	return NVML_NOT_SUPPORTED;
}

NVML_API nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, unsigned int id,
                                                       struct placement *out, unsigned int *count) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	const struct profile *profile = by_id(card, id);
	NVML_NEED(profile != NULL && count != NULL);
	for (*count = 0; profile->starts[*count] >= 0; ++*count) {
		if (out != NULL) {
			out[*count] = (struct placement){(unsigned int)profile->starts[*count], profile->size};
		}
	}
	return NVML_OK;
}

NVML_API nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, unsigned int id, unsigned int *out) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	const struct profile *profile = by_id(card, id);
	NVML_NEED(profile != NULL && out != NULL);
	*out = 0;
	for (int i = 0; profile->starts[i] >= 0; i++) {
		*out += has_room(card, profile, (struct placement){(unsigned int)profile->starts[i], profile->size}) != 0;
	}
	return NVML_OK;
}

NVML_API nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, unsigned int id,
                                                  const struct placement *place, struct nvml_instance **out) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	const struct profile *profile = by_id(card, id);
	NVML_NEED(profile != NULL && place != NULL && out != NULL && may_lie(profile, *place));
	if (card->mig_mode != 1) {
		return NVML_NOT_SUPPORTED;
	}
	int rc = NVML_INSUFFICIENT_RESOURCES;
	stub_lock(state);
	for (int at = 0; at < MADE && has_room(card, profile, *place); at++) {
		if (card->migs[at].size == 0 && card->migs[at].uuid[0] == '\0') {
			card->migs[at] = (struct stub_mig){
				.memory_bytes = profile->memory_mib << 20, .gpu_instance = number_of(*place),
				.profile = id, .start = place->start, .size = place->size,
			};
			*out = handle(wholes, device->card, at);
			rc = NVML_OK;
			break;
		}
	}
	stub_unlock(state);
	return rc;
}

NVML_API nvmlDeviceGetGpuInstances(struct nvml_device *device, unsigned int id, struct nvml_instance **out,
                                   unsigned int *count) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	NVML_NEED(by_id(card, id) != NULL && out != NULL && count != NULL);
	*count = 0;
	for (int at = 0; at < MADE; at++) {
		if (card->migs[at].size != 0 && card->migs[at].profile == id) {
			out[(*count)++] = handle(wholes, device->card, at);
		}
	}
	return NVML_OK;
}

NVML_API nvmlDeviceGetGpuInstanceById(struct nvml_device *device, unsigned int id, struct nvml_instance **out) {
	STUB_ENTER();
	CARD_IN_MIG_MODE(device, card);
	NVML_NEED(out != NULL);
	for (int at = 0; at < MADE; at++) {
		if (card->migs[at].size != 0 && card->migs[at].gpu_instance == id) {
			*out = handle(wholes, device->card, at);
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

/* The instance that `whole` is a handle of, while it is there. */
static int reach(const struct nvml_instance *whole, struct stub_state **state, struct stub_mig **mig) {
	*state = nvml_state();
	if (*state == NULL) {
		return NVML_UNINITIALIZED;
	}
	NVML_NEED(whole != NULL);
	*mig = &(*state)->card[whole->card].migs[whole->at];
	return (*mig)->size == 0 ? NVML_INVALID_ARGUMENT : NVML_OK;
}

#define INSTANCE(whole)                             \
	struct stub_state *state;                   \
	struct stub_mig *mig;                       \
	do {                                        \
		int rc_ = reach(whole, &state, &mig); \
		if (rc_ != NVML_OK) {               \
			return rc_;                 \
		}                                   \
	} while (0)

NVML_API nvmlGpuInstanceGetInfo(struct nvml_instance *whole, struct instance_info *out) {
	STUB_ENTER();
	INSTANCE(whole);
	NVML_NEED(out != NULL);
	*out = (struct instance_info){
		nvml_handle(whole->card, -1), mig->gpu_instance, mig->profile, {mig->start, mig->size}};
	return NVML_OK;
}

NVML_API nvmlGpuInstanceDestroy(struct nvml_instance *whole) {
	STUB_ENTER();
	INSTANCE(whole);
	if (mig->uuid[0] != '\0') {
		return NVML_IN_USE;
	}
	stub_lock(state);
	*mig = (struct stub_mig){.size = 0};
	stub_unlock(state);
	return NVML_OK;
}

NVML_API nvmlGpuInstanceGetComputeInstanceProfileInfoV(struct nvml_instance *whole, unsigned int number,
                                                       unsigned int engines, struct compute_profile_info *out) {
	STUB_ENTER();
	INSTANCE(whole);
	NVML_NEED(out != NULL && engines == 0);
	if (out->version != (sizeof *out | 2u << 24)) {
		return NVML_VERSION_MISMATCH;
	}
	const struct profile *profile = by_id(&state->card[whole->card], mig->profile);
	if (number >= sizeof compute_slices / sizeof compute_slices[0] || compute_slices[number] != profile->slices) {
		return NVML_NOT_SUPPORTED;
	}
	*out = (struct compute_profile_info){
		.version = out->version, .id = number, .slices = profile->slices, .most = 1, .sms = profile->sms};
	snprintf(out->name, sizeof out->name, "MIG %s", profile->name);
	return NVML_OK;
}

NVML_API nvmlGpuInstanceCreateComputeInstance(struct nvml_instance *whole, unsigned int id, struct nvml_instance **out) {
	STUB_ENTER();
	INSTANCE(whole);
	const struct stub_card *card = &state->card[whole->card];
	const struct profile *profile = by_id(card, mig->profile);
	NVML_NEED(out != NULL && id < sizeof compute_slices / sizeof compute_slices[0]);
	if (mig->uuid[0] != '\0' || compute_slices[id] > profile->slices) {
		return NVML_INSUFFICIENT_RESOURCES;
	}
	NVML_NEED(compute_slices[id] == profile->slices);
	char name[sizeof mig->name], uuid[sizeof mig->uuid];
	snprintf(name, sizeof name, "%.40s MIG %.16s", card->name, profile->name);
	snprintf(uuid, sizeof uuid, "MIG-%.8s-%04x-5000-8000-%012x", card->uuid + 4, mig->gpu_instance, 0);
	stub_lock(state);
	memcpy(mig->name, name, sizeof name);
	memcpy(mig->uuid, uuid, sizeof uuid);
	stub_unlock(state);
	*out = handle(computes, whole->card, whole->at);
	return NVML_OK;
}

NVML_API nvmlGpuInstanceGetComputeInstances(struct nvml_instance *whole, unsigned int id, struct nvml_instance **out,
                                            unsigned int *count) {
	STUB_ENTER();
	INSTANCE(whole);
	NVML_NEED(out != NULL && count != NULL && id < sizeof compute_slices / sizeof compute_slices[0]);
	*count = mig->uuid[0] != '\0';
	if (*count) {
		out[0] = handle(computes, whole->card, whole->at);
	}
	return NVML_OK;
}

NVML_API nvmlGpuInstanceGetComputeInstanceById(struct nvml_instance *whole, unsigned int id, struct nvml_instance **out) {
	STUB_ENTER();
	INSTANCE(whole);
	NVML_NEED(out != NULL);
	if (mig->uuid[0] == '\0' || id != mig->compute_instance) {
		return NVML_NOT_FOUND;
	}
	*out = handle(computes, whole->card, whole->at);
	return NVML_OK;
}

NVML_API nvmlComputeInstanceGetInfo_v2(struct nvml_instance *compute, struct compute_info *out) {
	STUB_ENTER();
	INSTANCE(compute);
	NVML_NEED(out != NULL && mig->uuid[0] != '\0');
	const struct profile *profile = by_id(&state->card[compute->card], mig->profile);
	*out = (struct compute_info){
		nvml_handle(compute->card, -1), handle(wholes, compute->card, compute->at), mig->compute_instance, 0,
		{0, profile->slices}};
	return NVML_OK;
}

NVML_API nvmlComputeInstanceDestroy(struct nvml_instance *compute) {
	STUB_ENTER();
	INSTANCE(compute);
	NVML_NEED(mig->uuid[0] != '\0');
	if (mig->users != 0) {
		return NVML_IN_USE;
	}
	stub_lock(state);
	mig->uuid[0] = mig->name[0] = '\0';
	stub_unlock(state);
	return NVML_OK;
}
