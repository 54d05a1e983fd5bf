/* SPDX-License-Identifier: Apache-2.0 */
/* Reading recordings: numbers and times against the C library, the turns of GPUs, every oddity that was met in
 * a real file (in short texts of our own), gzip whole, cut and damaged. */
#include "base/rng.h"
#include "codec/decimal.h"
#include "codec/segment.h"
#include "codec/stamp.h"
#include "io/file/import.h"
#include "series/rounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

/* --- numbers ------------------------------------------------------------------------------------------------
 */

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_decimal(const char *text, int exp10)
{
    char want_text[400], line[200];
    double got = -1.0;
    (void)snprintf(line, sizeof line, "%s\n", text);
    const char *end = tw_decimal_f64(line, exp10, &got);
    assert_non_null(end);
    assert_int_equal(*end, '\n');
    const char *e = strpbrk(text, "eE");
    long written = e ? strtol(e + 1, NULL, 10) : 0;
    size_t n = strcspn(text, "eE");
    memcpy(want_text, text, n);
    (void)snprintf(want_text + n, sizeof want_text - n, "e%ld", written + exp10);
    double want = strtod(want_text, NULL);
    if (!same_bits(got, want))
        fail_msg("%s x 1e%d gives %a, strtod %a", text, exp10, got, want);
}

/* Digits of all lengths with a point anywhere: all must be what strtod says, to the last bit. */
static void test_decimal_equals_strtod(void **state)
{
    struct tw_rng rng;
    (void)state;
    tw_rng_init(&rng, 1, 0);
    for (int i = 0; i < 1000000; i++) {
        char text[64];
        size_t n = 0, digits = 1 + (size_t)tw_rng_below(&rng, i % 8 == 0 ? 25 : 8);
        size_t point = (size_t)tw_rng_below(&rng, digits + 2);
        if (tw_rng_below(&rng, 8) == 0)
            text[n++] = '-';
        for (size_t d = 0; d < digits; d++) {
            if (d == point)
                text[n++] = '.';
            text[n++] = (char)('0' + tw_rng_below(&rng, 10));
        }
        if (tw_rng_below(&rng, 16) == 0)
            n += (size_t)snprintf(text + n, 16, "e%d", (int)tw_rng_below(&rng, 60) - 30);
        text[n] = '\0';
        check_decimal(text, (int)tw_rng_below(&rng, 10) - 3);
    }
    /* Halves between two doubles, the smallest, the largest, more digits than matter. */
    static const char *const hard[] = {"9007199254740993",
                                       "9007199254740992.5",
                                       "0.1",
                                       "5e-324",
                                       "1.7976931348623157e308",
                                       "2.2250738585072011e-308",
                                       "123456789012345678901234567890",
                                       "0.000000000000000000000000000001",
                                       "1e400",
                                       "100000000000000000000000"};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        check_decimal(hard[i], 0);
}

static void test_decimal_refuses(void **state)
{
    static const char *const bad[] = {"\n", "-\n", ".\n", "nan\n", "inf\n", "x1\n", "+\n", "e5\n"};
    double v = 7.0;
    uint64_t u;
    int64_t f;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(tw_decimal_f64(bad[i], 0, &v));
    assert_true(v > 6.9);
    assert_int_equal(*tw_decimal_f64("0x10\n", 0, &v), 'x'); /* only the 0 is a number */
    assert_int_equal(*tw_decimal_f64("1e\n", 0, &v), 'e');
    assert_null(tw_decimal_u64("1234567890123456789\n", &u));
    assert_non_null(tw_decimal_u64("123456789012345678\n", &u));
    assert_int_equal(u, 123456789012345678);
    assert_non_null(tw_decimal_fixed("1775016266.0065004\n", 6, &f));
    assert_int_equal(f, 1775016266006500);
    assert_non_null(tw_decimal_fixed("0.0000005\n", 6, &f));
    assert_int_equal(f, 1);
    assert_non_null(tw_decimal_fixed("-1.5\n", 6, &f));
    assert_int_equal(f, -1500000);
}

/* --- times --------------------------------------------------------------------------------------------------
 */

