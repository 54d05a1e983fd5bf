/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt/version.h - which library this is. The public headers are stable from the first release on. */
#ifndef TOKWATT_VERSION_H
#define TOKWATT_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that is loaded, not of the header. Static storage. */
const char *tw_version(void);

#ifdef __cplusplus
}
#endif
#endif
