/* SPDX-License-Identifier: Apache-2.0 */
/* series/rounds.h - whose row is it, when the recording does not say?
 *
 * nvidia-smi prints the GPUs of a server in turn, round after round, and without an index column nothing but
 * the order tells them apart: the rows of a round follow each other within milliseconds, and a longer gap comes
 * before the next round. Rounds are not clean: one can be split by a pause as long as that gap, and rows can be
 * lost (real logs lose part of a round at a hole of several seconds). So the number of GPUs is the commonest
 * distance between gaps, rows are numbered by their line, and the numbering is moved only where the gaps of the
 * next three rounds all say so. */
#ifndef TW_SERIES_ROUNDS_H
#define TW_SERIES_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#define TW_ROUNDS_MAX 64

/* How many take turns in rows at time_us[n]: 1 when there are no rounds to be seen. *ret_gap_us is the shortest
 * gap between rounds (0 when the answer is 1). */
size_t tw_rounds_find(const int64_t *time_us, size_t n, int64_t *ret_gap_us);

/* ret_who[i] in 0 .. n_things - 1 for each row. line[n], ascending, counts rows that could not be read as well,
 * so that they keep their place in the round. Returns how often the numbering was moved. */
size_t tw_rounds_assign(const int64_t *time_us, const uint32_t *line, size_t n, size_t n_things, int64_t gap_us,
                        uint32_t *ret_who);

#endif
