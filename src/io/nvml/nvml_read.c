/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one GPU. Here NVML's units end. */
#include "io/nvml/nvml_read.h"

#include <math.h>
#include <string.h>

#define BELIEVED 3U         /* refusals in a row that make "not supported" true ... */
#define AGAIN_US 60000000   /* ... for this long */
#define WHOLE_US 950000     /* between whole passes; a little under a second, so that a 1 Hz reader gets one */
#define RARE_US 10000000    /* between rare ones */
#define GPU_MAX_W 5000.0    /* no single GPU draws this: an energy counter that says so has leapt */
#define LIMIT_MAX_W 10000.0 /* a limit above is not one */
#define ENERGY_GAP_S 10.0
#define MIB 1048576.0

/* ---- what is asked, and what is believed ---- */

static bool may_ask(const struct nv_gpu *g, enum nv_feature f, int64_t now_us)
{
    const struct nv_refusals *r = &g->refusals[f];
    return r->in_a_row < BELIEVED || now_us >= r->again_us;
}

static int heard(struct nv_gpu *g, enum nv_feature f, int ret, int64_t now_us)
{
    struct nv_refusals *r = &g->refusals[f];
    g->calls++;
    if (ret == NV_OK) {
        r->in_a_row = 0;
    } else if (ret == NV_NOT_SUPPORTED || ret == NV_FUNCTION_NOT_FOUND) {
        r->in_a_row++;
        r->again_us = now_us + AGAIN_US;
    }
    return ret;
}

/* Ask for one thing: NOT_SUPPORTED without a call when the library lacks it or the device has refused it. */
#define ASK(g, f, now_us, member, ...)                                                                         \
    ((g)->lib.member && may_ask((g), (f), (now_us))                                                            \
         ? heard((g), (f), (g)->lib.member((g)->dev, __VA_ARGS__), (now_us))                                   \
         : (int)NV_NOT_SUPPORTED)

static double from_u32(unsigned v, double scale)
{
    return v == NV_BLANK_U32 ? (double)NAN : v * scale;
}

static double from_u64(unsigned long long v, double scale)
{
    return v == NV_BLANK_U64 ? (double)NAN : (double)v * scale;
}

/* A board that answers draws something, runs at some clock and has a limit: 0 means unknown. */
static double not_zero(double v)
{
    return v > 0.0 ? v : (double)NAN;
}

static void put(struct nv_reading *r, enum tw_channel ch, double v)
{
    const struct tw_channel_info *info = &tw_channel_table[ch];
    r->ch[ch] = v >= info->lowest && v <= info->highest ? (float)v : NAN;
}

static bool gone(int ret)
{
    return nv_driver_gone(ret) || nv_device_gone(ret);
}

/* ---- taking and dropping ---- */

static void clear(struct nv_reading *r)
{
    *r = (struct nv_reading){.limit_min_w = (double)NAN,
                             .limit_max_w = (double)NAN,
                             .limit_default_w = (double)NAN,
                             .power_window_s = (double)NAN,
                             .mig = -1,
                             .persistence = -1,
                             .n_pid = -1};
    for (int c = 0; c < TW_CH_COUNT; c++)
        r->ch[c] = NAN;
}

void nv_gpu_take(struct nv_gpu *g, const struct nv_lib *lib, struct nv_device *dev)
{
    if (!(g->energy.gap_s > 0.0)) {
        tw_energy_init(&g->energy, 0.0, GPU_MAX_W, ENERGY_GAP_S);
        clear(&g->now);
    }
    g->lib = *lib;
    g->dev = dev;
    memset(g->refusals, 0, sizeof g->refusals); /* another driver may know more */
    g->whole_us = g->rare_us = 0;
    g->gpm_has_old = false;
    int major = 0, minor = 0;
    bool known = lib->capability && lib->capability(dev, &major, &minor) == NV_OK;
    g->usage_window_s = !known ? (double)NAN : major < 8 || (major == 8 && minor == 0) ? 0.0 : 1.0;
    struct nv_gpm_support support = {.version = NV_GPM_VERSION};
    bool gpm = lib->gpm_support && lib->gpm_alloc && lib->gpm_free && lib->gpm_sample && lib->gpm_metrics &&
               lib->gpm_support(dev, &support) == NV_OK && support.supported == 1;
    if (gpm && (lib->gpm_alloc(&g->gpm_old) != NV_OK || lib->gpm_alloc(&g->gpm_new) != NV_OK))
        nv_gpu_drop(g);
}

