/* SPDX-License-Identifier: Apache-2.0 */
/* base/chain.h - lines that hold each other: an append-only log in which a change, a cut or a swap shows.
 *
 * Every line is "HASH TEXT\n", where HASH is the first 32 hexadecimal digits of the SHA-256 (FIPS 180-4) of the
 * HASH of the line before it, a blank, and TEXT. The first line of a file follows thirty-two zeros, or, when
 * its TEXT starts with "begin HASH", that hash: the last of the file before it. A line that a power cut tore
 * stays where it is; the next line then follows the last whole one, and its TEXT starts with "torn".
 *
 * The chain shows damage and careless editing. It has no key: who can write the file can also write a new
 * chain, so note the last hash elsewhere where that matters. */
#ifndef TW_BASE_CHAIN_H
#define TW_BASE_CHAIN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define TW_CHAIN_HEX 32
#define TW_CHAIN_LINE_MAX 512 /* of a whole line with its newline; a longer TEXT is cut */

struct tw_chain {
    char hex[TW_CHAIN_HEX + 1]; /* of the last line */
};

void tw_sha256(const void *data, size_t n, unsigned char ret_digest[static 32]);

void tw_chain_init(struct tw_chain *c);
/* Make the next line of text (control characters become '?') and step the chain. Returns its length without the
 * NUL. */
size_t tw_chain_line(struct tw_chain *c, const char *text, char ret_line[static TW_CHAIN_LINE_MAX + 1]);

/* Follow the lines of data [n]. ret_chain: after the last whole line; ret_lines, ret_torn: how many held, and
 * how many were torn and owned up to; any may be NULL. A last line without its newline, or one that does not
 * hold, is a torn tail and no error here (ret_torn counts it). TW_EPARSE: a line that does not hold, by number.
 */
TW_MUST_USE
enum tw_err tw_chain_check(const char *data, size_t n, struct tw_chain *ret_chain, size_t *ret_lines,
                           size_t *ret_torn, bool *ret_tail, struct tw_why *why);

#endif
