/* Scenes for tests of attention, and the definition of attention, element by element. */
#include "support/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/blocks/decode.h"
#include "arithmetic/blocks/encode.h"

buffer buffer_of(ww_device *device, const void *bytes, size_t count)
{
    buffer made;
    CHECK_OK(device->backend->tensors->alloc(device, count, &made));
    if (bytes)
        CHECK_OK(device->backend->tensors->write(device, &made, bytes));
    return made;
}

static void release(ww_device *device, buffer *memory)
{
    device->backend->tensors->release(device, memory);
}

/* ---- what the cache keeps ------------------------------------------------------------------------------------------------ */

static void rotate(const attention_scene *s, float *head, int32_t position)
{
    const int32_t half = s->shape.half;
    for (int32_t i = 0; s->shape.rope != ATTENTION_ROPE_NONE && i < half; i++) {
        float *a = s->shape.rope == ATTENTION_ROPE_HALVES ? &head[i] : &head[2 * i];
        float *b = s->shape.rope == ATTENTION_ROPE_HALVES ? &head[i + half] : &head[2 * i + 1];
        const float c = s->cosines[position * half + i], t = s->sines[position * half + i];
        const float first = fmaf(*a, c, -(*b * t)), second = fmaf(*a, t, *b * c);
        *a = first;
        *b = second;
    }
}

static void round_head(const attention_shape *shape, float *x)
{
    for (int32_t i = 0; shape->type == ATTENTION_F16 && i < shape->head_size; i++)
        x[i] = f32_from_f16(f16_from_f32(x[i]));
    for (int32_t i = 0; shape->type == ATTENTION_Q8_0 && i < shape->head_size; i += 32) {
        block_q8_0 block;
        const int bad = encode_q8_0(x + i, &block);
        for (int32_t e = 0; e < 32; e++)
            x[i + e] = bad ? NAN : (float)block.codes[e] * f32_from_f16((uint16_t)block.d);
    }
}

/* ---- the scene ----------------------------------------------------------------------------------------------------------- */

static float *randoms(test_random *random, int64_t count, float by)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = by * random_normal(random);
    return x;
}

static void make_tables(attention_scene *s)
{
    const int32_t half = s->shape.half;
    s->cosines = malloc(sizeof(float) * (size_t)(s->longest * half + 1));
    s->sines = malloc(sizeof(float) * (size_t)(s->longest * half + 1));
    for (int32_t p = 0; p < s->longest; p++)
        for (int32_t i = 0; i < half; i++) {
            s->cosines[p * half + i] = cosf((float)p / (float)(i + 1));
            s->sines[p * half + i] = sinf((float)p / (float)(i + 1));
        }
    const size_t bytes = sizeof(float) * (size_t)(s->longest * half + 1);
    s->rope_cosines = buffer_of(s->device, s->cosines, bytes);
    s->rope_sines = buffer_of(s->device, s->sines, bytes);
}

/* Pages of a sequence are not contiguous; unwritten memory is NaN. A layer of another shape precedes this one. */
static void make_pages(attention_scene *s)
{
    const attention_shape *shape = &s->shape;
    const int32_t count = shape->sequences * s->pages_each;
    s->page_bytes = 768 + attention_layer_bytes(shape->type, shape->kv_heads, shape->head_size);
    char *ones = malloc((size_t)(s->page_bytes * count));
    memset(ones, 0xff, (size_t)(s->page_bytes * count));
    s->pages = buffer_of(s->device, ones, (size_t)(s->page_bytes * count));
    uint64_t *table = malloc(sizeof *table * (size_t)count);
    for (int32_t i = 0; i < count; i++)
        table[i] = (uint64_t)(uintptr_t)((char *)s->pages.data + (int64_t)((i * 7 + 3) % count) * s->page_bytes);
    for (int32_t i = 0; count % 7 == 0 && i < count; i++)
        table[i] = (uint64_t)(uintptr_t)((char *)s->pages.data + (int64_t)(count - 1 - i) * s->page_bytes);
    s->table = buffer_of(s->device, table, sizeof *table * (size_t)count);
    s->lengths = buffer_of(s->device, shape->lengths, sizeof *shape->lengths * (size_t)shape->sequences);
    free(table);
    free(ones);
}