static void test_stamp_every_day(void **state)
{
    struct tw_stamp cache = {0};
    (void)state;
    for (int64_t day = 365; day < 83000; day++) { /* 1971 to 2197; gmtime_r is the C library's own calendar */
        time_t t = (time_t)(day * 86400 + day % 86400);
        struct tm tm;
        char year_first[80], month_first[80];
        int64_t us;
        assert_non_null(gmtime_r(&t, &tm));
        (void)snprintf(year_first, sizeof year_first, "%04d/%02d/%02d %02d:%02d:%02d.703, ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        (void)snprintf(month_first, sizeof month_first, "%02d-%02d-%04d %02d:%02d:%02d.703,", tm.tm_mon + 1,
                       tm.tm_mday, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_non_null(tw_stamp_wall(&cache, year_first, &us));
        assert_int_equal(us, (int64_t)t * 1000000 + 703000);
        assert_non_null(tw_stamp_wall(&cache, month_first, &us));
        assert_int_equal(us, (int64_t)t * 1000000 + 703000);
    }
}

static void test_stamp_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"2026-05-05T19:14:51,", 1778008491000000},
                {"2026-05-05 19:14:51Z\n", 1778008491000000},
                {"2026-05-05T19:14:51.5+02:00\n", 1778001291500000},
                {"2026-05-05T19:14:51.123456789Z\n", 1778008491123457},
                {"1775016266.006,", 1775016266006000},
                {"2024/02/29 23:59:60,", 1709251200000000}};
    static const char *const bad[] = {"2025/02/29 00:00:00,",
                                      "2025/13/01 00:00:00,",
                                      "2025/01/01 24:00:00,",
                                      "2025/01/01 00:60:00,",
                                      "2025/01/01,",
                                      "2025-01/01 00:00:00,",
                                      "2025/01/01 00:00:00.,",
                                      "1900/01/01 00:00:00,",
                                      "2024\n",
                                      "20\n",
                                      "noon\n",
                                      "2025/01/01 00:00:00+1,"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct tw_stamp cache = {0};
        int64_t us = 0;
        assert_non_null(tw_stamp_wall(&cache, good[i].text, &us));
        assert_int_equal(us, good[i].us);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tw_stamp cache = {0};
        int64_t us;
        const char *end = tw_stamp_calendar(&cache, bad[i], &us);
        if (end)
            fail_msg("%s was taken as a time", bad[i]);
    }
}

/* --- turns of GPUs ------------------------------------------------------------------------------------------
 */

/* A log of n_gpu in rounds as nvidia-smi writes it: rows of a round 0 or 1 ms apart (`inner_us`), rounds 100
 * ms. One round in 60 is split by a pause as long as that between rounds. truth[i] is whose row i is. */
static size_t make_rounds(size_t n_gpu, size_t n_rounds, int64_t inner_us, bool lose, int64_t *time_us,
                          uint32_t *line, uint32_t *truth)
{
    struct tw_rng rng;
    tw_rng_init(&rng, n_gpu, 0);
    int64_t t = 1000000000000000;
    size_t n = 0;
    for (size_t r = 0; r < n_rounds; r++) {
        size_t split = tw_rng_below(&rng, 60) == 0 ? 1 + (size_t)tw_rng_below(&rng, n_gpu) : n_gpu;
        bool hole = lose && r % 100 == 50;
        size_t last = hole ? (size_t)tw_rng_below(&rng, n_gpu) : n_gpu;
        for (size_t g = 0; g < last; g++) {
            t += g == split ? 110000 : (int64_t)tw_rng_below(&rng, 2) * inner_us;
            time_us[n] = t / 1000 * 1000;
            line[n] = (uint32_t)n + 2; /* lost rows leave no line */
            truth[n++] = (uint32_t)g;
        }
        t += hole ? 8700000 : 100000 + (int64_t)tw_rng_below(&rng, 20000);
    }
    return n;
}

static void test_rounds_numbers(void **state)
{
    static int64_t time_us[70000];
    static uint32_t line[70000], truth[70000], got[70000];
    (void)state;
    for (size_t gpus = 1; gpus <= 64; gpus += gpus < 12 ? 1 : 13) {
        int64_t gap_us;
        size_t n = make_rounds(gpus, 1000, 1000, false, time_us, line, truth);
        size_t found = tw_rounds_find(time_us, n, &gap_us);
        assert_int_equal(found, gpus);
        assert_int_equal(tw_rounds_assign(time_us, line, n, found, gap_us, got), 0);
        assert_memory_equal(got, truth, n * sizeof *got);
    }
}

/* Lost rows shift nothing but the round they were lost from. */
static void test_rounds_lost_rows(void **state)
{
    static int64_t time_us[70000];
    static uint32_t line[70000], truth[70000], got[70000];
    (void)state;
    for (size_t gpus = 2; gpus <= 16; gpus++) {
        int64_t gap_us;
        size_t n = make_rounds(gpus, 1000, 3000, true, time_us, line, truth), wrong = 0;
        assert_int_equal(tw_rounds_find(time_us, n, &gap_us), gpus);
        (void)tw_rounds_assign(time_us, line, n, gpus, gap_us, got);
        for (size_t i = 0; i < n; i++)
            wrong += got[i] != truth[i];
        if (wrong > 2 * gpus) /* of 10 losses; a split right at a hole may cost a round */
            fail_msg("%zu GPUs: %zu of %zu rows given to another GPU", gpus, wrong, n);
    }
}

