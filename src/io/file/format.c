/* SPDX-License-Identifier: Apache-2.0 */
/* The formats, and what the columns of CSV recordings mean. A slot of the codec is a channel here. */
#include "io/file/format.h"

#include "series/channel.h"

#include <assert.h>
#include <string.h>

static_assert(TW_CH_COUNT <= TW_ROWS_SLOTS, "a slot for each channel");

#define TIME(name, kind)                                                                                       \
    {                                                                                                          \
        name, TW_CSV_##kind, 0, false, false, 0, 0, ""                                                         \
    }
#define WHO(name, kind)                                                                                        \
    {                                                                                                          \
        name, TW_CSV_##kind, 0, false, false, 0, 0, ""                                                         \
    }
#define POWER(name, unit)                                                                                      \
    {                                                                                                          \
        name, TW_CSV_VALUE, TW_CH_POWER_W, false, true, 0, 0, unit                                             \
    }
#define WIDE_POWER(ending)                                                                                     \
    {                                                                                                          \
        ending, TW_CSV_VALUE, TW_CH_POWER_W, true, true, 0, 0, ""                                              \
    }
#define VALUE(name, ch, exp10, exp2, unit)                                                                     \
    {                                                                                                          \
        name, TW_CSV_VALUE, TW_CH_##ch, false, false, exp10, exp2, unit                                        \
    }
#define BITS(name, ch)                                                                                         \
    {                                                                                                          \
        name, TW_CSV_BITS, TW_CH_##ch, false, false, 0, 0, ""                                                  \
    }

/* Where two columns of a file mean the same, the one that stands first here is taken. */
static const struct tw_csv_name column[] = {
    /* nvidia-smi --query-gpu */
    TIME("timestamp", WALL),
    WHO("uuid", ID),
    WHO("gpu_uuid", ID),
    WHO("index", INDEX),
    WHO("name", MODEL),
    WHO("gpu_name", MODEL),
    POWER("power.draw", "W"),
    POWER("power.draw.average", "W"),
    VALUE("power.draw.instant", POWER_INSTANT_W, 0, 0, "W"),
    VALUE("power.limit", CAP_W, 0, 0, "W"),
    VALUE("enforced.power.limit", CAP_ENFORCED_W, 0, 0, "W"),
    VALUE("utilization.gpu", UTIL_FRAC, -2, 0, "%"),
    VALUE("utilization.memory", MEM_COPY_UTIL_FRAC, -2, 0, "%"),
    VALUE("memory.used", MEM_USED_BYTES, 0, 20, "MiB"),
    VALUE("clocks.current.sm", SM_CLOCK_HZ, 6, 0, "MHz"),
    VALUE("clocks.sm", SM_CLOCK_HZ, 6, 0, "MHz"),
    VALUE("clocks.current.memory", MEM_CLOCK_HZ, 6, 0, "MHz"),
    VALUE("clocks.mem", MEM_CLOCK_HZ, 6, 0, "MHz"),
    VALUE("temperature.gpu", TEMP_C, 0, 0, "C"),
    BITS("clocks_event_reasons.active", THROTTLE_BITS),
    BITS("clocks_throttle_reasons.active", THROTTLE_BITS),
    /* DCGM and NVML dumps */
    TIME("t_s", SINCE),
    TIME("t", SINCE),
    WHO("gpu", INDEX),
    WHO("gpu_index", INDEX),
    WHO("gpu_model", MODEL),
    POWER("power_w", ""),
    POWER("measured_w", ""),
    VALUE("pcap_command", CAP_W, 0, 0, ""),
    VALUE("pcap_set", CAP_W, 0, 0, ""),
    VALUE("temp_c", TEMP_C, 0, 0, ""),
    VALUE("temperature_c", TEMP_C, 0, 0, ""),
    VALUE("mem_used_mib", MEM_USED_BYTES, 0, 20, ""),
    VALUE("gpu_util_pct", UTIL_FRAC, -2, 0, ""),
    VALUE("mem_util_pct", MEM_COPY_UTIL_FRAC, -2, 0, ""),
    VALUE("util_gpu", UTIL_FRAC, 0, 0, ""),
    VALUE("util_mem", MEM_COPY_UTIL_FRAC, 0, 0, ""),
    VALUE("sm_active", SM_ACTIVE_FRAC, 0, 0, ""),
    VALUE("tensor_active", TENSOR_ACTIVE_FRAC, 0, 0, ""),
    VALUE("dram_active", DRAM_ACTIVE_FRAC, 0, 0, ""),
    VALUE("sm_clock_mhz", SM_CLOCK_HZ, 6, 0, ""),
    VALUE("mem_clock_mhz", MEM_CLOCK_HZ, 6, 0, ""),
    VALUE("pcie_tx_bytes_s", PCIE_TX_BYTES_S, 0, 0, ""),
    VALUE("pcie_rx_bytes_s", PCIE_RX_BYTES_S, 0, 0, ""),
    VALUE("nvlink_tx_bytes_s", NVLINK_TX_BYTES_S, 0, 0, ""),
    VALUE("nvlink_rx_bytes_s", NVLINK_RX_BYTES_S, 0, 0, ""),
    VALUE("energy_mj", ENERGY_J, -3, 0, ""),
    BITS("throttle_reasons", THROTTLE_BITS),
/* our own recordings: every channel by its name; where another format has that name it stands above */
#define OWN(id, name, ...) VALUE(name, id, 0, 0, ""),
    TW_CHANNEL_MAP(OWN)
#undef OWN
    /* whole servers */
    POWER("sys_power_w", ""),
    WIDE_POWER("_watts"),
};