void nv_gpu_drop(struct nv_gpu *g)
{
    if (g->gpm_old)
        (void)g->lib.gpm_free(g->gpm_old);
    if (g->gpm_new)
        (void)g->lib.gpm_free(g->gpm_new);
    g->gpm_old = g->gpm_new = NULL;
    g->gpm_has_old = false;
}

/* ---- a quick pass: power and energy ---- */

struct quick {
    double average_w, instant_w, counter_j;
};

/* A field of the batch, by its own status; NaN and g->refusals otherwise. */
static double field_value(struct nv_gpu *g, enum nv_feature f, const struct nv_field_value *v, int64_t now_us)
{
    g->calls--; /* the batch is one call */
    if (heard(g, f, v->ret, now_us) != NV_OK)
        return (double)NAN;
    switch ((enum nv_type)v->type) {
    case NV_UINT:
        return from_u32(v->value.ui, 1e-3);
    case NV_ULONGLONG:
        return from_u64(v->value.ull, 1e-3);
    case NV_ULONG:
        return v->value.ul == (unsigned long)-1 ? (double)NAN : (double)v->value.ul * 1e-3;
    case NV_LONGLONG:
        return (double)v->value.sll * 1e-3;
    case NV_INT:
        return v->value.si * 1e-3;
    case NV_DOUBLE:
        return v->value.d * 1e-3;
    case NV_USHORT:
        return v->value.us * 1e-3;
    }
    return (double)NAN;
}

static int quick_fields(struct nv_gpu *g, int64_t now_us, struct quick *q)
{
    static const struct {
        enum nv_feature feature;
        enum nv_field field;
    } want[] = {{NV_F_AVERAGE, NV_FI_POWER_AVERAGE},
                {NV_F_INSTANT, NV_FI_POWER_INSTANT},
                {NV_F_FIELD_ENERGY, NV_FI_TOTAL_ENERGY}};
    enum { N = sizeof want / sizeof *want };
    struct nv_field_value v[N] = {0};
    double got[N] = {(double)NAN, (double)NAN, (double)NAN};
    int n = 0, place[N] = {0};
    for (int i = 0; i < N; i++) {
        if (!may_ask(g, want[i].feature, now_us))
            continue;
        v[n].field = want[i].field;
        place[n++] = i;
    }
    if (n == 0)
        return NV_NOT_SUPPORTED;
    int ret = ASK(g, NV_F_FIELDS, now_us, fields, n, v);
    for (int k = 0; ret == NV_OK && k < n; k++)
        got[place[k]] = field_value(g, want[place[k]].feature, &v[k], now_us);
    q->average_w = not_zero(got[0]);
    q->instant_w = not_zero(got[1]);
    q->counter_j = not_zero(got[2]); /* one that was just reset is soon above 0 */
    return ret;
}

static int quick_pass(struct nv_gpu *g, int64_t now_us, struct quick *q)
{
    *q = (struct quick){(double)NAN, (double)NAN, (double)NAN};
    struct nv_reading *r = &g->now;
    int ret = quick_fields(g, now_us, q);
    if (gone(ret))
        return ret;
    r->power_window_s = isfinite(q->average_w) ? 1.0 : (double)NAN;
    if (!isfinite(q->average_w)) {
        unsigned mw = 0;
        ret = ASK(g, NV_F_POWER, now_us, power, &mw);
        if (gone(ret) || ret == NV_INVALID_ARGUMENT) /* its only argument is the handle */
            return ret;
        q->average_w = ret == NV_OK ? not_zero(from_u32(mw, 1e-3)) : (double)NAN;
        r->power_window_s = isfinite(q->average_w) ? g->usage_window_s : (double)NAN;
        if (r->power_window_s <= 0.0 && !isfinite(q->instant_w))
            q->instant_w = q->average_w;
    }
    if (!isfinite(q->counter_j)) {
        unsigned long long mj = 0;
        ret = ASK(g, NV_F_ENERGY, now_us, energy, &mj);
        if (gone(ret))
            return ret;
        q->counter_j = ret == NV_OK ? not_zero(from_u64(mj, 1e-3)) : (double)NAN;
    }
    return NV_OK;
}