static void test_rounds_none(void **state)
{
    int64_t time_us[400], gap_us;
    struct tw_rng rng;
    (void)state;
    tw_rng_init(&rng, 3, 0);
    for (int i = 0; i < 400; i++) /* one GPU: 103 to 118 ms, a hole of 5 s in the middle */
        time_us[i] =
            (i ? time_us[i - 1] : 0) + 103000 + (int64_t)tw_rng_below(&rng, 15000) + (i == 200 ? 5000000 : 0);
    assert_int_equal(tw_rounds_find(time_us, 400, &gap_us), 1);
    assert_int_equal(gap_us, 0);
    assert_int_equal(tw_rounds_find(time_us, 3, &gap_us), 1);
    assert_int_equal(tw_rounds_find(time_us, 0, &gap_us), 1);
}

/* --- whole texts --------------------------------------------------------------------------------------------
 */

#define SMI "timestamp, power.draw [W], utilization.gpu [%], memory.used [MiB]\n"
#define NVML "t_s,gpu_index,power_w,util_gpu,throttle_reasons,rapl_pkg_uj\r\n"
#define LOG ":::MLLOG {\"namespace\": \"\", \"time_ms\": "

struct text_case {
    const char *what;
    const char *text;
    const char *format; /* NULL: refused */
    uint64_t rows;
    size_t series;
    enum tw_reject reason; /* of what is left out */
    uint64_t count, line;
};

#define CLEAN TW_REJECT_FIELDS, 0, 0

