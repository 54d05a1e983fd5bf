/* SPDX-License-Identifier: Apache-2.0 */
/* train/cover.h - does the 80 % band hold everywhere, or only on average?
 *
 * Coverage of the four targets that are heads (point 30 and 60, mean 30 and 60) by stretch: ten minutes of a
 * run, all of its series together. A stretch counts when windows of at least half its length stand in it. And
 * coverage and interval score in the 120 s after a level shift: the mean over 5 s lies at least a fifth of the
 * board limit above or below that of the 5 s which ended ten seconds before they began. The board limit is not
 * in recordings: the highest value of the set stands for it. */
#ifndef TW_TRAIN_COVER_H
#define TW_TRAIN_COVER_H

#include "train/score.h"

enum { TW_COVER_TARGETS = 4 }; /* the first of tw_target_table */

struct tw_cover_score {
    size_t stretches, outside; /* outside: coverage below 0.65 or above 0.95 */
    double worst_low, worst_high;
    size_t shift_windows;
    double shift_coverage, shift_interval_w;
};

struct tw_cover;

size_t tw_cover_bytes(const struct tw_dataset *ds, enum tw_part part);
struct tw_cover *tw_cover_init(const struct tw_dataset *ds, enum tw_part part,
                               void *mem); /* mem aligned to 64 */
/* A window, as tw_served hands it over. */
void tw_cover_add(struct tw_cover *c, const struct tw_track *t, size_t step,
                  const float out_w[static TW_OUTPUTS]);
/* NaN where nothing was counted. */
void tw_cover_result(const struct tw_cover *c, size_t target, struct tw_cover_score *ret);

#endif
