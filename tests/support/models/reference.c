/* The results of a small model, computed by definition in doubles, with a loop over every head, key and position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/models/tiny.h"

typedef struct body {
    const tiny_model *m;
    int tokens;
    double *x; /* tokens x width */
} body;

/* Zeros. */
static double *numbers(size_t count)
{
    double *made = calloc(count, sizeof *made);
    assert_non_null(made);
    return made;
}

static const float *find(const body *b, int layer, const char *what)
{
    char name[128];
    if (layer < 0)
        snprintf(name, sizeof name, "%s", what);
    else
        snprintf(name, sizeof name, "blk.%d.%s", layer, what);
    for (int32_t i = 0; i < b->m->count; i++)
        if (strcmp(b->m->tensors[i].name, name) == 0)
            return b->m->tensors[i].values;
    return NULL;
}

static bool is(const body *b, const char *architecture)
{
    return strcmp(b->m->shape.architecture, architecture) == 0;
}

static void multiply(const float *w, const double *x, int rows, int cols, double *y)
{
    for (int r = 0; r < rows; r++) {
        y[r] = 0.0;
        for (int c = 0; c < cols; c++)
            y[r] += (double)w[(size_t)r * (size_t)cols + (size_t)c] * x[c];
    }
}

static void add_to(double *y, const float *bias, int n)
{
    for (int i = 0; bias && i < n; i++)
        y[i] += (double)bias[i];
}

static void rms_norm(const double *x, const float *w, int n, double *y)
{
    double squares = 0.0;
    for (int i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] / sqrt(squares / n + (double)1e-5f) * (double)w[i];
}

static void layer_norm(const double *x, const float *w, const float *bias, int n, double *y)
{
    double mean = 0.0, variance = 0.0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + (double)1e-5f) * (double)w[i] + (double)bias[i];
}

/* ---- attention ----------------------------------------------------------------------------------------------------------- */

static bool has_window(const body *b, int layer)
{
    return b->m->shape.window > 0 && (!is(b, "gemma3") || layer % 6 < 5);
}

static double frequency(const body *b, int layer, int pair)
{
    const tiny_shape *s = &b->m->shape;
    const bool local = is(b, "gemma3") && has_window(b, layer);
    const double base = local ? 10000.0 : (double)(float)(10000.0 * s->layers);
    const float *factors = find(b, -1, "rope_freqs.weight");
    double f = pow(base, -2.0 * pair / s->head_size);
    if (factors)
        f /= (double)factors[pair];
    if (s->scaling && !local && strcmp(s->scaling, "linear") == 0)
        f /= (double)(float)s->scaling_factor;
    if (s->scaling && !local && strcmp(s->scaling, "yarn") == 0) {
        const int32_t quarter = s->context / 4;
        const double original = quarter, d = s->head_size;
        const double low = fmax(0.0, floor(d * log(original / (32.0 * 2.0 * M_PI)) / (2.0 * log(base))));
        const double high = fmin(d - 1.0, ceil(d * log(original / (1.0 * 2.0 * M_PI)) / (2.0 * log(base))));
        const double ramp = fmin(1.0, fmax(0.0, (pair - low) / fmax(0.001, high - low)));
        f = f / s->scaling_factor * ramp + f * (1.0 - ramp);
    }
    return f;
}

static void turn(const body *b, int layer, int position, double *head)
{
    const tiny_shape *s = &b->m->shape;
    const bool yarn = s->scaling && strcmp(s->scaling, "yarn") == 0 && !(is(b, "gemma3") && has_window(b, layer));
    const double magnitude = yarn ? 1.0 + 0.1 * log(s->scaling_factor) : 1.0;
    const int half = s->head_size / 2;
    for (int i = 0; i < half && !is(b, "bert"); i++) {
        double *a = is(b, "llama") ? &head[2 * i] : &head[i], *c = is(b, "llama") ? &head[2 * i + 1] : &head[i + half];
        const double angle = position * frequency(b, layer, i), cosine = cos(angle) * magnitude, sine = sin(angle) * magnitude;
        const double first = *a * cosine - *c * sine, second = *a * sine + *c * cosine;
        *a = first;
        *c = second;
    }
}

/* q, k or v of a token: part 0, 1 or 2. */
static void project(const body *b, int layer, int part, const double *x, double *y)
{
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    const tiny_shape *s = &b->m->shape;
    const int heads = part == 0 ? s->heads : s->key_heads, rows = heads * s->head_size;
    char name[64];
    snprintf(name, sizeof name, "%s.weight", names[part]);
    const float *w = find(b, layer, name), *all = find(b, layer, "attn_qkv.weight");
    const int before = part == 0 ? 0 : (s->heads + (part - 1) * s->key_heads) * s->head_size;
    multiply(w ? w : all + (size_t)before * (size_t)s->width, x, rows, s->width, y);
    snprintf(name, sizeof name, "%s.bias", names[part]);
    add_to(y, find(b, layer, name), rows);
    snprintf(name, sizeof name, "%s_norm.weight", names[part]);
    const float *norm = part < 2 ? find(b, layer, name) : NULL;
    for (int h = 0; h < heads && norm; h++) {
        double normed[256] = {0};
        rms_norm(y + h * s->head_size, norm, s->head_size, normed);
        memcpy(y + h * s->head_size, normed, (size_t)s->head_size * sizeof *normed);
    }
}

