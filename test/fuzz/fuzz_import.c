/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file: series come out whole, named and in order of time, or there is a sentence why not. */
#include "fuzz.h"
#include "io/file/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    if (tw_import_text((const char *)data, size, &imp, &why)) {
        fuzz_check(why.text[0] != '\0' && !strchr(why.text, '\n'));
        return 0;
    }
    uint64_t rows = 0;
    for (size_t i = 0; i < imp->n_series; i++) {
        const struct tw_series *s = &imp->series[i];
        fuzz_check(s->n > 0 && s->name[0] != '\0' && s->ch[TW_CH_POWER_W]);
        for (size_t j = 0; j < i; j++)
            fuzz_check(strcmp(s->name, imp->series[j].name) != 0);
        for (size_t j = 0; j < s->n; j++) {
            fuzz_check(s->ch[TW_CH_POWER_W][j] >= 0.0F && s->ch[TW_CH_POWER_W][j] <= 1e6F);
            fuzz_check(j == 0 || s->time_us[j] >= s->time_us[j - 1]);
        }
        rows += s->n;
    }
    fuzz_check(rows == imp->rows && imp->bytes == size);
    tw_import_free(imp);
    return 0;
}
