/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons, and how they are counted. */
#include "codec/reject.h"

const char *const tw_reject_text[TW_REJECT_COUNT] = {
#define TW_REJECT_ROW(id, text) [TW_REJECT_##id] = (text),
    TW_REJECT_MAP(TW_REJECT_ROW)
#undef TW_REJECT_ROW
};

void tw_reject_add(struct tw_reject_count rejected[TW_REJECT_COUNT], enum tw_reject reason, uint64_t line)
{
    if (rejected[reason].count++ == 0 || line < rejected[reason].first_line)
        rejected[reason].first_line = line;
}

uint64_t tw_reject_total(const struct tw_reject_count rejected[TW_REJECT_COUNT])
{
    uint64_t sum = 0;
    for (int i = 0; i < TW_REJECT_COUNT; i++)
        sum += rejected[i].count;
    return sum;
}
