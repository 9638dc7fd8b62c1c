/* CUDA: arrays and mipmapped arrays; modules and libraries, whose code takes memory too. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Bytes of one element of a CUarray_format; 0: not one. */
static uint64_t format_bytes(int format) {
	switch (format) {
	case 0x01: /* unsigned and signed bytes */
	case 0x08:
		return 1;
	case 0x02: /* 16 bits, and half precision */
	case 0x09:
	case 0x10:
		return 2;
	case 0x03: /* 32 bits, and single precision */
	case 0x0a:
	case 0x20:
		return 4;
	default:
		return 0;
	}
}

/* Of these nothing is there before memory is mapped into them. */
enum { SPARSE = 0x40, DEFERRED = 0x80 };

static uint64_t shape_bytes(const struct array3d_shape *shape) {
	uint64_t elements = shape->width * (shape->height == 0 ? 1 : shape->height) * (shape->depth == 0 ? 1 : shape->depth);
	return (shape->flags & (SPARSE | DEFERRED)) != 0 ? 0 : elements * format_bytes(shape->format) * shape->channels;
}

static int is_shape(const struct array3d_shape *shape) {
	return shape->width > 0 && shape->width < 1u << 20 && shape->height < 1u << 20 && shape->depth < 1u << 20 &&
	       format_bytes(shape->format) != 0 && (shape->channels == 1 || shape->channels == 2 || shape->channels == 4);
}

static int create(struct context *context, address *out, enum kind kind, uint64_t bytes) {
	int rc = memory_take(context->card, bytes);
	if (rc == CU_OK) {
		*out = handle_new();
		object_add(*out, kind, context->card, bytes, context);
	}
	return rc;
}

static int create_flat(struct context *context, address *out, const struct array_shape *flat) {
	NEED(out != NULL && flat != NULL);
	struct array3d_shape shape = {flat->width, flat->height, 0, flat->format, flat->channels, 0};
	NEED(is_shape(&shape));
	return create(context, out, ARRAY, shape_bytes(&shape));
}

CU_API cuArrayCreate_v2(address *out, const struct array_shape *shape) {
	CONTEXT_ENTER();
	(void)state;
	return create_flat(context, out, shape);
}

/* The first interface's shapes have 32-bit sides. */
struct array_shape_v1 {
	unsigned int width, height;
	int format;
	unsigned int channels;
};

struct array3d_shape_v1 {
	unsigned int width, height, depth;
	int format;
	unsigned int channels, flags;
};

CU_API cuArrayCreate(address *out, const struct array_shape_v1 *shape) {
	CONTEXT_ENTER();
	(void)state;
	NEED(shape != NULL);
	struct array_shape wide = {shape->width, shape->height, shape->format, shape->channels};
	return create_flat(context, out, &wide);
}

CU_API cuArray3DCreate_v2(address *out, const struct array3d_shape *shape) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && shape != NULL && is_shape(shape));
	return create(context, out, ARRAY, shape_bytes(shape));
}

CU_API cuArray3DCreate(address *out, const struct array3d_shape_v1 *shape) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && shape != NULL);
	struct array3d_shape wide = {shape->width,  shape->height,   shape->depth,
	                             shape->format, shape->channels, shape->flags};
	NEED(is_shape(&wide));
	return create(context, out, ARRAY, shape_bytes(&wide));
}

static int destroy(address handle, enum kind kind) {
	struct object *object = object_remove(handle, kind, kind);
	if (object == NULL) {
		return CU_INVALID_HANDLE;
	}
	memory_give(object->card, object->bytes);
	tiles_end(handle);
	free(object->detail);
	free(object);
	return CU_OK;
}

CU_API cuArrayDestroy(address array) {
	DRIVER_ENTER();
	(void)state;
	return destroy(array, ARRAY);
}

CU_API cuMipmappedArrayCreate(address *out, const struct array3d_shape *shape, unsigned int levels) {
	CONTEXT_ENTER();
	(void)state;
	NEED(out != NULL && shape != NULL && is_shape(shape) && levels > 0 && levels < 32);
	struct array3d_shape level = *shape;
	uint64_t bytes = 0;
	for (unsigned int i = 0; i < levels; i++) {
		bytes += shape_bytes(&level);
		level.width = level.width > 1 ? level.width / 2 : 1;
		level.height = level.height > 1 ? level.height / 2 : level.height;
		level.depth = level.depth > 1 ? level.depth / 2 : level.depth;
	}
	return create(context, out, MIPMAP, bytes);
}

