/* SPDX-License-Identifier: Apache-2.0 */
/* port/source.h - what a back end that reads GPUs fills in.
 *
 * A back end is one const table at the end of its file, named in io/registry.c. Its state sits in the handle,
 * so that two can be open at once. Reading and writing (port/cap.h) are separate tables. Calls come from one
 * thread. */
#ifndef TW_PORT_SOURCE_H
#define TW_PORT_SOURCE_H

#include "base/err.h"
#include "series/site.h"

#define TW_SOURCE_ABI 1

struct tw_source; /* the back end's own */

struct tw_source_ops {
    unsigned abi;     /* TW_SOURCE_ABI */
    const char *name; /* what the configuration says: "sim", "nvml", "prom", "csv" */
    const char *help; /* one line */

    /* MUST. spec is the back end's own text after the name ("sim:seed=1,gpus=64" gives "seed=1,gpus=64"); "" is
     * its default. TW_EINVAL with the word that was wrong, TW_EUNSUPPORTED when the machine lacks it. */
    enum tw_err (*open)(const char *spec, struct tw_source **ret, struct tw_why *why);
    /* MUST. NULL is fine. */
    void (*close)(struct tw_source *src);
    /* MUST. The GPUs and jobs seen now. The arrays are the source's, valid until the next describe or close. */
    enum tw_err (*describe)(struct tw_source *src, const struct tw_gpu_info **ret_gpu, size_t *ret_n_gpu,
                            const struct tw_job_info **ret_job, size_t *ret_n_job, struct tw_why *why);
    /* MUST. One reading of everything into the caller's arrays. A GPU that could not be read is not fresh; only
     * a source that is gone as a whole is an error. */
    enum tw_err (*read)(struct tw_source *src, struct tw_site_sample *sample, struct tw_why *why);
    /* MAY be NULL: let dt_s of simulated time pass. A source that has it runs on its own clock, and the runner
     * decides how fast; a source without it runs on the boot clock. */
    enum tw_err (*advance)(struct tw_source *src, double dt_s, struct tw_why *why);
    /* MAY be NULL: what only a simulation knows, for reports and oracles, never for a policy. True mean power
     * (sum over its GPUs) and throughput of job number `job` when each of its GPUs has the limit cap_w: no
     * noise, settled, pauses left out, a serving job at the load that it has now. TW_EINVAL: no such job. */
    enum tw_err (*truth)(const struct tw_source *src, uint32_t job, double cap_w, double *ret_power_w,
                         double *ret_throughput, struct tw_why *why);
};

#endif
