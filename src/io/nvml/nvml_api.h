/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml/nvml_api.h - the part of NVIDIA's NVML that we call, declared by ourselves.
 *
 * There is no nvml.h on a machine without the driver, and its licence asks for a notice; so the few functions,
 * structures and numbers that are used stand here. Names bind to the versioned symbols (_v2, _v3), whose layout
 * never changes. nvml_lib.c asserts the layouts; test/peers compares them with nvidia-ml-py. Units are NVML's:
 * milliwatts, millijoules, megahertz, percent. They end at nvml_read.c. */
#ifndef TW_IO_NVML_API_H
#define TW_IO_NVML_API_H

#include <stddef.h>
#include <stdint.h>

/* name, value: only those that are told apart */
#define NV_RET_MAP(X)                                                                                          \
    X(OK, 0)                                                                                                   \
    X(UNINITIALIZED, 1)                                                                                        \
    X(INVALID_ARGUMENT, 2)                                                                                     \
    X(NOT_SUPPORTED, 3)                                                                                        \
    X(NO_PERMISSION, 4)                                                                                        \
    X(NOT_FOUND, 6)                                                                                            \
    X(INSUFFICIENT_SIZE, 7)                                                                                    \
    X(DRIVER_NOT_LOADED, 9)                                                                                    \
    X(TIMEOUT, 10)                                                                                             \
    X(FUNCTION_NOT_FOUND, 13)                                                                                  \
    X(GPU_IS_LOST, 15)                                                                                         \
    X(RESET_REQUIRED, 16)                                                                                      \
    X(LIB_RM_VERSION_MISMATCH, 18)                                                                             \
    X(ARGUMENT_VERSION_MISMATCH, 25)                                                                           \
    X(GPU_NOT_FOUND, 28)                                                                                       \
    X(UNKNOWN, 999)

enum nv_ret {
#define NV_RET_ENUM(name, value) NV_##name = (value),
    NV_RET_MAP(NV_RET_ENUM)
#undef NV_RET_ENUM
};

#define NV_BLANK_U32 0xffffffffU /* what NVML writes for "not available" */
#define NV_BLANK_U64 UINT64_MAX

enum { NV_TEMP_GPU = 0 };
enum { NV_CLOCK_GRAPHICS = 0, NV_CLOCK_SM = 1, NV_CLOCK_MEM = 2 };
enum { NV_EVENT_XID = 8 };

enum nv_field {
    NV_FI_TOTAL_ENERGY = 83,   /* mJ since the driver was loaded */
    NV_FI_POWER_AVERAGE = 185, /* mW, mean of one second */
    NV_FI_POWER_INSTANT = 186, /* mW */
};

enum nv_type { NV_DOUBLE, NV_UINT, NV_ULONG, NV_ULONGLONG, NV_LONGLONG, NV_INT, NV_USHORT };

enum nv_gpm_metric {
    NV_GPM_GRAPHICS_UTIL = 1,
    NV_GPM_SM_UTIL = 2,         /* percent of multiprocessors that were busy */
    NV_GPM_ANY_TENSOR_UTIL = 5, /* percent of time */
    NV_GPM_DRAM_BW_UTIL = 10,   /* percent of the peak */
    NV_GPM_PCIE_TX = 20,        /* MiB/s, as the next three */
    NV_GPM_PCIE_RX = 21,
    NV_GPM_NVLINK_RX = 60,
    NV_GPM_NVLINK_TX = 61,
};
#define NV_GPM_METRIC_MAX 477 /* of NVML 13; the library looks at the first numMetrics only */
#define NV_GPM_VERSION 1U

struct nv_device;     /* a handle */
struct nv_gpm_sample; /* likewise */
struct nv_event_set;  /* likewise */

struct nv_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct nv_memory {
    unsigned long long total, free, used;
};

struct nv_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct nv_utilization {
    unsigned gpu, memory;
};

struct nv_temperature {
    unsigned version, sensor;
    int temperature;
};

union nv_value {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
};

struct nv_field_value {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    unsigned type; /* enum nv_type */
    int ret;       /* enum nv_ret, of this field alone */
    union nv_value value;
};

