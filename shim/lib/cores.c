/* Bucket: refilled with cores/100 of the time that passes, by whoever comes by. Each launch takes an
 * estimate, blocks x the measured time of a block. Every 100 ms one of those who launch asks NVML
 * how long the container's processes were busy, gives the estimates of that time back and takes what
 * was measured: so over time exactly the share is used, however wrong the estimates are. There is no
 * thread, and nothing to do while nobody launches. */
#define _GNU_SOURCE
#include "cores.h"

#include "card.h"
#include "clock.h"
#include "nvml.h"
#include "timing.h"

#define SECOND_US UINT64_C(1000000)
#define SAMPLE_EVERY_NS UINT64_C(100000000)
#define REFILL_EVERY_NS UINT64_C(200000)
#define MOST_SAVED_NS INT64_C(200000000) /* GPU time that can be saved up while idle */
#define QUEUE_MOST_NS UINT64_C(250000000) /* that a launch may wait in its stream */
#define TIMED_EVERY_NS UINT64_C(50000000)
#define BLOCK 1024u /* parts in which remembered blocks are counted */
#define STARVED_NS UINT64_C(30000000000)
#define REMEMBERED_NS UINT64_C(1000000000) /* measured time that an estimate rests on */
#define MOST_OWED_NS INT64_C(-600000000000)
#define MOST_COST_NS UINT64_C(60000000000) /* of one launch, by estimate */
#define PAUSE_LEAST_NS UINT64_C(100000)
#define PAUSE_BEHIND_NS UINT64_C(1000000)
#define PAUSE_MOST_NS UINT64_C(5000000)
#define CONTENDED_FOR_NS UINT64_C(3000000000) /* after another container was last seen busy */
#define AHEAD_NS UINT64_C(1000000000) /* what is further ahead is of before the node restarted */

static struct region_card *card_at(int card) {
	return &slice.region->cards[card];
}

/* A time of the region, or 0 if it can't be of this boot of the node: the file may outlive it. Others may
 * be a little ahead of *now*. */
static uint64_t this_boot(uint64_t then, uint64_t now) {
	return then > now + AHEAD_NS ? 0 : then;
}

static void add_tokens(struct region_card *card, int64_t ns) {
	int64_t now = atomic_load(&card->tokens);
	int64_t next;
	do {
		next = now + ns;
		next = next > MOST_SAVED_NS ? MOST_SAVED_NS : next;
		next = next < MOST_OWED_NS ? MOST_OWED_NS : next;
	} while (!atomic_compare_exchange_weak(&card->tokens, &now, next));
}

