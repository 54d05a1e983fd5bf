/* SPDX-License-Identifier: Apache-2.0 */
/* api/latest.h - the latest snapshot and the last hour of the site, between the loop that writes and the server
 * that reads.
 *
 * Both sides copy under one lock and work on their copy outside it, so that neither waits for the other's
 * work. */
#ifndef TW_API_LATEST_H
#define TW_API_LATEST_H

#include "base/err.h"
#include "ctl/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_LATEST_POINTS 3600 /* turns that are remembered */
#define TW_LATEST_LEAD 5      /* of a point's forecast, in steps of 5 s after the first: 30 s ahead */
#define TW_LATEST_LEAD_S 30

struct tw_point { /* one turn of the site */
    uint64_t seq;
    double t_s, power_w, budget_w;
    struct tw_snap_band ahead; /* forecast then for TW_LATEST_LEAD_S later */
};

/* A snapshot whose arrays are its own and grow; all zero to start. */
struct tw_snap_copy {
    struct tw_snapshot s;
    size_t gpu_room, job_room;
    int64_t published_us; /* boot clock; 0: nothing yet */
};
void tw_snap_copy_done(struct tw_snap_copy *copy);

struct tw_latest;
struct tw_latest *tw_latest_new(void); /* NULL: no memory */
void tw_latest_free(struct tw_latest *b);

TW_MUST_USE
enum tw_err tw_latest_put(struct tw_latest *b, const struct tw_snapshot *snap, int64_t now_us);

/* TW_ENODATA before the first put, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_latest_get(struct tw_latest *b, struct tw_snap_copy *ret);

/* The points with a seq above since, oldest first, the latest room of them. Returns how many. */
size_t tw_latest_since(struct tw_latest *b, uint64_t since, struct tw_point *ret, size_t room);

#endif
