/* SPDX-License-Identifier: Apache-2.0 */
/* The default mix of jobs: of different size, elasticity and rhythm. Speeds are of the order that is published
 * for models of that size; weights make a token worth its active parameters, in units of a 70B token, so that
 * the small models do not outvote the large ones. */
#include "plant/plant.h"

#include <stdio.h>

#define GIB 1073741824.0

/* Throughput of a batch embedding job by power, as a curve that somebody could have measured. Ours. */
static const struct tw_work_point embed_points[] = {{180.0, 3000.0}, {240.0, 5300.0}, {300.0, 7450.0},
                                                    {336.0, 8620.0}, {384.0, 9980.0}, {432.0, 11000.0},
                                                    {480.0, 11900.0}};

static const struct tw_plant_job mix[] = {
    {.name = "pt-dense-70b",
     .n_gpu = 16,
     .lockstep = true,
     .weight = 1.0,
     .rate = 1050.0,
     .work =
         {.active_w = 40.0, .core_w = 900.0, .stall_frac = 0.35, .mem_w = 50.0, .ratio = 0.60, .sharp = 6.0},
     .iter_s = 10.8,
     .sync_frac = 0.07,
     .sync_act = 0.30,
     .eval = {600.0, 20.0, 0.26},
     .checkpoint = {900.0, 12.0, 0.12},
     .sm_active_frac = 0.95,
     .tensor_active_frac = 0.62,
     .dram_active_frac = 0.34,
     .mem_used_bytes = 72.0 * GIB},
    {.name = "ft-dense-70b",
     .n_gpu = 8,
     .lockstep = true,
     .weight = 1.0,
     .rate = 930.0,
     .work =
         {.active_w = 40.0, .core_w = 850.0, .stall_frac = 0.38, .mem_w = 50.0, .ratio = 0.75, .sharp = 4.0},
     .iter_s = 4.6,
     .sync_frac = 0.08,
     .sync_act = 0.30,
     .eval = {420.0, 24.0, 0.28},
     .checkpoint = {840.0, 15.0, 0.12},
     .sm_active_frac = 0.94,
     .tensor_active_frac = 0.58,
     .dram_active_frac = 0.40,
     .mem_used_bytes = 74.0 * GIB},
    {.name = "pt-moe-8x7b",
     .n_gpu = 8,
     .lockstep = true,
     .weight = 12.9 / 70.0,
     .rate = 4300.0,
     .work =
         {.active_w = 40.0, .core_w = 680.0, .stall_frac = 0.35, .mem_w = 70.0, .ratio = 1.00, .sharp = 4.0},
     .iter_s = 6.4,
     .sync_frac = 0.12,
     .sync_act = 0.35,
     .eval = {540.0, 18.0, 0.32},
     .checkpoint = {780.0, 14.0, 0.15},
     .sm_active_frac = 0.88,
     .tensor_active_frac = 0.47,
     .dram_active_frac = 0.52,
     .mem_used_bytes = 75.0 * GIB},
    {.name = "ft-moe-120b",
     .n_gpu = 8,
     .lockstep = true,
     .weight = 5.1 / 70.0,
     .rate = 9200.0,
     .work =
         {.active_w = 40.0, .core_w = 560.0, .stall_frac = 0.42, .mem_w = 75.0, .ratio = 1.45, .sharp = 3.0},
     .iter_s = 3.2,
     .sync_frac = 0.15,
     .sync_act = 0.40,
     .eval = {360.0, 15.0, 0.38},
     .checkpoint = {900.0, 20.0, 0.20},
     .sm_active_frac = 0.82,
     .tensor_active_frac = 0.33,
     .dram_active_frac = 0.68,
     .mem_used_bytes = 76.0 * GIB},
    {.name = "ft-moe-30b",
     .n_gpu = 4,
     .lockstep = true,
     .weight = 3.3 / 70.0,
     .rate = 12500.0,
     .work =
         {.active_w = 40.0, .core_w = 540.0, .stall_frac = 0.40, .mem_w = 80.0, .ratio = 1.20, .sharp = 3.0},
     .iter_s = 2.4,
     .sync_frac = 0.12,
     .sync_act = 0.40,
     .eval = {300.0, 12.0, 0.36},
     .checkpoint = {600.0, 8.0, 0.20},
     .sm_active_frac = 0.84,
     .tensor_active_frac = 0.36,
     .dram_active_frac = 0.62,
     .mem_used_bytes = 68.0 * GIB},
    {.name = "pt-dense-8b",
     .n_gpu = 4,
     .lockstep = true,
     .weight = 8.0 / 70.0,
     .rate = 8400.0,
     .work =
         {.active_w = 40.0, .core_w = 780.0, .stall_frac = 0.40, .mem_w = 60.0, .ratio = 0.85, .sharp = 4.0},
     .iter_s = 2.8,
     .sync_frac = 0.06,
     .sync_act = 0.35,
     .eval = {300.0, 10.0, 0.30},
     .checkpoint = {600.0, 6.0, 0.16},
     .sm_active_frac = 0.93,
     .tensor_active_frac = 0.54,
     .dram_active_frac = 0.45,
     .mem_used_bytes = 70.0 * GIB},
    {.name = "serve-70b",
     .n_gpu = 4,
     .weight = 1.0,
     .rate = 980.0,
     .work =
         {.active_w = 40.0, .core_w = 400.0, .stall_frac = 0.28, .mem_w = 130.0, .ratio = 1.15, .sharp = 3.0},
     .load_mean = 0.85,
     .load_swing = 0.1,
     .load_period_s = 2400.0,
     .sm_active_frac = 0.78,
     .tensor_active_frac = 0.22,
     .dram_active_frac = 0.84,
     .mem_used_bytes = 76.0 * GIB},
    {.name = "serve-8b",
     .n_gpu = 4,
     .weight = 8.0 / 70.0,
     .rate = 8800.0,
     .work =
         {.active_w = 40.0, .core_w = 480.0, .stall_frac = 0.30, .mem_w = 90.0, .ratio = 1.00, .sharp = 3.0},
     .load_mean = 0.93,
     .load_swing = 0.07,
     .load_period_s = 1500.0,
     .sm_active_frac = 0.83,
     .tensor_active_frac = 0.31,
     .dram_active_frac = 0.66,
     .mem_used_bytes = 71.0 * GIB},
    {.name = "rl-rollout-32b",
     .n_gpu = 4,
     .lockstep = true,
     .weight = 32.0 / 70.0,
     .rate = 1900.0,
     .work =
         {.active_w = 40.0, .core_w = 600.0, .stall_frac = 0.40, .mem_w = 80.0, .ratio = 0.90, .sharp = 4.0},
     .iter_s = 18.0,
     .sync_frac = 0.28,
     .sync_act = 0.45,
     .eval = {480.0, 25.0, 0.34},
     .checkpoint = {900.0, 10.0, 0.18},
     .sm_active_frac = 0.86,
     .tensor_active_frac = 0.40,
     .dram_active_frac = 0.58,
     .mem_used_bytes = 73.0 * GIB},
    {.name = "embed-batch",
     .n_gpu = 4,
     .weight = 7.0 / 70.0,
     .rate = 11900.0,
     .work = {.point = embed_points, .n_point = sizeof embed_points / sizeof *embed_points},
     .iter_s = 2.0,
     .sync_frac = 0.05,
     .sync_act = 0.5,
     .sm_active_frac = 0.80,
     .tensor_active_frac = 0.42,
     .dram_active_frac = 0.55,
     .mem_used_bytes = 40.0 * GIB},
};

