/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1 for tests: NVML's functions over the simulated site of fake_site.h.
 *
 * A handle carries the generation of the driver that gave it out; after a reload it is UNINITIALIZED until the
 * process calls nvmlInit again. Functions that are not here are missing symbols, as in an older driver. */
#include "fake_site.h"

#include "io/nvml/nvml_api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NO_DATA 21
#define MEMORY_BYTES 85520809984ULL /* 80 GB board, as nvidia-smi shows 81559 MiB */
#define MEMORY_RESERVED 536870912ULL

#define PROTOTYPE(must, member, symbol, args) EXPORT int symbol args;
NV_CALL_MAP(PROTOTYPE)
#undef PROTOTYPE

/* What other programs call beyond our own table. */
EXPORT const char *nvmlErrorString(int ret);
EXPORT int nvmlInit(void);
EXPORT int nvmlInitWithFlags(unsigned flags);
EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
EXPORT int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size);
EXPORT int nvmlDeviceGetCount(unsigned *n);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned i, struct nv_device **dev);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct nv_device **dev);
EXPORT int nvmlDeviceGetIndex(struct nv_device *dev, unsigned *i);
EXPORT int nvmlDeviceGetMinorNumber(struct nv_device *dev, unsigned *minor);
EXPORT int nvmlDeviceGetSerial(struct nv_device *dev, char *text, unsigned size);
EXPORT int nvmlDeviceGetBrand(struct nv_device *dev, unsigned *brand);
EXPORT int nvmlDeviceGetArchitecture(struct nv_device *dev, unsigned *arch);
EXPORT int nvmlDeviceGetMaxClockInfo(struct nv_device *dev, unsigned which, unsigned *mhz);
EXPORT int nvmlDeviceGetPerformanceState(struct nv_device *dev, unsigned *state);
EXPORT int nvmlDeviceGetPowerManagementMode(struct nv_device *dev, unsigned *on);
EXPORT int nvmlDeviceGetComputeMode(struct nv_device *dev, unsigned *mode);
EXPORT int nvmlDeviceGetDisplayMode(struct nv_device *dev, unsigned *on);
EXPORT int nvmlDeviceGetDisplayActive(struct nv_device *dev, unsigned *on);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nv_device *dev, unsigned *n, struct nv_process *p);
EXPORT int nvmlDeviceGetSupportedEventTypes(struct nv_device *dev, unsigned long long *types);
EXPORT int nvmlDeviceIsMigDeviceHandle(struct nv_device *dev, unsigned *is);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct nv_device *dev, unsigned *n);
EXPORT int nvmlDeviceGetTotalEccErrors(struct nv_device *dev, unsigned type, unsigned counter,
                                       unsigned long long *n);

/* Asked for by others, and answered NOT_SUPPORTED, as a passively cooled board on Linux does. */
#define UNSUPPORTED_MAP(X)                                                                                     \
    X(nvmlDeviceGetFanSpeed)                                                                                   \
    X(nvmlDeviceGetDriverModel)                                                                                \
    X(nvmlDeviceGetDriverModel_v2)                                                                             \
    X(nvmlDeviceGetProcessUtilization)                                                                         \
    X(nvmlDeviceGetPcieThroughput)                                                                             \
    X(nvmlDeviceGetEncoderUtilization)                                                                         \
    X(nvmlDeviceGetDecoderUtilization)                                                                         \
    X(nvmlDeviceGetBAR1MemoryInfo)                                                                             \
    X(nvmlDeviceGetRunningProcessDetailList)                                                                   \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3)
#define UNSUPPORTED(symbol) EXPORT int symbol(struct nv_device *dev, void *a, void *b);
UNSUPPORTED_MAP(UNSUPPORTED)
#undef UNSUPPORTED

/* ---- the library's own state ---- */

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static unsigned inits;
static uint64_t inited_generation;

static int ready(const struct fake_site *s)
{
    if (!fake_site_has_driver(s))
        return NV_DRIVER_NOT_LOADED;
    pthread_mutex_lock(&own);
    bool ok = inits > 0 && inited_generation == s->generation;
    pthread_mutex_unlock(&own);
    return ok ? NV_OK : NV_UNINITIALIZED;
}