/* The first line that is not blank; an empty one when there is none. */
static const char *header_of(const char *text, size_t n, size_t *ret_n)
{
    const char *end = text + n;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < end && (*text == '\n' || *text == '\r' || *text == ' '))
        text++;
    const char *eol = memchr(text, '\n', (size_t)(end - text));
    *ret_n = eol ? (size_t)(eol - text) : 0;
    return text;
}

static bool header_has(const char *text, size_t n, const char *const words[])
{
    size_t len;
    const char *line = header_of(text, n, &len);
    for (; *words; words++)
        if (!memmem(line, len, *words, strlen(*words)))
            return false;
    return len > 0;
}

static bool recognise_own(const char *text, size_t n)
{
    size_t len;
    const char *line = header_of(text, n, &len);
    return len > 13 && memcmp(line, "t_s,gpu_uuid,", 13) == 0 &&
           header_has(text, n, (const char *const[]){",power_w,", ",cap_w,", NULL});
}

static bool recognise_smi(const char *text, size_t n)
{
    return header_has(text, n, (const char *const[]){"timestamp", ",", "power.draw", NULL});
}

static bool recognise_dcgm(const char *text, size_t n)
{
    return header_has(text, n, (const char *const[]){"timestamp,", ",gpu,", ",power_w", NULL});
}

static bool recognise_bmc(const char *text, size_t n)
{
    return header_has(text, n, (const char *const[]){"timestamp,", ",sys_power_w", NULL}) ||
           header_has(text, n, (const char *const[]){"timestamp,", "_watts", NULL});
}

static bool recognise_nvml(const char *text, size_t n)
{
    size_t len;
    const char *line = header_of(text, n, &len);
    bool relative = (len > 4 && memcmp(line, "t_s,", 4) == 0) || (len > 2 && memcmp(line, "t,", 2) == 0);
    return relative && header_has(text, n, (const char *const[]){",power_w", NULL});
}

static bool recognise_trajectory(const char *text, size_t n)
{
    return header_has(text, n, (const char *const[]){"t,", "demand_w,", "measured_w,", NULL});
}

