/* SPDX-License-Identifier: Apache-2.0 */
/* series/channel.h - every channel there is: one row each.
 *
 * Values are SI and missing is NaN, never 0, -1 or a vendor's blank; a back end converts and translates once,
 * at its edge. A gauge is a level, a counter only grows (and may wrap or reset). `adds` says whether the value
 * of a site is the sum over its GPUs (watts) or not (temperature). */
#ifndef TW_SERIES_CHANNEL_H
#define TW_SERIES_CHANNEL_H

#include <stdbool.h>

/* id, name, unit, counter, lowest, highest, adds up, help */
#define TW_CHANNEL_MAP(X)                                                                                      \
    X(POWER_W, "power_w", "W", false, 0, 1e6, true,                                                            \
      "power as reported, the source's averaging window included")                                             \
    X(POWER_INSTANT_W, "power_instant_w", "W", false, 0, 1e6, true, "instant power")                           \
    X(ENERGY_J, "energy_j", "J", true, 0, 1e15, true, "energy counter")                                        \
    X(CAP_W, "cap_w", "W", false, 0, 1e6, true, "power limit requested")                                       \
    X(CAP_ENFORCED_W, "cap_enforced_w", "W", false, 0, 1e6, true, "power limit the device enforces")           \
    X(SM_ACTIVE_FRAC, "sm_active_frac", "1", false, 0, 1, false,                                               \
      "share of time with a warp on the multiprocessors")                                                      \
    X(TENSOR_ACTIVE_FRAC, "tensor_active_frac", "1", false, 0, 1, false,                                       \
      "share of time the tensor pipes are busy")                                                               \
    X(DRAM_ACTIVE_FRAC, "dram_active_frac", "1", false, 0, 1, false, "share of time device memory moves data") \
    X(UTIL_FRAC, "util_frac", "1", false, 0, 1, false, "share of time a kernel was running")                   \
    X(MEM_COPY_UTIL_FRAC, "mem_copy_util_frac", "1", false, 0, 1, false,                                       \
      "share of time device memory was read or written")                                                       \
    X(MEM_USED_BYTES, "mem_used_bytes", "B", false, 0, 1e13, true, "device memory in use")                     \
    X(SM_CLOCK_HZ, "sm_clock_hz", "Hz", false, 0, 1e10, false, "multiprocessor clock")                         \
    X(MEM_CLOCK_HZ, "mem_clock_hz", "Hz", false, 0, 1e11, false, "memory clock")                               \
    X(TEMP_C, "temp_c", "Cel", false, -50, 200, false, "temperature of the GPU")                               \
    X(PCIE_TX_BYTES_S, "pcie_tx_bytes_s", "B/s", false, 0, 1e12, true, "PCIe bytes sent per second")           \
    X(PCIE_RX_BYTES_S, "pcie_rx_bytes_s", "B/s", false, 0, 1e12, true, "PCIe bytes received per second")       \
    X(NVLINK_TX_BYTES_S, "nvlink_tx_bytes_s", "B/s", false, 0, 1e13, true, "NVLink bytes sent per second")     \
    X(NVLINK_RX_BYTES_S, "nvlink_rx_bytes_s", "B/s", false, 0, 1e13, true, "NVLink bytes received per second") \
    X(THROTTLE_BITS, "throttle_bits", "1", false, 0, 16777216, false,                                          \
      "reasons for a lowered clock, low 24 bits, as the vendor numbers them")

enum tw_channel {
#define TW_CHANNEL_ENUM(id, ...) TW_CH_##id,
    TW_CHANNEL_MAP(TW_CHANNEL_ENUM)
#undef TW_CHANNEL_ENUM
        TW_CH_COUNT
};

struct tw_channel_info {
    const char *name;
    const char *unit; /* UCUM */
    bool is_counter;
    double lowest, highest; /* a value outside is not a reading */
    bool adds;
    const char *help;
};

extern const struct tw_channel_info tw_channel_table[TW_CH_COUNT];

#endif
