/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - the back ends that are part of the privileged program: few, and none that opens a network
 * connection. */
#ifndef TW_APP_CAPD_DEVICES_H
#define TW_APP_CAPD_DEVICES_H

#include "capd/worker.h"
#include "port/cap.h"
#include "port/source.h"

struct tw_capd_backend {
    const struct tw_source_ops *source; /* NULL: the cap table needs none */
    const struct tw_cap_ops *cap;
};
extern const struct tw_capd_backend tw_capd_backend[]; /* ends with cap NULL */

/* Point dev at "NAME[:SPEC]"; text must outlive it. TW_EINVAL: no back end of that name. Nothing is opened. */
TW_MUST_USE
enum tw_err tw_capd_device(const char *text, struct tw_worker_device *ret, struct tw_why *why);

#endif