static enum tw_err start_csv(struct tw_reader *r, const char *text, size_t n, size_t *ret_used,
                             struct tw_why *why)
{
    struct tw_csv_bounds bounds[TW_ROWS_SLOTS] = {{0}};
    for (int i = 0; i < TW_CH_COUNT; i++)
        bounds[i] = (struct tw_csv_bounds){tw_channel_table[i].lowest, tw_channel_table[i].highest};
    struct tw_csv *csv = &r->as.csv;
    enum tw_err err = tw_csv_start(csv, text, n, column, sizeof column / sizeof *column, bounds, ret_used, why);
    if (err)
        return err;
    r->lines = &csv->lines;
    r->keys = csv->has_key || csv->wide ? &csv->keys : NULL;
    r->wall = csv->wall;
    memcpy(r->slot_used, csv->slot_used, sizeof r->slot_used);
    return TW_OK;
}

static size_t feed_csv(struct tw_reader *r, const char *text, size_t n, bool cut, struct tw_rows *rows)
{
    return tw_csv_feed(&r->as.csv, text, n, cut, rows);
}

static enum tw_err start_mllog(struct tw_reader *r, const char *text, size_t n, size_t *ret_used,
                               struct tw_why *why)
{
    (void)text, (void)n, (void)why;
    memset(&r->as.mllog, 0, sizeof r->as.mllog);
    r->lines = &r->as.mllog.lines;
    r->wall = true;
    r->slot_used[TW_CH_POWER_W] = true;
    *ret_used = 0;
    return TW_OK;
}

static size_t feed_mllog(struct tw_reader *r, const char *text, size_t n, bool cut, struct tw_rows *rows)
{
    return tw_mllog_feed(&r->as.mllog, text, n, cut, TW_CH_POWER_W, rows);
}

static enum tw_err start_ptd(struct tw_reader *r, const char *text, size_t n, size_t *ret_used,
                             struct tw_why *why)
{
    (void)text, (void)n, (void)why;
    memset(&r->as.ptd, 0, sizeof r->as.ptd);
    r->lines = &r->as.ptd.lines;
    r->wall = true;
    r->slot_used[TW_CH_POWER_W] = true;
    *ret_used = 0;
    return TW_OK;
}

static size_t feed_ptd(struct tw_reader *r, const char *text, size_t n, bool cut, struct tw_rows *rows)
{
    return tw_ptd_feed(&r->as.ptd, text, n, cut, TW_CH_POWER_W, rows);
}

const struct tw_format tw_format_table[] = {
    {"tokwatt-csv", "written by tokwatt record", TW_ANON_GPU, false, recognise_own, start_csv, feed_csv},
    {"nvidia-smi-csv", "nvidia-smi query as CSV, with timestamp and power.draw", TW_ANON_ROUNDS, false,
     recognise_smi, start_csv, feed_csv},
    {"dcgm-csv", "DCGM fields, one row a GPU, Unix time", TW_ANON_GPU, false, recognise_dcgm, start_csv,
     feed_csv},
    {"bmc-csv", "power of whole servers from their BMC", TW_ANON_SERVER, true, recognise_bmc, start_csv,
     feed_csv},
    {"nvml-csv", "NVML fields, seconds since the start", TW_ANON_GPU, false, recognise_nvml, start_csv,
     feed_csv},
    {"cap-trajectory-csv", "a cap controller's log of one GPU, seconds since the start", TW_ANON_GPU, false,
     recognise_trajectory, start_csv, feed_csv},
    {"mlperf-power", "MLPerf training power log, :::MLLOG power_reading", TW_ANON_SERVER, false,
     tw_mllog_recognise, start_mllog, feed_mllog},
    {"ptdaemon", "SPEC PTDaemon log, spl.txt of MLPerf inference", TW_ANON_SERVER, false, tw_ptd_recognise,
     start_ptd, feed_ptd},
};
const size_t tw_format_count = sizeof tw_format_table / sizeof *tw_format_table;

const struct tw_format *tw_format_of(const char *text, size_t n)
{
    for (size_t i = 0; i < tw_format_count; i++)
        if (tw_format_table[i].recognise(text, n))
            return &tw_format_table[i];
    return NULL;
}