int nvmlInit_v2(void)
{
    struct fake_site *s = fake_site_get();
    if (!s)
        return NV_UNKNOWN;
    fake_site_enter(s);
    int ret = fake_site_has_driver(s) ? NV_OK : NV_DRIVER_NOT_LOADED;
    if (ret == NV_OK) {
        pthread_mutex_lock(&own);
        inits++;
        inited_generation = s->generation;
        pthread_mutex_unlock(&own);
    }
    fake_site_leave(s);
    return ret;
}

int nvmlInit(void)
{
    return nvmlInit_v2();
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}

int nvmlShutdown(void)
{
    pthread_mutex_lock(&own);
    int ret = inits > 0 ? NV_OK : NV_UNINITIALIZED;
    if (inits > 0)
        inits--;
    pthread_mutex_unlock(&own);
    return ret;
}

const char *nvmlErrorString(int ret)
{
    static const struct {
        int ret;
        const char *text;
    } table[] = {{NV_OK, "Success"},
                 {NV_UNINITIALIZED, "Uninitialized"},
                 {NV_INVALID_ARGUMENT, "Invalid Argument"},
                 {NV_NOT_SUPPORTED, "Not Supported"},
                 {NV_NO_PERMISSION, "Insufficient Permissions"},
                 {NV_NOT_FOUND, "Not Found"},
                 {NV_INSUFFICIENT_SIZE, "Insufficient Size"},
                 {NV_DRIVER_NOT_LOADED, "Driver Not Loaded"},
                 {NV_TIMEOUT, "Timeout"},
                 {NV_GPU_IS_LOST, "GPU is lost"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].ret == ret)
            return table[i].text;
    return "Unknown Error";
}

static int put_text(char *text, unsigned size, const char *value)
{
    size_t n = strlen(value);
    if (n >= size)
        return NV_INSUFFICIENT_SIZE;
    memcpy(text, value, n + 1);
    return NV_OK;
}

