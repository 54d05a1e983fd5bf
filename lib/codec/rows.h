/* SPDX-License-Identifier: Apache-2.0 */
/* codec/rows.h - what the readers of recordings produce: rows, column by column, and the names met in them.
 *
 * The text that a reader is handed ends in a newline, and TW_TEXT_PAD bytes behind it can be read, whatever
 * they hold: words of eight bytes are then loaded without a look at the end.
 *
 * The memory is the caller's. A reader appends while there is room and then returns; the caller makes room and
 * calls again. Slots are numbered by the caller (it hands the reader a table that says which column of the text
 * goes to which slot), so that this room need not know what a channel is. */
#ifndef TW_CODEC_ROWS_H
#define TW_CODEC_ROWS_H

#include "codec/reject.h"

#include <stddef.h>
#include <stdint.h>

#define TW_TEXT_PAD 32
#define TW_ROWS_SLOTS 32
#define TW_KEYS_MAX 1024       /* different GPUs or servers in one recording */
#define TW_KEY_NONE UINT32_MAX /* the row does not say whose it is */

struct tw_rows {
    size_t n, cap;              /* rows there, and room for */
    int64_t *time_us;           /* [cap] */
    uint32_t *key;              /* [cap] index into struct tw_keys, or TW_KEY_NONE */
    uint32_t *line;             /* [cap] line of the text, from 1 */
    float *slot[TW_ROWS_SLOTS]; /* [cap] each, or NULL where no column of the text leads; NaN = missing */
};

/* Whose rows they are, in order of first appearance. */
struct tw_key {
    char id[64];    /* what rows are told apart by: UUID, index or name as written */
    char model[64]; /* "" when unknown */
    int32_t index;  /* -1 when unknown */
};

struct tw_keys {
    struct tw_key key[TW_KEYS_MAX];
    uint32_t n;
    uint32_t next;           /* rows come in rounds: the likeliest next one */
    uint16_t of_index[1024]; /* key + 1 by index, 0 = not seen; for recordings that go by index alone */
};

/* The key of a name, made when new; TW_KEY_NONE when there are too many. `index` is -1 when unknown. */
uint32_t tw_keys_by_name(struct tw_keys *keys, const char *id, size_t n, int32_t index);
/* The key of an index alone. */
uint32_t tw_keys_by_index(struct tw_keys *keys, uint64_t index);
void tw_keys_model(struct tw_keys *keys, uint32_t key, const char *model, size_t n);

/* What every reader of lines keeps: all zero to start. */
struct tw_lines {
    uint64_t line; /* lines consumed */
    struct tw_reject_count rejected[TW_REJECT_COUNT];
};

#endif