/* One head of one query over the keys it sees. */
static void attend(const body *b, int layer, int position, const double *q, const double *k, const double *v, double *out)
{
    const tiny_shape *s = &b->m->shape;
    const bool encoder = strstr(s->architecture, "bert") != NULL;
    const int size = s->head_size, stride = s->key_heads * size;
    const int end = encoder ? b->tokens : position + 1;
    const int first = has_window(b, layer) && position >= s->window ? position - s->window + 1 : 0;
    double *p = numbers((size_t)b->tokens), largest = -INFINITY, sum = 0.0;
    for (int t = first; t < end; t++) {
        p[t] = 0.0;
        for (int i = 0; i < size; i++)
            p[t] += q[i] * k[(size_t)t * (size_t)stride + (size_t)i] / sqrt(size);
        largest = fmax(largest, p[t]);
    }
    memset(out, 0, (size_t)size * sizeof *out);
    for (int t = first; t < end; t++) {
        p[t] = exp(p[t] - largest);
        sum += p[t];
        for (int i = 0; i < size; i++)
            out[i] += p[t] * v[(size_t)t * (size_t)stride + (size_t)i];
    }
    for (int i = 0; i < size; i++)
        out[i] /= sum;
    free(p);
}

/* What attention of a layer gives for `from`, tokens x width each. */
static void attention(const body *b, int layer, const double *from, double *to)
{
    const tiny_shape *s = &b->m->shape;
    const size_t width = (size_t)s->width, keys = (size_t)(s->key_heads * s->head_size),
                 queries = (size_t)(s->heads * s->head_size);
    double *k = numbers((size_t)b->tokens * keys), *v = numbers((size_t)b->tokens * keys);
    double *q = numbers(queries), *met = numbers(queries);
    for (int t = 0; t < b->tokens; t++) {
        project(b, layer, 1, from + (size_t)t * width, k + (size_t)t * keys);
        project(b, layer, 2, from + (size_t)t * width, v + (size_t)t * keys);
        for (int h = 0; h < s->key_heads; h++)
            turn(b, layer, t, k + (size_t)t * keys + (size_t)(h * s->head_size));
    }
    for (int t = 0; t < b->tokens; t++) {
        project(b, layer, 0, from + (size_t)t * width, q);
        for (int h = 0; h < s->heads; h++) {
            const size_t key_head = (size_t)(h / (s->heads / s->key_heads) * s->head_size);
            turn(b, layer, t, q + h * s->head_size);
            attend(b, layer, t, q + h * s->head_size, k + key_head, v + key_head, met + h * s->head_size);
        }
        multiply(find(b, layer, "attn_output.weight"), met, s->width, (int)queries, to + (size_t)t * width);
        add_to(to + (size_t)t * width, find(b, layer, "attn_output.bias"), s->width);
    }
    free(met);
    free(q);
    free(v);
    free(k);
}

/* ---- layers -------------------------------------------------------------------------------------------------------------- */

static double activate(const body *b, double x)
{
    if (is(b, "bert"))
        return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    if (is(b, "gemma3"))
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    return x / (1.0 + exp(-x));
}

static void feed_forward(const body *b, int layer, const double *x, double *y)
{
    const tiny_shape *s = &b->m->shape;
    const float *gate = find(b, layer, "ffn_gate.weight");
    double *up = numbers((size_t)s->hidden), *gated = numbers((size_t)s->hidden);
    multiply(find(b, layer, "ffn_up.weight"), x, s->hidden, s->width, up);
    add_to(up, find(b, layer, "ffn_up.bias"), s->hidden);
    if (gate)
        multiply(gate, x, s->hidden, s->width, gated);
    for (int i = 0; i < s->hidden; i++)
        up[i] = gate ? activate(b, gated[i]) * up[i] : activate(b, up[i]);
    multiply(find(b, layer, "ffn_down.weight"), up, s->width, s->hidden, y);
    add_to(y, find(b, layer, "ffn_down.bias"), s->width);
    free(gated);
    free(up);
}

static void add_normed(const body *b, const float *post, double *x, const double *y)
{
    const int width = b->m->shape.width;
    double *normed = numbers((size_t)width);
    if (post)
        rms_norm(y, post, width, normed);
    for (int i = 0; i < width; i++)
        x[i] += post ? normed[i] : y[i];
    free(normed);
}

static void decoder_layer(const body *b, int layer)
{
    const int width = b->m->shape.width;
    double *normed = numbers((size_t)(b->tokens * width)), *y = numbers((size_t)(b->tokens * width));
    for (int t = 0; t < b->tokens; t++)
        rms_norm(b->x + t * width, find(b, layer, "attn_norm.weight"), width, normed + t * width);
    attention(b, layer, normed, y);
    for (int t = 0; t < b->tokens; t++) {
        add_normed(b, find(b, layer, "post_attention_norm.weight"), b->x + t * width, y + t * width);
        rms_norm(b->x + t * width, find(b, layer, "ffn_norm.weight"), width, normed + t * width);
        feed_forward(b, layer, normed + t * width, y + t * width);
        add_normed(b, find(b, layer, "post_ffw_norm.weight"), b->x + t * width, y + t * width);
    }
    free(y);
    free(normed);
}

