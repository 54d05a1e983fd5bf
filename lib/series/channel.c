/* SPDX-License-Identifier: Apache-2.0 */
/* The channel table. */
#include "series/channel.h"

const struct tw_channel_info tw_channel_table[TW_CH_COUNT] = {
#define TW_CHANNEL_ROW(id, name, unit, counter, lowest, highest, adds, help)                                   \
    [TW_CH_##id] = {name, unit, counter, lowest, highest, adds, help},
    TW_CHANNEL_MAP(TW_CHANNEL_ROW)
#undef TW_CHANNEL_ROW
};
