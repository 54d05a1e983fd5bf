/* SPDX-License-Identifier: Apache-2.0 */
/* Which table of kernels this processor runs. */
#include "nn/kern_int.h"

#include <string.h>

#if defined(__x86_64__)
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static bool has_base(void)
{
    return true;
}

static const struct {
    const struct tw_kern *kern;
    bool (*runs)(void);
} tables[] = {
#if defined(__x86_64__)
    {&tw_kern_avx512, has_avx512},
    {&tw_kern_avx2, has_avx2},
#elif defined(__aarch64__)
    {&tw_kern_neon, has_base}, /* part of every arm64 */
#endif
    {&tw_kern_base, has_base},
};

const struct tw_kern *tw_kern_best(void)
{
    size_t i = 0;
    while (!tables[i].runs())
        i++;
    return tables[i].kern;
}

const struct tw_kern *tw_kern_find(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(name, tables[i].kern->name) == 0 && tables[i].runs())
            return tables[i].kern;
    return NULL;
}