/* Whether the driver answers at all. */
static int begin_system(struct fake_site **ret)
{
    struct fake_site *s = fake_site_get();
    if (!s)
        return NV_UNKNOWN;
    fake_site_enter(s);
    int err = ready(s);
    fake_site_leave(s);
    *ret = s;
    return err;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    struct fake_site *s;
    int ret = begin_system(&s);
    return ret == NV_OK ? put_text(text, size, "580.0.0") : ret;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
    return put_text(text, size, "13.580.0.0");
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    struct fake_site *s;
    int ret = begin_system(&s);
    if (ret == NV_OK)
        *version = 13000;
    return ret;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size)
{
    char path[64], name[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return NV_NOT_FOUND;
    if (!fgets(name, sizeof name, f))
        name[0] = '\0';
    fclose(f);
    name[strcspn(name, "\n")] = '\0';
    return put_text(text, size, name);
}

/* ---- handles ---- */

static struct nv_device *handle(const struct fake_site *s, uint32_t i)
{
    return (struct nv_device *)(uintptr_t)((s->generation << 12) | ((uint64_t)(i + 1U) << 4));
}

static int index_of(const struct fake_site *s, const struct nv_device *dev, uint32_t *ret)
{
    uint64_t h = (uint64_t)(uintptr_t)dev, i = (h & 0xfffU) >> 4;
    if (h >> 12 != s->generation || i == 0 || i > s->n_gpu)
        return NV_INVALID_ARGUMENT;
    *ret = (uint32_t)i - 1U;
    return NV_OK;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    struct fake_site *s;
    int ret = begin_system(&s);
    if (ret == NV_OK)
        *n = s->n_gpu;
    return ret;
}

int nvmlDeviceGetCount(unsigned *n)
{
    return nvmlDeviceGetCount_v2(n);
}

/* A lost or stuck GPU is so when its handle is asked for, too. */
static int give_handle(struct fake_site *s, uint32_t i, struct nv_device **dev)
{
    fake_site_dawdle(s, &s->gpu[i].fault.call_us);
    fake_site_enter(s);
    int ret = ready(s);
    if (ret == NV_OK && s->gpu[i].fault.lost)
        ret = NV_GPU_IS_LOST;
    if (ret == NV_OK)
        *dev = handle(s, i);
    fake_site_leave(s);
    return ret;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nv_device **dev)
{
    struct fake_site *s;
    int ret = begin_system(&s);
    if (ret != NV_OK)
        return ret;
    return i < s->n_gpu ? give_handle(s, i, dev) : NV_INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByIndex(unsigned i, struct nv_device **dev)
{
    return nvmlDeviceGetHandleByIndex_v2(i, dev);
}

static int by_name(const char *name, void (*of)(uint32_t, char *, size_t), struct nv_device **dev)
{
    struct fake_site *s;
    int ret = begin_system(&s);
    if (ret != NV_OK)
        return ret;
    for (uint32_t i = 0; i < s->n_gpu; i++) {
        char mine[64];
        of(i, mine, sizeof mine);
        if (strcmp(mine, name) == 0)
            return give_handle(s, i, dev);
    }
    return NV_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nv_device **dev)
{
    return by_name(uuid, fake_uuid, dev);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct nv_device **dev)
{
    return by_name(pci, fake_pci, dev);
}

/* ---- a call on a device: its faults, then its reading ---- */

struct call {
    struct fake_site *site;
    uint32_t gpu;
    struct fake_fault fault;
    struct tw_plant_reading r;
    struct fake_activity activity;
    double energy_j;
};

static bool has(uint32_t bits, enum fake_channel ch)
{
    return bits >> ch & 1U;
}

static int verdict(const struct fake_fault *f, enum fake_channel ch)
{
    return f->lost             ? NV_GPU_IS_LOST
           : has(f->error, ch) ? f->error_code
           : has(f->na, ch)    ? NV_NOT_SUPPORTED
                               : NV_OK;
}

static int begin(struct call *c, const struct nv_device *dev, enum fake_channel ch)
{
    struct fake_site *s = c->site = fake_site_get();
    if (!s)
        return NV_UNKNOWN;
    fake_site_enter(s);
    int ret = ready(s);
    if (ret == NV_OK)
        ret = index_of(s, dev, &c->gpu);
    struct fake_gpu *g = &s->gpu[ret == NV_OK ? c->gpu : 0];
    if (ret == NV_OK && g->fault.call_us > 0) {
        fake_site_leave(s);
        fake_site_dawdle(s, &g->fault.call_us);
        fake_site_enter(s);
        ret = ready(s);
    }
    if (ret == NV_OK) {
        c->fault = g->fault;
        c->activity = g->activity;
        tw_plant_read(s->plant, c->gpu, &c->r);
        c->energy_j = c->r.energy_j - g->energy_from_j;
    }
    fake_site_leave(s);
    return ret == NV_OK ? verdict(&c->fault, ch) : ret;
}

static unsigned u32(const struct call *c, enum fake_channel ch, double value)
{
    return has(c->fault.blank, ch) ? NV_BLANK_U32 : has(c->fault.zero, ch) ? 0U : (unsigned)lround(value);
}

static unsigned long long u64(const struct call *c, enum fake_channel ch, double value)
{
    return has(c->fault.blank, ch)  ? NV_BLANK_U64
           : has(c->fault.zero, ch) ? 0U
                                    : (unsigned long long)llround(value);
}

#define BEGIN(ch)                                                                                              \
    struct call c;                                                                                             \
    int ret = begin(&c, dev, (ch))

/* ---- who it is ---- */

int nvmlDeviceGetName(struct nv_device *dev, char *text, unsigned size)
{
    BEGIN(FAKE_IDENTITY);
    return ret == NV_OK ? put_text(text, size, tw_board_h100.model) : ret;
}

int nvmlDeviceGetUUID(struct nv_device *dev, char *text, unsigned size)
{
    BEGIN(FAKE_IDENTITY);
    char uuid[64];
    if (ret != NV_OK)
        return ret;
    fake_uuid(c.gpu, uuid, sizeof uuid);
    return put_text(text, size, uuid);
}

int nvmlDeviceGetPciInfo_v3(struct nv_device *dev, struct nv_pci *pci)
{
    BEGIN(FAKE_IDENTITY);
    if (ret != NV_OK)
        return ret;
    char id[32];
    fake_pci(c.gpu, id, sizeof id);
    *pci = (struct nv_pci){.domain = c.gpu / 8U, .bus = 0x18U + 0x10U * (c.gpu % 8U), .device_id = 0x233010deU};
    memcpy(pci->bus_id, id, sizeof id);
    (void)snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%.12s", id + 4);
    return NV_OK;
}

int nvmlDeviceGetSerial(struct nv_device *dev, char *text, unsigned size)
{
    BEGIN(FAKE_IDENTITY);
    char serial[32];
    if (ret != NV_OK)
        return ret;
    (void)snprintf(serial, sizeof serial, "51a7%08u", c.gpu);
    return put_text(text, size, serial);
}

/* Answers that are the same for every simulated GPU. */
#define CONSTANT(symbol, ch, value)                                                                            \
    int symbol(struct nv_device *dev, unsigned *out)                                                           \
    {                                                                                                          \
        BEGIN(ch);                                                                                             \
        if (ret == NV_OK)                                                                                      \
            *out = (value);                                                                                    \
        return ret;                                                                                            \
    }

CONSTANT(nvmlDeviceGetIndex, FAKE_IDENTITY, c.gpu)
CONSTANT(nvmlDeviceGetMinorNumber, FAKE_IDENTITY, c.gpu)
CONSTANT(nvmlDeviceGetBrand, FAKE_IDENTITY, 14U)       /* NVIDIA */
CONSTANT(nvmlDeviceGetArchitecture, FAKE_IDENTITY, 9U) /* Hopper */
CONSTANT(nvmlDeviceGetPerformanceState, FAKE_CLOCKS, 0U)
CONSTANT(nvmlDeviceGetPowerManagementMode, FAKE_LIMIT, 1U)
CONSTANT(nvmlDeviceGetComputeMode, FAKE_IDENTITY, 0U)
CONSTANT(nvmlDeviceGetDisplayMode, FAKE_IDENTITY, 0U)
CONSTANT(nvmlDeviceGetDisplayActive, FAKE_IDENTITY, 0U)
CONSTANT(nvmlDeviceIsMigDeviceHandle, FAKE_IDENTITY, 0U)
CONSTANT(nvmlDeviceGetMaxMigDeviceCount, FAKE_MIG, c.fault.mig ? 7U : 0U)
CONSTANT(nvmlDeviceGetPersistenceMode, FAKE_PERSISTENCE, c.fault.nopersist ? 0U : 1U)

int nvmlDeviceGetCudaComputeCapability(struct nv_device *dev, int *major, int *minor)
{
    BEGIN(FAKE_IDENTITY);
    if (ret == NV_OK) {
        *major = 9;
        *minor = 0;
    }
    return ret;
}

int nvmlDeviceGetMigMode(struct nv_device *dev, unsigned *now, unsigned *pending)
{
    BEGIN(FAKE_MIG);
    if (ret == NV_OK)
        *now = *pending = c.fault.mig ? 1U : 0U;
    return ret;
}

int nvmlDeviceGetTotalEccErrors(struct nv_device *dev, unsigned type, unsigned counter, unsigned long long *n)
{
    BEGIN(FAKE_IDENTITY);
    (void)type;
    (void)counter;
    if (ret == NV_OK)
        *n = 0;
    return ret;
}

#define UNSUPPORTED(symbol)                                                                                    \
    int symbol(struct nv_device *dev, void *a, void *b)                                                        \
    {                                                                                                          \
        BEGIN(FAKE_IDENTITY);                                                                                  \
        (void)a;                                                                                               \
        (void)b;                                                                                               \
        return ret == NV_OK ? NV_NOT_SUPPORTED : ret;                                                          \
    }
UNSUPPORTED_MAP(UNSUPPORTED)
#undef UNSUPPORTED

/* ---- readings ---- */

#define GAUGE(symbol, ch, value)                                                                               \
    int symbol(struct nv_device *dev, unsigned *out)                                                           \
    {                                                                                                          \
        BEGIN(ch);                                                                                             \
        if (ret == NV_OK)                                                                                      \
            *out = u32(&c, ch, (value));                                                                       \
        return ret;                                                                                            \
    }

GAUGE(nvmlDeviceGetPowerUsage, FAKE_POWER, 1e3 * c.r.power_w)
GAUGE(nvmlDeviceGetPowerManagementLimit, FAKE_LIMIT, 1e3 * c.r.cap_w)
GAUGE(nvmlDeviceGetEnforcedPowerLimit, FAKE_ENFORCED, 1e3 * c.r.cap_enforced_w)
GAUGE(nvmlDeviceGetPowerManagementDefaultLimit, FAKE_RANGE, 1e3 * c.site->board.limit_default_w)

int nvmlDeviceGetPowerManagementLimitConstraints(struct nv_device *dev, unsigned *min_mw, unsigned *max_mw)
{
    BEGIN(FAKE_RANGE);
    if (ret != NV_OK)
        return ret;
    const struct tw_board *b = &c.site->board;
    *min_mw = u32(&c, FAKE_RANGE, 1e3 * (c.fault.nonsense ? b->limit_max_w : b->limit_min_w));
    *max_mw = u32(&c, FAKE_RANGE, 1e3 * (c.fault.nonsense ? b->limit_min_w : b->limit_max_w));
    return NV_OK;
}

int nvmlDeviceGetTotalEnergyConsumption(struct nv_device *dev, unsigned long long *mj)
{
    BEGIN(FAKE_ENERGY);
    if (ret == NV_OK)
        *mj = u64(&c, FAKE_ENERGY, 1e3 * c.energy_j);
    return ret;
}

static void one_field(const struct call *c, struct nv_field_value *v)
{
    static const struct {
        unsigned field;
        enum fake_channel ch;
    } table[] = {{NV_FI_TOTAL_ENERGY, FAKE_ENERGY},
                 {NV_FI_POWER_AVERAGE, FAKE_AVERAGE},
                 {NV_FI_POWER_INSTANT, FAKE_INSTANT}};
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    v->timestamp_us = (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    v->latency_us = 0;
    v->ret = NV_NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].field != v->field)
            continue;
        enum fake_channel ch = table[i].ch;
        v->ret = verdict(&c->fault, ch);
        if (ch == FAKE_ENERGY) {
            v->type = NV_ULONGLONG;
            v->value.ull = u64(c, ch, 1e3 * c->energy_j);
        } else {
            v->type = NV_UINT;
            v->value.ui = u32(c, ch, 1e3 * (ch == FAKE_AVERAGE ? c->r.power_w : c->r.power_instant_w));
        }
    }
}