static const struct text_case text_cases[] = {
    {"plain", SMI "2025/07/26 23:32:09.703, 69.32 W, 0 %, 132 MiB\n", "nvidia-smi-csv", 1, 1, CLEAN},
    {"header without blanks, CR LF",
     "timestamp,power.draw [W],utilization.gpu [%]\r\n2025/07/26 23:32:09.703, 69.32 W, 0 %\r\n",
     "nvidia-smi-csv", 1, 1, CLEAN},
    {"unit in the header only", SMI "2025/12/03 22:56:32.993, 19.39, 0 %, 1 MiB\n", "nvidia-smi-csv", 1, 1,
     CLEAN},
    {"no units at all", SMI "2025/12/03 22:56:32.993, 19.39, 0, 1\n", "nvidia-smi-csv", 1, 1, CLEAN},
    {"byte order mark and blank lines", "\xef\xbb\xbf\n" SMI "\n2025/12/03 22:56:32.993, 19.39, 0, 1\n\n",
     "nvidia-smi-csv", 1, 1, CLEAN},
    {"header again in the middle",
     SMI "2025/12/03 22:56:32.993, 19.39, 0, 1\n" SMI "2025/12/03 22:57:32.993, 19.39, 0, 1\n",
     "nvidia-smi-csv", 2, 1, CLEAN},
    {"quoted cells",
     "\"timestamp\",\"power.draw [W]\",\"name\"\n\"2025/12/03 22:56:32.993\",\"19.39 W\",\"a, b\"\n",
     "nvidia-smi-csv", 1, 1, CLEAN},
    {"header alone", SMI, "nvidia-smi-csv", 0, 0, CLEAN},
    {"header without a newline", "timestamp, power.draw [W]", "nvidia-smi-csv", 0, 0, CLEAN},
    {"power not available", SMI "2025/12/03 22:56:32.993, [N/A], 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0,
     TW_REJECT_NO_POWER, 1, 2},
    {"power empty", SMI "2025/12/03 22:56:32.993, , 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0, TW_REJECT_NO_POWER,
     1, 2},
    {"power not supported", SMI "2025/12/03 22:56:32.993, [Not Supported], 0 %, 1 MiB\n", "nvidia-smi-csv", 0,
     0, TW_REJECT_NO_POWER, 1, 2},
    {"error of the device", SMI "2025/12/03 22:56:32.993, [Unknown Error], 0 %, 1 MiB\n", "nvidia-smi-csv", 0,
     0, TW_REJECT_ERROR_CODE, 1, 2},
    {"other values missing", SMI "2025/12/03 22:56:32.993, 19.39 W, [N/A], [Not Supported]\n", "nvidia-smi-csv",
     1, 1, CLEAN},
    {"NaN", SMI "2025/12/03 22:56:32.993, nan W, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0, TW_REJECT_VALUE, 1, 2},
    {"NaN bare", SMI "2025/12/03 22:56:32.993, NaN, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0, TW_REJECT_VALUE, 1,
     2},
    {"infinity", SMI "2025/12/03 22:56:32.993, inf, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0, TW_REJECT_VALUE, 1,
     2},
    {"negative power", SMI "2025/12/03 22:56:32.993, -5.0 W, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0,
     TW_REJECT_RANGE, 1, 2},
    {"absurd power", SMI "2025/12/03 22:56:32.993, 1e12 W, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0,
     TW_REJECT_RANGE, 1, 2},
    {"another unit than the header's", SMI "2025/12/03 22:56:32.993, 19 kW, 0 %, 1 MiB\n", "nvidia-smi-csv", 0,
     0, TW_REJECT_VALUE, 1, 2},
    {"a word for a number", SMI "2025/12/03 22:56:32.993, warm, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0,
     TW_REJECT_VALUE, 1, 2},
    {"time that is none", SMI "yesterday, 19.39 W, 0 %, 1 MiB\n", "nvidia-smi-csv", 0, 0, TW_REJECT_TIME, 1, 2},
    {"too few fields", SMI "2025/12/03 22:56:32.993, 19.39 W\n", "nvidia-smi-csv", 0, 0, TW_REJECT_FIELDS, 1,
     2},
    {"two rows in one",
     SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 12025/12/03 22:56:33.000, 19.39 W, 0 %, 1 MiB\n",
     "nvidia-smi-csv", 0, 0, TW_REJECT_TORN, 1, 2},
    {"cut in the time", SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB\n2024", "nvidia-smi-csv", 1, 1,
     TW_REJECT_CUT, 1, 3},
    {"cut in the power", SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB\n2025/12/03 22:56:33.993, 19.3",
     "nvidia-smi-csv", 1, 1, TW_REJECT_CUT, 1, 3},
    {"cut in the last unit",
     SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB\n2025/12/03 22:56:33.993, 19.39 W, 0 %, 1 Mi",
     "nvidia-smi-csv", 1, 1, TW_REJECT_CUT, 1, 3},
    {"whole but for the newline", SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB", "nvidia-smi-csv", 1, 1,
     CLEAN},
    {"power in a cut last field",
     "timestamp, power.draw [W]\n2025/12/03 22:56:32.993, 19.39\n2025/12/03 22:56:33.993, 19", "nvidia-smi-csv",
     1, 1, TW_REJECT_CUT, 1, 3},
    {"index and UUID",
     "timestamp, index, uuid, name, power.draw [W]\n2025/12/03 22:56:32.993, 0, GPU-a, H100, 1 W\n"
     "2025/12/03 22:56:32.993, 1, GPU-b, H100, 2 W\n2025/12/03 22:56:33.093, 0, GPU-a, H100, 1 W\n",
     "nvidia-smi-csv", 3, 2, CLEAN},
    {"NVML, hex reasons, CR LF", NVML "0.0000,2,38.65,0.01,0x0000000000000004,0\r\n0.0100,2,38.65,0.01,0,\r\n",
     "nvml-csv", 2, 1, CLEAN},
    {"two writers, a row within a row",
     NVML "2.13,2,38.6,0,0,\r\n2.2.1307,0,210.5,1.0,0,\r\n2.1402,2,38.6,0,0,1,2.1407,0,210.5,1,0,\r\n2.15,2,38."
          "6,0,0,\r\n",
     "nvml-csv", 2, 1, TW_REJECT_TORN, 1, 4},
    {"time goes back in one GPU",
     NVML "1.0,0,50,0,0,\n2.0,1,50,0,0,\n1.5,1,50,0,0,\n1.1,0,50,0,0,\n2.1,1,50,0,0,\n", "nvml-csv", 4, 2,
     TW_REJECT_TIME_BACK, 1, 4},
    {"torn time that looks whole, first row", NVML "5299,1,40,0,0,\n68.54,1,40,0,0,\n68.55,1,40,0,0,\n",
     "nvml-csv", 2, 1, TW_REJECT_TIME_BACK, 1, 2},
    {"torn time that looks whole, later",
     NVML "3.14,0,40,0,0,\n23.15,0,40,0,0,\n3.16,0,40,0,0,\n3.17,0,40,0,0,\n", "nvml-csv", 3, 1,
     TW_REJECT_TIME_BACK, 1, 3},
    {"the clock was set back: rows wait until it is past",
     NVML "8,0,40,0,0,\n9,0,40,0,0,\n5,0,40,0,0,\n6,0,40,0,0,\n10,0,40,0,0,\n", "nvml-csv", 3, 1,
     TW_REJECT_TIME_BACK, 2, 4},
    {"controller's log", "t,demand_w,measured_w,error_w,pcap_command\r\n0.0000,180.00,77.46,-102.54,300.0\r\n",
     "cap-trajectory-csv", 1, 1, CLEAN},
    {"DCGM, an empty cell",
     "timestamp,phase,gpu,gpu_model,power_w,temp_c,dram_active,energy_mj\n1775016266.006,init,0,NVIDIA "
     "H100,71.4,34,5e-06,1\n"
     "1775016266.006,init,6,NVIDIA H100,86.0,36,,226983663103\n",
     "dcgm-csv", 2, 2, CLEAN},
    {"wide", "timestamp,n1_watts,n2_watts,total_watts\n2026-05-05T19:14:51,2492,2579,5071\n", "bmc-csv", 3, 3,
     CLEAN},
    {"wide, one missing",
     "timestamp,n1_watts,n2_watts\n2026-05-05T19:14:51,,2579\n2026-05-05T19:15:02,2500,2580\n", "bmc-csv", 3, 2,
     CLEAN},
    {"wide, all missing", "timestamp,n1_watts,n2_watts\n2026-05-05T19:14:51,,\n2026-05-05T19:15:02,2500,2580\n",
     "bmc-csv", 2, 2, TW_REJECT_NO_POWER, 1, 2},
    {"BMC", "timestamp,phase,sys_power_w,gpu0_bmc_temp_c\r\n1775284697.674,init,2550,29\r\n", "bmc-csv", 1, 1,
     CLEAN},
    {"MLPerf, null record in compact JSON, CR LF",
     ":::MLLOG {\"namespace\":\"\",\"time_ms\":1715257320207,\"event_type\":\"INTERVAL_START\",\"key\":"
     "\"power_measurement_start\",\"value\":\"null\",\"metadata\":\"\"}\r\n" LOG
     "1715257324220, \"key\": \"power_reading\", \"value\": 2617, \"metadata\": \"\"}\r\n",
     "mlperf-power", 1, 1, CLEAN},
    {"MLPerf, float, one time twice",
     LOG "1728509261000, \"key\": \"power_reading\", \"value\": 3418.0, \"metadata\": {\"lineno\": 88}}\n" LOG
         "1728509261000, \"key\": \"power_reading\", \"value\": 3419.5, \"metadata\": {\"lineno\": 88}}\n",
     "mlperf-power", 2, 1, CLEAN},
    {"MLPerf, reading of null",
     LOG "1728509261000, \"key\": \"power_reading\", \"value\": null}\n" LOG
         "1728509262000, \"key\": \"power_reading\", \"value\": \"null\"}\n",
     "mlperf-power", 0, 0, TW_REJECT_NO_POWER, 1, 1},
    {"MLPerf, cut", LOG "1728509261000, \"key\": \"power_reading\", \"value\": 1}\n" LOG "17285092",
     "mlperf-power", 1, 1, TW_REJECT_CUT, 1, 2},
    {"MLPerf, spliced",
     LOG "1728509261000, \"key\": \"power_reading\", \"value\": 1}\n" LOG "17285" LOG
         "1728509262000, \"key\": \"power_reading\", \"value\": 1}\n",
     "mlperf-power", 1, 1, TW_REJECT_TORN, 1, 2},
    {"MLPerf events are no recording", LOG "1728509141466, \"key\": \"run_start\", \"value\": true}\n", NULL, 0,
     0, CLEAN},
    {"PTDaemon, error code",
     "Time,07-12-2024 08:17:31.325,Watts,2704.700000,Volts,239.07,Mark,x,Ch1,Watts,912.7\n"
     "Time,07-12-2024 08:17:32.325,Watts,-1.000000,Volts,-1.000000,Mark,x,Ch1,Watts,-1.0\n",
     "ptdaemon", 1, 1, TW_REJECT_ERROR_CODE, 1, 2},
    {"PTDaemon, cut",
     "Time,07-12-2024 08:17:31.325,Watts,2704.700000,Volts,239.07,Mark,x,Ch1,Watts,912.7\nTime,07-12-2024 "
     "08:17:32.325,Watts,27",
     "ptdaemon", 1, 1, TW_REJECT_CUT, 1, 2},
    {"table of results, no time", "set,gpu,power_w\na,b,3\n", NULL, 0, 0, CLEAN},
    {"power in another unit", "timestamp, power.draw [BTU]\n2025/12/03 22:56:32.993, 19\n", NULL, 0, 0, CLEAN},
    {"JSON", "{\"power\": 3}\n", NULL, 0, 0, CLEAN},
    {"one word", "hello", NULL, 0, 0, CLEAN},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text_cases / sizeof *text_cases; i++) {
        const struct text_case *c = &text_cases[i];
        struct tw_import *imp = NULL;
        struct tw_why why = {{0}};
        enum tw_err err = tw_import_text(c->text, strlen(c->text), &imp, &why);
        if (!c->format) {
            if (err != TW_EPARSE || why.text[0] == '\0')
                fail_msg("%s: %s", c->what, tw_err_text(err));
            continue;
        }
        if (err)
            fail_msg("%s: %s", c->what, why.text);
        const struct tw_reject_count *r = &imp->rejected[c->reason];
        bool ok = strcmp(imp->format, c->format) == 0 && imp->rows == c->rows && imp->n_series == c->series &&
                  r->count == c->count && r->first_line == c->line;
        /* "two writers" and "null" have a second reason or line of their own */
        if (!ok && !(strcmp(c->what, "MLPerf, reading of null") == 0 && r->count == 2))
            fail_msg("%s: %s, %llu rows, %zu series, %llu at line %llu", c->what, imp->format,
                     (unsigned long long)imp->rows, imp->n_series, (unsigned long long)r->count,
                     (unsigned long long)r->first_line);
        tw_import_free(imp);
    }
}

