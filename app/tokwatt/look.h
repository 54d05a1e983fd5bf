/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - what `gpus` and `doctor` share: one good look at every GPU of a source. */
#ifndef TW_APP_LOOK_H
#define TW_APP_LOOK_H

#include "base/jsonw.h"
#include "io/nvml/nvml.h"
#include "io/registry.h"

struct look {
    const char *source; /* as it was given */
    struct tw_device dev;
    bool nvml, simulated;
    struct tw_nvml_driver driver; /* of nvml */
    size_t n;
    const struct tw_gpu_info *info; /* [n] */
    struct tw_gpu_sample *gpu;      /* [n] the last fresh reading; never fresh: all missing */
    struct tw_nvml_info *nv;        /* [n] of nvml */
};

/* Open the source and read until each GPU was read, and long enough that counters give rates; or for a few
 * seconds. TW_ENODATA: it has no GPU. Else what opening says. */
TW_MUST_USE
enum tw_err look_open(const char *source, struct look *ret, struct tw_why *why);
void look_close(struct look *l);

/* An array `key` of all GPUs, with every channel by its name. */
void look_json(const struct look *l, struct tw_jsonw *w, const char *key);
/* "ok", or what is wrong with GPU i. */
const char *look_state(const struct look *l, size_t i);

#endif