int nvmlDeviceGetFieldValues(struct nv_device *dev, int n, struct nv_field_value *value)
{
    BEGIN(FAKE_FIELDS);
    if (ret != NV_OK)
        return ret;
    for (int i = 0; i < n; i++)
        one_field(&c, &value[i]);
    return NV_OK;
}

int nvmlDeviceGetUtilizationRates(struct nv_device *dev, struct nv_utilization *util)
{
    BEGIN(FAKE_UTIL);
    if (ret == NV_OK && c.fault.mig)
        ret = NV_NOT_SUPPORTED;
    if (ret == NV_OK) {
        util->gpu = u32(&c, FAKE_UTIL, 100.0 * c.r.util_frac);
        util->memory = u32(&c, FAKE_UTIL, 100.0 * c.r.mem_copy_util_frac);
    }
    return ret;
}

/* Version 1 counts what the driver keeps for itself as used. */
int nvmlDeviceGetMemoryInfo(struct nv_device *dev, struct nv_memory *mem)
{
    BEGIN(FAKE_MEMORY);
    if (ret == NV_OK) {
        mem->total = u64(&c, FAKE_MEMORY, (double)MEMORY_BYTES);
        mem->used = u64(&c, FAKE_MEMORY, c.r.mem_used_bytes + (double)MEMORY_RESERVED);
        mem->free = mem->total - mem->used;
    }
    return ret;
}

