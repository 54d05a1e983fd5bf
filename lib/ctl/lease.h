/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/lease.h - who may cap a GPU, for how long, and what happens to the GPU afterwards: the state machine of
 * the privileged helper, one per GPU.
 *
 * Pure: told the time, told what the device answered, it says what to do next. What it holds to:
 *
 *   - nothing is written before the value found is on disk;
 *   - a lease that ends, or a client that dies, moves the GPU to min(safe value, cap in force): never up;
 *   - the only raises are a limit that the living holder asks for, and putting back the value found, which
 * needs a release with room, a permission, or a client without a budget;
 *   - a limit that somebody else raised is written again at most TW_LEASE_REASSERTS times, then left alone; one
 * that somebody else lowered is left alone at once, since others may have been given the room.
 *
 * Watts; NaN is unknown. Time is the boot clock in microseconds. */
#ifndef TW_CTL_LEASE_H
#define TW_CTL_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define TW_LEASE_TOL_W 0.5           /* two limits nearer than this are the same */
#define TW_LEASE_REASSERTS 3U        /* re-asserts against another writer within TW_LEASE_CALM_US */
#define TW_LEASE_CALM_US 600000000LL /* without drift for so long, the count starts again */
#define TW_LEASE_LOWERINGS 5U        /* failed attempts at the safe value, device answering, before the alarm */
#define TW_LEASE_RESTORES 3U         /* attempts to put back by itself, for a client without a budget */

/* name, what a person reads */
#define TW_LEASE_STATE_MAP(X)                                                                                  \
    X(IDLE, "idle", "not held; nothing of ours is on the device")                                              \
    X(READING, "reading", "asked for; the value found is being read")                                          \
    X(FOUND, "found", "the value found is known and on its way to the disk")                                   \
    X(SAVED, "saved", "held; the value found is on disk; nothing written yet")                                 \
    X(WRITTEN, "written", "held; a limit was written and is not confirmed")                                    \
    X(CONFIRMED, "confirmed", "held; the limit was read back and is enforced")                                 \
    X(EXPIRED, "expired", "holder gone; on its way to the safe value")                                         \
    X(SAFE, "safe", "at the safe value or below; restore pending")                                             \
    X(RESTORING, "restoring", "the value found is being put back")                                             \
    X(RESTORED, "restored", "the value found is back; its copy is being taken off the disk")                   \
    X(CONTESTED, "contested", "ALARM: another writer, or a device that ignores its limit; left alone")

enum tw_lease_state {
#define TW_LEASE_STATE_ENUM(id, name, text) TW_LEASE_##id,
    TW_LEASE_STATE_MAP(TW_LEASE_STATE_ENUM)
#undef TW_LEASE_STATE_ENUM
        TW_LEASE_STATES
};

#define TW_LEASE_EVENT_MAP(X)                                                                                  \
    X(ACQUIRE, "acquire", "a client asks to hold the GPU")                                                     \
    X(SET, "set", "the holder asks for a limit")                                                               \
    X(RELEASE, "release", "the holder gives it back, and the value found may return")                          \
    X(LEAVE, "leave", "the holder gives it back, and there is no room for the value found")                    \
    X(ALLOW, "allow", "the value found may return (controller or operator)")                                   \
    X(LAPSE, "lapse", "the lease ran out")                                                                     \
    X(DEATH, "death", "the holder's connection is gone")                                                       \
    X(BOOT, "boot", "the helper starts and finds the GPU in its saved state")                                  \
    X(TICK, "tick", "time to look, or to try again")                                                           \
    X(DONE, "done", "the device did as asked, by its own reading")                                             \
    X(OFF, "off", "the device answered with another limit than asked")                                         \
    X(FAIL, "fail", "the device refused, or could not be read")                                                \
    X(DRIFT, "drift", "somebody raised the limit")                                                             \
    X(RIVAL, "rival", "somebody raised the limit too often, or the device ignores it")                         \
    X(STORED, "stored", "the saved state is on disk")                                                          \
    X(UNSTORED, "unstored", "the saved state could not be written")

