/* SPDX-License-Identifier: Apache-2.0 */
/* The training machine. What is needed of a track at a step (inputs, and what the heads should have said) is
 * laid out once at the start. */
#include "train/trainer.h"

#include "base/arena.h"
#include "nn/adamw.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const struct tw_train_opts tw_train_defaults = {
    .hidden = 64,
    .batch = 32,
    .stretch = 128,
    .steps = 0,
    .check_every = 150,
    .rate = 1e-2,
    .decay = 1e-3,
    .clip = 1.0,
    .weight_point = 6.0,
    .weight_mean = 4.0,
    .weight_outer = 0.3,
    .vary_gain = 0.6,
    .vary_level = 1.0,
    .seed = 1,
};

struct lane { /* a track laid out for training */
    size_t n;
    float *in;   /* [n][TW_INPUT_COUNT] */
    float *want; /* [n][TW_HEADS], NaN = none */
};

struct stream {
    size_t lane, at, take; /* the stretch: steps at .. at + take of the lane */
    bool fresh;            /* begins with an empty state */
    float gain, level;     /* u is seen as gain u + level */
};

struct tw_trainer {
    const struct tw_dataset *ds;
    struct tw_train_opts opts;
    struct tw_rng rng;
    struct tw_model model; /* its param are those in training, or the best */
    struct tw_gru_train pass;
    struct tw_train_state state;
    size_t n_param, n_lane, n_shard, next_lane;
    bool due;                          /* a validation */
    double reference[TW_TARGET_COUNT]; /* MAE of the better of last and mean60 on validation */
    struct lane *lane;                 /* [n_lane] */
    size_t *order;                     /* [n_lane] */
    struct stream *stream;             /* [batch] */
    struct tw_gru_stretch *stretch;    /* [n_shard] */
    float *h;                          /* [batch][hidden] carried */
    float *param, *best, *m, *v, *turned, *level, *weight;
    float *grad; /* [n_shard][n_param] */
    float *loss; /* [n_shard][out_ld] */
    void *served, *score_mem;
    size_t windows;
};

/* ---- memory: one list for the size and the division ---- */

static size_t training_steps(const struct tw_dataset *ds, size_t *ret_lanes)
{
    size_t steps = 0, lanes = 0;
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_span *p = &ds->track[i].part[TW_PART_TRAIN];
        if (p->to > p->from && !ds->track[i].twin) {
            lanes++;
            steps += p->to;
        }
    }
    *ret_lanes = lanes;
    return steps;
}

/* So many rounds over the data, within bounds: short sets are learned by heart before long ones are learned. */
static size_t steps_for(const struct tw_dataset *ds, const struct tw_train_opts *o)
{
    enum { ROUNDS = 300, FEWEST = 300, MOST = 3000 };
    size_t lanes, steps = training_steps(ds, &lanes) * ROUNDS / (o->batch * o->stretch);
    return steps < FEWEST ? FEWEST : steps > MOST ? MOST : steps;
}

static struct tw_model model_for(const struct tw_dataset *ds, const struct tw_model_ops *ops,
                                 const struct tw_kern *kern, size_t hidden)
{
    struct tw_model m;
    tw_model_init(&m, ops, kern, ds->step_s, tw_dataset_scaler(ds), hidden);
    return m;
}

/* Divide the arena; with a dry arena (no memory) only the sum comes out. */
struct plan {
    struct tw_arena *arena;
    size_t bytes;
};

static void *take(struct plan *p, size_t count, size_t size)
{
    p->bytes += tw_arena_need(count, size);
    return p->arena ? tw_arena_alloc(p->arena, count, size) : NULL;
}