static struct tw_import *read_text(const char *text, size_t n)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    if (tw_import_text(text, n, &imp, &why))
        fail_msg("%s", why.text);
    return imp;
}

static void test_nul_bytes(void **state)
{
    char text[400] = SMI "2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB\n";
    size_t n = strlen(text);
    (void)state;
    struct tw_import *imp = read_text(text, n + 200); /* a tail of NUL, no newline */
    assert_int_equal(imp->rows, 1);
    assert_int_equal(imp->rejected[TW_REJECT_NUL_BYTES].count, 1);
    assert_int_equal(imp->rejected[TW_REJECT_NUL_BYTES].first_line, 3);
    tw_import_free(imp);
    struct tw_import *none = NULL;
    struct tw_why why = {{0}};
    char zeros[1000] = {0};
    assert_int_equal(tw_import_text(zeros, sizeof zeros, &none, &why), TW_EPARSE);
    assert_int_equal(tw_import_text("", 0, &none, &why), TW_ENODATA);
}

/* Values and units: what stands in the text, in SI, as the nearest float. */
static void test_values(void **state)
{
    static const char text[] =
        "timestamp, index, power.draw [W], power.draw.instant [W], utilization.gpu [%], "
        "utilization.memory [%], memory.used [MiB], clocks.current.sm [MHz], temperature.gpu, "
        "power.limit [W], clocks_event_reasons.active\n"
        "2026/07/14 09:00:44.579, 3, 433.78 W, 447.35 W, 97 %, 7 %, 11125 MiB, 1980 MHz, 53, 700.00 W, "
        "0x0000000000000004\n";
    static const struct {
        enum tw_channel ch;
        double value;
    } want[] = {{TW_CH_POWER_W, 433.78},
                {TW_CH_POWER_INSTANT_W, 447.35},
                {TW_CH_UTIL_FRAC, 0.97},
                {TW_CH_MEM_COPY_UTIL_FRAC, 0.07},
                {TW_CH_MEM_USED_BYTES, 11125.0 * 1048576.0},
                {TW_CH_SM_CLOCK_HZ, 1980e6},
                {TW_CH_TEMP_C, 53.0},
                {TW_CH_CAP_W, 700.0},
                {TW_CH_THROTTLE_BITS, 4.0}};
    (void)state;
    struct tw_import *imp = read_text(text, sizeof text - 1);
    assert_int_equal(imp->n_series, 1);
    const struct tw_series *s = &imp->series[0];
    assert_string_equal(s->name, "gpu3");
    assert_true(s->wall);
    assert_int_equal(s->scope, TW_SCOPE_GPU);
    assert_int_equal(s->time_us[0], 1784019644579000);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_non_null(s->ch[want[i].ch]);
        float f = (float)want[i].value;
        assert_memory_equal(&s->ch[want[i].ch][0], &f, sizeof f);
    }
    assert_null(s->ch[TW_CH_ENERGY_J]);
    tw_import_free(imp);
}

