/* SPDX-License-Identifier: Apache-2.0 */
#include "model/modelfile.h"

#include "codec/safetensors.h"
#include "model/ridge.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The inputs that this build computes, in order: a file that wants others is refused. */
static const char inputs[] =
#define INPUT_TEXT(id, name, help) name " "
    TW_INPUT_MAP(INPUT_TEXT)
#undef INPUT_TEXT
    ;

static const char channels[] = "power_w";
static const char calib_name[] = "calib.start";

/* ---- the arrays of a model, as they lie in a file ---- */

struct array {
    const char *name;
    size_t rows, cols; /* cols 0: one dimension */
    float *data;
};

enum { MOST_ARRAYS = 6 };

static size_t arrays_of(const struct tw_model *m, float *data, struct array ret[static MOST_ARRAYS])
{
    const size_t h = m->gru.hidden, x = m->gru.n_in, o = m->gru.n_out;
    size_t n = 0;
    memset(ret, 0, MOST_ARRAYS * sizeof *ret);
    if (m->ops == &tw_model_gru) {
        const struct array a[] = {
            {"gru.weight_ih_l0", 3 * h, x, NULL}, {"gru.weight_hh_l0", 3 * h, h, NULL},
            {"gru.bias_ih_l0", 3 * h, 0, NULL},   {"gru.bias_hh_l0", 3 * h, 0, NULL},
            {"head.weight", o, h + x, NULL},      {"head.bias", o, 0, NULL},
        };
        n = sizeof a / sizeof *a;
        memcpy(ret, a, sizeof a);
    } else if (m->ops == &tw_model_ridge) {
        const struct array a[] = {
            {"ridge.weight", tw_ridge_n_feature(&m->input), TW_HEADS, NULL},
            {"ridge.offset", TW_HEADS, TW_QUANTILES, NULL},
        };
        n = sizeof a / sizeof *a;
        memcpy(ret, a, sizeof a);
    }
    for (size_t i = 0; i < n; i++) {
        ret[i].data = data;
        data += ret[i].rows * (ret[i].cols ? ret[i].cols : 1);
    }
    return n;
}

size_t tw_model_file_scratch(const struct tw_model *m)
{
    struct array a[MOST_ARRAYS];
    size_t bytes = 0;
    for (size_t i = arrays_of(m, NULL, a); i-- > 0;)
        bytes += a[i].rows * (a[i].cols ? a[i].cols : 1) * sizeof(float);
    return bytes + sizeof(struct tw_st);
}

/* Our layout [row][gate columns] against PyTorch's [gate][in]. to_file: ours to the file's, else back. Biases
 * of r and z are one number for us and two in the file, which are added. */
static void gru_arrays(const struct tw_gru_shape *s, float *param, const struct array *a, bool to_file)
{
    assert(a[0].data && a[1].data && a[2].data && a[3].data && a[4].data && a[5].data);
    const struct tw_gru_view v = tw_gru_view(s, param);
    const size_t h = s->hidden, x = s->n_in, out_ld = tw_gru_out_ld(s);
    for (size_t g = 0; g < 3 * h; g++) {
        for (size_t i = 0; i < x + h; i++) {
            float *file = i < x ? &a[0].data[g * x + i] : &a[1].data[g * h + i - x];
            float *own = &v.gates[(i < x ? h + i : i - x) * 3 * h + g];
            *(to_file ? file : own) = *(to_file ? own : file);
        }
        float *own = &v.gates[(h + x) * 3 * h + g], *file_ih = &a[2].data[g], *file_hh = &a[3].data[g];
        if (to_file) {
            *file_ih = *own;
            *file_hh = g < 2 * h ? 0.0f : v.b_nh[g - 2 * h];
        } else {
            *own = g < 2 * h ? *file_ih + *file_hh : *file_ih;
            if (g >= 2 * h)
                v.b_nh[g - 2 * h] = *file_hh;
        }
    }
    for (size_t o = 0; o < s->n_out; o++)
        for (size_t i = 0; i <= h + x; i++) {
            float *file = i < h + x ? &a[4].data[o * (h + x) + i] : &a[5].data[o];
            float *own = &v.out[i * out_ld + o];
            *(to_file ? file : own) = *(to_file ? own : file);
        }
}

