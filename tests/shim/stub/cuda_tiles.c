/* CUDA: memory by handle that is mapped into sparse arrays, a part at a time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* CUarrayMapInfo, as far as it matters here. */
struct tile {
	int resource_kind;
	address resource;
	int part_kind;
	uint64_t part[4];
	int operation, handle_kind;
	address handle;
	uint64_t offset;
	unsigned int devices, flags, reserved[2];
};

enum { MAP_TILE = 1 };

/* What keeps the memory behind sparse arrays alive. */
static struct tiling {
	struct tile tile;
	struct object *object;
	struct tiling *next;
} *tilings;

static void untile(struct tiling **link) {
	struct tiling *tiling = *link;
	*link = tiling->next;
	physical_drop(tiling->object);
	free(tiling);
}

static int is_same_place(const struct tile *one, const struct tile *other) {
	return one->resource == other->resource && memcmp(one->part, other->part, sizeof one->part) == 0;
}

static int map_tile(const struct tile *tile) {
	struct object *object = tile->operation == MAP_TILE ? physical_hold(tile->handle) : NULL;
	struct tiling *tiling = object != NULL ? malloc(sizeof *tiling) : NULL;
	NEED(tile->operation != MAP_TILE || tiling != NULL);
	for (struct tiling **link = &tilings; *link != NULL;) {
		if (is_same_place(&(*link)->tile, tile)) {
			untile(link);
		} else {
			link = &(*link)->next;
		}
	}
	if (tiling != NULL) {
		*tiling = (struct tiling){*tile, object, tilings};
		tilings = tiling;
	}
	return CU_OK;
}

void tiles_end(address resource) {
	pthread_mutex_lock(&guard);
	for (struct tiling **link = &tilings; *link != NULL;) {
		if ((*link)->tile.resource == resource) {
			untile(link);
		} else {
			link = &(*link)->next;
		}
	}
	pthread_mutex_unlock(&guard);
}

static int map_tiles(const struct tile *tiles, unsigned int count) {
	int rc = CU_OK;
	NEED(tiles != NULL && count > 0);
	pthread_mutex_lock(&guard);
	for (unsigned int i = 0; i < count && rc == CU_OK; i++) {
		rc = map_tile(&tiles[i]);
	}
	pthread_mutex_unlock(&guard);
	return rc;
}

CU_API cuMemMapArrayAsync(const struct tile *tiles, unsigned int count, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)stream;
	return map_tiles(tiles, count);
}

CU_API cuMemMapArrayAsync_ptsz(const struct tile *tiles, unsigned int count, void *stream) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	(void)stream;
	return map_tiles(tiles, count);
}
