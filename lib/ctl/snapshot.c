/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a snapshot. */
#include "ctl/snapshot.h"

#define NAME(id, name, text) name,
#define TEXT(id, name, text) text,
const char *const tw_reason_name[TW_REASON_COUNT] = {TW_REASON_MAP(NAME)};
const char *const tw_reason_text[TW_REASON_COUNT] = {TW_REASON_MAP(TEXT)};
#undef NAME
#undef TEXT

#define NAME(id, name) name,
const char *const tw_event_name[TW_EVENT_COUNT] = {TW_EVENT_MAP(NAME)};
#undef NAME
