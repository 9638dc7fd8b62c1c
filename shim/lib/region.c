/* What a region is: made, and recognised. Opening and slots are in slice.c and slot.c. */
#define _GNU_SOURCE
#include "region.h"

#include <string.h>
#include <time.h>

static const uint32_t crc_nibbles[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t region_crc(const void *bytes, size_t size) {
	const uint8_t *at = bytes;
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < size; i++) {
		crc ^= at[i];
		crc = (crc >> 4) ^ crc_nibbles[crc & 15];
		crc = (crc >> 4) ^ crc_nibbles[crc & 15];
	}
	return ~crc;
}

static uint32_t header_crc(const struct region_header *header) {
	const size_t from = offsetof(struct region_header, size);
	return region_crc((const uint8_t *)header + from, sizeof(*header) - from);
}

static uint32_t limits_crc(const struct region_limits *limits) {
	const size_t from = offsetof(struct region_limits, generation);
	return region_crc((const uint8_t *)limits + from, sizeof(*limits) - from);
}

static const char *header_fault(const struct region_header *header, size_t size) {
	if (memcmp(header->magic, REGION_MAGIC, sizeof(header->magic)) != 0) {
		return "no region (magic)";
	}
	if (header->version != REGION_VERSION) {
		return "another version of the format";
	}
	if (header->crc != header_crc(header)) {
		return "header checksum does not match";
	}
	if (header->size != sizeof(struct region) || size < sizeof(struct region)) {
		return "file has another size";
	}
	if (header->device_count > REGION_DEVICES) {
		return "too many devices";
	}
	return NULL;
}

const char *region_limits_fault(const struct region_limits *limits) {
	if (limits->crc != limits_crc(limits)) {
		return "checksum of the limits does not match";
	}
	if (limits->policy > REGION_CORES_NEVER) {
		return "unknown core policy";
	}
	for (int i = 0; i < REGION_DEVICES; i++) {
		if (limits->devices[i].memory_limit > REGION_BYTES_MASK >> 1) {
			return "more memory than any card has";
		}
		if (limits->devices[i].cores > 100) {
			return "more than 100 % of a card";
		}
		if (memchr(limits->devices[i].uuid, 0, REGION_UUID_BYTES) == NULL) {
			return "a UUID without end";
		}
	}
	return NULL;
}

const char *region_fault(const void *bytes, size_t size) {
	if (size < sizeof(struct region_header)) {
		return "file is too short";
	}
	const struct region *region = bytes;
	const char *fault = header_fault(&region->header, size);
	if (fault != NULL) {
		return fault;
	}
	const uint32_t active = atomic_load_explicit(&region->control.active, memory_order_acquire);
	if (active > 1) {
		return "no such set of limits";
	}
	return region_limits_fault(&region->limits[active]);
}

static uint64_t realtime_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void region_format(struct region *region, const struct region_device *devices, uint32_t count,
		   uint32_t priority, uint32_t policy, uint32_t flags) {
	struct region_limits *limits = &region->limits[0];
	limits->generation = 1;
	limits->priority = priority;
	limits->policy = policy;
	memcpy(limits->devices, devices, count * sizeof(*devices));
	limits->crc = limits_crc(limits);
	struct region_header *header = &region->header;
	memcpy(header->magic, REGION_MAGIC, sizeof(header->magic));
	header->version = REGION_VERSION;
	header->size = sizeof(*region);
	header->device_count = count;
	header->flags = flags;
	header->created_ns = realtime_ns();
	header->crc = header_crc(header);
}
