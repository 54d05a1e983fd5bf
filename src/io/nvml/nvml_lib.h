/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml/nvml_lib.h - NVIDIA's library, opened at run time.
 *
 * Where it is looked for: the path given, or each word of TW_NVML_PATH (files or folders with ":" between), and
 * nowhere else then; otherwise the loader's own search, and after it the folders of Debian, of the driver's
 * installer, of containers and of arm64 boards. A table of pointers comes out; a MAY that the library lacks is
 * NULL in it. Threads may share it once it is open. */
#ifndef TW_IO_NVML_LIB_H
#define TW_IO_NVML_LIB_H

#include "base/err.h"
#include "io/nvml/nvml_api.h"

struct nv_lib {
    void *handle;
    char path[256]; /* what was opened */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) : a declaration takes none */
#define NV_MEMBER(must, member, symbol, args) int(*member) args;
    NV_CALL_MAP(NV_MEMBER)
#undef NV_MEMBER
};

/* Open the library and initialise it. path "" : search.
 * TW_EUNSUPPORTED with the reason in one line: there is no library, it lacks a function, no driver is loaded,
 * the versions of library and driver differ; TW_EPERM when the device files refuse us. */
TW_MUST_USE
enum tw_err nv_lib_open(const char *path, struct nv_lib *ret, struct tw_why *why);
/* Shut down and unload; one that was never opened but zeroed is fine. No call may be under way. */
void nv_lib_close(struct nv_lib *lib);

/* NVML's words for a number, also without the library. */
const char *nv_text(int ret);
/* Does the number say that the driver itself is gone, so that all handles are void? */
int nv_driver_gone(int ret);
/* Does it say that this device, or our handle to it, is gone? */
int nv_device_gone(int ret);

#endif