attention_scene scene_make(ww_device *device, test_random *random, const attention_shape *shape)
{
    attention_scene s = {.device = device, .shape = *shape};
    for (int32_t i = 0; i < shape->sequences; i++)
        s.longest = shape->lengths[i] > s.longest ? shape->lengths[i] : s.longest;
    s.pages_each = (s.longest + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK;
    const int32_t size = shape->head_size;
    const int64_t heads = (int64_t)shape->sequences * s.longest * shape->kv_heads, all = heads * size;
    s.k = randoms(random, all, shape->large ? 6.0f : 0.5f);
    s.v = randoms(random, all, 1.0f);
    s.k_kept = malloc((size_t)all * sizeof(float));
    s.v_kept = malloc((size_t)all * sizeof(float));
    memcpy(s.k_kept, s.k, (size_t)all * sizeof(float));
    memcpy(s.v_kept, s.v, (size_t)all * sizeof(float));
    make_tables(&s);
    make_pages(&s);
    for (int64_t head = 0; head < heads; head++) {
        rotate(&s, s.k_kept + head * size, (int32_t)(head / shape->kv_heads % s.longest));
        round_head(shape, s.k_kept + head * size);
        round_head(shape, s.v_kept + head * size);
    }
    return s;
}

void scene_free(attention_scene *s)
{
    buffer *all[] = {&s->pages, &s->table, &s->lengths, &s->rope_cosines, &s->rope_sines};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release(s->device, all[i]);
    free(s->k);
    free(s->v);
    free(s->k_kept);
    free(s->v_kept);
    free(s->cosines);
    free(s->sines);
}

/* ---- tokens -------------------------------------------------------------------------------------------------------------- */

attention_tokens tokens_make(const attention_scene *s, test_random *random, int64_t count)
{
    const int64_t row = (int64_t)s->shape.heads * s->shape.head_size;
    attention_tokens t = {.count = count,
                          .sequences = calloc((size_t)count, sizeof(int32_t)),
                          .positions = calloc((size_t)count, sizeof(int32_t)),
                          .q = randoms(random, count * row, s->shape.large ? 3.0f : 1.0f)};
    t.device_sequences = buffer_of(s->device, NULL, (size_t)count * sizeof(int32_t));
    t.device_positions = buffer_of(s->device, NULL, (size_t)count * sizeof(int32_t));
    t.device_q = buffer_of(s->device, t.q, (size_t)(count * row) * sizeof(float));
    t.device_out = buffer_of(s->device, NULL, (size_t)(count * row) * sizeof(float));
    return t;
}

void tokens_send(const attention_scene *s, attention_tokens *t)
{
    CHECK_OK(s->device->backend->tensors->write(s->device, &t->device_sequences, t->sequences));
    CHECK_OK(s->device->backend->tensors->write(s->device, &t->device_positions, t->positions));
}

void tokens_free(const attention_scene *s, attention_tokens *t)
{
    release(s->device, &t->device_sequences);
    release(s->device, &t->device_positions);
    release(s->device, &t->device_q);
    release(s->device, &t->device_out);
    free(t->sequences);
    free(t->positions);
    free(t->q);
}

attention_batch scene_batch(const attention_scene *s, const attention_tokens *t)
{
    return (attention_batch){
        .tokens = t->count,
        .sequences = t->device_sequences.data,
        .positions = t->device_positions.data,
        .pages = s->table.data,
        .pages_stride = s->pages_each,
        .lengths = s->lengths.data,
        .layer = {.type = s->shape.type, .kv_heads = s->shape.kv_heads, .head_size = s->shape.head_size, .offset = 768}};
}

attention_store_job scene_store_job(const attention_scene *s, const attention_tokens *t, buffer *memory)
{
    const int64_t row = (int64_t)s->shape.kv_heads * s->shape.head_size;
    float *both = malloc(sizeof(float) * (size_t)(t->count * 2 * row));
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t from = ((int64_t)t->sequences[i] * s->longest + t->positions[i]) * row;
        memcpy(both + 2 * i * row, s->k + from, sizeof(float) * (size_t)row);
        memcpy(both + (2 * i + 1) * row, s->v + from, sizeof(float) * (size_t)row);
    }
    *memory = buffer_of(s->device, both, sizeof(float) * (size_t)(t->count * 2 * row));
    free(both);
    return (attention_store_job){.batch = scene_batch(s, t),
                                 .heads = s->shape.heads,
                                 .q = t->device_q.data,
                                 .q_stride = (int64_t)s->shape.heads * s->shape.head_size,
                                 .k = memory->data,
                                 .v = (const float *)memory->data + row,
                                 .k_stride = 2 * row,
                                 .v_stride = 2 * row,
                                 .rope = s->shape.rope,
                                 .half = s->shape.half,
                                 .cosines = s->rope_cosines.data,
                                 .sines = s->rope_sines.data,
                                 .rope_positions = s->longest};
}

void scene_store(const attention_scene *s, const attention_tokens *t)
{
    buffer device;
    const attention_store_job job = scene_store_job(s, t, &device);
    CHECK_OK(s->device->backend->tensors->attention_store(s->device, &job));
    release(s->device, &device);
}

void scene_fill(const attention_scene *s, test_random *random, int64_t piece)
{
    for (int32_t sequence = 0; sequence < s->shape.sequences; sequence++)
        for (int32_t first = 0; first < s->shape.lengths[sequence]; first += (int32_t)piece) {
            const int32_t left = s->shape.lengths[sequence] - first;
            attention_tokens t = tokens_make(s, random, left < piece ? left : piece);
            for (int32_t i = 0; i < t.count; i++) {
                t.sequences[i] = sequence;
                t.positions[i] = first + i;
            }
            tokens_send(s, &t);
            scene_store(s, &t);
            tokens_free(s, &t);
        }
}

