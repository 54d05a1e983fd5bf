/* SPDX-License-Identifier: Apache-2.0 */
/* io/sim/sim.h - a simulated site as a back end, for development, tests and the demo.
 *
 * What it is configured with, after "sim:", as words with commas between:
 *
 *   seed=1        all randomness follows from it
 *   gpus=64       GPUs of the site, 8 a node, 4 nodes a rack
 *   jobs=10       jobs of the default mix (plant/plant.h)
 *   base_w=0      constant power of the site outside its GPUs ("12kW" is understood)
 *   noise=1       0 switches all noise off
 *   stuck=UUID    that GPU cannot be read; may be given several times, as the next two
 *   ignore=UUID   takes limits and does not enforce them
 *   clamp=UUID@W  enforces no limit below W
 *
 * UUIDs do not depend on the seed: the i-th GPU is GPU-51a70000-0000-4000-8000-%012x of i. Site time starts at
 * 0 and runs only by advance(). A limit that is written is enforced at the earliest one tick (0.1 s) later.
 * Reading and advancing allocate nothing. */
#ifndef TW_IO_SIM_SIM_H
#define TW_IO_SIM_SIM_H

#include "port/cap.h"
#include "port/source.h"

extern const struct tw_source_ops tw_sim_source;
extern const struct tw_cap_ops tw_sim_cap; /* opened on an open tw_sim_source; its spec must be "" */

#endif
