/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that hold each other, and the SHA-256 that they hold by (FIPS 180-4, section 6.2). */
#include "base/chain.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned by)
{
    return x >> by | x << (32U - by);
}

static void block(uint32_t h[static 8], const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 |
               p[4 * t + 3];
    for (unsigned t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] =
            w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (unsigned t = 0; t < 64; t++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                      round_constant[t] + w[t];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] += v[i];
}

void tw_sha256(const void *data, size_t n, unsigned char ret_digest[static 32])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *p = data;
    size_t left = n;
    for (; left >= 64; p += 64, left -= 64)
        block(h, p);
    unsigned char tail[128] = {0};
    size_t size = left < 56 ? 64 : 128;
    if (left > 0)
        memcpy(tail, p, left);
    tail[left] = 0x80;
    uint64_t bits = (uint64_t)n * 8;
    for (unsigned i = 0; i < 8; i++)
        tail[size - 1 - i] = (unsigned char)(bits >> (8 * i));
    block(h, tail);
    if (size == 128)
        block(h, tail + 64);
    for (unsigned i = 0; i < 32; i++)
        ret_digest[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void tw_chain_init(struct tw_chain *c)
{
    memset(c->hex, '0', TW_CHAIN_HEX);
    c->hex[TW_CHAIN_HEX] = '\0';
}

/* The hash of text [n] after the chain so far. */
static void hash_after(const char *before, const char *text, size_t n, char ret_hex[static TW_CHAIN_HEX + 1])
{
    char joined[TW_CHAIN_HEX + 1 + TW_CHAIN_LINE_MAX];
    unsigned char digest[32];
    memcpy(joined, before, TW_CHAIN_HEX);
    joined[TW_CHAIN_HEX] = ' ';
    memcpy(joined + TW_CHAIN_HEX + 1, text, n);
    tw_sha256(joined, TW_CHAIN_HEX + 1 + n, digest);
    for (unsigned i = 0; i < TW_CHAIN_HEX / 2; i++)
        (void)snprintf(ret_hex + 2U * i, 3, "%02x", digest[i]);
}

#define TEXT_MAX (TW_CHAIN_LINE_MAX - TW_CHAIN_HEX - 2) /* a line less hash, blank and newline */

size_t tw_chain_line(struct tw_chain *c, const char *text, char ret_line[static TW_CHAIN_LINE_MAX + 1])
{
    size_t n = strnlen(text, TEXT_MAX);
    char *body = ret_line + TW_CHAIN_HEX + 1;
    for (size_t i = 0; i < n; i++)
        body[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    hash_after(c->hex, body, n, c->hex);
    memcpy(ret_line, c->hex, TW_CHAIN_HEX);
    ret_line[TW_CHAIN_HEX] = ' ';
    body[n] = '\n';
    body[n + 1] = '\0';
    return TW_CHAIN_HEX + 1 + n + 1;
}

/* Does a line [n] without its newline follow the chain? Steps it if so. */
static int follows(struct tw_chain *c, const char *line, size_t n)
{
    char hex[TW_CHAIN_HEX + 1];
    if (n < TW_CHAIN_HEX + 1 || n > TW_CHAIN_LINE_MAX - 1 || line[TW_CHAIN_HEX] != ' ')
        return 0;
    hash_after(c->hex, line + TW_CHAIN_HEX + 1, n - TW_CHAIN_HEX - 1, hex);
    if (memcmp(hex, line, TW_CHAIN_HEX) != 0)
        return 0;
    memcpy(c->hex, hex, sizeof hex);
    return 1;
}

static int text_starts(const char *line, size_t n, const char *word)
{
    size_t m = strlen(word);
    return n >= TW_CHAIN_HEX + 1 + m && memcmp(line + TW_CHAIN_HEX + 1, word, m) == 0;
}

enum tw_err tw_chain_check(const char *data, size_t n, struct tw_chain *ret_chain, size_t *ret_lines,
                           size_t *ret_torn, bool *ret_tail, struct tw_why *why)
{
    struct tw_chain c;
    tw_chain_init(&c);
    size_t held = 0, torn = 0, bad = 0, number = 0;
    for (size_t at = 0; at < n;) {
        const char *line = data + at;
        const char *newline = memchr(line, '\n', n - at);
        size_t len = newline ? (size_t)(newline - line) : n - at;
        at += len + 1;
        number++;
        if (number == 1 && text_starts(line, len, "begin ") && len >= TW_CHAIN_HEX + 1 + 6 + TW_CHAIN_HEX)
            memcpy(c.hex, line + TW_CHAIN_HEX + 1 + 6, TW_CHAIN_HEX);
        if (!newline || !follows(&c, line, len)) {
            if (bad > 0) /* two in a row: nobody owned up to the first */
                return tw_fail(why, TW_EPARSE, "line %zu does not follow the line before it", bad);
            bad = number;
            continue;
        }
        if (bad > 0 && !text_starts(line, len, "torn"))
            return tw_fail(why, TW_EPARSE, "line %zu does not follow the line before it", bad);
        torn += bad > 0;
        bad = 0;
        held++;
    }
    if (ret_chain)
        *ret_chain = c;
    if (ret_lines)
        *ret_lines = held;
    if (ret_torn)
        *ret_torn = torn;
    if (ret_tail)
        *ret_tail = bad > 0;
    return TW_OK;
}