static struct tw_trainer *divide(struct plan *p, const struct tw_dataset *ds, const struct tw_train_opts *o)
{
    struct tw_trainer dry = {.n_shard = 0}, *tr = take(p, 1, sizeof *tr);
    struct tw_trainer *t = tr ? tr : &dry;
    const struct tw_model m = model_for(ds, &tw_model_gru, NULL, o->hidden);
    const size_t steps = training_steps(ds, &t->n_lane), out_ld = tw_gru_out_ld(&m.gru);
    t->model = m;
    t->n_param = tw_gru_n_param(&m.gru);
    t->n_shard = o->batch / TW_TRAIN_SHARD;
    t->windows = tw_window_count(ds, TW_PART_VAL, false, m.input.w60);
    t->lane = take(p, t->n_lane, sizeof *t->lane);
    t->order = take(p, t->n_lane, sizeof *t->order);
    t->stream = take(p, o->batch, sizeof *t->stream);
    t->stretch = take(p, t->n_shard, sizeof *t->stretch);
    t->h = take(p, o->batch * o->hidden, sizeof(float));
    t->param = take(p, t->n_param, sizeof(float));
    t->best = take(p, t->n_param, sizeof(float));
    t->m = take(p, t->n_param, sizeof(float));
    t->v = take(p, t->n_param, sizeof(float));
    t->turned = take(p, tw_gru_n_turned(&m.gru), sizeof(float));
    t->level = take(p, out_ld, sizeof(float));
    t->weight = take(p, out_ld, sizeof(float));
    t->grad = take(p, t->n_shard * t->n_param, sizeof(float));
    t->loss = take(p, t->n_shard * out_ld, sizeof(float));
    t->served = take(p, tw_served_bytes(&m, ds, false), 1);
    t->score_mem = take(p, tw_scorer_bytes(t->windows), 1);
    float *in = take(p, steps * TW_INPUT_COUNT, sizeof(float)),
          *want = take(p, steps * TW_HEADS, sizeof(float));
    const size_t stretch_bytes = tw_gru_stretch_bytes(&m.gru, o->stretch, TW_TRAIN_SHARD);
    for (size_t i = 0; i < t->n_shard; i++) {
        void *mem = take(p, stretch_bytes, 1);
        if (mem)
            tw_gru_stretch_init(&t->stretch[i], &m.gru, o->stretch, TW_TRAIN_SHARD, mem);
    }
    if (!tr)
        return NULL;
    for (size_t i = 0, lane = 0; i < ds->n; i++) {
        const struct tw_span *part = &ds->track[i].part[TW_PART_TRAIN];
        if (part->to == part->from || ds->track[i].twin)
            continue;
        tr->lane[lane++] = (struct lane){part->to, in, want};
        in += part->to * TW_INPUT_COUNT;
        want += part->to * TW_HEADS;
    }
    return tr;
}

static bool makes_sense(const struct tw_train_opts *o)
{
    return o->hidden >= TW_KERN_PAD && o->hidden % TW_KERN_PAD == 0 && o->hidden <= 128 &&
           o->batch >= TW_TRAIN_SHARD && o->batch % TW_TRAIN_SHARD == 0 && o->batch <= 4096 &&
           o->stretch >= 2 && o->stretch <= 4096 && o->steps <= 10000000 && o->check_every >= 1 &&
           o->rate > 0.0;
}

size_t tw_trainer_bytes(const struct tw_dataset *ds, const struct tw_train_opts *opts)
{
    struct plan p = {NULL, 0};
    if (!makes_sense(opts))
        return 0;
    (void)divide(&p, ds, opts);
    return p.bytes;
}

/* ---- start ---- */

/* Inputs and targets of a track, by the code that serves: a value is a target when it and all up to it lie in
 * the part and are known. */
static size_t lay_out(const struct tw_model *m, const struct tw_track *t, struct lane *lane, void *state)
{
    const struct tw_input_shape *s = &m->input;
    const struct tw_span *part = &t->part[TW_PART_TRAIN];
    size_t targets = 0;
    tw_input_reset(s, 1, state);
    struct tw_input_state in = tw_input_view(s, 1, state);
    for (size_t k = 0; k < lane->n; k++) {
        tw_input_push(s, &in, 0, t->x_w[k]);
        tw_input_read(s, &in, 0, lane->in + k * TW_INPUT_COUNT);
        tw_input_advance(&in);
        float *want = lane->want + k * TW_HEADS;
        double sum = 0.0;
        size_t ahead = 0;
        for (size_t h = 0; h < TW_HEADS; h++) {
            const size_t steps = tw_input_steps(tw_head_s(h), s->step_s);
            if (h == TW_HEAD_MEAN30) {
                sum = 0.0;
                ahead = 0;
            }
            while (ahead < steps && k + ahead + 1 < part->to)
                sum += ((double)t->x_w[k + ++ahead] - s->scaler.mean_w) / s->scaler.std_w;
            const bool known = k >= part->from && k + steps < part->to && isfinite(t->x_w[k]) && isfinite(sum);
            const double point = ((double)t->x_w[k + ahead] - s->scaler.mean_w) / s->scaler.std_w;
            want[h] = known ? (float)(h < TW_LEADS ? point : sum / (double)steps) : NAN;
            targets += known;
        }
    }
    return targets;
}

