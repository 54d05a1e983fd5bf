/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, opening and initialising libnvidia-ml. */
#include "io/nvml/nvml_lib.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Layouts as NVML has them on every 64-bit Linux: sizes, and the places behind which padding could move. */
static_assert(sizeof(struct nv_pci) == 68 && offsetof(struct nv_pci, bus_id) == 36, "nvmlPciInfo_t");
static_assert(sizeof(struct nv_memory) == 24, "nvmlMemory_t");
static_assert(NV_VERSION(struct nv_memory_v2, 2) == 0x02000028U, "nvmlMemory_v2_t");
static_assert(NV_VERSION(struct nv_temperature, 1) == 0x0100000cU, "nvmlTemperature_v1_t");
static_assert(sizeof(struct nv_utilization) == 8, "nvmlUtilization_t");
static_assert(sizeof(union nv_value) == 8, "nvmlValue_t");
static_assert(sizeof(struct nv_field_value) == 40 && offsetof(struct nv_field_value, timestamp_us) == 8 &&
                  offsetof(struct nv_field_value, ret) == 28 && offsetof(struct nv_field_value, value) == 32,
              "nvmlFieldValue_t");
static_assert(sizeof(struct nv_process) == 24 && offsetof(struct nv_process, used_bytes) == 8,
              "nvmlProcessInfo_v2_t");
static_assert(sizeof(struct nv_event) == 32 && offsetof(struct nv_event, data) == 16, "nvmlEventData_t");
static_assert(sizeof(struct nv_gpm_value) == 40 && offsetof(struct nv_gpm_value, value) == 8,
              "nvmlGpmMetric_t");
static_assert(offsetof(struct nv_gpm_get, first) == 8 && offsetof(struct nv_gpm_get, value) == 24,
              "nvmlGpmMetricsGet_t");

#define NAME "libnvidia-ml.so.1"

static const char *const folders[] = {
    "/usr/lib/x86_64-linux-gnu/nvidia/current", /* Debian */
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia", /* Jetson and other Tegra boards */
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/nvidia",
    "/usr/local/nvidia/lib64", /* containers of Kubernetes device plug-ins */
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", /* GPU operator */
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/usr/lib/wsl/lib",
};

const char *nv_text(int ret)
{
    static const struct {
        int ret;
        const char *text;
    } table[] = {
        {NV_OK, "success"},
        {NV_UNINITIALIZED, "the driver was reloaded"},
        {NV_INVALID_ARGUMENT, "invalid argument"},
        {NV_NOT_SUPPORTED, "not supported by this GPU"},
        {NV_NO_PERMISSION, "no permission"},
        {NV_NOT_FOUND, "no such GPU"},
        {NV_INSUFFICIENT_SIZE, "buffer too small"},
        {NV_DRIVER_NOT_LOADED, "the driver is not loaded"},
        {NV_TIMEOUT, "the driver timed out"},
        {NV_FUNCTION_NOT_FOUND, "this driver lacks the function"},
        {NV_GPU_IS_LOST, "the GPU has fallen off the bus"},
        {NV_RESET_REQUIRED, "the GPU needs a reset"},
        {NV_LIB_RM_VERSION_MISMATCH, "library and loaded driver are of different versions: reboot or reload"},
        {NV_ARGUMENT_VERSION_MISMATCH, "structure of another version"},
        {NV_GPU_NOT_FOUND, "no GPU found"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].ret == ret)
            return table[i].text;
    return "unknown error of the driver";
}

int nv_driver_gone(int ret)
{
    return ret == NV_UNINITIALIZED || ret == NV_DRIVER_NOT_LOADED || ret == NV_LIB_RM_VERSION_MISMATCH;
}

int nv_device_gone(int ret)
{
    return ret == NV_GPU_IS_LOST || ret == NV_RESET_REQUIRED || ret == NV_GPU_NOT_FOUND;
}

/* A file, or NAME in a folder. */
static void *open_at(const char *place, struct nv_lib *lib)
{
    struct stat st;
    if (stat(place, &st) != 0)
        return NULL;
    int n = snprintf(lib->path, sizeof lib->path, S_ISDIR(st.st_mode) ? "%s/" NAME : "%s", place);
    return n > 0 && (size_t)n < sizeof lib->path ? dlopen(lib->path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_words(const char *words, struct nv_lib *lib)
{
    char copy[2048];
    if ((size_t)snprintf(copy, sizeof copy, "%s", words) >= sizeof copy)
        return NULL;
    char *save = NULL;
    for (char *word = strtok_r(copy, ":", &save); word; word = strtok_r(NULL, ":", &save)) {
        void *h = open_at(word, lib);
        if (h)
            return h;
    }
    return NULL;
}

static enum tw_err find(const char *path, struct nv_lib *lib, struct tw_why *why)
{
    const char *env = secure_getenv("TW_NVML_PATH"); /* not for whoever borrows a privilege */
    const char *given = *path ? path : env && *env ? env : NULL;
    if (given) {
        lib->handle = open_words(given, lib);
        return lib->handle ? TW_OK
                           : tw_fail(why, TW_EUNSUPPORTED, "no " NAME " could be opened at %.200s", given);
    }
    (void)snprintf(lib->path, sizeof lib->path, NAME);
    lib->handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !lib->handle && i < sizeof folders / sizeof *folders; i++)
        lib->handle = open_at(folders[i], lib);
    return lib->handle ? TW_OK
                       : tw_fail(why, TW_EUNSUPPORTED,
                                 "no NVIDIA driver here: " NAME
                                 " is in none of the usual places (TW_NVML_PATH names others)");
}

/* POSIX promises that a pointer from dlsym may be a function; ISO C has no cast for it. */
static void symbol(void *handle, const char *name, void *ret_function)
{
    void *p = dlsym(handle, name);
    memcpy(ret_function, &p, sizeof p);
}

static enum tw_err bind(struct nv_lib *lib, struct tw_why *why)
{
    enum { MAY, MUST };
    const char *missing = NULL;
#define NV_BIND(must, member, name, args)                                                                      \
    symbol(lib->handle, #name, &lib->member);                                                                  \
    if ((must) == MUST && !lib->member && !missing)                                                            \
        missing = #name;
    NV_CALL_MAP(NV_BIND)
#undef NV_BIND
    return missing
               ? tw_fail(why, TW_EUNSUPPORTED, "%.200s has no %s; a newer driver is needed", lib->path, missing)
               : TW_OK;
}

enum tw_err nv_lib_open(const char *path, struct nv_lib *ret, struct tw_why *why)
{
    struct nv_lib lib = {0};
    enum tw_err err = find(path, &lib, why);
    if (err == TW_OK)
        err = bind(&lib, why);
    if (err == TW_OK) {
        int got = lib.init();
        if (got != NV_OK)
            err = tw_fail(why, got == NV_NO_PERMISSION ? TW_EPERM : TW_EUNSUPPORTED, "%.200s: %s (%d)",
                          lib.path, nv_text(got), got);
    }
    if (err == TW_OK)
        *ret = lib;
    else if (lib.handle)
        dlclose(lib.handle);
    return err;
}

void nv_lib_close(struct nv_lib *lib)
{
    if (!lib->handle)
        return;
    (void)lib->shutdown(); /* a driver that is gone has nothing to shut down */
    dlclose(lib->handle);
    *lib = (struct nv_lib){0};
}
