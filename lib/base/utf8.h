/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - text from outside may hold any bytes; what we write holds UTF-8. */
#ifndef TW_BASE_UTF8_H
#define TW_BASE_UTF8_H

#include <stddef.h>

/* Length in bytes of the character at s (NUL-terminated text), 1 to 4, or 0 when the bytes there are none:
 * overlong, surrogate, beyond U+10FFFF or cut. */
size_t tw_utf8_len(const unsigned char *s);

#endif