enum tw_lease_event {
#define TW_LEASE_EVENT_ENUM(id, name, text) TW_LEASE_EV_##id,
    TW_LEASE_EVENT_MAP(TW_LEASE_EVENT_ENUM)
#undef TW_LEASE_EVENT_ENUM
        TW_LEASE_EVENTS
};

/* What the caller does next. A job for the device replaces one that has not begun. */
#define TW_LEASE_ACTION_MAP(X)                                                                                 \
    X(NONE, "none")     /* nothing */                                                                          \
    X(REFUSE, "refuse") /* tell the client that this cannot be done in this state */                           \
    X(READ, "read")     /* read the limits */                                                                  \
    X(STORE, "store")   /* write the saved state: every GPU for which tw_lease_is_stored */                    \
    X(WRITE, "write")   /* write ret_w, then read back */                                                      \
    X(LOWER, "lower")   /* read; write ret_w if what is requested lies above it; read back */

enum tw_lease_action {
#define TW_LEASE_ACTION_ENUM(id, name) TW_LEASE_DO_##id,
    TW_LEASE_ACTION_MAP(TW_LEASE_ACTION_ENUM)
#undef TW_LEASE_ACTION_ENUM
        TW_LEASE_ACTIONS
};

extern const char *const tw_lease_state_name[TW_LEASE_STATES];
extern const char *const tw_lease_state_text[TW_LEASE_STATES];
extern const char *const tw_lease_event_name[TW_LEASE_EVENTS];

struct tw_lease_row {
    unsigned char set;    /* 1: the row was written down; a test looks at every one */
    unsigned char next;   /* enum tw_lease_state */
    unsigned char action; /* enum tw_lease_action; WRITE in RESTORING writes the value found */
};
extern const struct tw_lease_row tw_lease_table[TW_LEASE_STATES][TW_LEASE_EVENTS];

struct tw_lease {
    enum tw_lease_state state;
    bool budget;              /* held, or last held, by a client with a budget */
    double safe_w, ceiling_w; /* ceiling: put back where the value found is unknown and somebody allows it */
    double found_w;           /* before us */
    double asked_w;           /* by the holder; what is confirmed and watched */
    double force_w;           /* limit last read: the larger of requested and enforced */
    double requested_w, enforced_w;          /* last read */
    int64_t end_us;                          /* of the lease */
    int64_t drift_us;                        /* of the last drift */
    unsigned reasserts, lowerings, restores; /* counted */
};

void tw_lease_init(struct tw_lease *l, double safe_w, double ceiling_w);

/* One event. now_us: the time. watts: for SET what is asked, for BOOT the value found as saved; else unused.
 * ret_w is written for WRITE and LOWER. Who may send ACQUIRE to a GPU in SAFE or CONTESTED is the caller's to
 * judge (tw_lease_may_acquire). */
enum tw_lease_action tw_lease_step(struct tw_lease *l, enum tw_lease_event ev, int64_t now_us, double watts,
                                   double *ret_w);

/* What a job's answer means in this state: DONE, OFF, FAIL, DRIFT or RIVAL; remembers the readings. ok false:
 * the device refused or could not be read, and the readings are not looked at. */
enum tw_lease_event tw_lease_judge(struct tw_lease *l, int64_t now_us, bool ok, double requested_w,
                                   double enforced_w);

/* A job's readings that nobody waits for any more: only remembered. */
void tw_lease_note(struct tw_lease *l, double requested_w, double enforced_w);

bool tw_lease_is_stored(enum tw_lease_state state); /* belongs on disk */
/* May a client of this kind acquire it? A GPU whose restore is pending only goes to its own kind. */
bool tw_lease_may_acquire(const struct tw_lease *l, bool budget);

#endif