int nvmlDeviceGetMemoryInfo_v2(struct nv_device *dev, struct nv_memory_v2 *mem)
{
    if (mem->version != NV_VERSION(struct nv_memory_v2, 2))
        return NV_ARGUMENT_VERSION_MISMATCH;
    BEGIN(FAKE_MEMORY);
    if (ret == NV_OK) {
        mem->total = u64(&c, FAKE_MEMORY, (double)MEMORY_BYTES);
        mem->used = u64(&c, FAKE_MEMORY, c.r.mem_used_bytes);
        mem->reserved = MEMORY_RESERVED;
        mem->free = mem->total - mem->used - mem->reserved;
    }
    return ret;
}

int nvmlDeviceGetTemperatureV(struct nv_device *dev, struct nv_temperature *temp)
{
    if (temp->version != NV_VERSION(struct nv_temperature, 1))
        return NV_ARGUMENT_VERSION_MISMATCH;
    BEGIN(FAKE_TEMP);
    if (ret == NV_OK)
        temp->temperature = (int)u32(&c, FAKE_TEMP, c.r.temp_c);
    return ret;
}

int nvmlDeviceGetTemperature(struct nv_device *dev, unsigned sensor, unsigned *celsius)
{
    BEGIN(FAKE_TEMP);
    (void)sensor;
    if (ret == NV_OK)
        *celsius = u32(&c, FAKE_TEMP, c.r.temp_c);
    return ret;
}

