/* Memory that is held here and paid for by whoever allocated it. */
#ifndef VPY_IMPORTED_H
#define VPY_IMPORTED_H

#include <stdint.h>

/* Notes *bytes* under an address or a handle, on the card of the current context. */
void imported_note(uint64_t key, uint64_t bytes);

/* Forgets them; nothing happens where nothing was noted. */
void imported_drop(uint64_t key);

#endif
