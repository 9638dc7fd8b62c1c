/* Bucket: refilled with cores/100 of the time that passes, by whoever comes by. Each launch takes an
 * estimate, blocks x the measured time of a block. Every 100 ms one of those who launch asks NVML
 * how long the container's processes were busy, gives the estimates of that time back and takes what
 * was measured: so over time exactly the share is used, however wrong the estimates are. There is no
 * thread, and nothing to do while nobody launches. */
#define _GNU_SOURCE
#include "cores.h"

#include "clock.h"
#include "measure.h"
#include "timing.h"

#define SAMPLE_EVERY_NS UINT64_C(100000000)
#define REFILL_EVERY_NS UINT64_C(200000)
#define MOST_SAVED_NS INT64_C(200000000) /* GPU time that can be saved up while idle */
#define QUEUE_MOST_NS UINT64_C(250000000) /* that a launch may wait in its stream */
#define TIMED_EVERY_NS UINT64_C(50000000)
#define BLOCK 1024u /* parts in which remembered blocks are counted */
#define STARVED_NS UINT64_C(30000000000)
#define LOOK_BACK_NS UINT64_C(10000000000) /* over which who waits sees whether it gets better */
#define REMEMBERED_NS UINT64_C(1000000000) /* measured time that an estimate rests on */
#define MOST_OWED_NS INT64_C(-600000000000)
#define MOST_COST_NS UINT64_C(600000000000) /* of one launch, by estimate */
#define PAUSE_LEAST_NS UINT64_C(100000)
#define PAUSE_BEHIND_NS UINT64_C(1000000)
#define PAUSE_MOST_NS UINT64_C(5000000)
#define CONTENDED_FOR_NS UINT64_C(3000000000) /* after another container was last seen busy */

static int64_t within(int64_t tokens) {
	tokens = tokens > MOST_SAVED_NS ? MOST_SAVED_NS : tokens;
	return tokens < MOST_OWED_NS ? MOST_OWED_NS : tokens;
}

/* Whatever the region says, they are within what we would have written. */
static int64_t tokens_of(int card) {
	return within(atomic_load(&slice_card(card)->tokens));
}

static void add_tokens(struct region_card *card, int64_t ns) {
	int64_t now = atomic_load(&card->tokens);
	while (!atomic_compare_exchange_weak(&card->tokens, &now, within(within(now) + ns))) {
	}
}

static void refill(struct region_card *card, uint64_t now, uint32_t cores) {
	uint64_t last = atomic_load(&card->refill_ns);
	const uint64_t since = clock_this_boot(last, now);
	if (now < since + REFILL_EVERY_NS ||
	    !atomic_compare_exchange_strong(&card->refill_ns, &last, now)) {
		return;
	}
	const uint64_t passed = since == 0 ? REFILL_EVERY_NS : now - since;
	const uint64_t most = UINT64_C(600000000000);
	add_tokens(card, (int64_t)((passed < most ? passed : most) / 100 * cores));
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
	const uint64_t most = UINT64_C(1) << 62;
	const uint64_t spent = atomic_exchange(&card->spent_ns, 0);
	const uint64_t thought = spent < most ? spent : most;
	const uint64_t blocks = atomic_exchange(&card->blocks, 0);
	add_tokens(card, (int64_t)thought - (int64_t)(measured_ns < most ? measured_ns : most));
	atomic_fetch_add(&card->busy_ns, measured_ns);
	learn_cost(card, measured_ns, blocks);
}

/* Whether NVML tells nothing of the card, so that only timed launches teach what they cost. */
static bool is_untold(int card) {
	return (atomic_load_explicit(&slice_process()->untold, memory_order_relaxed) >> card & 1) != 0;
}

void cores_learn(int card, uint64_t ns, uint64_t blocks) {
	atomic_fetch_add(&slice_process()->timing.took_ns[card], ns);
	if (is_untold(card) || atomic_load(&slice_card(card)->cost) == 0) {
		learn_cost(slice_card(card), ns, blocks);
	}
}

