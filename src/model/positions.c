/* What a model has for positions: slopes of alibi, learned numbers for distances, angles and factors of rope. */
#include <math.h>

#include "arithmetic/math/f64.h"
#include "base/memory.h"
#include "model/weights_loader.h"

enum { DISTANCE_BUCKETS = 32, DISTANCE_CONTEXT_MAX = 4096, DISTANCE_BYTES_MAX = 1 << 30 };

double alibi_slope(const model_sizes *sizes, int32_t head)
{
    int32_t power = 1;
    while (2 * power <= sizes->heads)
        power *= 2;
    return canon_pow_f64(2.0, head < power ? -8.0 * (head + 1) / power : -4.0 * (2 * (head - power) + 1) / power);
}

ww_status positions_slopes(loader *l)
{
    const int64_t heads = l->source->sizes->heads;
    float *slopes = memory_alloc((size_t)heads * sizeof *slopes);
    if (!slopes)
        return memory_failed("slopes of heads", (size_t)heads * sizeof *slopes);
    for (int32_t h = 0; h < heads; h++)
        slopes[h] = (float)alibi_slope(l->source->sizes, h);
    const ww_status status = ww_tensor_from_host(l->source->device, WW_F32, 1, &heads, slopes, &l->w->slopes);
    memory_free(slopes);
    return status;
}

/* The bucket of a distance: one for each short one, then wider and wider ones; later keys have buckets of their own. */
static int64_t distance_bucket(int64_t key, int64_t query)
{
    static const int64_t FIRSTS[] = {8, 12, 16, 23, 32, 46, 64, 91}; /* 8 times powers of sqrt(2), rounded up */
    const int64_t distance = key > query ? key - query : query - key, first = key > query ? DISTANCE_BUCKETS / 2 : 0;
    int64_t bucket = distance;
    for (int64_t i = 0; i < 8 && distance >= 8; i++)
        if (distance >= FIRSTS[i])
            bucket = 8 + i;
    return first + bucket;
}

/* Spreads the learned numbers of buckets over all pairs of positions: [heads, context, context]. */
ww_status positions_distances(loader *l)
{
    const int64_t heads = l->source->sizes->heads, context = l->source->context, shape[3] = {heads, context, context};
    const wanted want = {.name = "attn_rel_b.weight", .rows = DISTANCE_BUCKETS, .cols = heads};
    const size_t bytes = (size_t)heads * (size_t)context * (size_t)context * sizeof(float);
    ww_quant *matrix = NULL;
    ww_tensor rows = {0};
    if (context > DISTANCE_CONTEXT_MAX || bytes > DISTANCE_BYTES_MAX)
        return ww_fail(WW_UNSUPPORTED,
                       "a context of %lld tokens and %lld heads; learned distances have room for %d tokens and 1 GiB",
                       (long long)context, (long long)heads, (int)DISTANCE_CONTEXT_MAX);
    float *values = memory_alloc(bytes), *learned = memory_alloc((size_t)heads * DISTANCE_BUCKETS * sizeof *learned);
    ww_status status = values && learned ? loader_matrix(l, &want, &matrix) : memory_failed("distances", bytes);
    if (status == WW_OK)
        status = ww_quant_dequantize(matrix, 0, DISTANCE_BUCKETS, WW_F32, &rows);
    if (status == WW_OK)
        status = ww_tensor_to_host(&rows, learned);
    for (int64_t h = 0; h < heads && status == WW_OK; h++)
        for (int64_t q = 0; q < context; q++)
            for (int64_t k = 0; k < context; k++)
                values[(h * context + q) * context + k] = learned[distance_bucket(k, q) * heads + h];
    if (status == WW_OK)
        status = ww_tensor_from_host(l->source->device, WW_F32, 3, shape, values, &l->w->distances);
    ww_tensor_release(&rows);
    ww_quant_destroy(matrix);
    memory_free(learned);
    memory_free(values);
    return status;
}

/* Loads factors of rope from one tensor, if it exists, and replaces *out; otherwise leaves *out unchanged. */
static ww_status load_factors(loader *l, const char *name, float **out)
{
    const int64_t pairs = l->source->sizes->rope_size / 2;
    ww_tensor factors = {0};
    ww_status status = loader_vector(l, &(wanted){.name = name, .cols = pairs, .optional = true}, &factors);
    if (status != WW_OK || !factors.storage)
        return status;
    float *values = memory_alloc((size_t)pairs * sizeof *values);
    status = values ? ww_tensor_to_host(&factors, values) : memory_failed("factors of rope", (size_t)pairs * sizeof *values);
    for (int64_t i = 0; status == WW_OK && i < pairs; i++)
        if (!(values[i] > 0.0f))
            status = ww_fail(WW_CORRUPT_FILE, "tensor '%s': factor %lld is %g; it must be above 0", name, (long long)i,
                             (double)values[i]);
    ww_tensor_release(&factors);
    if (status == WW_OK) {
        memory_free(*out);
        *out = values;
    } else {
        memory_free(values);
    }
    return status;
}

/* A file may have factors for sessions up to the original context, and others for longer ones. */
ww_status positions_factors(loader *l)
{
    const bool is_long = l->source->context > l->source->sizes->rope_original_context;
    ww_status status = load_factors(l, "rope_freqs.weight", &l->w->rope_factors);
    if (status == WW_OK)
        status = load_factors(l, is_long ? "rope_factors_short.weight" : "rope_factors_long.weight", &l->w->rope_factors);
    return status == WW_OK
               ? load_factors(l, is_long ? "rope_factors_long.weight" : "rope_factors_short.weight", &l->w->rope_factors)
               : status;
}

/* ---- angles of rope --------------------------------------------------------------------------------------------------- */

/* The index, with a fraction, of the pair that turns `turns` times in the original context. */
static double yarn_pair(const model_sizes *s, double base, double turns)
{
    const double two_pi = 6.283185307179586;
    return s->rope_size * canon_log_f64((double)s->rope_original_context / (turns * two_pi)) / (2.0 * canon_log_f64(base));
}

void rope_find(const architecture *a, const model_sizes *s, bool window, const float *factors, rope_terms *out)
{
    /* Layers with a window may have their own base; then most architectures do not scale them. */
    const bool local = window && a->window_pattern > 0;
    const bool scaled = !local || a->window_scaled;
    const double base = local && s->window_base > 0.0 ? s->window_base : s->rope_base;
    const rope_scaling scaling = scaled ? s->scaling : ROPE_SCALING_NONE;
    const int32_t pairs = s->rope_size / 2;
    double low = 0.0, high = 0.0;
    out->magnitude = scaled ? s->rope_attention : 1.0;
    if (scaling == ROPE_SCALING_YARN) {
        low = yarn_pair(s, base, s->yarn_fast);
        high = yarn_pair(s, base, s->yarn_slow);
        low = fmax(a->yarn_exact ? low : floor(low), 0.0);
        high = fmin(a->yarn_exact ? high : ceil(high), s->rope_size - 1.0);
    }
    for (int32_t i = 0; i < pairs; i++) {
        double frequency = canon_pow_f64(base, -2.0 * i / s->rope_size);
        if (factors && scaled)
            frequency /= (double)factors[i];
        if (scaling == ROPE_SCALING_LINEAR)
            frequency /= s->rope_factor;
        if (scaling == ROPE_SCALING_YARN) {
            const double ramp = fmin(fmax((i - low) / fmax(0.001, high - low), 0.0), 1.0);
            frequency = frequency / s->rope_factor * ramp + frequency * (1.0 - ramp);
        }
        out->frequencies[i] = frequency;
    }
}