/* What a sensor says has changed or it has not; unknown is the same as unknown. */
static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : !(a < b) && !(a > b);
}

/* A counter tells best whether the sensor moved. Without one equal watts are a repeat for as long as the
 * sensor's window; after that they are taken for what is measured. */
static bool is_repeat(struct nv_gpu *g, const struct quick *q, int64_t now_us)
{
    bool counter = isfinite(q->counter_j) && isfinite(g->seen_counter_j);
    bool moved = counter ? !same(q->counter_j, g->seen_counter_j)
                         : !same(q->average_w, g->seen_power_w) || !same(q->instant_w, g->seen_instant_w);
    if (counter && !moved && (!same(q->average_w, g->seen_power_w) || !same(q->instant_w, g->seen_instant_w)))
        moved = true; /* a counter that stands still beside power that does not is the one that is wrong */
    if (moved || g->moved_us == 0)
        g->moved_us = now_us;
    g->seen_counter_j = q->counter_j;
    g->seen_power_w = q->average_w;
    g->seen_instant_w = q->instant_w;
    if (moved)
        return false;
    return counter || now_us - g->moved_us < 1000000;
}

/* ---- a whole pass: the rest ---- */

static int read_limits(struct nv_gpu *g, int64_t now_us)
{
    struct nv_reading *r = &g->now;
    unsigned low = 0, high = 0, def = 0, asked = 0, held = 0;
    int ret = ASK(g, NV_F_RANGE, now_us, limit_range, &low, &high);
    if (gone(ret))
        return ret;
    double min_w = ret == NV_OK ? from_u32(low, 1e-3) : (double)NAN;
    double max_w = ret == NV_OK ? from_u32(high, 1e-3) : (double)NAN;
    if (!(min_w > 0.0 && min_w <= max_w && max_w <= LIMIT_MAX_W))
        min_w = max_w = (double)NAN;
    ret = ASK(g, NV_F_DEFAULT, now_us, limit_default, &def);
    if (gone(ret))
        return ret;
    double def_w = ret == NV_OK ? from_u32(def, 1e-3) : (double)NAN;
    r->limit_min_w = min_w;
    r->limit_max_w = max_w;
    r->limit_default_w = def_w > 0.0 && def_w <= LIMIT_MAX_W ? def_w : (double)NAN;
    ret = ASK(g, NV_F_LIMIT, now_us, limit, &asked);
    if (gone(ret))
        return ret;
    put(r, TW_CH_CAP_W, ret == NV_OK ? not_zero(from_u32(asked, 1e-3)) : (double)NAN);
    ret = ASK(g, NV_F_ENFORCED, now_us, limit_enforced, &held);
    if (gone(ret))
        return ret;
    put(r, TW_CH_CAP_ENFORCED_W, ret == NV_OK ? not_zero(from_u32(held, 1e-3)) : (double)NAN);
    return NV_OK;
}

static int read_memory(struct nv_gpu *g, int64_t now_us)
{
    struct nv_memory_v2 v2 = {.version = NV_VERSION(struct nv_memory_v2, 2)};
    int ret = ASK(g, NV_F_MEMORY_V2, now_us, memory_v2, &v2);
    if (gone(ret))
        return ret;
    double used = ret == NV_OK && v2.total > 0 ? from_u64(v2.used, 1.0) : (double)NAN;
    if (!isfinite(used)) {
        struct nv_memory v1 = {0};
        ret = ASK(g, NV_F_MEMORY, now_us, memory, &v1);
        if (gone(ret))
            return ret;
        used = ret == NV_OK && v1.total > 0 ? from_u64(v1.used, 1.0) : (double)NAN;
    }
    put(&g->now, TW_CH_MEM_USED_BYTES, used);
    return NV_OK;
}

