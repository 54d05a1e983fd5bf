/* SPDX-License-Identifier: Apache-2.0 */
/* Names met in a recording. */
#include "codec/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char *dst, size_t size, const char *src, size_t n)
{
    if (n >= size)
        n = size - 1;
    memcpy(dst, src, n);
    dst[n] = '\0';
}

static uint32_t add(struct tw_keys *keys, const char *id, size_t n, int32_t index)
{
    if (keys->n == TW_KEYS_MAX)
        return TW_KEY_NONE;
    struct tw_key *k = &keys->key[keys->n];
    copy_text(k->id, sizeof k->id, id, n);
    k->model[0] = '\0';
    k->index = index;
    return keys->n++;
}

static bool same(const struct tw_key *k, const char *id, size_t n)
{
    return strncmp(k->id, id, n) == 0 && k->id[n] == '\0';
}

uint32_t tw_keys_by_name(struct tw_keys *keys, const char *id, size_t n, int32_t index)
{
    if (n >= sizeof keys->key[0].id)
        n = sizeof keys->key[0].id - 1;
    if (keys->next >= keys->n)
        keys->next = 0;
    uint32_t at = keys->next;
    for (uint32_t i = 0; i < keys->n; i++, at = at + 1 == keys->n ? 0 : at + 1)
        if (same(&keys->key[at], id, n)) {
            keys->next = at + 1;
            return at;
        }
    return add(keys, id, n, index);
}

uint32_t tw_keys_by_index(struct tw_keys *keys, uint64_t index)
{
    if (index >= sizeof keys->of_index / sizeof *keys->of_index)
        return TW_KEY_NONE;
    if (keys->of_index[index])
        return keys->of_index[index] - 1u;
    char id[24];
    int n = snprintf(id, sizeof id, "gpu%u", (unsigned)index);
    uint32_t key = add(keys, id, (size_t)n, (int32_t)index);
    if (key != TW_KEY_NONE)
        keys->of_index[index] = (uint16_t)(key + 1);
    return key;
}

void tw_keys_model(struct tw_keys *keys, uint32_t key, const char *model, size_t n)
{
    struct tw_key *k = &keys->key[key];
    if (k->model[0] == '\0')
        copy_text(k->model, sizeof k->model, model, n);
}
