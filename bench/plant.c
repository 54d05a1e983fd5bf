/* SPDX-License-Identifier: Apache-2.0 */
/* How fast simulated time runs: an hour of the default site, alone and read once a second. One thread. */
#include "io/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HOUR 3600
#define RUNS 3

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void hour(const char *text, bool reads)
{
    struct tw_why why = {""};
    struct tw_device dev;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu, n_job;
    if (tw_device_open(text, &dev, &why) != TW_OK ||
        dev.source_ops->describe(dev.source, &gpu, &n_gpu, &job, &n_job, &why) != TW_OK) {
        fprintf(stderr, "bench_plant: %s\n", why.text);
        exit(2);
    }
    struct tw_site_sample sample = {.gpu = calloc(n_gpu, sizeof *sample.gpu),
                                    .job = calloc(n_job, sizeof *sample.job)};
    if (!sample.gpu || !sample.job)
        exit(2);
    double best = 1e9;
    for (int r = 0; r < RUNS; r++) {
        double from = cpu_s();
        for (int t = 0; t < HOUR; t++)
            if (dev.source_ops->advance(dev.source, 1.0, &why) != TW_OK ||
                (reads && dev.source_ops->read(dev.source, &sample, &why) != TW_OK))
                exit(2);
        double took = cpu_s() - from;
        best = took < best ? took : best;
    }
    printf("%-24s %-22s %.3f s of CPU for an hour, %.0f x the clock\n", text,
           reads ? "read once a second" : "not read", best, HOUR / best);
    free(sample.gpu);
    free(sample.job);
    tw_device_close(&dev);
}

int main(void)
{
    printf("simulated site at 10 Hz inside, best of %d, CPU time of one thread\n", RUNS);
    hour("sim", false);
    hour("sim", true);
    hour("sim:gpus=512,jobs=80", true);
    return 0;
}
