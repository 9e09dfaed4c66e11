/* Sampling: which token comes next. Everything is computed in a fixed order and with our own exponential, so that the same
 * logits and the same seed choose the same token on every machine.
 *
 * Top-k, top-p and min-p always keep the beginning of one order: larger logits first, on ties smaller tokens first. So they
 * only have to find where it ends, by taking tokens from a heap; the vocabulary is never sorted. The draw then goes through the
 * tokens by id.
 */
#include "model/session/sampling.h"

#include <math.h>
#include <string.h>

#include "arithmetic/philox.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"

STRUCT_INIT(ww_sampling, {.top_p = 1.0, .repetition_penalty = 1.0, .repetition_window = 64})

ww_status sampling_read(const ww_sampling *callers, const char *call, ww_sampling *out)
{
    ww_sampling s = ww_sampling_default();
    if (callers) {
        const ww_status status = struct_read(&s, sizeof s, callers, call, "ww_sampling");
        if (status != WW_OK)
            return status;
    }
    if (!(s.temperature >= 0.0) || !(s.temperature <= 1e6))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: temperature is %g; it must be 0 to 1000000", call, s.temperature);
    if (s.top_k < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: top_k is %d; it must be 0 (all) or more", call, (int)s.top_k);
    if (!(s.top_p > 0.0 && s.top_p <= 1.0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: top_p is %g; it must be above 0 and at most 1", call, s.top_p);
    if (!(s.min_p >= 0.0 && s.min_p <= 1.0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: min_p is %g; it must be 0 to 1", call, s.min_p);
    if (!(s.repetition_penalty > 0.0) || !(s.repetition_penalty <= 1e6))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: repetition_penalty is %g; it must be above 0 and at most 1000000", call,
                       s.repetition_penalty);
    if (s.repetition_window < -1)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: repetition_window is %d; it must be -1 (all) or more", call,
                       (int)s.repetition_window);
    if (!(fabs(s.frequency_penalty) <= 1e6))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: frequency_penalty is %g; it must be -1000000 to 1000000", call,
                       s.frequency_penalty);
    if (!(fabs(s.presence_penalty) <= 1e6))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: presence_penalty is %g; it must be -1000000 to 1000000", call,
                       s.presence_penalty);
    if (s.bias_count < 0 || (s.bias_count > 0 && (!s.bias_tokens || !s.biases)))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: bias_count is %lld; bias_tokens and biases must have as many elements", call,
                       (long long)s.bias_count);
    for (int64_t i = 0; i < s.bias_count; i++)
        if (!isfinite(s.biases[i]))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: biases[%lld] is not finite", call, (long long)i);
    *out = s;
    return WW_OK;
}

/* Maps floats to integers in the same order, both zeros equal: the compiler vectorizes a maximum of integers. */
static int32_t order_of(float x)
{
    const float without_sign = x + 0.0f;
    int32_t bits;
    memcpy(&bits, &without_sign, sizeof bits);
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static int32_t first_largest(const float *logits, int64_t count)
{
    enum { TOGETHER = 1024 };
    int32_t largest = INT32_MIN;
    int64_t from = 0;
    for (int64_t first = 0; first < count; first += TOGETHER) {
        const int64_t end = min_i64(first + TOGETHER, count);
        int32_t here = INT32_MIN;
        for (int64_t i = first; i < end; i++) {
            const int32_t order = order_of(logits[i]);
            here = order > here ? order : here;
        }
        from = here > largest ? first : from;
        largest = here > largest ? here : largest;
    }
    while (order_of(logits[from]) != largest)
        from++;
    return (int32_t)from;
}

/* Penalizes the tokens of the window. Each time that a token occurs, its logit is computed from the text's own one, so the last
 * time counts and the order of the tokens does not. `counts` are zeros, one per token. */
static void penalise(float *adjusted, uint32_t *counts, const ww_sampling *s, const sampled_text *t)
{
    const size_t window = s->repetition_window < 0 ? t->length : min_size(t->length, (size_t)s->repetition_window);
    const float penalty = (float)s->repetition_penalty;
    for (size_t i = t->length - window; i < t->length; i++) {
        const int32_t token = t->tokens[i];
        const float x = t->logits[token], divided = x > 0.0f ? x / penalty : x * penalty;
        const double less = s->presence_penalty + (double)++counts[token] * s->frequency_penalty;
        adjusted[token] = (float)((double)divided - less);
    }
}

static ww_status add_biases(float *adjusted, const ww_sampling *s, const sampled_text *t)
{
    for (int64_t i = 0; i < s->bias_count; i++) {
        const int32_t token = s->bias_tokens[i];
        if (token < 0 || token >= t->vocabulary)
            return ww_fail(WW_OUT_OF_RANGE, "bias_tokens[%lld] is %d; the model has %lld tokens", (long long)i, (int)token,
                           (long long)t->vocabulary);
        adjusted[token] += s->biases[i];
    }
    return WW_OK;
}

/* Sampling spends most of its time here, so the loop must vectorize. */
static inline __attribute__((always_inline)) void weigh_all(const float *restrict logits, int64_t count, double largest,
                                                            double temperature, double *restrict weights)
{
    for (int64_t i = 0; i < count; i++)
        weights[i] = canon_exp_f64(((double)logits[i] - largest) / temperature);
}

#ifdef __x86_64__
__attribute__((target("avx512f,avx512dq,avx512vl,fma"))) static void
weigh_avx512(const float *logits, int64_t count, double largest, double temperature, double *weights)
{
    weigh_all(logits, count, largest, temperature, weights);
}

__attribute__((target("avx2,fma"))) static void weigh_avx2(const float *logits, int64_t count, double largest,
                                                           double temperature, double *weights)
{
    weigh_all(logits, count, largest, temperature, weights);
}
#endif

/* Chooses by CPU features: target_clones with "arch=" matches one processor model, and all newer ones would get the slowest
 * form. */
static void weigh(const float *logits, int64_t count, double largest, double temperature, double *weights)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        weigh_avx512(logits, count, largest, temperature, weights);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        weigh_avx2(logits, count, largest, temperature, weights);
    else
#endif
        weigh_all(logits, count, largest, temperature, weights);
}