static int read_temp(struct nv_gpu *g, int64_t now_us)
{
    struct nv_temperature v = {.version = NV_VERSION(struct nv_temperature, 1), .sensor = NV_TEMP_GPU};
    int ret = ASK(g, NV_F_TEMP_V, now_us, temperature_v, &v);
    if (gone(ret))
        return ret;
    double c = ret == NV_OK ? (double)v.temperature : (double)NAN;
    if (ret != NV_OK) {
        unsigned old = 0;
        ret = ASK(g, NV_F_TEMP, now_us, temperature, NV_TEMP_GPU, &old);
        if (gone(ret))
            return ret;
        c = ret == NV_OK ? from_u32(old, 1.0) : (double)NAN;
    }
    put(&g->now, TW_CH_TEMP_C, c > 0.0 ? c : (double)NAN); /* 0 and -1 are what broken sensors say */
    return NV_OK;
}

static int read_clocks(struct nv_gpu *g, int64_t now_us)
{
    unsigned sm = 0, mem = 0;
    int ret = ASK(g, NV_F_CLOCK_SM, now_us, clock, NV_CLOCK_SM, &sm);
    if (gone(ret))
        return ret;
    put(&g->now, TW_CH_SM_CLOCK_HZ, ret == NV_OK ? not_zero(from_u32(sm, 1e6)) : (double)NAN);
    ret = ASK(g, NV_F_CLOCK_MEM, now_us, clock, NV_CLOCK_MEM, &mem);
    if (gone(ret))
        return ret;
    put(&g->now, TW_CH_MEM_CLOCK_HZ, ret == NV_OK ? not_zero(from_u32(mem, 1e6)) : (double)NAN);
    return NV_OK;
}

static int read_reasons(struct nv_gpu *g, int64_t now_us)
{
    unsigned long long bits = 0;
    int ret = g->lib.reasons ? ASK(g, NV_F_REASONS, now_us, reasons, &bits)
                             : ASK(g, NV_F_REASONS, now_us, reasons_old, &bits);
    if (gone(ret))
        return ret;
    put(&g->now, TW_CH_THROTTLE_BITS,
        ret == NV_OK && bits != NV_BLANK_U64 ? (double)(bits & 0xffffffU) : (double)NAN);
    return NV_OK;
}

/* With MIG on NVML has no utilisation of the whole GPU: whatever it answers is not one. */
static int read_util(struct nv_gpu *g, int64_t now_us)
{
    struct nv_utilization u = {0};
    int ret = ASK(g, NV_F_UTIL, now_us, utilization, &u);
    if (gone(ret))
        return ret;
    bool ok = ret == NV_OK && g->now.mig != 1;
    put(&g->now, TW_CH_UTIL_FRAC, ok ? from_u32(u.gpu, 0.01) : (double)NAN);
    put(&g->now, TW_CH_MEM_COPY_UTIL_FRAC, ok ? from_u32(u.memory, 0.01) : (double)NAN);
    return NV_OK;
}

static const struct {
    enum nv_gpm_metric metric;
    enum tw_channel ch;
    double scale;
} gpm_table[] = {
    {NV_GPM_SM_UTIL, TW_CH_SM_ACTIVE_FRAC, 0.01},
    {NV_GPM_ANY_TENSOR_UTIL, TW_CH_TENSOR_ACTIVE_FRAC, 0.01},
    {NV_GPM_DRAM_BW_UTIL, TW_CH_DRAM_ACTIVE_FRAC, 0.01},
    {NV_GPM_PCIE_TX, TW_CH_PCIE_TX_BYTES_S, MIB},
    {NV_GPM_PCIE_RX, TW_CH_PCIE_RX_BYTES_S, MIB},
    {NV_GPM_NVLINK_TX, TW_CH_NVLINK_TX_BYTES_S, MIB},
    {NV_GPM_NVLINK_RX, TW_CH_NVLINK_RX_BYTES_S, MIB},
};
#define N_GPM (sizeof gpm_table / sizeof *gpm_table)

