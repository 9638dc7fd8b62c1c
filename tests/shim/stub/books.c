/* Who holds how much of which card, and when its kernels run. */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

/* How long a process may take from its last instruction until its locks are gone. */
#define DYING_MS 2000

/* Whether the container holds more than it may when all who are dying are dead. */
static int is_over(struct stub_state *state, const struct stub_container *container, int card) {
	uint64_t limit = container->limit_bytes[card];
	for (int waited = 0; limit != 0 && container->used_bytes[card] > limit; waited++) {
		struct timespec pause = {0, 1000000};
		stub_sweep(state);
		if (waited == DYING_MS) {
			return 1;
		}
		/* Past the C library: the time model may have put another clock there. */
		syscall(SYS_nanosleep, &pause, NULL);
	}
	return 0;
}

/* What the oracle is for: a container that holds more than its limit is written down, never forgotten. */
static void judge(struct stub_state *state, struct stub_container *container, int card) {
	if (is_over(state, container, card)) {
		uint64_t over = container->used_bytes[card] - container->limit_bytes[card];
		container->violations++;
		container->worst_bytes = over > container->worst_bytes ? over : container->worst_bytes;
	}
	if (container->used_bytes[card] > container->peak_bytes[card]) {
		container->peak_bytes[card] = container->used_bytes[card];
	}
}

static int is_full(const struct stub_card *card, uint64_t bytes) {
	uint64_t usable = card->memory_bytes - card->reserved_bytes;
	return bytes > usable || card->used_bytes > usable - bytes;
}

int stub_take(struct stub_state *state, int card, uint64_t bytes) {
	struct stub_slot *slot = stub_slot(state);
	struct stub_card *books = &state->card[card];
	if (slot == NULL) {
		return 0;
	}
	stub_lock(state);
	if (is_full(books, bytes)) {
		stub_sweep(state);
	}
	int taken = !is_full(books, bytes);
	if (taken) {
		struct stub_container *container = &state->container[slot->container];
		slot->used_bytes[card] += bytes;
		container->used_bytes[card] += bytes;
		books->used_bytes += bytes;
		books->peak_bytes = books->used_bytes > books->peak_bytes ? books->used_bytes : books->peak_bytes;
		judge(state, container, card);
	}
	stub_unlock(state);
	return taken;
}

void stub_give(struct stub_state *state, int card, uint64_t bytes) {
	struct stub_slot *slot = stub_slot(state);
	if (slot == NULL) {
		return;
	}
	stub_lock(state);
	slot->used_bytes[card] -= bytes;
	state->container[slot->container].used_bytes[card] -= bytes;
	state->card[card].used_bytes -= bytes;
	stub_unlock(state);
}

static struct stub_timeline *timeline_of(struct stub_state *state, int slot, int card) {
	struct stub_timeline *unused = NULL;
	for (int t = 0; t < STUB_TIMELINES; t++) {
		struct stub_timeline *line = &state->timeline[t];
		if (line->slot == slot + 1 && line->card == card) {
			return line;
		}
		if (line->slot == 0 && unused == NULL) {
			unused = line;
		}
	}
	if (unused != NULL) {
		unused->slot = slot + 1;
		unused->card = card;
	}
	return unused;
}

static void draw(struct stub_timeline *line, uint64_t from, uint64_t to) {
	for (uint64_t epoch = from / STUB_BUCKET_NS; epoch * STUB_BUCKET_NS < to; epoch++) {
		uint64_t begin = epoch * STUB_BUCKET_NS > from ? epoch * STUB_BUCKET_NS : from;
		uint64_t end = (epoch + 1) * STUB_BUCKET_NS < to ? (epoch + 1) * STUB_BUCKET_NS : to;
		if (line->buckets[epoch % STUB_BUCKETS].epoch != epoch) {
			line->buckets[epoch % STUB_BUCKETS].epoch = epoch;
			line->buckets[epoch % STUB_BUCKETS].busy_ns = 0;
		}
		line->buckets[epoch % STUB_BUCKETS].busy_ns += end - begin;
	}
}

uint64_t stub_occupy(struct stub_state *state, int card, uint64_t earliest, uint64_t duration) {
	struct stub_slot *slot = stub_slot(state);
	struct stub_card *books = &state->card[card];
	if (slot == NULL) {
		return earliest;
	}
	stub_lock(state);
	uint64_t start = earliest > books->free_at_ns ? earliest : books->free_at_ns;
	uint64_t end = start + duration;
	struct stub_timeline *line = timeline_of(state, (int)(slot - state->slot), card);
	if (line != NULL) {
		draw(line, start, end);
	}
	books->free_at_ns = end;
	books->busy_ns += duration;
	slot->busy_ns[card] += duration;
	slot->launches++;
	state->container[slot->container].busy_ns[card] += duration;
	state->container[slot->container].launches++;
	stub_unlock(state);
	return end;
}

static uint64_t busy_in(const struct stub_timeline *line, uint64_t from, uint64_t to) {
	uint64_t busy = 0;
	for (uint64_t epoch = from / STUB_BUCKET_NS; epoch * STUB_BUCKET_NS < to; epoch++) {
		if (line->buckets[epoch % STUB_BUCKETS].epoch == epoch) {
			busy += line->buckets[epoch % STUB_BUCKETS].busy_ns;
		}
	}
	return busy;
}

uint32_t stub_utilisation(struct stub_state *state, const struct stub_slot *slot, int card, uint64_t from, uint64_t to) {
	uint64_t busy = 0;
	/* Whole buckets only, as a real card samples. */
	from = from / STUB_BUCKET_NS * STUB_BUCKET_NS;
	to = to / STUB_BUCKET_NS * STUB_BUCKET_NS;
	if (to <= from) {
		return 0;
	}
	for (int t = 0; t < STUB_TIMELINES; t++) {
		const struct stub_timeline *line = &state->timeline[t];
		int wanted = slot == NULL ? line->slot != 0 : line->slot == (int32_t)(slot - state->slot) + 1;
		if (wanted && line->card == card) {
			busy += busy_in(line, from, to);
		}
	}
	uint64_t share = busy * 100 / (to - from);
	return share > 100 ? 100 : (uint32_t)share;
}