static void set_weights(struct tw_trainer *tr)
{
    const struct tw_train_opts *o = &tr->opts;
    for (size_t j = 0; j < TW_OUTPUTS; j++) {
        const size_t h = j / TW_QUANTILES;
        double w = h >= TW_LEADS ? o->weight_mean : fmod(tw_head_s(h), 30.0) < 1.0 ? o->weight_point : 1.0;
        w *= j % TW_QUANTILES == 1 ? 1.0 : o->weight_outer;
        tr->level[j] = (float)tw_quantile_level[j % TW_QUANTILES];
        tr->weight[j] = (float)(w / TW_OUTPUTS);
    }
}

struct check {
    struct tw_scorer scorer;
};

static void score_window(void *ctx, const struct tw_track *t, size_t step, const float out_w[static TW_OUTPUTS])
{
    tw_scorer_add(&((struct check *)ctx)->scorer, t->x_w, step, out_w);
}

static void validate(const struct tw_trainer *tr, const struct tw_model *m, const struct tw_par *par,
                     double ret_mae[static TW_TARGET_COUNT])
{
    struct check c;
    tw_scorer_init(&c.scorer, tr->ds->step_s, tr->windows, tr->score_mem);
    tw_served(m, tr->ds, TW_PART_VAL, false, false, par, tr->served, score_window, &c);
    for (enum tw_target i = 0; i < TW_TARGET_COUNT; i++) {
        struct tw_score s;
        tw_scorer_result(&c.scorer, i, &s);
        ret_mae[i] = s.mae_w;
    }
}

/* A new round of tracks in a new order (Fisher and Yates). */
static void shuffle(struct tw_trainer *tr)
{
    for (size_t i = tr->n_lane; i-- > 1;) {
        const size_t j = (size_t)tw_rng_below(&tr->rng, i + 1), t = tr->order[i];
        tr->order[i] = tr->order[j];
        tr->order[j] = t;
    }
    tr->next_lane = 0;
}

static void next_track(struct tw_trainer *tr, struct stream *s)
{
    if (tr->next_lane == tr->n_lane)
        shuffle(tr);
    const double vary = tr->opts.vary_gain, shift = tr->opts.vary_level;
    const double gain = exp(tw_rng_uniform(&tr->rng, -vary, vary));
    const struct tw_scaler *scaler = &tr->model.input.scaler;
    *s = (struct stream){.lane = tr->order[tr->next_lane++],
                         .fresh = true,
                         .gain = (float)gain,
                         .level = (float)((gain - 1.0) * scaler->mean_w / scaler->std_w +
                                          tw_rng_uniform(&tr->rng, -shift, shift))};
}

/* Every output begins as the mean of the past minute: what is learned is where to leave it. */
static void start(struct tw_trainer *tr)
{
    const struct tw_gru_shape *s = &tr->model.gru;
    const size_t out_ld = tw_gru_out_ld(s);
    tw_gru_init(s, &tr->rng, tr->param);
    float *out = tw_gru_view(s, tr->param).out;
    memset(out, 0, s->hidden * out_ld * sizeof *out);
    for (size_t j = 0; j < TW_OUTPUTS; j++)
        out[(s->hidden + TW_INPUT_MEAN60) * out_ld + j] = 1.0f;
}

