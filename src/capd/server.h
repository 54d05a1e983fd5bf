/* SPDX-License-Identifier: Apache-2.0 */
/* capd/server.h - the privileged helper: the only program that writes limits.
 *
 * It joins four parts: the protocol (capd/wire.h), what is allowed (capd/rules.h), the state machine of each
 * GPU (ctl/lease.h) and the threads that talk to the devices (capd/worker.h). One thread runs the loop and owns
 * everything but the devices. Every change of state is a line of the audit log; alarms are also logged.
 *
 * Bounds: TW_CAPD_CLIENTS connections, of one user TW_CAPD_CLIENTS_USER; a connection that sends faster than
 * TW_CAPD_RATE a second is read more slowly; one that does not fetch its replies is closed. */
#ifndef TW_CAPD_SERVER_H
#define TW_CAPD_SERVER_H

#include "base/err.h"
#include "capd/rules.h"
#include "capd/worker.h"

#include <stdbool.h>

#define TW_CAPD_CLIENTS 96U
#define TW_CAPD_CLIENTS_USER 72U /* a GPU each of TW_RULES_GPUS, and a few */
#define TW_CAPD_RATE 5000.0      /* requests a second */
#define TW_CAPD_BURST 200.0
#define TW_CAPD_STUCK_S 2.0 /* a device that does not answer for so long is an alarm */

struct tw_capd;

/* Load the saved state, and begin to move every GPU in it to min(safe value, cap in force). rules is copied;
 * dev's ctx must outlive the server; listen_fd is taken over, -1 for none. TW_EPERM, TW_EIO: a path that is not
 * to be trusted, or cannot be written; TW_EPARSE: the audit log was changed. */
TW_MUST_USE
enum tw_err tw_capd_open(const struct tw_rules *rules, const struct tw_worker_device *dev, int listen_fd,
                         struct tw_capd **ret, struct tw_why *why);
/* One turn: wait for something to happen, at most wait_ms or until stop_fd is readable (-1: none), and do it.
 */
void tw_capd_turn(struct tw_capd *s, int stop_fd, int wait_ms);
/* Take no more clients and treat those there are as dead: their GPUs begin to move to the safe value. */
void tw_capd_stop(struct tw_capd *s);
/* Nothing is on its way: no job runs, no state waits for the disk. */
bool tw_capd_is_settled(struct tw_capd *s);
/* Is every GPU idle, held, or at its safe value, with no alarm? */
bool tw_capd_is_well(const struct tw_capd *s);
void tw_capd_close(struct tw_capd *s); /* NULL is fine */

#endif