enum { N_KINDS = sizeof mix / sizeof *mix };

enum tw_err tw_plant_default_jobs(uint32_t n_gpu, uint32_t n_job, struct tw_plant_job *ret_job,
                                  struct tw_why *why)
{
    if (n_job == 0 || n_job > n_gpu)
        return tw_fail(why, TW_EINVAL,
                       "%u jobs on %u GPUs: a job needs at least one GPU, a site at least one job", n_job,
                       n_gpu);
    uint64_t share_sum = 0, share_seen = 0;
    for (uint32_t k = 0; k < n_job; k++)
        share_sum += mix[k % N_KINDS].n_gpu;
    uint32_t given = 0;
    for (uint32_t k = 0; k < n_job; k++) {
        struct tw_plant_job *j = &ret_job[k];
        *j = mix[k % N_KINDS];
        (void)snprintf(j->unit, sizeof j->unit, "tokens/s");
        if (k >= N_KINDS)
            (void)snprintf(j->name, sizeof j->name, "%s-%u", mix[k % N_KINDS].name, k / N_KINDS + 1);
        /* Each ends where its share of the GPUs ends, and leaves one for every job after it. */
        share_seen += mix[k % N_KINDS].n_gpu;
        uint32_t end = (uint32_t)((n_gpu * share_seen + share_sum / 2) / share_sum);
        uint32_t last = n_gpu - (n_job - 1 - k);
        end = end <= given ? given + 1 : end > last ? last : end;
        j->n_gpu = end - given;
        given = end;
    }
    return TW_OK;
}
