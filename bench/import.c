/* SPDX-License-Identifier: Apache-2.0 */
/* bench_import [MIB]: nvidia-smi CSV to parsed columns in memory, on one core.
 *
 * The text (default 96 MiB) lies unpacked in memory: 8 GPUs without an index, a round every 0.1 s, four
 * columns with units, watts and use walking at random, the form of real logs. Timed is tw_import_text, all of
 * it: recognising the format, parsing, telling the GPUs apart, dealing rows out to eight series with time,
 * watts, use and memory. Then the same through a file in the page cache (tw_import_read), a file packed by
 * gzip, the other formats on smaller texts, and the store, which is told apart. Rates are text bytes over the
 * median of seven runs (best in brackets). Where python3 has pandas or polars, they read the same file into
 * columns with a parsed time beside us. */
#include "base/rng.h"
#include "io/file/import.h"
#include "store/store.h"
#include "sys/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { RUNS = 7, GPUS = 8 };

static char folder[] = "/tmp/tokwatt-bench-XXXXXX";

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_import: %s\n", what);
    exit(2);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct text {
    char *at;
    size_t n, rows;
};

/* One more line; make_*() keep 8 KiB in hand. */
#define ADD(t, ...) ((t)->n += (size_t)snprintf((t)->at + (t)->n, 4000, __VA_ARGS__))

static struct text make_smi(size_t bytes)
{
    struct text t = {malloc(bytes + 8192), 0, 0};
    struct tw_rng rng;
    double watts[GPUS];
    if (!t.at)
        die("out of memory");
    tw_rng_init(&rng, 1, 0);
    for (int g = 0; g < GPUS; g++)
        watts[g] = 300.0;
    ADD(&t, "timestamp, power.draw [W], utilization.gpu [%%], memory.used [MiB]\n");
    for (int64_t round = 0; t.n < bytes; round++)
        for (int g = 0; g < GPUS; g++, t.rows++) {
            int64_t ms = round * 100 + (g > 3);
            watts[g] += tw_rng_normal(&rng) * 20.0 + (300.0 - watts[g]) * 0.05;
            double w = watts[g] < 60.0 ? 60.0 : watts[g];
            ADD(&t, "2025/07/%02d %02d:%02d:%02d.%03d, %.2f W, %d %%, %d MiB\n", (int)(1 + ms / 86400000 % 28),
                (int)(ms / 3600000 % 24), (int)(ms / 60000 % 60), (int)(ms / 1000 % 60), (int)(ms % 1000), w,
                (int)tw_rng_below(&rng, 101), 41185 + g);
        }
    return t;
}

static struct text make_dcgm(size_t bytes)
{
    struct text t = {malloc(bytes + 8192), 0, 0};
    struct tw_rng rng;
    if (!t.at)
        die("out of memory");
    tw_rng_init(&rng, 2, 0);
    ADD(&t, "timestamp,phase,gpu,gpu_model,power_w,temp_c,mem_used_mib,gpu_util_pct,sm_active,tensor_active,"
            "dram_active,"
            "pcie_tx_bytes_s,throttle_reasons,energy_mj\n");
    for (int64_t round = 0; t.n < bytes; round++)
        for (int g = 0; g < GPUS; g++, t.rows++)
            ADD(&t, "%lld.%03d,steady,%d,NVIDIA H100 80GB HBM3,%.1f,%d,%d,%d,%.6f,%.6f,%.6f,%d,0,%lld\n",
                (long long)(1775016266 + round / 10), (int)(round % 10 * 100), g,
                200.0 + 400.0 * tw_rng_f64(&rng), 40 + (int)tw_rng_below(&rng, 30), 70000 + g,
                (int)tw_rng_below(&rng, 101), tw_rng_f64(&rng), tw_rng_f64(&rng), tw_rng_f64(&rng),
                (int)tw_rng_below(&rng, 99999999), (long long)(238749445947 + round * 40000));
    return t;
}

static struct text make_mlperf(size_t bytes)
{
    struct text t = {malloc(bytes + 8192), 0, 0};
    struct tw_rng rng;
    if (!t.at)
        die("out of memory");
    tw_rng_init(&rng, 3, 0);
    for (; t.n < bytes; t.rows++)
        ADD(&t,
            ":::MLLOG {\"namespace\": \"\", \"time_ms\": %lld, \"event_type\": \"POINT_IN_TIME\", \"key\": "
            "\"power_reading\", \"value\": %d, \"metadata\": \"\"}\r\n",
            1715960308411 + (long long)t.rows * 2005, 5000 + (int)tw_rng_below(&rng, 3000));
    return t;
}

/* --- timing -------------------------------------------------------------------------------------------------
 */

typedef enum tw_err (*read_fn)(const struct text *t, const char *path, struct tw_import **ret,
                               struct tw_why *why);