static void encoder_layer(const body *b, int layer)
{
    const int width = b->m->shape.width;
    double *y = numbers((size_t)(b->tokens * width)), *sum = numbers((size_t)width);
    attention(b, layer, b->x, y);
    for (int t = 0; t < b->tokens; t++) {
        double *x = b->x + t * width;
        for (int i = 0; i < width; i++)
            sum[i] = x[i] + y[t * width + i];
        layer_norm(sum, find(b, layer, "attn_output_norm.weight"), find(b, layer, "attn_output_norm.bias"), width, x);
        feed_forward(b, layer, x, y + t * width);
        for (int i = 0; i < width; i++)
            sum[i] = x[i] + y[t * width + i];
        layer_norm(sum, find(b, layer, "layer_output_norm.weight"), find(b, layer, "layer_output_norm.bias"), width, x);
    }
    free(sum);
    free(y);
}

static body begin(const tiny_model *m, const int32_t *ids, int count)
{
    const int width = m->shape.width;
    body b = {m, count, numbers((size_t)(count * width))};
    const float *embedding = find(&b, -1, "token_embd.weight");
    for (int t = 0; t < count; t++)
        for (int i = 0; i < width; i++)
            b.x[t * width + i] = (double)embedding[ids[t] * width + i] * (is(&b, "gemma3") ? sqrt(width) : 1.0);
    return b;
}

/* An encoder's vectors of all tokens; those from number `first` on are of the second type. */
static body encode(const tiny_model *m, const int32_t *ids, int count, int first)
{
    body b = begin(m, ids, count);
    const int width = m->shape.width;
    const float *types = find(&b, -1, "token_types.weight"), *positions = find(&b, -1, "position_embd.weight");
    double *sum = numbers((size_t)width);
    for (int t = 0; t < count; t++) {
        const float *type = types + (t < first ? 0 : width);
        for (int i = 0; i < width; i++)
            sum[i] = b.x[t * width + i] + (double)type[i] + (positions ? (double)positions[t * width + i] : 0.0);
        layer_norm(sum, find(&b, -1, "token_embd_norm.weight"), find(&b, -1, "token_embd_norm.bias"), width, b.x + t * width);
    }
    for (int i = 0; i < m->shape.layers; i++)
        encoder_layer(&b, i);
    free(sum);
    return b;
}

/* A decoder's vectors of all tokens, after the last norm. */
static body decode(const tiny_model *m, const int32_t *ids, int count)
{
    body b = begin(m, ids, count);
    const int width = m->shape.width;
    double *normed = numbers((size_t)width);
    for (int i = 0; i < m->shape.layers; i++)
        decoder_layer(&b, i);
    for (int t = 0; t < count; t++) {
        rms_norm(b.x + t * width, find(&b, -1, "output_norm.weight"), width, normed);
        memcpy(b.x + t * width, normed, (size_t)width * sizeof *normed);
    }
    free(normed);
    return b;
}

void tiny_logits(const tiny_model *m, const int32_t *ids, int count, double *logits)
{
    body b = decode(m, ids, count);
    const float *output = find(&b, -1, "output.weight");
    multiply(output ? output : find(&b, -1, "token_embd.weight"), b.x + (count - 1) * m->shape.width, m->shape.vocabulary,
             m->shape.width, logits);
    free(b.x);
}

void tiny_embedding(const tiny_model *m, const int32_t *ids, int count, double *vector)
{
    const int width = m->shape.width, pooling = m->shape.pooling;
    body b = strstr(m->shape.architecture, "bert") ? encode(m, ids, count, count) : decode(m, ids, count);
    double squares = 0.0;
    for (int i = 0; i < width; i++) {
        vector[i] = 0.0;
        for (int t = pooling == WW_POOLING_LAST ? count - 1 : 0; t < (pooling == WW_POOLING_CLS ? 1 : count); t++)
            vector[i] += b.x[t * width + i];
        squares += vector[i] * vector[i];
    }
    for (int i = 0; i < width; i++)
        vector[i] /= sqrt(squares);
    free(b.x);
}

double tiny_score(const tiny_model *m, const int32_t *ids, int count, int first)
{
    body b = encode(m, ids, count, first);
    double *inner = numbers((size_t)m->shape.width), score;
    multiply(find(&b, -1, "cls.weight"), b.x, m->shape.width, m->shape.width, inner);
    add_to(inner, find(&b, -1, "cls.bias"), m->shape.width);
    for (int i = 0; i < m->shape.width; i++)
        inner[i] = tanh(inner[i]);
    multiply(find(&b, -1, "cls.output.weight"), inner, 1, m->shape.width, &score);
    add_to(&score, find(&b, -1, "cls.output.bias"), 1);
    free(inner);
    free(b.x);
    return score;
}
