/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz codec/points: any bytes are read or refused with a reason, inside the arena that tw_points_bytes asked
 * for. */
#include "codec/points.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    /* an exact copy, so that reading past the end is seen */
    char *text = malloc(n ? n : 1);
    if (!text)
        return 0;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)data[i];
    size_t bytes = tw_points_bytes(text, n);
    void *mem = malloc(bytes);
    struct tw_arena a;
    struct tw_points p;
    struct tw_why why = {""};
    tw_arena_init(&a, mem, mem ? bytes : 0);
    enum tw_err err =
        mem ? tw_points_read(text, n, (n & 1) ? TW_POINTS_TOP10 : TW_POINTS_MEAN, &a, &p, &why) : TW_EINVAL;
    assert(err != TW_ENOMEM);
    assert(err == TW_OK || !mem || why.text[0] != '\0');
    for (size_t i = 0; err == TW_OK && i < p.n_jobs; i++) {
        assert(p.job[i].n >= 1 && p.job[i].point[0].throughput > 0.0);
        for (size_t k = 0; k < p.job[i].n; k++)
            assert(p.job[i].point[k].power_w > 0.0 && !isnan(p.job[i].point[k].setting));
    }
    free(mem);
    free(text);
    return 0;
}
