/* SPDX-License-Identifier: Apache-2.0 */
/* api/view.h - a snapshot as JSON. Keys carry their unit, unknown is null; docs/guide/http.md lists them. */
#ifndef TW_API_VIEW_H
#define TW_API_VIEW_H

#include "api/api.h"
#include "api/latest.h"
#include "sys/buf.h"

/* run tells one life of the daemon from the next: sequence numbers begin again. */
void tw_view_snapshot(struct tw_buf *out, const struct tw_snap_copy *snap, const char *run, double age_s);
void tw_view_history(struct tw_buf *out, const char *run, const struct tw_point *point, size_t n);

/* One server-sent event "tick": what changes from turn to turn, and the n points since the last tick, which had
 * sequence number `after`. */
void tw_view_tick(struct tw_buf *out, const struct tw_snap_copy *snap, const char *run, uint64_t after,
                  const struct tw_point *point, size_t n);

void tw_view_events(struct tw_buf *out, const struct tw_api_event *event, size_t n);
void tw_view_ready(struct tw_buf *out, bool ready, size_t n_gpu, size_t stale, const char *text);

#endif