enum tw_err tw_trainer_init(const struct tw_dataset *ds, const struct tw_train_opts *opts,
                            const struct tw_kern *kern, const float *param, void *mem, struct tw_trainer **ret,
                            struct tw_why *why)
{
    if (!makes_sense(opts))
        return tw_fail(why, TW_EINVAL, "these training options make no sense");
    struct tw_arena a;
    tw_arena_init(&a, mem, tw_trainer_bytes(ds, opts));
    struct plan p = {&a, 0};
    struct tw_trainer *tr = divide(&p, ds, opts);
    assert(tr);
    tr->ds = ds;
    tr->opts = *opts;
    if (opts->steps == 0)
        tr->opts.steps = steps_for(ds, opts);
    tr->model.kern = kern;
    tr->model.param = tr->param;
    tr->model.n_param = tr->n_param;
    tw_rng_init(&tr->rng, opts->seed, 0);
    if (param)
        memcpy(tr->param, param, tr->n_param * sizeof *param);
    else
        start(tr);
    memcpy(tr->best, tr->param, tr->n_param * sizeof *tr->best);
    set_weights(tr);
    tr->pass = (struct tw_gru_train){.kern = kern,
                                     .shape = tr->model.gru,
                                     .param = tr->param,
                                     .turned = tr->turned,
                                     .level = tr->level,
                                     .weight = tr->weight};
    size_t targets = 0;
    for (size_t i = 0, lane = 0; i < ds->n; i++)
        if (ds->track[i].part[TW_PART_TRAIN].to > ds->track[i].part[TW_PART_TRAIN].from && !ds->track[i].twin) {
            targets += lay_out(&tr->model, &ds->track[i], &tr->lane[lane], tr->served);
            tr->order[lane] = lane;
            lane++;
        }
    if (targets == 0)
        return tw_fail(why, TW_ENODATA, "set \"%s\": no training series is long enough", ds->set);
    tr->next_lane = tr->n_lane;
    for (size_t i = 0; i < opts->batch; i++) {
        /* spread the streams over the logs; only this first time the state does not come from the start */
        next_track(tr, &tr->stream[i]);
        tr->stream[i].at = (size_t)tw_rng_below(&tr->rng, tr->lane[tr->stream[i].lane].n);
    }
    tr->state = (struct tw_train_state){
        .steps = tr->opts.steps, .loss = (double)NAN, .check = (double)NAN, .best = (double)NAN};
    double last[TW_TARGET_COUNT], mean60[TW_TARGET_COUNT];
    const struct tw_model by_last = model_for(ds, &tw_model_last, kern, opts->hidden);
    const struct tw_model by_mean = model_for(ds, &tw_model_mean60, kern, opts->hidden);
    validate(tr, &by_last, NULL, last);
    validate(tr, &by_mean, NULL, mean60);
    for (size_t i = 0; i < TW_TARGET_COUNT; i++)
        tr->reference[i] = fmin(last[i], mean60[i]);
    *ret = tr;
    return TW_OK;
}

/* ---- a turn ---- */

static void next_stretch(struct tw_trainer *tr, struct stream *s)
{
    s->at += s->take;
    s->fresh = s->take == 0;
    if (s->at >= tr->lane[s->lane].n)
        next_track(tr, s);
    const size_t left = tr->lane[s->lane].n - s->at;
    size_t want = tr->opts.stretch;
    if (s->fresh) /* of any length, so that stretches of one track do not always end at the same steps */
        want = 1 + (size_t)tw_rng_below(&tr->rng, want);
    s->take = left < want ? left : want;
}

static void shard(void *arg, unsigned i)
{
    struct tw_trainer *tr = arg;
    const struct tw_gru_shape *s = &tr->model.gru;
    const size_t ld = tw_gru_row_ld(s), out_ld = tw_gru_out_ld(s), m = TW_TRAIN_SHARD, h = s->hidden;
    struct tw_gru_stretch *st = &tr->stretch[i];
    float *grad = tr->grad + i * tr->n_param, *loss = tr->loss + i * out_ld;
    memset(grad, 0, tr->n_param * sizeof *grad);
    memset(loss, 0, out_ld * sizeof *loss);
    for (size_t r = 0; r < m; r++) {
        const struct stream *from = &tr->stream[i * m + r];
        const struct lane *lane = &tr->lane[from->lane];
        /* the level follows both, deviations and spread the gain alone, time neither */
        float scale[TW_INPUT_COUNT], shift[TW_INPUT_COUNT];
        for (size_t j = 0; j < TW_INPUT_COUNT; j++) {
            scale[j] = j == TW_INPUT_ELAPSED ? 1.0f : from->gain;
            shift[j] = j == TW_INPUT_MEAN60 ? from->level : 0.0f;
        }
        float *carried = tr->h + (i * m + r) * h;
        if (from->fresh)
            memset(carried, 0, h * sizeof *carried);
        memcpy(st->row + r * ld, carried, h * sizeof *carried);
        for (size_t t = 0; t < st->t; t++) {
            /* beyond the stretch: the inputs of its last step, and no target */
            const bool in = t < from->take;
            const size_t k = from->at + (in ? t : from->take - 1);
            float *row = st->row + (t * m + r) * ld + h, *want = st->want + (t * m + r) * out_ld;
            for (size_t j = 0; j < TW_INPUT_COUNT; j++)
                row[j] = lane->in[k * TW_INPUT_COUNT + j] * scale[j] + shift[j];
            row[TW_INPUT_COUNT] = 1.0f;
            for (size_t j = 0; j < TW_OUTPUTS; j++)
                want[j] = in ? lane->want[k * TW_HEADS + j / TW_QUANTILES] * from->gain + from->level : NAN;
            for (size_t j = TW_OUTPUTS; j < out_ld; j++)
                want[j] = NAN;
        }
    }
    tw_gru_pass(&tr->pass, st, grad, loss);
    for (size_t r = 0; r < m; r++)
        memcpy(tr->h + (i * m + r) * h, st->row + (tr->stream[i * m + r].take * m + r) * ld, h * sizeof(float));
}