/* What happened between the sample of the last whole pass and one taken now. */
static int read_gpm(struct nv_gpu *g, int64_t now_us)
{
    for (size_t i = 0; i < N_GPM; i++)
        g->now.ch[gpm_table[i].ch] = NAN;
    if (!g->gpm_old || g->now.mig == 1)
        return NV_OK;
    int ret = ASK(g, NV_F_GPM, now_us, gpm_sample, g->gpm_new);
    if (gone(ret))
        return ret;
    if (ret != NV_OK) {
        g->gpm_has_old = false;
        return NV_OK;
    }
    if (g->gpm_has_old) {
        struct nv_gpm_get get = {
            .version = NV_GPM_VERSION, .n = N_GPM, .first = g->gpm_old, .second = g->gpm_new};
        for (size_t i = 0; i < N_GPM; i++)
            get.value[i].metric = gpm_table[i].metric;
        g->calls++;
        if (g->lib.gpm_metrics(&get) == NV_OK)
            for (size_t i = 0; i < N_GPM; i++)
                if (get.value[i].ret == NV_OK)
                    put(&g->now, gpm_table[i].ch, get.value[i].value * gpm_table[i].scale);
    }
    struct nv_gpm_sample *old = g->gpm_old;
    g->gpm_old = g->gpm_new;
    g->gpm_new = old;
    g->gpm_has_old = true;
    return NV_OK;
}

static int read_rare(struct nv_gpu *g, int64_t now_us)
{
    struct nv_reading *r = &g->now;
    unsigned on = 0, pending = 0;
    int ret = ASK(g, NV_F_MIG, now_us, mig_mode, &on, &pending);
    if (gone(ret))
        return ret;
    r->mig = ret == NV_OK && on <= 1 ? (int)on : -1;
    ret = ASK(g, NV_F_PERSISTENCE, now_us, persistence, &on);
    if (gone(ret))
        return ret;
    r->persistence = ret == NV_OK && on <= 1 ? (int)on : -1;
    unsigned n = NV_PID_MAX;
    struct nv_process p[NV_PID_MAX] = {0};
    ret = ASK(g, NV_F_PROCESSES, now_us, processes, &n, p);
    if (gone(ret))
        return ret;
    bool known =
        ret == NV_OK || ret == NV_INSUFFICIENT_SIZE; /* more than there is room for: the number holds */
    r->n_pid = known && n < 65536 ? (int)n : -1;
    for (unsigned i = 0; i < NV_PID_MAX; i++)
        r->pid[i] = ret == NV_OK && i < n ? p[i].pid : 0U;
    return NV_OK;
}

static int whole_pass(struct nv_gpu *g, int64_t now_us)
{
    static int (*const part[])(struct nv_gpu *, int64_t) = {read_limits, read_util,    read_memory, read_temp,
                                                            read_clocks, read_reasons, read_gpm};
    int ret = NV_OK;
    if (g->rare_us == 0 || now_us - g->rare_us >= RARE_US) {
        ret = read_rare(g, now_us); /* first: what MIG mode it is in decides about the others */
        g->rare_us = now_us;
    }
    for (size_t i = 0; ret == NV_OK && i < sizeof part / sizeof *part; i++)
        ret = part[i](g, now_us);
    g->whole_us = now_us;
    return ret;
}

int nv_gpu_pass(struct nv_gpu *g, int64_t now_us)
{
    struct quick q;
    int ret = quick_pass(g, now_us, &q);
    if (ret != NV_OK)
        return ret;
    if (g->whole_us == 0 || now_us - g->whole_us >= WHOLE_US)
        ret = whole_pass(g, now_us);
    if (ret != NV_OK)
        return ret;
    struct nv_reading *r = &g->now;
    bool repeat = is_repeat(g, &q, now_us);
    if (!repeat)
        tw_energy_push(&g->energy, now_us, q.average_w, q.counter_j);
    put(r, TW_CH_POWER_W, q.average_w);
    put(r, TW_CH_POWER_INSTANT_W, q.instant_w);
    put(r, TW_CH_ENERGY_J, g->energy.total_j);
    r->repeat = repeat;
    r->time_us = now_us;
    return NV_OK;
}
