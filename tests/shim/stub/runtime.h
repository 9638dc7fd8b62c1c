/* The stub's CUDA runtime: how it calls the driver. */
#ifndef STUB_RUNTIME_H
#define STUB_RUNTIME_H

#include <dlfcn.h>
#include <stddef.h>

/* Flags of cuGetProcAddress: which stream the driver's function takes for the default one. */
enum { OF_LEGACY_STREAM = 1, OF_THREADS_STREAM = 2 };

/* The driver's function of that name for that version of CUDA; NULL if it has none. */
void *runtime_find(const char *name, int version, unsigned long long flags);

/* Makes the primary context of the thread's device, once, and makes it current. */
int runtime_bind(void);

/* Remembers a failure as the thread's last error; answers *code*. */
int runtime_told(int code);

/* Calls the driver's function NAME; CU_NOT_SUPPORTED where it has none. */
#define CALL_FOR(FLAGS, NAME, VERSION, TYPES, ...)                                \
	({                                                                        \
		static void *function_;                                           \
		if (function_ == NULL) {                                          \
			function_ = runtime_find(#NAME, VERSION, FLAGS);          \
		}                                                                 \
		function_ == NULL ? 801 : ((int(*) TYPES)function_)(__VA_ARGS__); \
	})

#define CALL(...) CALL_FOR(OF_LEGACY_STREAM, __VA_ARGS__)
#define CALL_PTSZ(...) CALL_FOR(OF_THREADS_STREAM, __VA_ARGS__)

#define BIND()                                \
	do {                                  \
		int bound_ = runtime_bind();  \
		if (bound_ != 0) {            \
			return runtime_told(bound_); \
		}                             \
	} while (0)

#define RUNTIME_API __attribute__((visibility("default")))
#define RUNTIME RUNTIME_API int

#endif