/* ---- the order ----------------------------------------------------------------------------------------------------------- */

typedef struct heap {
    const float *logits;
    int32_t *ids;
    int64_t count;
} heap;

static bool comes_before(const float *logits, int32_t a, int32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sift(heap *h, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && comes_before(h->logits, h->ids[child + 1], h->ids[child]))
            child++;
        if (!comes_before(h->logits, h->ids[child], h->ids[at]))
            return;
        const int32_t moved = h->ids[at];
        h->ids[at] = h->ids[child];
        h->ids[child] = moved;
    }
}

static void heap_build(heap *h)
{
    for (int64_t i = 0; i < h->count; i++)
        h->ids[i] = (int32_t)i;
    for (int64_t i = h->count / 2 - 1; i >= 0; i--)
        sift(h, i);
}

/* Takes the first token. It stays in the array after the heap's end, so the taken tokens are there in reverse order. */
static int32_t heap_take(heap *h)
{
    const int32_t first = h->ids[0];
    h->ids[0] = h->ids[--h->count];
    h->ids[h->count] = first;
    sift(h, 0);
    return first;
}

/* The last token that top-k and top-p keep. */
static int32_t last_kept(heap *h, const ww_sampling *s, double largest, double *weights)
{
    const int64_t all = h->count, kept_max = s->top_k ? min_i64(s->top_k, all) : all;
    const bool by_mass = s->top_p < 1.0;
    double mass = 0.0, so_far = 0.0;
    if (kept_max < all) {
        for (int64_t i = 0; i < kept_max; i++)
            heap_take(h);
        if (!by_mass)
            return h->ids[h->count];
        for (int64_t i = all - 1; i >= all - kept_max; i--)
            mass += canon_exp_f64((double)h->logits[h->ids[i]] - largest);
        for (int64_t i = all - 1;; i--) {
            so_far += canon_exp_f64((double)h->logits[h->ids[i]] - largest);
            if (so_far >= s->top_p * mass || i == all - kept_max)
                return h->ids[i];
        }
    }
    weigh(h->logits, all, largest, 1.0, weights);
    for (int64_t i = 0; i < all; i++)
        mass += weights[i];
    for (;;) {
        const int32_t taken = heap_take(h);
        so_far += weights[taken];
        if (so_far >= s->top_p * mass || h->count == 0)
            return taken;
    }
}

/* ---- the draw ------------------------------------------------------------------------------------------------------------ */

typedef struct draw {
    const float *logits;
    double *weights; /* one per token */
    int64_t vocabulary;
    double largest, temperature, min_p;
    int32_t last; /* the last token kept; -1: all are kept */
} draw;

/* Sets the weight of tokens that are not kept to 0. */
static void weigh_kept(const draw *d)
{
    for (int64_t i = 0; i < d->vocabulary; i++) {
        const int32_t token = (int32_t)i;
        const bool behind = d->last >= 0 && token != d->last && !comes_before(d->logits, token, d->last);
        if (behind || (d->min_p > 0.0 && canon_exp_f64((double)d->logits[i] - d->largest) < d->min_p))
            d->weights[i] = 0.0;
    }
}

