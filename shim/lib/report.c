/* What a program is told about its card: the slice is the card. */
#define _GNU_SOURCE
#include "report.h"

#include "card.h"
#include "quota.h"

struct report report_memory(int card, uint64_t total, uint64_t free) {
	struct report report = {.total = total, .free = free};
	const uint64_t limit = card >= 0 ? quota_limit(card) : 0;
	if (card == CARD_FOREIGN) {
		report.free = 0;
	} else if (limit != 0) {
		const uint64_t used = quota_used(card);
		report.total = limit < total ? limit : total;
		const uint64_t rest = report.total > used ? report.total - used : 0;
		report.free = rest < free ? rest : free;
	}
	return report;
}

uint64_t report_total(int card, uint64_t total) {
	const uint64_t limit = card >= 0 ? quota_limit(card) : 0;
	return limit != 0 && limit < total ? limit : total;
}
