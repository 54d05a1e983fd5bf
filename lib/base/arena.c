/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator over the caller's block. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define TW_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TW_ASAN 1
#endif
#endif
#ifdef TW_ASAN
#include <sanitizer/asan_interface.h>
#define RED_ZONE TW_ARENA_ALIGN
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define RED_ZONE 0
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

void tw_arena_init(struct tw_arena *a, void *mem, size_t size)
{
    *a = (struct tw_arena){.mem = mem, .size = mem ? size : 0};
    if (mem)
        POISON(mem, size);
}

size_t tw_arena_need(size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n) || n > SIZE_MAX - 3 * TW_ARENA_ALIGN)
        return SIZE_MAX;
    return ((n + TW_ARENA_ALIGN - 1) & ~(size_t)(TW_ARENA_ALIGN - 1)) + RED_ZONE;
}

void *tw_arena_alloc(struct tw_arena *a, size_t count, size_t size)
{
    size_t need = tw_arena_need(count, size);
    size_t at = a->used;
    size_t misaligned = ((uintptr_t)a->mem + at) & (TW_ARENA_ALIGN - 1);
    if (misaligned)
        at += TW_ARENA_ALIGN - misaligned;
    if (need == SIZE_MAX || at > a->size || a->size - at < need)
        return NULL;
    void *p = a->mem + at;
    UNPOISON(p, count * size);
    memset(p, 0, count * size);
    a->used = at + need;
    if (a->used > a->peak)
        a->peak = a->used;
    return p;
}

size_t tw_arena_mark(const struct tw_arena *a)
{
    return a->used;
}

void tw_arena_release(struct tw_arena *a, size_t mark)
{
    if (mark >= a->used)
        return;
    POISON(a->mem + mark, a->used - mark);
    a->used = mark;
}
