/* NVML gives a sample by process, of the last second at most, with a stamp of the wall clock; where the card
 * or the pids don't allow that, one of the whole card. */
#define _GNU_SOURCE
#include "measure.h"

#include "card.h"
#include "clock.h"
#include "nvml.h"
#include "slice.h"
#include "timing.h"

#define SECOND_US UINT64_C(1000000)
#define QUIET_NS UINT64_C(2000000000) /* a sample, and as long again until NVML tells of it */

static uint32_t slots_high(void) {
	const uint32_t high = atomic_load(&slice.region->control.slots_high);
	return high > REGION_SLOTS ? REGION_SLOTS : high;
}

/* A process that has a private copy of the driver has two slots. */
static void add_pid(uint32_t *pids, uint32_t *count, uint32_t pid) {
	for (uint32_t i = 0; i < *count; i++) {
		if (pids[i] == pid) {
			return;
		}
	}
	pids[(*count)++] = pid;
}

/* The pids of the container as NVML names them. Returns false if one isn't known. */
static bool own_pids(uint32_t pids[REGION_SLOTS], uint32_t *count) {
	const uint32_t high = slots_high();
	bool complete = true;
	*count = 0;
	for (uint32_t i = 0; i < high; i++) {
		const struct region_slot *slot = &slice.region->slots[i];
		const uint32_t pid = atomic_load(&slot->host_pid);
		if (pid != 0) {
			add_pid(pids, count, pid);
		} else if (atomic_load(&slot->pid) != 0 && atomic_load(&slot->launched_ns) != 0) {
			complete = false;
		}
	}
	return complete;
}

/* Whether nobody of the container launched for so long that what NVML saw last was launched before. */
static bool is_quiet(uint64_t now) {
	const uint32_t high = slots_high();
	for (uint32_t i = 0; i < high; i++) {
		const uint64_t at =
			clock_this_boot(atomic_load(&slice.region->slots[i].launched_ns), now);
		if (at + QUIET_NS > now) {
			return false;
		}
	}
	return true;
}

/* What is believed of a time longer than a sample, in which nobody looked: that it was as the sample says
 * if what ran then had been launched before it; else no more than was thought to run, twice over, so that
 * long kernels are found out and idle time isn't taken for busy. A launch whose own time was taken ran
 * that long, if nobody else was there. */
static uint64_t long_busy_ns(const struct region_card *card, const struct nvml_busy *busy,
			     uint64_t timed_ns, uint64_t now) {
	const uint64_t whole = busy->passed_us * 10 * busy->percent;
	const uint64_t second = SECOND_US * 10 * busy->percent;
	const uint64_t thought = 2 * atomic_load(&card->spent_ns);
	const uint64_t most = thought > second ? thought : second;
	const bool holds = whole < most || atomic_load(&card->cost) == 0 || is_quiet(now);
	const uint64_t told = holds ? whole : most;
	const uint64_t passed = busy->passed_us * 1000;
	const uint64_t least = timed_ns < passed ? timed_ns : passed;
	return told < least && !busy->others ? least : told;
}

static uint64_t busy_time(int number, const struct nvml_busy *busy, uint64_t now) {
	const uint64_t timed = atomic_exchange(&slice_process()->timing.took_ns[number], 0);
	return busy->passed_us <= SECOND_US ? busy->passed_us * 10 * busy->percent
					    : long_busy_ns(slice_card(number), busy, timed, now);
}

/* Reads the samples after the last one that was counted. If the wall clock was set back, none is ever
 * newer: that their stamps go on all the same, behind it, shows it. Returns false where the card or
 * the pids don't allow samples by process; *newest_us* is 0 if there is nothing new. */
static bool read_newer(int number, const char *uuid, uint64_t seen, struct nvml_busy *busy) {
	uint32_t pids[REGION_SLOTS];
	uint32_t count;
	_Atomic uint64_t *behind = &slice_process()->behind_us[number];
	if (!own_pids(pids, &count) || !nvml_read_busy(uuid, pids, count, seen, busy)) {
		return false;
	}
	if (busy->newest_us > seen) {
		atomic_store(behind, 0);
		return true;
	}
	if (!nvml_read_busy(uuid, pids, count, 0, busy)) {
		return false;
	}
	const uint64_t before = atomic_exchange(behind, busy->newest_us);
	if (before == 0 || busy->newest_us <= before) {
		*busy = (struct nvml_busy){0};
	}
	return true;
}

/* The time that a sample stands for, by the stamps; if they stepped with the wall clock, by ours. */
static uint64_t passed_us(uint64_t seen, uint64_t newest, uint64_t here) {
	if (seen == 0 || newest < seen) {
		return here;
	}
	return newest - seen > here + SECOND_US ? here + SECOND_US : newest - seen;
}

static enum measure by_card(int number, const char *uuid, uint64_t passed, uint64_t now,
			    uint64_t *busy_ns) {
	const int rate = nvml_read_rate(uuid);
	if (rate < 0) {
		return MEASURE_UNTOLD;
	}
	const struct nvml_busy busy = {.passed_us = passed,
				       .percent = rate > 100 ? 100 : (uint32_t)rate};
	*busy_ns = busy_time(number, &busy, now);
	return MEASURE_TOLD;
}

static enum measure by_process(int number, struct nvml_busy *busy, uint64_t passed, uint64_t now,
			       uint64_t *busy_ns) {
	struct region_card *card = slice_card(number);
	if (busy->others) {
		atomic_store(&card->contended_ns, now);
	}
	if (busy->newest_us == 0) {
		return MEASURE_NOTHING_NEW;
	}
	busy->passed_us = passed_us(atomic_load(&card->seen_us), busy->newest_us, passed);
	atomic_store(&card->seen_us, busy->newest_us);
	*busy_ns = busy_time(number, busy, now);
	return MEASURE_TOLD;
}

enum measure measure_busy(int number, uint64_t now, uint64_t *busy_ns) {
	struct region_card *card = slice_card(number);
	char uuid[64];
	struct nvml_busy busy;
	card_uuid(number, uuid);
	timing_look();
	const uint64_t looked = clock_this_boot(atomic_load(&card->looked_ns), now);
	const uint64_t passed = looked != 0 && looked < now ? (now - looked) / 1000 : 0;
	const enum measure told =
		read_newer(number, uuid, atomic_load(&card->seen_us), &busy)
			? by_process(number, &busy, passed, now, busy_ns)
			: by_card(number, uuid, passed, now, busy_ns);
	if (told != MEASURE_NOTHING_NEW || looked == 0) {
		atomic_store(&card->looked_ns, now);
	}
	return told;
}
