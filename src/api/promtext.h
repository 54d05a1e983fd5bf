/* SPDX-License-Identifier: Apache-2.0 */
/* api/promtext.h - a snapshot as metrics.
 *
 * Two dialects: Prometheus text 0.0.4 and OpenMetrics 1.0. Base units, `_total` on counters, one HELP and TYPE
 * a family; what is unknown is left out, never 0. Job data stands in families of its own: tokwatt_gpu_info
 * joins a GPU to node and job, so that no series is multiplied. */
#ifndef TW_API_PROMTEXT_H
#define TW_API_PROMTEXT_H

#include "api/latest.h"
#include "sys/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_promtext_own { /* the daemon about itself */
    uint64_t requests, refused;
    unsigned streams;
    double age_s; /* of the snapshot */
};

/* snap may be NULL: nothing measured yet. */
void tw_promtext(struct tw_buf *out, const struct tw_snap_copy *snap, const struct tw_promtext_own *own,
                 bool openmetrics);

/* The dialect that an Accept header (NULL is fine) asks for. */
bool tw_promtext_wants_openmetrics(const char *accept);
const char *tw_promtext_type(bool openmetrics);

#endif
