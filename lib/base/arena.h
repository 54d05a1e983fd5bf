/* SPDX-License-Identifier: Apache-2.0 */
/* base/arena.h - memory for lib/, handed in by the caller.
 *
 * An arena is one block that is given out from the front. Nothing is freed one by one: take a mark, work, go
 * back to it. The arena does not own its block. Under AddressSanitizer what was released, and a gap between
 * allocations, is poisoned. */
#ifndef TW_BASE_ARENA_H
#define TW_BASE_ARENA_H

#include <stddef.h>

#define TW_ARENA_ALIGN 64 /* every allocation: a cache line, and the widest vector */

struct tw_arena {
    unsigned char *mem;
    size_t size;
    size_t used;
    size_t peak;
};

void tw_arena_init(struct tw_arena *a, void *mem, size_t size);

/* size bytes, zeroed, aligned to TW_ARENA_ALIGN; NULL when the block is full (also on overflow of count *
 * size). */
void *tw_arena_alloc(struct tw_arena *a, size_t count, size_t size);

/* What count * size takes out of an arena, padding included: for the _bytes() functions. */
size_t tw_arena_need(size_t count, size_t size);

size_t tw_arena_mark(const struct tw_arena *a);
void tw_arena_release(struct tw_arena *a, size_t mark); /* back to a mark taken earlier */

#define TW_ARENA_ARRAY(a, type, count) ((type *)tw_arena_alloc((a), (count), sizeof(type)))

#endif