/* Nobody tells how busy the card is: what launches cost by their own time is all that counts. */
static void trust_timing(int number) {
	struct region_card *card = slice_card(number);
	atomic_fetch_or(&slice_process()->untold, 1u << number);
	atomic_fetch_add(&card->busy_ns, atomic_exchange(&card->spent_ns, 0));
	atomic_store(&card->blocks, 0);
}

static void measure(int number, uint64_t now) {
	uint64_t busy_ns = 0;
	switch (measure_busy(number, now, &busy_ns)) {
	case MEASURE_UNTOLD:
		trust_timing(number);
		break;
	case MEASURE_TOLD:
		correct(slice_card(number), busy_ns);
		break;
	case MEASURE_NOTHING_NEW:
		break;
	}
}

static void measure_if_due(int card, uint64_t now) {
	_Atomic uint64_t *due = &slice_card(card)->sample_ns;
	uint64_t at = atomic_load_explicit(due, memory_order_relaxed);
	if (now >= clock_this_boot(at, now) && atomic_compare_exchange_strong(due, &at, now + SAMPLE_EVERY_NS)) {
		measure(card, now);
	}
}

/* What was used while no limit held isn't owed afterwards. */
static void forgive(struct region_card *card) {
	int64_t tokens = atomic_load(&card->tokens);
	while (tokens < 0 && !atomic_compare_exchange_weak(&card->tokens, &tokens, 0)) {
	}
}

/* How long launches are held by the agent's word. One that no agent of this clock would write isn't
 * believed; that one and one that has run out are taken away, so that launches don't look again. */
static uint64_t blocked_ns(uint64_t now) {
	struct region_control *control = &slice.region->control;
	uint64_t until = atomic_load(&control->blocked_until);
	if (until > now && until - now <= REGION_MOST_BLOCKED_NS) {
		return until - now;
	}
	if (until != 0 && atomic_compare_exchange_strong(&control->blocked_until, &until, 0) &&
	    until > now) {
		atomic_fetch_add(&control->disbelieved, 1);
	}
	return 0;
}

/* Percent of the card's time; 0 where there is no limit. */
static uint32_t cores_limit(int card) {
	const struct region_limits *limits = slice_limits();
	return limits != NULL ? __atomic_load_n(&limits->devices[card].cores, __ATOMIC_RELAXED) : 0;
}

bool cores_are_limited(void) {
	bool limited = false;
	for (int card = 0; card < REGION_DEVICES && !limited; card++) {
		const uint32_t cores = cores_limit(card);
		limited = cores != 0 && cores < 100;
	}
	return limited;
}

/* Whether the limit holds at this time. */
static bool holds(int card, uint64_t now) {
	const struct region_limits *limits = slice_limits();
	const uint32_t cores =
		limits != NULL ? __atomic_load_n(&limits->devices[card].cores, __ATOMIC_RELAXED) : 0;
	if (cores == 0 || cores >= 100 || limits->policy == REGION_CORES_NEVER) {
		return false;
	}
	refill(slice_card(card), now, cores);
	measure_if_due(card, now);
	const uint64_t seen = clock_this_boot(atomic_load(&slice_card(card)->contended_ns), now);
	if (limits->policy == REGION_CORES_ALWAYS || (seen != 0 && now < seen + CONTENDED_FOR_NS)) {
		return true;
	}
	forgive(slice_card(card));
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
	       (atomic_load(&slice_card(card)->cost) == 0 || now - timing->started > QUEUE_MOST_NS);
}

bool cores_want_timing(int card, uint64_t now) {
	const struct timing *timing = &slice_process()->timing;
	return !timing->pending && (is_untold(card) || atomic_load(&slice_card(card)->cost) == 0 ||
				    now - timing->started > TIMED_EVERY_NS);
}

