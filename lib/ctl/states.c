/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of ctl/states.h. */
#include "ctl/states.h"

#include <assert.h>

#define NAME(id, text) #id,
const char *const tw_site_state_name[] = {TW_SITE_STATE_MAP(NAME)};
const char *const tw_site_event_name[] = {TW_SITE_EVENT_MAP(NAME)};
const char *const tw_line_state_name[] = {TW_LINE_STATE_MAP(NAME)};
const char *const tw_line_event_name[] = {TW_LINE_EVENT_MAP(NAME)};
#undef NAME

#define ON(ev, to, text) [TW_SITE_EV_##ev] = {TW_SITE_##to, text}
static const struct tw_transition site[TW_SITE_STATE_COUNT][TW_SITE_EVENT_COUNT] =
    {
        [TW_SITE_LEARN] =
            {
                ON(REFERENCE, READY, "references are known"),
                ON(CURIOUS, LEARN, "a probe needs a reference first"),
                ON(PROBED, LEARN, "nothing to probe yet"),
                ON(START, RAMP, "the event does not wait for knowledge: equal shares"),
                ON(RAMPED, LEARN, "no ramp is running"),
                ON(END, LEARN, "no event is running"),
                ON(RETURNED, LEARN, "nothing was capped"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_READY] =
            {
                ON(REFERENCE, READY, "known already; the reference goes on moving with the job"),
                ON(CURIOUS, PROBE, "a curve is uncertain"),
                ON(PROBED, READY, "no probe is running"),
                ON(START, RAMP, "a power event is due"),
                ON(RAMPED, READY, "no ramp is running"),
                ON(END, READY, "no event is running"),
                ON(RETURNED, READY, "nothing was capped"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_PROBE] =
            {
                ON(REFERENCE, PROBE, "known already"),
                ON(CURIOUS, PROBE, "a probe is running already"),
                ON(PROBED, READY, "the curves are known well enough"),
                ON(START, RAMP, "an event comes before probing"),
                ON(RAMPED, PROBE, "no ramp is running"),
                ON(END, PROBE, "no event is running"),
                ON(RETURNED, PROBE, "the probe still holds its caps"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_RAMP] =
            {
                ON(REFERENCE, RAMP, "references do not move under caps"),
                ON(CURIOUS, RAMP, "no probing during an event"),
                ON(PROBED, RAMP, "no probe is running"),
                ON(START, RAMP, "one event at a time"),
                ON(RAMPED, HOLD, "the target is reached"),
                ON(END, RELEASE, "ended on the way down"),
                ON(RETURNED, RAMP, "power is not to return yet"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_HOLD] =
            {
                ON(REFERENCE, HOLD, "references do not move under caps"),
                ON(CURIOUS, HOLD, "no probing during an event"),
                ON(PROBED, HOLD, "no probe is running"),
                ON(START, HOLD, "one event at a time"),
                ON(RAMPED, HOLD, "holding already"),
                ON(END, RELEASE, "the hold is over"),
                ON(RETURNED, HOLD, "power is not to return yet"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_RELEASE] =
            {
                ON(REFERENCE, RELEASE, "references do not move under caps"),
                ON(CURIOUS, RELEASE, "no probing during an event"),
                ON(PROBED, RELEASE, "no probe is running"),
                ON(START, RAMP, "the next event is due before power is back"),
                ON(RAMPED, RELEASE, "on the way up"),
                ON(END, RELEASE, "over already"),
                ON(RETURNED, LEARN, "power is back"),
                ON(LEAVE, STOP, "told to stop"),
            },
        [TW_SITE_STOP] =
            {
                ON(REFERENCE, STOP, "leaving"),
                ON(CURIOUS, STOP, "leaving"),
                ON(PROBED, STOP, "leaving"),
                ON(START, STOP, "leaving: the event is not ours any more"),
                ON(RAMPED, STOP, "leaving"),
                ON(END, STOP, "leaving"),
                ON(RETURNED, STOP, "leaving"),
                ON(LEAVE, STOP, "leaving already"),
            },
};
#undef ON

#define ON(ev, to, text) [TW_LINE_EV_##ev] = {TW_LINE_##to, text}
static const struct tw_transition line[TW_LINE_STATE_COUNT][TW_LINE_EVENT_COUNT] =
    {
        [TW_LINE_FREE] =
            {
                ON(ASK_LOWER, LOWER, "first cap"),
                ON(ASK_RAISE, RAISE, "a limit above the one found"),
                ON(ASK_FOUND, FREE, "there already"),
                ON(CONFIRM, FREE, "nothing was asked"),
                ON(CONFIRM_FOUND, FREE, "as found"),
                ON(DIFFER, FREE, "somebody else moved it: charged as it reads"),
                ON(REFUSE, FAULT, "the device did not take it"),
            },
        [TW_LINE_LOWER] =
            {
                ON(ASK_LOWER, LOWER, "lower still"),
                ON(ASK_RAISE, RAISE, "up again; charged with the higher until read back"),
                ON(ASK_FOUND, RAISE, "back to what was found"),
                ON(CONFIRM, HELD, "read back"),
                ON(CONFIRM_FOUND, FREE, "as found"),
                ON(DIFFER, FAULT, "the device holds another limit"),
                ON(REFUSE, FAULT, "the device did not take it"),
            },
        [TW_LINE_RAISE] =
            {
                ON(ASK_LOWER, LOWER, "down again"),
                ON(ASK_RAISE, RAISE, "higher still"),
                ON(ASK_FOUND, RAISE, "back to what was found"),
                ON(CONFIRM, HELD, "read back"),
                ON(CONFIRM_FOUND, FREE, "as found"),
                ON(DIFFER, FAULT, "the device holds another limit"),
                ON(REFUSE, FAULT, "the device did not take it"),
            },
        [TW_LINE_HELD] =
            {
                ON(ASK_LOWER, LOWER, "a lower cap"),
                ON(ASK_RAISE, RAISE, "a higher cap"),
                ON(ASK_FOUND, RAISE, "back to what was found"),
                ON(CONFIRM, HELD, "still in force"),
                ON(CONFIRM_FOUND, FREE, "as found"),
                ON(DIFFER, FAULT, "drifted: somebody else wrote, or the driver was reloaded"),
                ON(REFUSE, FAULT, "the device did not take it"),
            },
        [TW_LINE_FAULT] =
            {
                ON(ASK_LOWER, LOWER, "asked again"),
                ON(ASK_RAISE, RAISE, "asked again"),
                ON(ASK_FOUND, RAISE, "back to what was found"),
                ON(CONFIRM, HELD, "taken after all"),
                ON(CONFIRM_FOUND, FREE, "as found"),
                ON(DIFFER, FAULT, "still another limit"),
                ON(REFUSE, FAULT, "still refused"),
            },
};
#undef ON

const struct tw_transition *tw_site_go(enum tw_site_state state, enum tw_site_event event)
{
    assert(state < TW_SITE_STATE_COUNT && event < TW_SITE_EVENT_COUNT);
    return &site[state][event];
}

const struct tw_transition *tw_line_go(enum tw_line_state state, enum tw_line_event event)
{
    assert(state < TW_LINE_STATE_COUNT && event < TW_LINE_EVENT_COUNT);
    return &line[state][event];
}