static void move(const struct tw_model *m, float *param, const struct array *a, bool to_file)
{
    if (m->ops == &tw_model_gru) {
        gru_arrays(&m->gru, param, a, to_file);
        return;
    }
    assert(a[0].data && param);
    const size_t weight = a[0].rows * a[0].cols, offset = a[1].rows * a[1].cols;
    float *from = to_file ? param : a[0].data, *to = to_file ? a[0].data : param;
    memcpy(to, from, (weight + offset) * sizeof *to); /* they lie one after the other on both sides */
}

/* ---- writing ---- */

enum tw_err tw_model_write(const struct tw_model *m, const struct tw_model_about *about, void *scratch,
                           void *out, size_t cap, size_t *ret_n, struct tw_why *why)
{
    struct tw_st *st = scratch;
    struct array a[MOST_ARRAYS];
    const size_t n = arrays_of(m, (float *)(void *)((unsigned char *)scratch + sizeof *st), a);
    if (n == 0)
        return tw_fail(why, TW_EUNSUPPORTED, "model \"%s\" has nothing to keep in a file", m->ops->name);
    char number[5][40];
    const double value[5] = {m->input.step_s, m->input.scaler.mean_w, m->input.scaler.std_w, about->limit_w,
                             (double)m->gru.hidden};
    for (size_t i = 0; i < 5; i++)
        (void)snprintf(number[i], sizeof number[i], "%.17g", value[i]);
    const struct tw_st_meta meta[] = {
        {"format", TW_MODEL_FORMAT}, {"model", m->ops->name},     {"hidden", number[4]},
        {"inputs", inputs},          {"channels", channels},      {"step_s", number[0]},
        {"mean_w", number[1]},       {"std_w", number[2]},        {"limit_w", number[3]},
        {"set", about->set},         {"seed", about->seed},       {"data_hash", about->data_hash},
        {"steps", about->steps},     {"version", about->version}, {"scores", about->scores},
    };
    st->n_meta = sizeof meta / sizeof *meta;
    memcpy(st->meta, meta, sizeof meta);
    move(m, (float *)(uintptr_t)m->param, a, true); /* to_file: the parameters are only read */
    st->n_tensor = n;
    for (size_t i = 0; i < n; i++)
        st->tensor[i] = (struct tw_st_tensor){.name = a[i].name,
                                              .n_dim = a[i].cols ? 2 : 1,
                                              .dim = {a[i].rows, a[i].cols},
                                              .n = a[i].rows * (a[i].cols ? a[i].cols : 1),
                                              .data = (const unsigned char *)a[i].data};
    st->tensor[st->n_tensor++] = (struct tw_st_tensor){.name = calib_name,
                                                       .n_dim = 2,
                                                       .dim = {TW_CALIB_ANCHORS, TW_CALIB_SIDES},
                                                       .n = TW_CALIB_ANCHORS * TW_CALIB_SIDES,
                                                       .data = (const unsigned char *)m->calib.start};
    return tw_st_write(st, out, cap, ret_n, why);
}

/* ---- reading ---- */

size_t tw_model_read_bytes(size_t n)
{
    /* parameters with their padding are at most twice the arrays, which are copied once */
    return tw_arena_need(1, sizeof(struct tw_st)) + tw_arena_need(2 * n + 65536, 1) + tw_arena_need(n + 64, 1);
}

static enum tw_err number(const struct tw_st *st, const char *key, double min, double max, double *ret,
                          struct tw_why *why)
{
    const char *text = tw_st_meta(st, key);
    char *end = NULL;
    const double v = text ? strtod(text, &end) : 0.0;
    if (!text || end == text || *end || !(v >= min && v <= max))
        return tw_fail(why, TW_EPARSE,
                       "not a model of tokwatt: metadata \"%s\" is %s%.40s%s, a number from %g to %g "
                       "was expected",
                       key, text ? "\"" : "", text ? text : "missing", text ? "\"" : "", min, max);
    *ret = v;
    return TW_OK;
}

