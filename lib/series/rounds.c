/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds. The steps between rows fall into two heaps, within a round and between rounds; the border is where
 * the two heaps are furthest apart (Otsu 1979), on a logarithmic scale as the heaps differ by a factor. */
#include "series/rounds.h"

#include "base/stat.h"

#include <math.h>
#include <stdbool.h>

#define SAMPLES 2048
#define BLOCKS 8
#define LOOK_AHEAD 3
/* Steps of a few blocks spread over the recording: a recording may begin or end in an odd state. */
static size_t take_steps(const int64_t *time_us, size_t n, double *step_us)
{
    size_t want = n - 1 < SAMPLES ? n - 1 : SAMPLES, block = want / BLOCKS + 1, got = 0;
    for (size_t b = 0; b < BLOCKS && got < want; b++) {
        size_t from = want == n - 1 ? got : b * ((n - 1 - block) / (BLOCKS - 1));
        for (size_t i = from; i < from + block && i + 1 < n && got < want; i++) {
            int64_t step = time_us[i + 1] - time_us[i];
            step_us[got++] = (double)(step > 0 ? step : 0);
        }
    }
    return got;
}

/* The border between two heaps of sorted x: x[0..ret) and x[ret..n). 0 when they are no two heaps. */
static size_t two_heaps(const double *x, size_t n)
{
    double sum = 0.0, below = 0.0, best = 0.0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 1; i < n; i++) {
        below += x[i - 1];
        double d = below / (double)i - (sum - below) / (double)(n - i);
        double between = (double)i * (double)(n - i) * d * d;
        if (x[i] > x[i - 1] && between > best) {
            best = between;
            at = i;
        }
    }
    if (at == 0)
        return 0;
    double low = x[at / 2], high = x[at + (n - at) / 2];
    return high - low > log(3.0) ? at : 0;
}

/* The commonest distance between gaps, or 1. */
static size_t common_distance(const int64_t *time_us, size_t n, int64_t gap_us)
{
    size_t count[TW_ROUNDS_MAX + 1] = {0}, total = 0, best = 1, last = 0;
    for (size_t i = 1; i < n; i++) {
        if (time_us[i] - time_us[i - 1] < gap_us)
            continue;
        if (last && i - last <= TW_ROUNDS_MAX)
            count[i - last]++;
        total += last != 0;
        last = i;
    }
    for (size_t d = 1; d <= TW_ROUNDS_MAX; d++)
        if (count[d] > count[best])
            best = d;
    return total >= 2 && count[best] * 2 > total ? best : 1;
}

size_t tw_rounds_find(const int64_t *time_us, size_t n, int64_t *ret_gap_us)
{
    double x[SAMPLES];
    *ret_gap_us = 0;
    if (n < 4)
        return 1;
    size_t got = take_steps(time_us, n, x);
    tw_stat_sort(x, got);
    /* Zero has no logarithm, and 0 and 1 ms are the same to us: all steps get a twentieth of a long one. */
    double tick_us = 1.0 + tw_stat_quantile_sorted(x, got, 0.99) / 20.0;
    for (size_t i = 0; i < got; i++)
        x[i] = log(x[i] + tick_us);
    size_t at = two_heaps(x, got);
    if (at == 0 || (got - at) * TW_ROUNDS_MAX * 2 < got)
        return 1;
    int64_t gap_us = (int64_t)(exp(0.5 * (x[at - 1] + x[at])) - tick_us);
    size_t things = common_distance(time_us, n, gap_us);
    if (things > 1)
        *ret_gap_us = gap_us;
    return things;
}

static bool is_gap(const int64_t *time_us, size_t n, size_t i, int64_t gap_us)
{
    return i < n && time_us[i] - time_us[i - 1] >= gap_us;
}

/* Row i stands at `who` > 0 of its round and a gap comes before it. Does a new round begin here? */
static bool starts_round(const int64_t *time_us, size_t n, size_t i, size_t things, size_t who, int64_t gap_us)
{
    size_t here = 0, as_numbered = 0, seen = 0;
    for (size_t k = 0; k < LOOK_AHEAD; k++) {
        seen += i + (k + 1) * things < n;
        here += is_gap(time_us, n, i + (k + 1) * things, gap_us);
        as_numbered += is_gap(time_us, n, i + (things - who) + k * things, gap_us);
    }
    return here == seen && here > as_numbered + 1; /* one of those may be a split round */
}

size_t tw_rounds_assign(const int64_t *time_us, const uint32_t *line, size_t n, size_t n_things, int64_t gap_us,
                        uint32_t *ret_who)
{
    size_t who = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            who += line[i] - line[i - 1];
            if (who >= n_things)
                who %= n_things;
            if (who != 0 && is_gap(time_us, n, i, gap_us) &&
                starts_round(time_us, n, i, n_things, who, gap_us)) {
                who = 0;
                moved++;
            }
        }
        ret_who[i] = (uint32_t)who;
    }
    return moved;
}