/* Cells of many shapes: each is the float nearest to what strtod makes of it, scaled. */
static void test_values_equal_strtod(void **state)
{
    enum { CELLS = 200000 };
    struct tw_rng rng;
    static float want_w[CELLS], want_frac[CELLS], want_bytes[CELLS];
    size_t cap = (size_t)CELLS * 100, n = 0;
    char *text = malloc(cap);
    (void)state;
    assert_non_null(text);
    tw_rng_init(&rng, 11, 0);
    n += (size_t)snprintf(text, cap,
                          "timestamp, index, power.draw [W], utilization.gpu [%%], memory.used [MiB]\n");
    for (int i = 0; i < CELLS; i++) {
        char watts[400], frac[400];
        int n_watts = snprintf(watts, sizeof watts, "%.9f", tw_rng_uniform(&rng, 0.0, i % 3 ? 700.0 : 1e6));
        int n_frac = snprintf(frac, sizeof frac, "%.3f", tw_rng_uniform(&rng, 0.0, 100.0));
        watts[n_watts - (int)tw_rng_below(&rng, 9)] = '\0'; /* any number of digits behind the point */
        frac[n_frac - (i % 4 == 3 ? 4 : i % 4)] = '\0';     /* or no point at all */
        int mib = (int)tw_rng_below(&rng, 9000000);
        want_w[i] = (float)strtod(watts, NULL);
        want_frac[i] = (float)(strtod(frac, NULL) / 100.0);
        want_bytes[i] = (float)((double)mib * 1048576.0);
        n += (size_t)snprintf(text + n, cap - n, "2026/01/01 00:%02d:%02d.%03d, 0, %s%s, %s %%, %d MiB\n",
                              i / 60000, i / 1000 % 60, i % 1000, watts, i % 2 ? " W" : "", frac, mib);
    }
    struct tw_import *imp = read_text(text, n);
    assert_int_equal(imp->rows, CELLS);
    const struct tw_series *s = &imp->series[0];
    assert_memory_equal(s->ch[TW_CH_POWER_W], want_w, sizeof want_w);
    for (int i = 0; i < CELLS;
         i++) /* the text's digits / 100 rounded once; dividing a rounded double may differ in it */
        if (!(fabsf(s->ch[TW_CH_UTIL_FRAC][i] - want_frac[i]) <= 0.0F))
            fail_msg("row %d: %a, expected %a", i, (double)s->ch[TW_CH_UTIL_FRAC][i], (double)want_frac[i]);
    assert_memory_equal(s->ch[TW_CH_MEM_USED_BYTES], want_bytes, sizeof want_bytes);
    tw_import_free(imp);
    free(text);
}