static void refill(struct region_card *card, uint64_t now, uint32_t cores) {
	uint64_t last = atomic_load(&card->refill_ns);
	const uint64_t since = this_boot(last, now);
	if (now < since + REFILL_EVERY_NS ||
	    !atomic_compare_exchange_strong(&card->refill_ns, &last, now)) {
		return;
	}
	const uint64_t passed = since == 0 ? REFILL_EVERY_NS : now - since;
	const uint64_t most = UINT64_C(600000000000);
	add_tokens(card, (int64_t)((passed < most ? passed : most) / 100 * cores));
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
	uint32_t high = atomic_load(&slice.region->control.slots_high);
	high = high > REGION_SLOTS ? REGION_SLOTS : high;
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

/* Keeps the estimate of a block near what is measured. A launch may wait in its stream, so time comes
 * later than its blocks: both fade together, by the time measured and not by samples. */
static void learn_cost(struct region_card *card, uint64_t measured_ns, uint64_t blocks) {
	uint64_t time = atomic_load(&card->recent_ns) + measured_ns;
	uint64_t count = atomic_load(&card->recent_blocks) + blocks * BLOCK;
	while (time > REMEMBERED_NS) {
		time /= 2;
		count /= 2;
	}
	atomic_store(&card->recent_ns, time);
	atomic_store(&card->recent_blocks, count);
	if (count != 0 && time != 0) {
		const uint64_t cost = (uint64_t)((double)time * 1024 * BLOCK / (double)count);
		atomic_store(&card->cost, cost != 0 ? cost : 1);
	}
}

/* What was measured takes the place of what was thought. */
static void correct(struct region_card *card, uint64_t measured_ns) {
	const uint64_t thought = atomic_exchange(&card->spent_ns, 0);
	const uint64_t blocks = atomic_exchange(&card->blocks, 0);
	add_tokens(card, (int64_t)thought - (int64_t)measured_ns);
	atomic_fetch_add(&card->busy_ns, measured_ns);
	learn_cost(card, measured_ns, blocks);
}

/* Whether NVML tells nothing of the card, so that only timed launches teach what they cost. */
static bool is_untold(int card) {
	return (atomic_load_explicit(&slice_process()->untold, memory_order_relaxed) >> card & 1) != 0;
}

void cores_learn(int card, uint64_t ns, uint64_t blocks) {
	if (is_untold(card) || atomic_load(&card_at(card)->cost) == 0) {
		learn_cost(card_at(card), ns, blocks);
	}
}

/* Nobody tells how busy the card is: what launches cost by their own time is all that counts. */
static void trust_timing(int number) {
	struct region_card *card = card_at(number);
	atomic_fetch_or(&slice_process()->untold, 1u << number);
	atomic_fetch_add(&card->busy_ns, atomic_exchange(&card->spent_ns, 0));
	atomic_store(&card->blocks, 0);
}

/* GPU ns of the container since the last look. NVML speaks of the last second: of a longer time, in which
 * nobody launched, no more is believed than was thought to run, twice over, so that long kernels are
 * found out and idle time isn't taken for busy. */
static uint64_t busy_ns(struct region_card *card, const struct nvml_busy *busy) {
	const uint64_t whole = busy->passed_us * 10 * busy->percent;
	if (busy->passed_us <= SECOND_US || atomic_load(&card->cost) == 0) {
		return whole;
	}
	const uint64_t second = SECOND_US * 10 * busy->percent;
	const uint64_t thought = 2 * atomic_load(&card->spent_ns);
	const uint64_t most = thought > second ? thought : second;
	return whole < most ? whole : most;
}

/* Measures by process; or, where the card or the pids don't allow that, by card. */
static void measure(int number, uint64_t now) {
	struct region_card *card = card_at(number);
	char uuid[64];
	uint32_t pids[REGION_SLOTS];
	uint32_t count;
	struct nvml_busy busy;
	card_uuid(number, uuid);
	const uint64_t seen = atomic_load(&card->seen_us);
	const uint64_t before = this_boot(atomic_exchange(&card->looked_ns, now), now);
	const uint64_t looked = before < now ? before : now;
	if (own_pids(pids, &count) && nvml_read_busy(uuid, pids, count, seen, &busy)) {
		if (busy.others) {
			atomic_store(&card->contended_ns, now);
		}
		if (busy.newest_us > seen) {
			atomic_store(&card->seen_us, busy.newest_us);
			correct(card, busy_ns(card, &busy));
		}
		return;
	}
	const int rate = nvml_read_rate(uuid);
	if (rate < 0) {
		trust_timing(number);
	} else if (looked != 0) {
		correct(card, (now - looked) / 100 * (uint64_t)(rate > 100 ? 100 : rate));
	}
}

static void measure_if_due(int card, uint64_t now) {
	_Atomic uint64_t *due = &card_at(card)->sample_ns;
	uint64_t at = atomic_load_explicit(due, memory_order_relaxed);
	if (now >= this_boot(at, now) && atomic_compare_exchange_strong(due, &at, now + SAMPLE_EVERY_NS)) {
		measure(card, now);
	}
}

/* What was used while no limit held isn't owed afterwards. */
static void forgive(struct region_card *card) {
	int64_t tokens = atomic_load(&card->tokens);
	while (tokens < 0 && !atomic_compare_exchange_weak(&card->tokens, &tokens, 0)) {
	}
}

/* Whether the limit holds at this time; *cores* is the limit. */
static bool holds(int card, uint64_t now, uint32_t *cores) {
	const struct region_limits *limits = slice_limits();
	*cores = limits != NULL ? __atomic_load_n(&limits->devices[card].cores, __ATOMIC_RELAXED) : 0;
	if (*cores == 0 || *cores >= 100 || limits->policy == REGION_CORES_NEVER) {
		return false;
	}
	refill(card_at(card), now, *cores);
	measure_if_due(card, now);
	const uint64_t seen = this_boot(atomic_load(&card_at(card)->contended_ns), now);
	if (limits->policy == REGION_CORES_ALWAYS || (seen != 0 && now < seen + CONTENDED_FOR_NS)) {
		return true;
	}
	forgive(card_at(card));
	return false;
}

/* Whether launches pile up in a stream: one that was timed isn't done after some time, or it is the
 * very first, and nothing is known yet of what launches cost. */
static bool is_behind(int card, uint64_t now) {
	const struct timing *timing = &slice_process()->timing;
	if (!timing->pending) {
		return false;
	}
	timing_look();
	return timing->pending && timing->card == card &&
	       (atomic_load(&card_at(card)->cost) == 0 || now - timing->started > QUEUE_MOST_NS);
}

bool cores_want_timing(int card, uint64_t now) {
	const struct timing *timing = &slice_process()->timing;
	return !timing->pending && (is_untold(card) || atomic_load(&card_at(card)->cost) == 0 ||
				    now - timing->started > TIMED_EVERY_NS);
}

/* Time until the launch may go: 0 if now. */
static uint64_t remaining(int card, uint64_t now) {
	uint32_t cores;
	const uint64_t until = atomic_load(&slice.region->control.blocked_until);
	if (until > now) {
		return until - now;
	}
	if (!holds(card, now, &cores)) {
		return 0;
	}
	if (is_behind(card, now)) {
		return PAUSE_BEHIND_NS;
	}
	const int64_t tokens = atomic_load(&card_at(card)->tokens);
	return tokens > 0 ? 0 : (uint64_t)(-tokens) / cores * 100 + PAUSE_LEAST_NS;
}

static void pay(struct region_card *card, uint64_t blocks) {
	const uint64_t cost = atomic_load_explicit(&card->cost, memory_order_relaxed);
	uint64_t price;
	if (__builtin_mul_overflow(blocks, cost, &price) || price / 1024 > MOST_COST_NS) {
		price = MOST_COST_NS * 1024;
	}
	atomic_fetch_sub(&card->tokens, (int64_t)(price / 1024));
	atomic_fetch_add(&card->spent_ns, price / 1024);
	atomic_fetch_add(&card->blocks, blocks);
}

/* A wait that began at some time with so much owed. */
struct patience {
	uint64_t since;
	int64_t tokens;
};

/* Whether waiting makes nothing better: a kernel that runs all the time may itself wait for this
 * launch. Then it goes, one every STARVED_NS, and the debt stays. */
static bool is_starved(struct patience *patience, int card, uint64_t now) {
	const int64_t tokens = atomic_load(&card_at(card)->tokens);
	if (now - patience->since < STARVED_NS || atomic_load(&slice.region->control.blocked_until) > now) {
		return false;
	}
	const bool starved = tokens <= patience->tokens;
	*patience = (struct patience){now, tokens};
	return starved;
}

uint64_t cores_wait(int card, uint64_t blocks) {
	const uint64_t came = clock_ns();
	struct patience patience = {came, atomic_load(&card_at(card)->tokens)};
	uint64_t now = came;
	for (uint64_t wait; (wait = remaining(card, now)) != 0; now = clock_ns()) {
		if (is_starved(&patience, card, now)) {
			break;
		}
		wait = wait < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : wait;
		clock_sleep_ns(wait > PAUSE_MOST_NS ? PAUSE_MOST_NS : wait);
	}
	if (now != came) {
		atomic_fetch_add(&card_at(card)->throttled_ns, now - came);
	}
	pay(card_at(card), blocks);
	return now;
}
