/* Walks the dynamic symbol tables of what is loaded. So the real dlsym is found in every glibc
 * (in libdl or in libc, under any version) and in musl, on each 64-bit machine. */
#define _GNU_SOURCE
#include "elf_find.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

struct tables {
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *hash;
	const uint32_t *gnu_hash;
};

struct search {
	const char *name;
	uintptr_t except;
	void *found;
};

struct owner {
	uintptr_t address;
	const char *prefix;
	bool starts;
};

/* Whether one of the object's segments contains *address*. */
static bool contains(const struct dl_phdr_info *object, uintptr_t address) {
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const uintptr_t start = object->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz) {
			return true;
		}
	}
	return false;
}

/* Some loaders leave the addresses in the dynamic section relative to the object. */
static const void *absolute(const struct dl_phdr_info *object, ElfW(Addr) value) {
	return (const void *)(value < object->dlpi_addr ? object->dlpi_addr + value : value);
}

static void note(struct tables *tables, const struct dl_phdr_info *object, const ElfW(Dyn) *entry) {
	const void *at = absolute(object, entry->d_un.d_ptr);
	switch (entry->d_tag) {
	case DT_SYMTAB:
		tables->symbols = at;
		break;
	case DT_STRTAB:
		tables->strings = at;
		break;
	case DT_HASH:
		tables->hash = at;
		break;
	case DT_GNU_HASH:
		tables->gnu_hash = at;
		break;
	default:
		break;
	}
}

static struct tables read_tables(const struct dl_phdr_info *object) {
	struct tables tables = {0};
	for (int i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) {
			continue;
		}
		const uintptr_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
		for (const ElfW(Dyn) *entry = (const void *)start; entry->d_tag != DT_NULL; entry++) {
			note(&tables, object, entry);
		}
	}
	return tables;
}

/* How many symbols there are, by the last chain of the GNU hash table. */
static uint32_t gnu_count(const uint32_t *table) {
	const uint32_t bucket_count = table[0];
	const uint32_t first = table[1];
	const uint32_t bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + bucket_count;
	uint32_t last = 0;
	for (uint32_t i = 0; i < bucket_count; i++) {
		last = buckets[i] > last ? buckets[i] : last;
	}
	if (last < first) {
		return first;
	}
	while ((chains[last - first] & 1) == 0) {
		last++;
	}
	return last + 1;
}

static uint32_t count_symbols(const struct tables *tables) {
	if (tables->hash != NULL) {
		return tables->hash[1];
	}
	return tables->gnu_hash != NULL ? gnu_count(tables->gnu_hash) : 0;
}

static void *find_in(const struct dl_phdr_info *object, const char *name) {
	const struct tables tables = read_tables(object);
	if (tables.symbols == NULL || tables.strings == NULL) {
		return NULL;
	}
	const uint32_t count = count_symbols(&tables);
	for (uint32_t i = 0; i < count; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];
		const bool is_function = (symbol->st_info & 15) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
		if (is_function && strcmp(tables.strings + symbol->st_name, name) == 0) {
			return (void *)(object->dlpi_addr + symbol->st_value);
		}
	}
	return NULL;
}

static int visit(struct dl_phdr_info *object, size_t size, void *data) {
	struct search *search = data;
	(void)size;
	if (!contains(object, search->except)) {
		search->found = find_in(object, search->name);
	}
	return search->found != NULL;
}

void *elf_find(const char *name, const void *except) {
	struct search search = {.name = name, .except = (uintptr_t)except};
	dl_iterate_phdr(visit, &search);
	return search.found;
}

static int visit_owner(struct dl_phdr_info *object, size_t size, void *data) {
	struct owner *owner = data;
	(void)size;
	if (!contains(object, owner->address)) {
		return 0;
	}
	const char *slash = strrchr(object->dlpi_name, '/');
	const char *name = slash != NULL ? slash + 1 : object->dlpi_name;
	owner->starts = strncmp(name, owner->prefix, strlen(owner->prefix)) == 0;
	return 1;
}

bool elf_owner_starts_with(const void *address, const char *prefix) {
	struct owner owner = {.address = (uintptr_t)address, .prefix = prefix};
	dl_iterate_phdr(visit_owner, &owner);
	return owner.starts;
}