/* A channel out of its bounds is missing; the row stays. */
static void test_other_channels(void **state)
{
    static const char text[] = NVML "0.0,0,50,1.5,0,\n0.1,0,50,0.5,0,\n";
    (void)state;
    struct tw_import *imp = read_text(text, sizeof text - 1);
    assert_int_equal(imp->rows, 2);
    assert_true(isnan(imp->series[0].ch[TW_CH_UTIL_FRAC][0]));
    assert_true(imp->series[0].ch[TW_CH_UTIL_FRAC][1] > 0.4F);
    assert_false(imp->series[0].wall);
    tw_import_free(imp);
}

static void test_scopes(void **state)
{
    static const char text[] = "timestamp,n1_watts,total_watts\n2026-05-05T19:14:51,2492,5071\n";
    (void)state;
    struct tw_import *imp = read_text(text, sizeof text - 1);
    assert_string_equal(imp->series[0].name, "n1");
    assert_int_equal(imp->series[0].scope, TW_SCOPE_SERVER);
    assert_string_equal(imp->series[1].name, "total");
    assert_int_equal(imp->series[1].scope, TW_SCOPE_OTHER);
    tw_import_free(imp);
}

/* More than one block of text and of rows: nothing is lost at the borders. The rejected row keeps its turn. */
static void test_large(void **state)
{
    size_t cap = 4000000, n = strlen(SMI);
    char *text = malloc(cap);
    (void)state;
    assert_non_null(text);
    memcpy(text, SMI, n);
    for (int r = 0; r < 10000; r++)
        for (int g = 0; g < 8; g++) {
            int ms = r * 100 + g;
            bool broken = r == 5000 && g == 3;
            n += (size_t)snprintf(
                text + n, cap - n, "2025/12/03 %02d:%02d:%02d.%03d, %d.%02d W, 0 %%, 1 MiB%s\n", ms / 3600000,
                ms / 60000 % 60, ms / 1000 % 60, ms % 1000, 100 + g, r % 100, broken ? "x" : "");
        }
    struct tw_import *imp = read_text(text, n);
    assert_int_equal(imp->rows, 79999);
    assert_int_equal(imp->n_series, 8);
    assert_int_equal(imp->bytes, n);
    assert_int_equal(imp->rejected[TW_REJECT_VALUE].first_line, 2 + 5000 * 8 + 3);
    for (size_t k = 0; k < 8; k++) {
        assert_int_equal(imp->series[k].n, k == 3 ? 9999 : 10000);
        for (size_t i = 0; i < imp->series[k].n; i++)
            assert_int_equal((int)imp->series[k].ch[TW_CH_POWER_W][i], 100 + (int)k);
    }
    tw_import_free(imp);
    free(text);
}

static void test_long_line(void **state)
{
    size_t cap = 1000000, n = strlen(SMI);
    char *text = malloc(cap + 200);
    (void)state;
    assert_non_null(text);
    memcpy(text, SMI, n);
    memset(text + n, 'x', cap - n);
    static const char good[] = "\n2025/12/03 22:56:32.993, 19.39 W, 0 %, 1 MiB\n";
    memcpy(text + cap, good, sizeof good - 1);
    struct tw_import *imp = read_text(text, cap + sizeof good - 1);
    assert_int_equal(imp->rows, 1);
    assert_int_equal(imp->rejected[TW_REJECT_TOO_LONG].count, 1);
    assert_int_equal(imp->rejected[TW_REJECT_TOO_LONG].first_line, 2);
    tw_import_free(imp);
    struct tw_import *none = NULL;
    struct tw_why why = {{0}};
    assert_int_equal(tw_import_text(text + n, cap - n, &none, &why), TW_EPARSE);
    free(text);
}

/* --- files --------------------------------------------------------------------------------------------------
 */

static char folder[] = "/tmp/tokwatt-import-XXXXXX";

static const char *put_file(const char *name, const void *bytes, size_t n)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static size_t gzip(const char *text, size_t n, unsigned char *out, size_t cap)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    unsigned char *in = malloc(n);
    assert_non_null(in);
    memcpy(in, text, n);
    z.next_in = in;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t got = cap - z.avail_out;
    deflateEnd(&z);
    free(in);
    return got;
}

static void check_file(const char *path, uint64_t rows, uint64_t damaged)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    if (tw_import_read(path, &imp, &why))
        fail_msg("%s", why.text);
    assert_int_equal(imp->rows, rows);
    assert_int_equal(imp->rejected[TW_REJECT_CORRUPT_GZIP].count, damaged);
    assert_int_equal(tw_reject_total(imp->rejected), damaged);
    tw_import_free(imp);
}

