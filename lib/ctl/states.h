/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/states.h - the states of the site and of each GPU's cap, as tables.
 *
 * Every state has a row for every event, also for those it does not expect: such a row stays where it is and
 * says why. tw_site_go and tw_line_go are the only functions that look at the tables; whoever holds the state
 * assigns what they return and traces it. */
#ifndef TW_CTL_STATES_H
#define TW_CTL_STATES_H

/* The site: what the controller is busy with. */
#define TW_SITE_STATE_MAP(X)                                                                                   \
    X(LEARN, "learning what the jobs draw and do when nothing caps them")                                      \
    X(READY, "watching; no budget binds")                                                                      \
    X(PROBE, "short caps on a few jobs at a time, to learn their curves")                                      \
    X(RAMP, "an event begins: power falls at the ramp limit")                                                  \
    X(HOLD, "an event holds: power stays at the target")                                                       \
    X(RELEASE, "an event is over: power returns at the ramp limit")                                            \
    X(STOP, "leaving: every limit goes back to what was found")

#define TW_SITE_EVENT_MAP(X)                                                                                   \
    X(REFERENCE, "every job has an uncapped reference")                                                        \
    X(CURIOUS, "a curve is worth a probe")                                                                     \
    X(PROBED, "no curve is worth another probe")                                                               \
    X(START, "a power event is due")                                                                           \
    X(RAMPED, "the budget has reached the target")                                                             \
    X(END, "the hold is over, or the event was cancelled")                                                     \
    X(RETURNED, "power is back and no cap binds")                                                              \
    X(LEAVE, "the controller was told to stop")

/* One GPU's limit. */
#define TW_LINE_STATE_MAP(X)                                                                                   \
    X(FREE, "as found: no cap of ours")                                                                        \
    X(LOWER, "a lower limit was asked for and not read back yet")                                              \
    X(RAISE, "a higher limit was asked for and not read back yet")                                             \
    X(HELD, "our cap, read back")                                                                              \
    X(FAULT, "the device did not take a limit")

#define TW_LINE_EVENT_MAP(X)                                                                                   \
    X(ASK_LOWER, "a lower limit is sent")                                                                      \
    X(ASK_RAISE, "a higher limit is sent")                                                                     \
    X(ASK_FOUND, "the limit found at the start is sent")                                                       \
    X(CONFIRM, "the limit asked for was read back")                                                            \
    X(CONFIRM_FOUND, "the limit found at the start was read back")                                             \
    X(DIFFER, "another limit than the one asked for was read back")                                            \
    X(REFUSE, "the write failed")

#define TW_STATES_ENUM_SITE(id, text) TW_SITE_##id,
#define TW_STATES_ENUM_SITE_EV(id, text) TW_SITE_EV_##id,
#define TW_STATES_ENUM_LINE(id, text) TW_LINE_##id,
#define TW_STATES_ENUM_LINE_EV(id, text) TW_LINE_EV_##id,
enum tw_site_state { TW_SITE_STATE_MAP(TW_STATES_ENUM_SITE) TW_SITE_STATE_COUNT };
enum tw_site_event { TW_SITE_EVENT_MAP(TW_STATES_ENUM_SITE_EV) TW_SITE_EVENT_COUNT };
enum tw_line_state { TW_LINE_STATE_MAP(TW_STATES_ENUM_LINE) TW_LINE_STATE_COUNT };
enum tw_line_event { TW_LINE_EVENT_MAP(TW_STATES_ENUM_LINE_EV) TW_LINE_EVENT_COUNT };

extern const char *const tw_site_state_name[TW_SITE_STATE_COUNT];
extern const char *const tw_site_event_name[TW_SITE_EVENT_COUNT];
extern const char *const tw_line_state_name[TW_LINE_STATE_COUNT];
extern const char *const tw_line_event_name[TW_LINE_EVENT_COUNT];

struct tw_transition {
    int next;
    const char *why; /* why the state changes, or why it does not; never NULL */
};

const struct tw_transition *tw_site_go(enum tw_site_state state, enum tw_site_event event);
const struct tw_transition *tw_line_go(enum tw_line_state state, enum tw_line_event event);

#endif