static double rate_at(const struct tw_train_opts *o, size_t step)
{
    const double warm = fmin(1.0, (double)(step + 1) / 100.0);
    return o->rate * warm * 0.5 * (1.0 + cos(3.14159265358979 * (double)step / (double)o->steps));
}

static void train_step(struct tw_trainer *tr, const struct tw_par *par)
{
    static const struct tw_adamw adamw = {.beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f};
    const size_t out_ld = tw_gru_out_ld(&tr->model.gru);
    struct tw_adamw opt = adamw;
    opt.decay = (float)tr->opts.decay;
    size_t steps = 0;
    for (size_t i = 0; i < tr->opts.batch; i++) {
        next_stretch(tr, &tr->stream[i]);
        steps += tr->stream[i].take;
    }
    tr->pass.scale = 1.0f / (float)steps;
    tw_gru_turn(&tr->model.gru, tr->param, tr->turned);
    tw_par_run(par, shard, tr, (unsigned)tr->n_shard);
    double loss = 0.0;
    for (size_t j = 0; j < tr->n_shard * out_ld; j++)
        loss += (double)tr->loss[j];
    for (size_t i = 1; i < tr->n_shard; i++)
        for (size_t j = 0; j < tr->n_param; j++)
            tr->grad[j] += tr->grad[i * tr->n_param + j];
    (void)tw_grad_clip(tr->n_param, tr->grad, tr->opts.clip);
    tw_adamw_step(&opt, tr->n_param, tr->state.step + 1, (float)rate_at(&tr->opts, tr->state.step), tr->grad,
                  tr->m, tr->v, tr->param);
    tr->state.loss = loss / (double)steps;
    tr->state.step++;
}

static void check(struct tw_trainer *tr, const struct tw_par *par)
{
    double mae[TW_TARGET_COUNT], sum = 0.0;
    validate(tr, &tr->model, par, mae);
    for (size_t i = 0; i < TW_TARGET_PATH30; i++)
        sum += mae[i] / tr->reference[i];
    tr->state.check = sum / TW_TARGET_PATH30;
    /* without validation windows the last weights are the best */
    if (tr->windows == 0 || !(tr->state.check >= tr->state.best)) {
        tr->state.best = tr->state.check;
        tr->state.best_step = tr->state.step;
        memcpy(tr->best, tr->param, tr->n_param * sizeof *tr->best);
    }
}

enum tw_train_event tw_trainer_turn(struct tw_trainer *tr, const struct tw_par *par)
{
    if (tr->due) {
        tr->due = false;
        check(tr, par);
        return TW_TRAIN_CHECKED;
    }
    if (tr->state.step == tr->opts.steps)
        return TW_TRAIN_DONE;
    train_step(tr, par);
    tr->due = tr->state.step % tr->opts.check_every == 0 || tr->state.step == tr->opts.steps;
    return TW_TRAIN_STEPPED;
}

struct tw_train_state tw_trainer_state(const struct tw_trainer *tr)
{
    return tr->state;
}

struct tw_model tw_trainer_model(const struct tw_trainer *tr)
{
    struct tw_model m = tr->model;
    m.param = tr->best;
    return m;
}