static void test_gzip(void **state)
{
    static char text[600000];
    static unsigned char packed[1200000];
    struct tw_rng rng;
    (void)state;
    tw_rng_init(&rng, 5, 0);
    size_t n = (size_t)snprintf(text, sizeof text, "%s", SMI), half = 0;
    for (int r = 0; r < 10000; r++) {
        if (r == 5000)
            half = n;
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "2025/12/03 %02d:%02d:%02d.500, %d.%02d W, 0 %%, 1 MiB\n", r / 3600, r / 60 % 60,
                              r % 60, 100 + (int)tw_rng_below(&rng, 100), (int)tw_rng_below(&rng, 100));
    }
    size_t z = gzip(text, n, packed, sizeof packed);
    check_file(put_file("whole.gz", packed, z), 10000, 0);

    size_t z1 = gzip(text, half, packed, sizeof packed);
    z = z1 + gzip(text + half, n - half, packed + z1, sizeof packed - z1);
    check_file(put_file("two members.gz", packed, z), 10000, 0);
    memset(packed + z, 0, 700);
    check_file(put_file("padded.gz", packed, z + 700), 10000, 0);
    memset(packed + z, 'x', 700);
    check_file(put_file("rubbish behind.gz", packed, z + 700), 10000, 1);

    z = gzip(text, n, packed, sizeof packed);
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    assert_int_equal(tw_import_read(put_file("cut.gz", packed, z / 2), &imp, &why), TW_OK);
    assert_in_range(imp->rows, 4000, 6000);
    assert_int_equal(imp->rejected[TW_REJECT_CORRUPT_GZIP].count, 1);
    assert_int_equal(imp->rejected[TW_REJECT_CORRUPT_GZIP].first_line, imp->rows + 2);
    tw_import_free(imp);
    check_file(put_file("checksum cut.gz", packed, z - 4), 10000, 1);
    packed[z - 6] ^= 1;
    check_file(put_file("checksum wrong.gz", packed, z), 10000, 1);
    imp = NULL;
    assert_int_equal(tw_import_read(put_file("no line.gz", packed, 20), &imp, &why), TW_EPARSE);
    assert_null(imp);
}

static void test_files_refused(void **state)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    (void)state;
    assert_int_equal(tw_import_read("/nonexistent/file", &imp, &why), TW_ENOENT);
    assert_non_null(strstr(why.text, "/nonexistent/file"));
    assert_int_equal(tw_import_read(folder, &imp, &why), TW_EINVAL);
    assert_int_equal(tw_import_read(put_file("empty", "", 0), &imp, &why), TW_ENODATA);
    struct tw_rng rng;
    tw_rng_init(&rng, 9, 0);
    unsigned char noise[50000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)tw_rng_below(&rng, 256);
    assert_int_equal(tw_import_read(put_file("noise", noise, sizeof noise), &imp, &why), TW_EPARSE);
    assert_null(strchr(why.text, '\n'));
    assert_null(imp);
}

/* --- packed samples -----------------------------------------------------------------------------------------
 */

static void test_segment(void **state)
{
    enum { N = 777, COLS = 3 };
    static int64_t time_us[N], back_us[N];
    static float col[COLS][N], back[COLS][N];
    static unsigned char bytes[N * (8 + 4 * COLS)];
    const float *in[COLS] = {col[0], col[1], col[2]};
    float *out[COLS] = {back[0], back[1], back[2]};
    struct tw_rng rng;
    struct tw_why why;
    (void)state;
    tw_rng_init(&rng, 4, 0);
    for (size_t i = 0; i < N; i++) {
        time_us[i] = (int64_t)tw_rng_u64(&rng); /* any bits: also steps that wrap */
        for (size_t c = 0; c < COLS; c++) {
            uint32_t bits = (uint32_t)tw_rng_u64(&rng); /* also NaN with a payload */
            memcpy(&col[c][i], &bits, sizeof bits);
        }
    }
    assert_int_equal(tw_segment_bytes(N, COLS), sizeof bytes);
    tw_segment_pack(time_us, in, N, COLS, bytes);
    assert_int_equal(tw_segment_unpack(bytes, sizeof bytes, N, COLS, back_us, out, &why), TW_OK);
    assert_memory_equal(time_us, back_us, sizeof time_us);
    assert_memory_equal(col, back, sizeof col);
    assert_int_equal(tw_segment_unpack(bytes, sizeof bytes - 1, N, COLS, back_us, out, &why), TW_EPARSE);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal_equals_strtod),
        cmocka_unit_test(test_decimal_refuses),
        cmocka_unit_test(test_stamp_every_day),
        cmocka_unit_test(test_stamp_forms),
        cmocka_unit_test(test_rounds_numbers),
        cmocka_unit_test(test_rounds_lost_rows),
        cmocka_unit_test(test_rounds_none),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_equal_strtod),
        cmocka_unit_test(test_other_channels),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_files_refused),
        cmocka_unit_test(test_segment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
