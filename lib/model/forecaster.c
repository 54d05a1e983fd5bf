/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forecaster.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

struct tw_forecaster {
    struct tw_model model;
    struct tw_model_about about;
    size_t n;
    uint64_t id; /* of the parameters: a saved state fits no other model */
    void *state;
    float *out;
};

static uint64_t fingerprint(const struct tw_model *m)
{
    const unsigned char *p = (const unsigned char *)m->param;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < m->n_param * sizeof(float); i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

enum tw_err tw_forecaster_bytes(const void *file, size_t n_file, size_t n_gpu, size_t *ret_bytes,
                                struct tw_why *why)
{
    struct tw_model m;
    if (n_gpu == 0 || n_gpu > 10000000)
        return tw_fail(why, TW_EINVAL, "%zu GPUs; from 1 to 10,000,000 were expected", n_gpu);
    enum tw_err err = tw_model_peek(file, n_file, &m, why);
    if (err == TW_OK)
        *ret_bytes = tw_arena_need(1, sizeof(struct tw_forecaster)) + tw_model_read_bytes(n_file) +
                     tw_arena_need(n_gpu * TW_OUTPUTS, sizeof(float)) +
                     tw_arena_need(tw_model_state_bytes(&m, n_gpu), 1);
    return err;
}

enum tw_err tw_forecaster_init(const void *file, size_t n_file, const struct tw_kern *kern, size_t n_gpu,
                               void *mem, struct tw_forecaster **ret, struct tw_why *why)
{
    size_t bytes = 0;
    enum tw_err err = tw_forecaster_bytes(file, n_file, n_gpu, &bytes, why);
    if (err != TW_OK)
        return err;
    struct tw_arena a;
    tw_arena_init(&a, mem, bytes);
    struct tw_forecaster *f = TW_ARENA_ARRAY(&a, struct tw_forecaster, 1);
    err = tw_model_read(file, n_file, kern, &a, &f->model, &f->about, why);
    if (err != TW_OK)
        return err;
    f->n = n_gpu;
    f->out = TW_ARENA_ARRAY(&a, float, n_gpu *TW_OUTPUTS);
    f->state = tw_arena_alloc(&a, tw_model_state_bytes(&f->model, n_gpu), 1);
    if (!f->out || !f->state)
        return tw_fail(why, TW_EINTERNAL, "a forecaster needs more memory than was planned");
    f->id = fingerprint(&f->model);
    tw_model_reset(&f->model, n_gpu, f->state);
    for (size_t i = 0; i < n_gpu * TW_OUTPUTS; i++)
        f->out[i] = NAN;
    *ret = f;
    return TW_OK;
}

double tw_forecaster_step_s(const struct tw_forecaster *f)
{
    return f->model.input.step_s;
}

const struct tw_model_about *tw_forecaster_about(const struct tw_forecaster *f)
{
    return &f->about;
}

void tw_forecaster_set_limit(struct tw_forecaster *f, size_t i, double limit_w)
{
    if (f->about.limit_w > 0.0 && limit_w > 0.0)
        tw_model_set_gain(&f->model, f->n, f->state, i, (float)(f->about.limit_w / limit_w));
}

void tw_forecaster_forget(struct tw_forecaster *f, size_t i)
{
    tw_model_reset_one(&f->model, f->n, f->state, i);
}

void tw_forecaster_push(struct tw_forecaster *f, const float *watts, const struct tw_par *par)
{
    tw_model_step(&f->model, f->n, f->state, watts, f->out, par);
}

const float *tw_forecaster_out(const struct tw_forecaster *f)
{
    return f->out;
}

bool tw_forecaster_is_ready(const struct tw_forecaster *f, size_t i)
{
    return isfinite(f->out[i * TW_OUTPUTS + 1]);
}

/* ---- saved state: magic, model, number of GPUs, then the block ---- */

struct saved {
    char magic[8];
    uint64_t id, n;
};

static const char magic[8] = "twfcst2";

size_t tw_forecaster_save_bytes(const struct tw_forecaster *f)
{
    return sizeof(struct saved) + tw_model_state_bytes(&f->model, f->n);
}

void tw_forecaster_save(const struct tw_forecaster *f, void *ret)
{
    struct saved head = {.id = f->id, .n = f->n};
    memcpy(head.magic, magic, sizeof magic);
    memcpy(ret, &head, sizeof head);
    memcpy((unsigned char *)ret + sizeof head, f->state, tw_model_state_bytes(&f->model, f->n));
}

enum tw_err tw_forecaster_restore(struct tw_forecaster *f, const void *bytes, size_t n, struct tw_why *why)
{
    struct saved head;
    if (n != tw_forecaster_save_bytes(f))
        return tw_fail(why, TW_EPARSE, "a saved forecaster state of %zu bytes, %zu were expected", n,
                       tw_forecaster_save_bytes(f));
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.id != f->id || head.n != f->n)
        return tw_fail(why, TW_EPARSE, "a saved forecaster state of another model or number of GPUs");
    memcpy(f->state, (const unsigned char *)bytes + sizeof head, tw_model_state_bytes(&f->model, f->n));
    return TW_OK;
}