struct nv_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct nv_event {
    struct nv_device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct nv_gpm_support {
    unsigned version, supported;
};

struct nv_gpm_value {
    unsigned metric;
    int ret;
    double value;
    struct {
        const char *short_name, *long_name, *unit;
    } info;
};

struct nv_gpm_get {
    unsigned version, n;
    struct nv_gpm_sample *first, *second;
    struct nv_gpm_value value[NV_GPM_METRIC_MAX];
};

/* The version word of a versioned structure: its size, and the version in the top byte. */
#define NV_VERSION(type, version) ((unsigned)sizeof(type) | ((unsigned)(version) << 24))

/* MUST or MAY, member, symbol, its parameters. All return int (enum nv_ret). Without a MUST the library is
 * refused by name; without a MAY a channel stays unknown or an older neighbour is asked. */
#define NV_CALL_MAP(X)                                                                                         \
    X(MUST, init, nvmlInit_v2, (void))                                                                         \
    X(MUST, shutdown, nvmlShutdown, (void))                                                                    \
    X(MUST, driver_version, nvmlSystemGetDriverVersion, (char *text, unsigned size))                           \
    X(MUST, count, nvmlDeviceGetCount_v2, (unsigned *n))                                                       \
    X(MUST, by_index, nvmlDeviceGetHandleByIndex_v2, (unsigned i, struct nv_device **dev))                     \
    X(MUST, by_uuid, nvmlDeviceGetHandleByUUID, (const char *uuid, struct nv_device **dev))                    \
    X(MUST, name, nvmlDeviceGetName, (struct nv_device * dev, char *text, unsigned size))                      \
    X(MUST, uuid, nvmlDeviceGetUUID, (struct nv_device * dev, char *text, unsigned size))                      \
    X(MUST, pci, nvmlDeviceGetPciInfo_v3, (struct nv_device * dev, struct nv_pci * pci))                       \
    X(MUST, power, nvmlDeviceGetPowerUsage, (struct nv_device * dev, unsigned *mw))                            \
    X(MUST, limit, nvmlDeviceGetPowerManagementLimit, (struct nv_device * dev, unsigned *mw))                  \
    X(MUST, limit_range, nvmlDeviceGetPowerManagementLimitConstraints,                                         \
      (struct nv_device * dev, unsigned *min_mw, unsigned *max_mw))                                            \
    X(MUST, limit_default, nvmlDeviceGetPowerManagementDefaultLimit, (struct nv_device * dev, unsigned *mw))   \
    X(MUST, limit_enforced, nvmlDeviceGetEnforcedPowerLimit, (struct nv_device * dev, unsigned *mw))           \
    X(MUST, limit_set, nvmlDeviceSetPowerManagementLimit, (struct nv_device * dev, unsigned mw))               \
    X(MUST, utilization, nvmlDeviceGetUtilizationRates,                                                        \
      (struct nv_device * dev, struct nv_utilization * util))                                                  \
    X(MUST, memory, nvmlDeviceGetMemoryInfo, (struct nv_device * dev, struct nv_memory * mem))                 \
    X(MUST, clock, nvmlDeviceGetClockInfo, (struct nv_device * dev, unsigned which, unsigned *mhz))            \
    X(MAY, nvml_version, nvmlSystemGetNVMLVersion, (char *text, unsigned size))                                \
    X(MAY, cuda_version, nvmlSystemGetCudaDriverVersion_v2, (int *version))                                    \
    X(MAY, fields, nvmlDeviceGetFieldValues, (struct nv_device * dev, int n, struct nv_field_value *value))    \
    X(MAY, energy, nvmlDeviceGetTotalEnergyConsumption, (struct nv_device * dev, unsigned long long *mj))      \
    X(MAY, memory_v2, nvmlDeviceGetMemoryInfo_v2, (struct nv_device * dev, struct nv_memory_v2 * mem))         \
    X(MAY, temperature_v, nvmlDeviceGetTemperatureV, (struct nv_device * dev, struct nv_temperature * temp))   \
    X(MAY, temperature, nvmlDeviceGetTemperature,                                                              \
      (struct nv_device * dev, unsigned sensor, unsigned *celsius))                                            \
    X(MAY, reasons, nvmlDeviceGetCurrentClocksEventReasons,                                                    \
      (struct nv_device * dev, unsigned long long *bits))                                                      \
    X(MAY, reasons_old, nvmlDeviceGetCurrentClocksThrottleReasons,                                             \
      (struct nv_device * dev, unsigned long long *bits))                                                      \
    X(MAY, capability, nvmlDeviceGetCudaComputeCapability, (struct nv_device * dev, int *major, int *minor))   \
    X(MAY, persistence, nvmlDeviceGetPersistenceMode, (struct nv_device * dev, unsigned *on))                  \
    X(MAY, mig_mode, nvmlDeviceGetMigMode, (struct nv_device * dev, unsigned *now, unsigned *pending))         \
    X(MAY, processes, nvmlDeviceGetComputeRunningProcesses_v3,                                                 \
      (struct nv_device * dev, unsigned *n, struct nv_process *process))                                       \
    X(MAY, gpm_support, nvmlGpmQueryDeviceSupport, (struct nv_device * dev, struct nv_gpm_support * support))  \
    X(MAY, gpm_alloc, nvmlGpmSampleAlloc, (struct nv_gpm_sample * *sample))                                    \
    X(MAY, gpm_free, nvmlGpmSampleFree, (struct nv_gpm_sample * sample))                                       \
    X(MAY, gpm_sample, nvmlGpmSampleGet, (struct nv_device * dev, struct nv_gpm_sample * sample))              \
    X(MAY, gpm_metrics, nvmlGpmMetricsGet, (struct nv_gpm_get * get))                                          \
    X(MAY, events_new, nvmlEventSetCreate, (struct nv_event_set * *set))                                       \
    X(MAY, events_for, nvmlDeviceRegisterEvents,                                                               \
      (struct nv_device * dev, unsigned long long types, struct nv_event_set *set))                            \
    X(MAY, events_wait, nvmlEventSetWait_v2,                                                                   \
      (struct nv_event_set * set, struct nv_event * event, unsigned timeout_ms))                               \
    X(MAY, events_free, nvmlEventSetFree, (struct nv_event_set * set))

#endif