/* Time until the launch may go: 0 if now. */
static uint64_t remaining(int card, uint64_t now) {
	const uint64_t blocked = blocked_ns(now);
	if (blocked != 0) {
		return blocked;
	}
	if (!holds(card, now)) {
		return 0;
	}
	if (is_behind(card, now)) {
		return PAUSE_BEHIND_NS;
	}
	const int64_t tokens = tokens_of(card);
	const uint32_t cores = cores_limit(card);
	return tokens > 0 || cores == 0 ? 0 : -(uint64_t)tokens / cores * 100 + PAUSE_LEAST_NS;
}

/* Takes what may be owed still; how much that was. What is taken can be given back to the last ns. */
static uint64_t take_tokens(struct region_card *card, uint64_t ns) {
	int64_t now = atomic_load(&card->tokens);
	uint64_t taken;
	do {
		const uint64_t most =
			now > MOST_OWED_NS ? (uint64_t)now - (uint64_t)MOST_OWED_NS : 0;
		taken = ns < most ? ns : most;
	} while (!atomic_compare_exchange_weak(&card->tokens, &now, now - (int64_t)taken));
	return taken;
}

static void pay(struct region_card *card, uint64_t blocks) {
	const uint64_t cost = atomic_load_explicit(&card->cost, memory_order_relaxed);
	uint64_t price;
	if (__builtin_mul_overflow(blocks, cost, &price) || price / 1024 > MOST_COST_NS) {
		price = MOST_COST_NS * 1024;
	}
	atomic_fetch_add(&card->spent_ns, take_tokens(card, price / 1024));
	atomic_fetch_add(&card->blocks, blocks);
}

/* A wait: since when nothing got better, and what was owed when that was last looked at. */
struct patience {
	uint64_t since;
	uint64_t looked;
	int64_t tokens;
};

/* Restarts the wait where less is owed than before: by half of what comes in while nothing runs, which a
 * card that is busy all the time never shows. */
static void look_back(struct patience *patience, int card, uint64_t now) {
	const int64_t tokens = tokens_of(card);
	const uint64_t passed = now - patience->looked;
	if (passed < LOOK_BACK_NS) {
		return;
	}
	if (tokens - patience->tokens > (int64_t)(passed / 200 * cores_limit(card))) {
		patience->since = now;
	}
	patience->looked = now;
	patience->tokens = tokens;
}

/* The time in which a card that is busy all the time comes to owe so much. */
static uint64_t owing_ns(int card, int64_t tokens) {
	const uint32_t cores = cores_limit(card);
	return tokens < 0 && cores < 100 ? -(uint64_t)tokens / (100 - cores) * 100 : 0;
}

/* Whether waiting makes nothing better: a kernel that runs all the time may itself wait for this
 * launch. Then one of the container goes. The debt stays, and the next goes when it has waited three times as
 * long as had been owed for before, so that kernels that are merely long don't fill the card. */
static bool is_starved(struct patience *patience, int card, uint64_t now) {
	_Atomic uint64_t *went = &slice_card(card)->starved_ns;
	const int64_t tokens = tokens_of(card);
	if (blocked_ns(now) != 0) {
		*patience = (struct patience){now, now, tokens};
		return false;
	}
	look_back(patience, card, now);
	uint64_t last = atomic_load(went);
	const uint64_t known = clock_this_boot(last, now);
	const uint64_t since = known > patience->since ? known : patience->since;
	const uint64_t most = owing_ns(card, tokens) / 4 * 3;
	return now > since + (most > STARVED_NS ? most : STARVED_NS) &&
	       atomic_compare_exchange_strong(went, &last, now);
}

uint64_t cores_wait(int card, uint64_t blocks) {
	const uint64_t came = clock_ns();
	struct patience patience = {came, came, tokens_of(card)};
	uint64_t now = came;
	for (uint64_t wait; (wait = remaining(card, now)) != 0; now = clock_ns()) {
		if (is_starved(&patience, card, now)) {
			break;
		}
		wait = wait < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : wait;
		clock_sleep_ns(wait > PAUSE_MOST_NS ? PAUSE_MOST_NS : wait);
	}
	if (now != came) {
		atomic_fetch_add(&slice_card(card)->throttled_ns, now - came);
	}
	pay(slice_card(card), blocks);
	return now;
}
