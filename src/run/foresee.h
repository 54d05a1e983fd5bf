/* SPDX-License-Identifier: Apache-2.0 */
/* run/foresee.h - forecasts of every GPU and of the site as they run, and how good they have been so far.
 *
 * Once a second: every GPU's power is pushed into the forecaster (model/forecaster.h), and its means over the
 * next 30 and 60 s, and the path of the site with its band, go into the snapshot. Each forecast is scored when
 * its time has come, against the two naive ones made at the same second: the last value, and the mean of the 60
 * s before. Skill is 1 - MAE / the smaller of theirs, over all GPUs and all seconds so far that had a minute of
 * past and an unbroken future. */
#ifndef TW_RUN_FORESEE_H
#define TW_RUN_FORESEE_H

#include "base/err.h"
#include "ctl/snapshot.h"
#include "series/site.h"

#include <stddef.h>

struct tw_foresee;

/* The model in file [n_file], for these GPUs. TW_ENOMEM, and what tw_forecaster_init says. */
TW_MUST_USE
enum tw_err tw_foresee_open(const void *file, size_t n_file, const struct tw_gpu_info *gpu, size_t n_gpu,
                            struct tw_foresee **ret, struct tw_why *why);
void tw_foresee_close(struct tw_foresee *f); /* NULL is fine */

/* One second. A GPU's forecast, and each naive one, ends at the limit enforced on it. The band of the site is
 * made of its errors since the state of the event last changed, and ends at the budget in force. Fills
 * gpu[].mean30, gpu[].mean60, path, skill_mean30, skill_mean60 of snap. Allocates nothing. */
void tw_foresee_push(struct tw_foresee *f, const struct tw_site_sample *sample, struct tw_snapshot *snap);

#endif