CU_API cuMipmappedArrayGetLevel(address *out, address mipmap, unsigned int level) {
	CONTEXT_ENTER();
	(void)state;
	(void)level;
	NEED(out != NULL && object_find(mipmap, MIPMAP, MIPMAP) != NULL);
	*out = handle_new();
	object_add(*out, LEVEL, context->card, 0, context);
	return CU_OK;
}

CU_API cuMipmappedArrayDestroy(address mipmap) {
	DRIVER_ENTER();
	(void)state;
	return destroy(mipmap, MIPMAP);
}

struct requirements {
	size_t bytes, alignment;
	unsigned int reserved[4];
};

static int requirements(struct requirements *out, address handle, enum kind kind) {
	const struct object *object = object_find(handle, kind, kind);
	NEED(out != NULL && object != NULL);
	*out = (struct requirements){object->bytes, 512, {0}};
	return CU_OK;
}

CU_API cuArrayGetMemoryRequirements(struct requirements *out, address array, int device) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	return requirements(out, array, ARRAY);
}

CU_API cuMipmappedArrayGetMemoryRequirements(struct requirements *out, address mipmap, int device) {
	DRIVER_ENTER();
	NEED_CARD(card_of(device));
	return requirements(out, mipmap, MIPMAP);
}

/* Modules: each takes what the card says that modules take. */
static int load(struct stub_state *state, struct context *context, address *out) {
	NEED(out != NULL);
	return create(context, out, MODULE, state->card[context->card].module_bytes);
}

CU_API cuModuleLoad(address *out, const char *path) {
	CONTEXT_ENTER();
	NEED(path != NULL);
	return load(state, context, out);
}

CU_API cuModuleLoadData(address *out, const void *image) {
	CONTEXT_ENTER();
	NEED(image != NULL);
	return load(state, context, out);
}

CU_API cuModuleLoadDataEx(address *out, const void *image, unsigned int count, void *options, void **values) {
	CONTEXT_ENTER();
	NEED(image != NULL && (count == 0 || (options != NULL && values != NULL)));
	return load(state, context, out);
}

CU_API cuModuleLoadFatBinary(address *out, const void *image) {
	CONTEXT_ENTER();
	NEED(image != NULL);
	return load(state, context, out);
}

CU_API cuModuleUnload(address module) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return destroy(module, MODULE);
}

CU_API cuLibraryLoadData(address *out, const void *code, void *jit, void **jit_values, unsigned int jit_count,
                         void *options, void **values, unsigned int count) {
	CONTEXT_ENTER();
	(void)jit;
	(void)jit_values;
	(void)options;
	(void)values;
	NEED(code != NULL && jit_count == 0 && count == 0);
	return load(state, context, out);
}

CU_API cuLibraryLoadFromFile(address *out, const char *path, void *jit, void **jit_values, unsigned int jit_count,
                             void *options, void **values, unsigned int count) {
	CONTEXT_ENTER();
	(void)jit;
	(void)jit_values;
	(void)options;
	(void)values;
	NEED(path != NULL && jit_count == 0 && count == 0);
	return load(state, context, out);
}

CU_API cuLibraryUnload(address library) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	return destroy(library, MODULE);
}

/* A function's handle is its cost: microseconds of one wave of blocks, which the digits at the end of its name
 * tell ("wave_250"), and one. */
static int function_of(address *out, const char *name) {
	NEED(out != NULL && name != NULL);
	const char *digits = strrchr(name, '_');
	*out = (digits == NULL ? 0 : strtoull(digits + 1, NULL, 10)) + 1;
	return CU_OK;
}

CU_API cuModuleGetFunction(address *out, address module, const char *name) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	if (object_find(module, MODULE, MODULE) == NULL) {
		return CU_INVALID_HANDLE;
	}
	return function_of(out, name);
}

CU_API cuLibraryGetKernel(address *out, address library, const char *name) {
	DRIVER_ENTER();
	(void)state;
	if (object_find(library, MODULE, MODULE) == NULL) {
		return CU_INVALID_HANDLE;
	}
	return function_of(out, name);
}

CU_API cuKernelGetFunction(address *out, address kernel) {
	CONTEXT_ENTER();
	(void)state;
	(void)context;
	NEED(out != NULL && kernel != 0);
	*out = kernel;
	return CU_OK;
}
