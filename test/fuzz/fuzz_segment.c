/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as samples: what is unpacked packs to the same bytes, and a wrong size is refused. */
#include "codec/segment.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t time_us[256];
    static float value[4][256];
    static unsigned char bytes[256 * 24];
    if (size < 2)
        return 0;
    size_t n = data[0], columns = data[1] % 5;
    float *to[4] = {value[0], value[1], value[2], value[3]};
    const float *from[4] = {value[0], value[1], value[2], value[3]};
    struct tw_why why;
    enum tw_err err = tw_segment_unpack(data + 2, size - 2, n, columns, time_us, to, &why);
    fuzz_check((err == TW_OK) == (size - 2 == tw_segment_bytes(n, columns)));
    if (err == TW_OK) {
        tw_segment_pack(time_us, from, n, columns, bytes);
        fuzz_check(memcmp(bytes, data + 2, size - 2) == 0);
    }
    return 0;
}