static int32_t draw_token(const draw *d, double share)
{
    double mass = 0.0, so_far = 0.0;
    int32_t last = -1;
    weigh(d->logits, d->vocabulary, d->largest, d->temperature, d->weights);
    if (d->last >= 0 || d->min_p > 0.0)
        weigh_kept(d);
    for (int64_t i = 0; i < d->vocabulary; i++)
        mass += d->weights[i];
    for (int64_t i = 0; i < d->vocabulary; i++) {
        if (d->weights[i] == 0.0)
            continue;
        last = (int32_t)i;
        so_far += d->weights[i];
        if (so_far > share * mass)
            break;
    }
    return last;
}

/* The logits to choose from, and their tokens if not all are allowed. */
typedef struct candidates {
    float *adjusted;  /* NULL: the text's own logits */
    uint32_t *counts; /* how often each token is in the window; NULL: there are no penalties */
    int32_t *tokens;  /* ascending; NULL: all */
    int32_t *ids;     /* memory for a heap; NULL: not needed */
    double *weights;  /* memory for a draw; NULL: not needed */
    int64_t count;
} candidates;

/* Which arrays sampling needs. */
typedef struct needed {
    bool adjusted, penalised, ordered, drawn;
} needed;

static ww_status candidates_reserve(candidates *c, const sampled_text *t, needed n)
{
    const size_t count = (size_t)t->vocabulary;
    if (n.drawn)
        c->weights = memory_alloc(count * sizeof *c->weights);
    if (n.adjusted)
        c->adjusted = memory_alloc(count * sizeof *c->adjusted);
    if (n.penalised)
        c->counts = memory_alloc_zeroed(count, sizeof *c->counts);
    if (t->allowed)
        c->tokens = memory_alloc(count * sizeof *c->tokens);
    if (n.ordered)
        c->ids = memory_alloc(count * sizeof *c->ids);
    const bool there = (c->adjusted || !n.adjusted) && (c->counts || !n.penalised) && (c->tokens || !t->allowed) &&
                       (c->ids || !n.ordered) && (c->weights || !n.drawn);
    return there ? WW_OK : memory_failed("sampling", count * sizeof *c->weights);
}

/* Moves the logits of allowed tokens together, so that no other token can be chosen. */
static void keep_allowed(candidates *c, const uint64_t *allowed)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (allowed[i / 64] >> i % 64 & 1) {
            c->adjusted[kept] = c->adjusted[i];
            c->tokens[kept++] = (int32_t)i;
        }
    c->count = kept;
}

static int32_t choose(const ww_sampling *s, const candidates *c, const float *logits, size_t length)
{
    const int32_t best = first_largest(logits, c->count);
    draw d = {logits, c->weights, c->count, (double)logits[best], s->temperature, s->min_p, -1};
    if (c->ids && c->weights) {
        heap h = {logits, c->ids, c->count};
        heap_build(&h);
        d.last = last_kept(&h, s, d.largest, c->weights);
    }
    const philox_block random = philox(s->seed, length);
    return !c->weights ? best : draw_token(&d, random_uniform_f64(random.word[0], random.word[1], 0.0, 1.0));
}

ww_status sampling_choose(const ww_sampling *s, const sampled_text *t, int32_t *token)
{
    const int64_t count = t->vocabulary;
    const bool penalties = s->repetition_penalty != 1.0 || s->frequency_penalty != 0.0 || s->presence_penalty != 0.0;
    const bool penalised = penalties && s->repetition_window != 0;
    const bool ordered = s->temperature > 0.0 && ((s->top_k > 0 && s->top_k < count) || s->top_p < 1.0);
    candidates c = {.count = count};
    const bool adjusted = penalised || s->bias_count > 0 || t->allowed;
    ww_status status = candidates_reserve(&c, t, (needed){adjusted, penalised, ordered, s->temperature > 0.0});
    if (status == WW_OK && adjusted)
        memcpy(c.adjusted, t->logits, (size_t)count * sizeof *c.adjusted);
    if (status == WW_OK && penalised)
        penalise(c.adjusted, c.counts, s, t);
    if (status == WW_OK)
        status = add_biases(c.adjusted, s, t);
    if (status == WW_OK) {
        if (t->allowed)
            keep_allowed(&c, t->allowed);
        const int32_t chosen = choose(s, &c, c.adjusted ? c.adjusted : t->logits, t->length);
        *token = c.tokens ? c.tokens[chosen] : chosen;
    }
    memory_free(c.weights);
    memory_free(c.ids);
    memory_free(c.tokens);
    memory_free(c.counts);
    memory_free(c.adjusted);
    return status;
}