static enum tw_err from_memory(const struct text *t, const char *path, struct tw_import **ret,
                               struct tw_why *why)
{
    (void)path;
    return tw_import_text(t->at, t->n, ret, why);
}

static enum tw_err from_file(const struct text *t, const char *path, struct tw_import **ret, struct tw_why *why)
{
    (void)t;
    return tw_import_read(path, ret, why);
}

struct times {
    double wall_s[RUNS], cpu_s[RUNS];
    int n;
};

static double cpu_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void start(struct times *t)
{
    t->wall_s[t->n] = -(double)tw_boot_us() * 1e-6;
    t->cpu_s[t->n] = -cpu_now();
}

static void stop(struct times *t)
{
    t->wall_s[t->n] += (double)tw_boot_us() * 1e-6;
    t->cpu_s[t->n++] += cpu_now();
}

static void show(const char *what, const struct text *text, struct times *t)
{
    qsort(t->wall_s, (size_t)t->n, sizeof *t->wall_s, by_value);
    qsort(t->cpu_s, (size_t)t->n, sizeof *t->cpu_s, by_value);
    double wall_s = t->wall_s[t->n / 2], cpu_s = t->cpu_s[t->n / 2];
    printf("%-42s %5.0f MB/s wall, %5.0f MB/s cpu, %6.2f M rows/s cpu\n", what, (double)text->n / wall_s * 1e-6,
           (double)text->n / cpu_s * 1e-6, (double)text->rows / cpu_s * 1e-6);
}

static struct tw_import *one_run(read_fn read, const struct text *t, const char *path, struct times *times)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    start(times);
    if (read(t, path, &imp, &why))
        die(why.text);
    stop(times);
    if (imp->rows != t->rows || tw_reject_total(imp->rejected))
        die("rows were lost");
    return imp;
}

static void time_read(const char *what, read_fn read, const struct text *t, const char *path)
{
    struct times times = {.n = 0};
    for (int i = 0; i < RUNS; i++)
        tw_import_free(one_run(read, t, path, &times));
    show(what, t, &times);
}

static void time_store(const struct text *t, const char *path)
{
    struct times times = {.n = 0}, unused = {.n = 0};
    struct tw_why why = {{0}};
    struct tw_store *store;
    struct tw_import *imp = one_run(from_memory, t, NULL, &unused);
    struct tw_store_source source = {.path = "/bench", .format = imp->format};
    if (tw_store_open(path, true, &store, &why))
        die(why.text);
    while (times.n < 3) {
        start(&times);
        if (tw_store_put(store, &source, imp->series, imp->n_series, &why))
            die(why.text);
        stop(&times);
    }
    tw_store_close(store);
    tw_import_free(imp);
    show("columns into the store, replacing", t, &times);
}

static void put_file(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(t->at, 1, t->n, f) != t->n || fclose(f) != 0)
        die("cannot write into /tmp");
}

static void put_gzip(const char *path, const struct text *t)
{
    gzFile f = gzopen(path, "wb6");
    if (!f || gzwrite(f, t->at, (unsigned)t->n) != (int)t->n || gzclose(f) != Z_OK)
        die("cannot write into /tmp");
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 96) << 20;
    char path[64], command[256];
    if (bytes < 1 << 20 || bytes > (size_t)1 << 30)
        die("a size of 1 to 1024 MiB");
    if (!mkdtemp(folder))
        die("no folder in /tmp");
    struct text t = make_smi(bytes);
    printf("nvidia-smi CSV, %d GPUs without index, %.0f MB, %zu rows; one thread, median of %d\n", GPUS,
           (double)t.n * 1e-6, t.rows, RUNS);
    time_read("text in memory to columns (target 400)", from_memory, &t, NULL);
    (void)snprintf(path, sizeof path, "%s/smi.csv", folder);
    put_file(path, &t);
    time_read("file in the page cache to columns", from_file, &t, path);
    (void)fflush(stdout);
    (void)snprintf(command, sizeof command, "python3 bench/peers/import_pandas.py %s", path);
    if (system(command) != 0)
        printf("pandas and polars: not run\n");
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/store.db", folder);
    time_store(&t, path);
    t.n = 0;
    free(t.at);

    t = make_smi(bytes / 8);
    (void)snprintf(path, sizeof path, "%s/smi.csv.gz", folder);
    put_gzip(path, &t);
    time_read("the same by gzip (rate of unpacked text)", from_file, &t, path);
    free(t.at);
    t = make_dcgm(bytes / 4);
    time_read("DCGM CSV, 14 columns, 9 of them values", from_memory, &t, NULL);
    free(t.at);
    t = make_mlperf(bytes / 4);
    time_read("MLPerf power log", from_memory, &t, NULL);
    free(t.at);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : 2;
}