/* Metadata that must read as this build has it. */
static enum tw_err same(const struct tw_st *st, const char *key, const char *want, struct tw_why *why)
{
    const char *text = tw_st_meta(st, key);
    if (text && strcmp(text, want) == 0)
        return TW_OK;
    return tw_fail(why, TW_EUNSUPPORTED,
                   "this model's \"%s\" is %s%.120s%s, this version of tokwatt reads \"%s\"", key,
                   text ? "\"" : "", text ? text : "missing", text ? "\"" : "", want);
}

static void about_of(const struct tw_st *st, double limit_w, struct tw_model_about *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->limit_w = limit_w;
    const struct {
        const char *key;
        char *to;
        size_t size;
    } text[] = {
        {"set", ret->set, sizeof ret->set},
        {"seed", ret->seed, sizeof ret->seed},
        {"data_hash", ret->data_hash, sizeof ret->data_hash},
        {"steps", ret->steps, sizeof ret->steps},
        {"version", ret->version, sizeof ret->version},
        {"scores", ret->scores, sizeof ret->scores},
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const char *value = tw_st_meta(st, text[i].key);
        (void)snprintf(text[i].to, text[i].size, "%s", value ? value : "");
    }
}

static enum tw_err read_arrays(const struct tw_st *st, const struct tw_model *m, struct tw_arena *arena,
                               const float **ret_param, struct tw_why *why)
{
    struct array a[MOST_ARRAYS];
    size_t total = 0;
    const size_t n = arrays_of(m, NULL, a);
    for (size_t i = 0; i < n; i++) {
        const struct tw_st_tensor *t = tw_st_find(st, a[i].name);
        if (!t)
            return tw_fail(why, TW_EPARSE, "the model lacks its array \"%s\"", a[i].name);
        const bool fits =
            t->n_dim == (a[i].cols ? 2 : 1) && t->dim[0] == a[i].rows && (!a[i].cols || t->dim[1] == a[i].cols);
        if (!fits)
            return tw_fail(why, TW_EPARSE, "array \"%s\" has the shape %zu x %zu, %zu x %zu was expected",
                           a[i].name, t->dim[0], t->dim[1], a[i].rows, a[i].cols);
        total += t->n;
    }
    float *copy = TW_ARENA_ARRAY(arena, float, total);
    float *param = TW_ARENA_ARRAY(arena, float, tw_model_n_param(m));
    if (!copy || !param)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    (void)arrays_of(m, copy, a);
    for (size_t i = 0; i < n; i++)
        tw_st_copy(tw_st_find(st, a[i].name), a[i].data);
    move(m, param, a, false);
    *ret_param = param;
    return TW_OK;
}

/* Starting margins of the calibration; a file without them has margins of 0. */
static enum tw_err read_calib(const struct tw_st *st, struct tw_calib *c, struct tw_why *why)
{
    const struct tw_st_tensor *t = tw_st_find(st, calib_name);
    if (!t)
        return TW_OK;
    if (t->n_dim != 2 || t->dim[0] != TW_CALIB_ANCHORS || t->dim[1] != TW_CALIB_SIDES)
        return tw_fail(why, TW_EPARSE, "array \"%s\" has the shape %zu x %zu, %d x %d was expected", calib_name,
                       t->dim[0], t->dim[1], TW_CALIB_ANCHORS, TW_CALIB_SIDES);
    float start[TW_CALIB_ANCHORS * TW_CALIB_SIDES];
    tw_st_copy(t, start);
    for (size_t i = 0; i < t->n; i++)
        if (!(start[i] >= TW_CALIB_LEAST && start[i] <= TW_CALIB_MOST))
            return tw_fail(why, TW_ERANGE, "array \"%s\" holds %g; from %g to %g was expected", calib_name,
                           (double)start[i], (double)TW_CALIB_LEAST, (double)TW_CALIB_MOST);
    memcpy(c->start, start, sizeof start);
    return TW_OK;
}

