/* Walks the dynamic symbol tables of what is loaded in our namespace. So the real dlsym is found in every glibc
 * (in libdl or in libc, under any version) and in musl, on each 64-bit machine. */
#define _GNU_SOURCE
#include "elf_find.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "old_libc.h"

OLD_LIBC(dladdr, "2.2.5");
OLD_LIBC(dladdr1, "2.3.3");

struct tables {
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *hash;
	const uint32_t *gnu_hash;
};

/* Some loaders leave the addresses in the dynamic section relative to the object. */
static const void *absolute(const struct link_map *object, ElfW(Addr) value) {
	return (const void *)(value < object->l_addr ? object->l_addr + value : value);
}

static void note(struct tables *tables, const struct link_map *object, const ElfW(Dyn) *entry) {
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

static struct tables read_tables(const struct link_map *object) {
	struct tables tables = {0};
	for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
		note(&tables, object, entry);
	}
	return tables;
}

/* strcmp of libc may be a sanitizer's, and lookups run before it is ready. */
static bool is_same(const char *one, const char *other) {
	while (*one != 0 && *one == *other) {
		one++;
		other++;
	}
	return *one == *other;
}

static uint32_t gnu_hash_of(const char *name) {
	uint32_t hash = 5381;
	for (; *name != 0; name++) {
		hash = hash * 33 + (uint8_t)*name;
	}
	return hash;
}

static bool is_function(const struct tables *tables, uint32_t i, const char *name) {
	const ElfW(Sym) *symbol = &tables->symbols[i];
	return (symbol->st_info & 15) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       is_same(tables->strings + symbol->st_name, name);
}

/* The place of a function in the symbol table, by the GNU hash table; 0 if it isn't there. */
static uint32_t find_gnu(const struct tables *tables, const char *name) {
	const uint32_t *table = tables->gnu_hash;
	const uint32_t bucket_count = table[0];
	const uint32_t first = table[1];
	const uint32_t bloom_words = table[2];
	const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + bucket_count;
	const uint32_t hash = gnu_hash_of(name);
	uint32_t i = bucket_count != 0 ? buckets[hash % bucket_count] : 0;
	if (i < first) {
		return 0;
	}
	for (;; i++) {
		const uint32_t found = chains[i - first];
		if ((found | 1) == (hash | 1) && is_function(tables, i, name)) {
			return i;
		}
		if ((found & 1) != 0) {
			return 0;
		}
	}
}

/* The same in an object that has only the old hash table: its length is the number of symbols. */
static uint32_t find_old(const struct tables *tables, const char *name) {
	for (uint32_t i = 1; i < tables->hash[1]; i++) {
		if (is_function(tables, i, name)) {
			return i;
		}
	}
	return 0;
}

static void *find_in(const struct link_map *object, const char *name) {
	const struct tables tables = read_tables(object);
	uint32_t i = 0;
	if (tables.symbols == NULL || tables.strings == NULL) {
		return NULL;
	}
	if (tables.gnu_hash != NULL) {
		i = find_gnu(&tables, name);
	} else if (tables.hash != NULL) {
		i = find_old(&tables, name);
	}
	return i != 0 ? (void *)(object->l_addr + tables.symbols[i].st_value) : NULL;
}

static struct link_map *object_of(const void *address) {
	Dl_info info;
	struct link_map *object = NULL;
	return dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP) != 0 ? object : NULL;
}

/* The first object of a namespace. */
static struct link_map *first_of(struct link_map *object) {
	while (object != NULL && object->l_prev != NULL) {
		object = object->l_prev;
	}
	return object;
}

/* Whether an object stands in front of a driver as we do: a second copy of us, or the like. Asking one
 * another for libc's functions would have no end. */
static bool stands_in_front(const struct link_map *object) {
	return find_in(object, "cuGetProcAddress") != NULL || find_in(object, "aclrtMalloc") != NULL;
}

void *elf_find(const char *name, const void *own) {
	struct link_map *ours = object_of(own);
	void *found = NULL;
	for (struct link_map *object = first_of(ours); object != NULL && found == NULL;
	     object = object->l_next) {
		found = object != ours ? find_in(object, name) : NULL;
		if (found != NULL && stands_in_front(object)) {
			found = NULL;
		}
	}
	return found;
}

void *elf_find_beside(const void *address, const void *own, const char *name) {
	const struct link_map *ours = object_of(own);
	struct link_map *object = first_of(object_of(address));
	if (ours == NULL || object == first_of(object_of(own))) {
		return NULL;
	}
	while (object != NULL && !is_same(object->l_name, ours->l_name)) {
		object = object->l_next;
	}
	return object != NULL ? find_in(object, name) : NULL;
}

bool elf_owner_starts_with(const void *address, const char *prefix) {
	Dl_info info;
	if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
		return false;
	}
	const char *slash = strrchr(info.dli_fname, '/');
	const char *name = slash != NULL ? slash + 1 : info.dli_fname;
	return strncmp(name, prefix, strlen(prefix)) == 0;
}