int nvmlDeviceGetClockInfo(struct nv_device *dev, unsigned which, unsigned *mhz)
{
    BEGIN(FAKE_CLOCKS);
    if (ret == NV_OK)
        *mhz = u32(&c, FAKE_CLOCKS, 1e-6 * (which == NV_CLOCK_MEM ? c.r.mem_clock_hz : c.r.sm_clock_hz));
    return ret;
}

int nvmlDeviceGetMaxClockInfo(struct nv_device *dev, unsigned which, unsigned *mhz)
{
    BEGIN(FAKE_CLOCKS);
    const struct tw_board *b = &tw_board_h100;
    if (ret == NV_OK)
        *mhz = u32(&c, FAKE_CLOCKS, 1e-6 * (which == NV_CLOCK_MEM ? b->mem_clock_hz : b->clock_max_hz));
    return ret;
}

int nvmlDeviceGetCurrentClocksEventReasons(struct nv_device *dev, unsigned long long *bits)
{
    BEGIN(FAKE_REASONS);
    if (ret == NV_OK)
        *bits = u64(&c, FAKE_REASONS, (double)c.r.throttle_bits);
    return ret;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nv_device *dev, unsigned long long *bits)
{
    return nvmlDeviceGetCurrentClocksEventReasons(dev, bits);
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nv_device *dev, unsigned *n, struct nv_process *process)
{
    BEGIN(FAKE_PROCESSES);
    if (ret != NV_OK)
        return ret;
    unsigned room = process ? *n : 0U;
    *n = c.fault.n_pid;
    for (unsigned i = 0; i < c.fault.n_pid && i < room; i++)
        process[i] = (struct nv_process){.pid = c.fault.pid[i].pid,
                                         .used_bytes = c.fault.pid[i].bytes,
                                         .gpu_instance = NV_BLANK_U32,
                                         .compute_instance = NV_BLANK_U32};
    return c.fault.n_pid > room ? NV_INSUFFICIENT_SIZE : NV_OK;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nv_device *dev, unsigned *n, struct nv_process *p)
{
    BEGIN(FAKE_PROCESSES);
    (void)p;
    if (ret == NV_OK)
        *n = 0;
    return ret;
}

/* ---- writing ---- */

int nvmlDeviceSetPowerManagementLimit(struct nv_device *dev, unsigned mw)
{
    BEGIN(FAKE_SET);
    if (ret != NV_OK)
        return ret;
    if (c.fault.denied)
        return NV_NO_PERMISSION;
    struct fake_fault *live = &c.site->gpu[c.gpu].fault;
    fake_site_dawdle(c.site, &live->write_us);
    fake_site_enter(c.site);
    ret = ready(c.site);
    if (ret == NV_OK && live->write_fails)
        ret = NV_TIMEOUT;
    if (ret == NV_OK && tw_plant_cap(c.site->plant, c.gpu, 1e-3 * mw, NULL) != TW_OK)
        ret = NV_INVALID_ARGUMENT;
    fake_site_leave(c.site);
    return ret;
}

/* ---- GPM ---- */

struct nv_gpm_sample {
    struct fake_activity at;
    bool taken;
};

int nvmlGpmQueryDeviceSupport(struct nv_device *dev, struct nv_gpm_support *support)
{
    BEGIN(FAKE_GPM);
    if (ret == NV_NOT_SUPPORTED || (ret == NV_OK && c.fault.mig)) {
        support->supported = 0;
        return NV_OK;
    }
    if (ret == NV_OK)
        support->supported = 1;
    return ret;
}

int nvmlGpmSampleAlloc(struct nv_gpm_sample **sample)
{
    *sample = calloc(1, sizeof **sample);
    return *sample ? NV_OK : 20;
}