/* The model of a file, without its parameters. */
static enum tw_err shape_of(const void *bytes, size_t n, const struct tw_kern *kern, struct tw_st *st,
                            struct tw_model *ret, double *ret_limit_w, struct tw_why *why)
{
    double step_s = 0, mean_w = 0, std_w = 0, hidden = 0;
    if (n > TW_MODEL_FILE_MOST)
        return tw_fail(why, TW_ELIMIT, "a model file of %zu bytes; at most %u were expected", n,
                       TW_MODEL_FILE_MOST);
    enum tw_err err = tw_st_read(bytes, n, st, why);
    if (err == TW_OK)
        err = same(st, "format", TW_MODEL_FORMAT, why);
    if (err == TW_OK)
        err = same(st, "channels", channels, why);
    if (err == TW_OK)
        err = same(st, "inputs", inputs, why);
    if (err == TW_OK)
        err = number(st, "step_s", 0.1, 60.0, &step_s, why);
    if (err == TW_OK)
        err = number(st, "mean_w", -1e6, 1e6, &mean_w, why);
    if (err == TW_OK)
        err = number(st, "std_w", 1e-6, 1e6, &std_w, why);
    if (err == TW_OK)
        err = number(st, "limit_w", 0.0, 1e6, ret_limit_w, why);
    if (err == TW_OK)
        err = number(st, "hidden", 0.0, 128.0, &hidden, why);
    if (err != TW_OK)
        return err;
    const char *name = tw_st_meta(st, "model");
    const struct tw_model_ops *ops = name ? tw_model_find(name) : NULL;
    if (ops != &tw_model_gru && ops != &tw_model_ridge)
        return tw_fail(why, TW_EUNSUPPORTED, "model \"%.40s\" is not known here", name ? name : "");
    if (ops == &tw_model_gru && ((size_t)hidden < TW_KERN_PAD || fmod(hidden, TW_KERN_PAD) > 0.0))
        return tw_fail(why, TW_EUNSUPPORTED, "a gru of %g units; a multiple of %d was expected", hidden,
                       TW_KERN_PAD);
    struct tw_model m;
    tw_model_init(&m, ops, kern, step_s, (struct tw_scaler){mean_w, std_w}, (size_t)hidden);
    if (ops == &tw_model_ridge && tw_ridge_n_feature(&m.input) > TW_RIDGE_MOST)
        return tw_fail(why, TW_EUNSUPPORTED, "a linear model on a grid of %g s is not known here", step_s);
    m.n_param = tw_model_n_param(&m);
    *ret = m;
    return TW_OK;
}

enum tw_err tw_model_peek(const void *bytes, size_t n, struct tw_model *ret, struct tw_why *why)
{
    struct tw_st st;
    double limit_w = 0.0;
    return shape_of(bytes, n, NULL, &st, ret, &limit_w, why);
}

enum tw_err tw_model_read(const void *bytes, size_t n, const struct tw_kern *kern, struct tw_arena *arena,
                          struct tw_model *ret, struct tw_model_about *ret_about, struct tw_why *why)
{
    struct tw_st *st = TW_ARENA_ARRAY(arena, struct tw_st, 1);
    struct tw_model m = {.ops = NULL};
    double limit_w = 0.0;
    if (!st)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    enum tw_err err = shape_of(bytes, n, kern, st, &m, &limit_w, why);
    if (err == TW_OK)
        err = read_arrays(st, &m, arena, &m.param, why);
    if (err == TW_OK)
        err = read_calib(st, &m.calib, why);
    if (err != TW_OK)
        return err;
    *ret = m;
    if (ret_about)
        about_of(st, limit_w, ret_about);
    return TW_OK;
}
