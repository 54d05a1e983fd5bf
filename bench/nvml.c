/* SPDX-License-Identifier: Apache-2.0 */
/* What reading NVML costs: the source at 10 Hz for as many seconds as are asked for (default 20), in processor
 * time and memory of this process; and beside it the calls alone, made one after the other in a loop, which is
 * what the driver (here the fake one, its simulation included) takes. The library is TW_NVML_PATH, or the fake
 * of the build. */
#include "io/nvml/nvml.h"
#include "io/nvml/nvml_read.h"
#include "io/registry.h"
#include "sys/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define GPU_MAX 64
#define PASSES 2000

static double cpu_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double rss_mb(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024.0;
}

/* Processor seconds a call, over passes as the source makes them: quick ones, and every tenth whole. */
static double call_cost(const char *path)
{
    static struct nv_gpu g;
    struct nv_lib lib = {0};
    struct nv_device *dev = NULL;
    struct tw_why why = {""};
    if (nv_lib_open(path, &lib, &why) != TW_OK || lib.by_index(0, &dev) != NV_OK) {
        fprintf(stderr, "bench_nvml: %s\n", why.text);
        exit(2);
    }
    nv_gpu_take(&g, &lib, dev);
    unsigned before = g.calls;
    double from_s = cpu_s();
    int64_t now_us = tw_boot_us();
    for (int i = 0; i < PASSES; i++)
        if (nv_gpu_pass(&g, now_us += 100000) != NV_OK)
            exit(2);
    double cost_s = (cpu_s() - from_s) / (double)(g.calls - before);
    nv_gpu_drop(&g);
    nv_lib_close(&lib);
    return cost_s;
}

int main(int argc, char **argv)
{
    const char *path = getenv("TW_NVML_PATH") ? getenv("TW_NVML_PATH") : FAKE_NVML_DIR;
    int span_s = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
    double call_s = call_cost(path);
    char text[600];
    (void)snprintf(text, sizeof text, "nvml:period=100ms,path=%s", path);
    struct tw_device dev;
    struct tw_why why = {""};
    const struct tw_gpu_info *gpu = NULL;
    const struct tw_job_info *job = NULL;
    size_t n = 0, n_job = 0;
    if (tw_device_open(text, &dev, &why) != TW_OK ||
        dev.source_ops->describe(dev.source, &gpu, &n, &job, &n_job, &why) != TW_OK || n > GPU_MAX) {
        fprintf(stderr, "bench_nvml: %s\n", why.text);
        return 2;
    }
    static struct tw_gpu_sample gs[GPU_MAX];
    struct tw_job_sample js;
    struct tw_site_sample sample = {.gpu = gs, .job = &js};
    unsigned long fresh = 0;
    double from_s = cpu_s();
    for (int i = 0; i < 10 * span_s; i++) {
        struct timespec nap = {.tv_sec = 0, .tv_nsec = 100000000};
        (void)nanosleep(&nap, NULL);
        if (dev.source_ops->read(dev.source, &sample, &why) != TW_OK)
            return 2;
        for (size_t k = 0; k < n; k++)
            fresh += gs[k].fresh ? 1U : 0U;
    }
    double used_s = (cpu_s() - from_s) / span_s, calls = 0.0;
    for (size_t k = 0; k < n; k++) {
        struct tw_nvml_info info;
        tw_nvml_look(dev.source, k, &info);
        calls += info.calls_per_s;
    }
    printf("%zu GPUs at 10 Hz for %d s, %s\n", n, span_s, gpu[0].model);
    printf("processor       %.3f %% of a core; of it %.3f %% in %.0f NVML calls/s at %.1f us each\n",
           100.0 * used_s, 100.0 * calls * call_s, calls, 1e6 * call_s);
    printf("without them    %.3f %% of a core\n", 100.0 * (used_s - calls * call_s));
    printf("fresh readings  %.1f a second and GPU\n", (double)fresh / (double)n / span_s);
    printf("memory          %.1f MB resident at most\n", rss_mb());
    tw_device_close(&dev);
    return 0;
}
