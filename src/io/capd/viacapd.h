/* SPDX-License-Identifier: Apache-2.0 */
/* io/capd/viacapd.h - limits written through the privileged helper, as one more cap back end.
 *
 * Spec: words separated by commas, all optional: a socket path (starts with "/"), "free" for a client without a
 * power budget (else it has one), "lease=10s" (default). Each GPU has a connection of its own, opened and
 * acquired by its first write, so that threads may write different GPUs at once; the same GPU is one thread's
 * at a time. Every write and read renews the lease of its GPU: a controller that stops calling loses it, which
 * is what a lease is for. Read of a GPU that was never written asks the helper for what it last read
 * (TW_ENODATA before the first time). */
#ifndef TW_IO_CAPD_VIACAPD_H
#define TW_IO_CAPD_VIACAPD_H

#include "port/cap.h"

extern const struct tw_cap_ops tw_viacapd_cap;

#endif
