/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml/nvml_spec.h - what source and cap of NVML are configured with (nvml.h lists the words). */
#ifndef TW_IO_NVML_SPEC_H
#define TW_IO_NVML_SPEC_H

#include "base/err.h"
#include "port/source.h"

#include <stdbool.h>

struct nv_spec {
    char path[256], sysfs[128];
    double period_s, deadline_s, retry_s;
    bool wait;
};

/* TW_EINVAL with the word that was wrong. */
TW_MUST_USE
enum tw_err nv_spec_parse(const char *text, struct nv_spec *ret, struct tw_why *why);
/* Of an open tw_nvml_source. */
const struct nv_spec *nv_source_spec(const struct tw_source *src);

#endif