attention_job scene_job(const attention_scene *s, const attention_tokens *t, attention_mask mask)
{
    return (attention_job){.batch = scene_batch(s, t),
                           .heads = s->shape.heads,
                           .q = t->device_q.data,
                           .q_stride = (int64_t)s->shape.heads * s->shape.head_size,
                           .mask = mask,
                           .scale = 1.0f / sqrtf((float)s->shape.head_size),
                           .keys_max = s->longest,
                           .out = t->device_out.data};
}

/* ---- the definition ------------------------------------------------------------------------------------------------------ */

static float fold(float *a)
{
    for (int s = 4; s > 0; s /= 2)
        for (int j = 0; j < s; j++)
            a[j] = a[j] + a[j + s];
    return a[0];
}

typedef struct one_chunk {
    float m, l, o[ATTENTION_HEAD_MAX];
} one_chunk;

static one_chunk chunk_of(const float *q, const float *k, const float *v, int32_t size, int64_t apart, float scale,
                          int32_t first, int32_t end)
{
    one_chunk c = {.m = -INFINITY};
    float p[256], l[8] = {0};
    for (int32_t j = first; j < end; j++) {
        float a[8] = {0};
        for (int32_t i = 0; i < size; i++)
            a[i % 8] = fmaf(q[i], k[j * apart + i], a[i % 8]);
        p[j] = fold(a) * scale;
        c.m = p[j] > c.m || isnan(p[j]) ? p[j] : c.m;
    }
    for (int32_t j = first; j < end; j++) {
        p[j] = row_exponential_f32(p[j], c.m);
        l[j % 8] = fmaf(p[j], 1.0f, l[j % 8]);
    }
    c.l = fold(l);
    for (int32_t i = 0; i < size; i++) {
        float a[8] = {0};
        for (int32_t j = first; j < end; j++)
            a[j % 8] = fmaf(p[j], v[j * apart + i], a[j % 8]);
        c.o[i] = fold(a);
    }
    return c;
}

static void expect_query(const attention_scene *s, const attention_job *job, const float *q, int32_t sequence, int32_t position,
                         int32_t kv_head, float *out)
{
    const int32_t size = s->shape.head_size, length = s->shape.lengths[sequence];
    const int64_t apart = (int64_t)s->shape.kv_heads * size, base = (int64_t)sequence * s->longest * apart + kv_head * size;
    const int32_t window = job->mask.window, behind = job->mask.causal ? 0 : window > 0 ? window : length;
    const int32_t end = position + behind + 1 < length ? position + behind + 1 : length;
    const int32_t before = job->mask.causal ? window - 1 : window; /* keys before the query, with a window */
    const int32_t first = window > 0 && position - before > 0 ? position - before : 0;
    one_chunk *chunks = malloc(sizeof *chunks * (size_t)(end / 256 + 1));
    int32_t count = 0;
    for (int32_t c = first / 256; c * 256 < end; c++) {
        const int32_t from = first > c * 256 ? first - c * 256 : 0, to = end - c * 256 < 256 ? end - c * 256 : 256;
        chunks[count++] = chunk_of(q, s->k_kept + base + c * 256 * apart, s->v_kept + base + c * 256 * apart, size, apart,
                                   job->scale, from, to);
    }
    float m = -INFINITY, l = 0;
    for (int32_t c = 0; c < count; c++)
        m = chunks[c].m > m || isnan(chunks[c].m) ? chunks[c].m : m;
    memset(out, 0, sizeof(float) * (size_t)size);
    for (int32_t c = 0; c < count; c++) {
        const float f = row_exponential_f32(chunks[c].m, m);
        l = fmaf(f, chunks[c].l, l);
        for (int32_t i = 0; i < size; i++)
            out[i] = fmaf(f, chunks[c].o[i], out[i]);
    }
    for (int32_t i = 0; i < size; i++)
        out[i] = one_nan_f32(out[i] / l);
    free(chunks);
}

float *attention_expected(const attention_scene *s, const attention_tokens *t, const attention_job *job)
{
    const int32_t size = s->shape.head_size, heads = s->shape.heads, group = heads / s->shape.kv_heads;
    float *out = malloc(sizeof(float) * (size_t)(t->count * heads * size)), q[ATTENTION_HEAD_MAX];
    for (int64_t i = 0; i < t->count; i++)
        for (int32_t head = 0; head < heads; head++) {
            memcpy(q, t->q + (i * heads + head) * size, sizeof(float) * (size_t)size);
            rotate(s, q, t->positions[i]);
            expect_query(s, job, q, t->sequences[i], t->positions[i], head / group, out + (i * heads + head) * size);
        }
    return out;
}