int nvmlGpmSampleFree(struct nv_gpm_sample *sample)
{
    free(sample);
    return NV_OK;
}

int nvmlGpmSampleGet(struct nv_device *dev, struct nv_gpm_sample *sample)
{
    BEGIN(FAKE_GPM);
    if (ret == NV_OK && c.fault.mig)
        ret = NV_NOT_SUPPORTED;
    if (ret == NV_OK)
        *sample = (struct nv_gpm_sample){.at = c.activity, .taken = true};
    return ret;
}

int nvmlGpmMetricsGet(struct nv_gpm_get *get)
{
    if (get->version != NV_GPM_VERSION)
        return NV_ARGUMENT_VERSION_MISMATCH;
    const struct nv_gpm_sample *a = get->first, *b = get->second;
    if (!a || !b || !a->taken || !b->taken || get->n > NV_GPM_METRIC_MAX)
        return NV_INVALID_ARGUMENT;
    double dt_s = b->at.time_s - a->at.time_s;
    for (unsigned i = 0; i < get->n; i++) {
        struct nv_gpm_value *v = &get->value[i];
        double d = v->metric == NV_GPM_SM_UTIL           ? b->at.sm - a->at.sm
                   : v->metric == NV_GPM_ANY_TENSOR_UTIL ? b->at.tensor - a->at.tensor
                   : v->metric == NV_GPM_DRAM_BW_UTIL    ? b->at.dram - a->at.dram
                                                         : (double)NAN;
        v->ret = isnan(d) ? NV_NOT_SUPPORTED : dt_s > 0.0 ? NV_OK : NO_DATA;
        v->value = v->ret == NV_OK ? 100.0 * d / dt_s : 0.0;
    }
    return NV_OK;
}

/* ---- events ---- */

struct nv_event_set {
    bool watched[FAKE_GPU_MAX];
    uint64_t seen[FAKE_GPU_MAX];
};

int nvmlEventSetCreate(struct nv_event_set **set)
{
    *set = calloc(1, sizeof **set);
    return *set ? NV_OK : 20;
}

int nvmlEventSetFree(struct nv_event_set *set)
{
    free(set);
    return NV_OK;
}

int nvmlDeviceGetSupportedEventTypes(struct nv_device *dev, unsigned long long *types)
{
    BEGIN(FAKE_IDENTITY);
    if (ret == NV_OK)
        *types = NV_EVENT_XID;
    return ret;
}

int nvmlDeviceRegisterEvents(struct nv_device *dev, unsigned long long types, struct nv_event_set *set)
{
    BEGIN(FAKE_IDENTITY);
    if (ret != NV_OK)
        return ret;
    if (types & ~(unsigned long long)NV_EVENT_XID)
        return NV_NOT_SUPPORTED;
    fake_site_enter(c.site);
    set->watched[c.gpu] = true;
    set->seen[c.gpu] = c.site->gpu[c.gpu].xid_seq;
    fake_site_leave(c.site);
    return NV_OK;
}

static bool next_event(struct fake_site *s, struct nv_event_set *set, struct nv_event *event)
{
    for (uint32_t i = 0; i < s->n_gpu; i++) {
        if (!set->watched[i] || set->seen[i] >= s->gpu[i].xid_seq)
            continue;
        set->seen[i]++;
        *event = (struct nv_event){.device = handle(s, i),
                                   .type = NV_EVENT_XID,
                                   .data = s->gpu[i].xid_code,
                                   .gpu_instance = NV_BLANK_U32,
                                   .compute_instance = NV_BLANK_U32};
        return true;
    }
    return false;
}

int nvmlEventSetWait_v2(struct nv_event_set *set, struct nv_event *event, unsigned timeout_ms)
{
    struct fake_site *s;
    int64_t until_us = fake_boot_us() + 1000 * (int64_t)timeout_ms;
    for (;;) {
        int ret = begin_system(&s);
        if (ret != NV_OK)
            return ret;
        fake_site_enter(s);
        bool found = next_event(s, set, event);
        fake_site_leave(s);
        if (found)
            return NV_OK;
        if (fake_boot_us() >= until_us)
            return NV_TIMEOUT;
        struct timespec nap = {.tv_sec = 0, .tv_nsec = 5000000};
        (void)nanosleep(&nap, NULL);
    }
}
