/* Packs pieces of a and b, in any layout, into panels for the tiles (cpu/matmul/matmul.h).
 *
 * Panels are filled one at a time. If steps of k are adjacent in memory, packing a panel is a transposition, four by four; if
 * the panel's rows are adjacent, it is a copy; everything else goes element by element. 16-bit floats are widened on the way.
 */
#include <string.h>

#include "arithmetic/convert.h"
#include "base/integers.h"
#include "cpu/matmul/matmul.h"

int32_t matmul_source_bytes(int32_t type)
{
    return type == TYPE_F64 ? 8 : type == TYPE_F32 ? 4 : type == TYPE_I8 ? 1 : 2;
}

int32_t matmul_packed_bytes(int32_t packing)
{
    return packing == TYPE_F64 ? 8 : packing == TYPE_I8 || packing == MATMUL_BF16_PAIRS ? 2 : 4;
}

int64_t matmul_packed_depth(int32_t packing, int64_t depth)
{
    const int64_t multiple = packing == MATMUL_BF16_PAIRS ? MATMUL_FAST_DEPTH : packing == TYPE_I8 ? 2 : 1;
    return round_up_i64(depth, multiple);
}

int32_t matmul_result_bytes(int32_t type)
{
    return type == TYPE_I8 ? 4 : matmul_source_bytes(type);
}

/* Four floats: every machine has an instruction for them, and the compiler chooses it. */
typedef float f32_four __attribute__((vector_size(16)));

static f32_four four_at(const float *from)
{
    f32_four v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* Transposes rows r.. of `from` at steps k.. of a panel, four of each. */
static void transpose_four(const float *const *from, int64_t k, float *to, int32_t width)
{
    const f32_four a = four_at(from[0] + k), b = four_at(from[1] + k), c = four_at(from[2] + k), d = four_at(from[3] + k);
    const f32_four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const f32_four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const f32_four rows[4] = {
        __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + (k + i) * width, &rows[i], sizeof rows[i]);
}

/* Packs a panel of rows whose steps of k are adjacent. The last four rows may overlap the four before them. */
static void transpose_panel(const float *const *rows, int64_t depth, int32_t width, float *panel)
{
    const int64_t whole = depth / 4 * 4;
    for (int32_t r = 0; r < width; r += 4) {
        const int32_t first = r + 4 <= width ? r : width - 4;
        for (int64_t k = 0; k < whole; k += 4)
            transpose_four(rows + first, k, panel + first, width);
    }
    for (int64_t k = whole; k < depth; k++)
        for (int32_t r = 0; r < width; r++)
            panel[k * width + r] = rows[r][k];
}

static const float zeros[MATMUL_CHUNK];

typedef void (*widening)(float *to, const uint16_t *from, int64_t count);

/* Returns NULL for f32. */
static widening widen_of(const matmul_tiles *tiles, int32_t type)
{
    return type == TYPE_F16 ? tiles->widen_f16 : type == TYPE_BF16 ? tiles->widen_bf16 : NULL;
}

/* Packs one panel of f32 or a type that is widened to f32. Rows after the source's last are +0. */
static void pack_f32_panel(const matmul_tiles *tiles, int32_t type, const matmul_source *s, int32_t width, float *panel)
{
    const widening widen = widen_of(tiles, type);
    const int64_t count = s->count;
    const float *f32 = s->data;
    const uint16_t *halves = s->data;
    if (s->k_stride == 1 && s->depth >= 4 && width >= 4) {
        float widened[MATMUL_COLUMNS_MAX][MATMUL_CHUNK];
        const float *rows[MATMUL_COLUMNS_MAX];
        for (int32_t r = 0; r < width; r++) {
            rows[r] = r >= count ? zeros : widen ? widened[r] : f32 + r * s->stride;
            if (widen && r < count)
                widen(widened[r], halves + r * s->stride, s->depth);
        }
        transpose_panel(rows, s->depth, width, panel);
        return;
    }
    for (int64_t k = 0; k < s->depth; k++, panel += width) {
        for (int64_t r = 0; r < width; r++) {
            const int64_t at = (r < count ? r : 0) * s->stride + k * s->k_stride;
            const float value = type == TYPE_F32 ? f32[at] : type == TYPE_F16 ? widen_f16(halves[at]) : widen_bf16(halves[at]);
            panel[r] = r < count ? value : 0.0f;
        }
    }
}

/* Packs one step of a panel. */
static void put_span(widening widen, const void *from, int64_t count, int32_t width, float *to)
{
    if (widen)
        widen(to, from, count);
    else if (count == width && width % 4 == 0)
        for (int32_t i = 0; i < width; i += 4) {
            const f32_four four = four_at((const float *)from + i);
            memcpy(to + i, &four, sizeof four);
        }
    else
        memcpy(to, from, (size_t)count * sizeof *to);
    for (int64_t i = count; i < width; i++)
        to[i] = 0.0f;
}

/* Packs all panels of a source whose columns are adjacent: step by step, so that memory is read in order. */
static void pack_f32_rows(const matmul_tiles *tiles, int32_t type, const matmul_source *s, int32_t width, float *panels)
{
    const widening widen = widen_of(tiles, type);
    const int64_t bytes = matmul_source_bytes(type);
    for (int64_t k = 0; k < s->depth; k++) {
        const char *from = (const char *)s->data + k * s->k_stride * bytes;
        for (int64_t first = 0; first < s->count; first += width) {
            const int64_t count = min_i64(s->count - first, width);
            put_span(widen, from + first * bytes, count, width, panels + (first * s->depth + k * width));
        }
    }
}

static void pack_f64_panel(const matmul_source *s, int32_t width, double *panel)
{
    const double *from = s->data;
    for (int64_t k = 0; k < s->depth; k++, panel += width)
        for (int64_t r = 0; r < width; r++)
            panel[r] = r < s->count ? from[r * s->stride + k * s->k_stride] : 0.0;
}

static void pack_i8_panel(const matmul_source *s, int32_t width, int16_t *panel)
{
    const int64_t count = s->count;
    const int8_t *from = s->data;
    for (int64_t k = 0; k < s->depth; k += 2, panel += 2 * width) {
        for (int64_t r = 0; r < width; r++) {
            const int8_t *at = from + (r < count ? r * s->stride : 0) + k * s->k_stride;
            panel[2 * r] = r < count ? at[0] : 0;
            panel[2 * r + 1] = (int16_t)(r < count && k + 1 < s->depth ? at[s->k_stride] : 0);
        }
    }
}

void matmul_pack(const matmul_tiles *tiles, int32_t type, const matmul_source *source, int32_t width, void *panels)
{
    const size_t panel_bytes =
        (size_t)matmul_packed_depth(type, source->depth) * (size_t)width * (size_t)matmul_packed_bytes(type);
    matmul_source s = *source;
    char *panel = panels;
    const bool f32 = type != TYPE_F64 && type != TYPE_I8;
    if (f32 && source->stride == 1 && !(source->k_stride == 1 && source->depth >= 4)) {
        pack_f32_rows(tiles, type, source, width, panels);
        return;
    }
    for (int64_t first = 0; first < source->count; first += width, panel += panel_bytes) {
        s.count = min_i64(source->count - first, width);
        s.data = (const char *)source->data + first * source->stride * matmul_source_bytes(type);
        if (type == TYPE_F64)
            pack_f64_panel(&s, width, (double *)(void *)panel);
        else if (type == TYPE_I8)
            pack_i8_panel(&s, width, (int16_t *)(void *)panel);
        else
            pack_f32_panel(tiles, type, &s, width, (float *)(void *)panel);
    }
}

/* ---- pairs of bf16 ------------------------------------------------------------------------------------------------------- */

enum { PIECE = MATMUL_FAST_DEPTH, HALF = MATMUL_FAST_SIDE / 2, PIECE_ELEMENTS = MATMUL_FAST_SIDE * MATMUL_FAST_DEPTH };

static int64_t at_most(int64_t count, int64_t most)
{
    return count < 0 ? 0 : min_i64(count, most);
}

void matmul_pack_a_pairs(const matmul_source *s, uint16_t *panels)
{
    const uint16_t *from = s->data;
    for (int64_t first = 0; first < s->count; first += MATMUL_FAST_SIDE) {
        for (int64_t k = 0; k < s->depth; k += PIECE, panels += PIECE_ELEMENTS) {
            const int64_t rows = at_most(s->count - first, MATMUL_FAST_SIDE), steps = at_most(s->depth - k, PIECE);
            if (rows < MATMUL_FAST_SIDE || steps < PIECE)
                memset(panels, 0, PIECE_ELEMENTS * sizeof *panels);
            for (int64_t r = 0; r < rows; r++) {
                const uint16_t *row = from + (first + r) * s->stride + k * s->k_stride;
                if (s->k_stride == 1)
                    memcpy(panels + r * PIECE, row, (size_t)steps * sizeof *row);
                else
                    for (int64_t i = 0; i < steps; i++)
                        panels[r * PIECE + i] = row[i * s->k_stride];
            }
        }
    }
}

/* Interleaves two steps of 16 adjacent columns. */
static void pair_up(const uint16_t *restrict one, const uint16_t *restrict other, uint16_t *restrict to)
{
    for (int i = 0; i < HALF; i++) {
        to[2 * i] = one[i];
        to[2 * i + 1] = other[i];
    }
}

void matmul_pack_b_pairs(const matmul_source *s, uint16_t *panels)
{
    const uint16_t *from = s->data;
    for (int64_t first = 0; first < s->count; first += MATMUL_FAST_SIDE) {
        for (int64_t k = 0; k < s->depth; k += PIECE, panels += PIECE_ELEMENTS) {
            const int64_t columns = at_most(s->count - first, MATMUL_FAST_SIDE), steps = at_most(s->depth - k, PIECE);
            const uint16_t *at = from + first * s->stride + k * s->k_stride;
            if (columns == MATMUL_FAST_SIDE && steps == PIECE && s->stride == 1) {
                for (int i = 0; i < PIECE; i += 2) {
                    const uint16_t *one = at + i * s->k_stride, *other = one + s->k_stride;
                    pair_up(one, other, panels + i * HALF);
                    pair_up(one + HALF, other + HALF, panels + PIECE_ELEMENTS / 2 + i * HALF);
                }
                continue;
            }
            memset(panels, 0, PIECE_ELEMENTS * sizeof *panels);
            for (int64_t c = 0; c < columns; c++)
                for (int64_t i = 0; i < steps; i++)
                    panels[c / HALF * (PIECE_ELEMENTS / 2) + i / 2 * 2 * HALF + c % HALF * 2 + i % 2] =
                        at[c * s->stride + i * s->k_stride];
        }
    }
}

/* ---- through a window ---------------------------------------------------------------------------------------------------- */

/* Adjacent columns in one row of the output: where they are in the images, and how many. */
typedef struct window_span {
    int64_t image, y, x, count;
} window_span;

static window_span window_span_at(const matmul_window *w, int64_t n, int64_t left)
{
    const int64_t x = n % w->outs_x, row = n / w->outs_x;
    const int64_t count = min_i64(w->outs_x - x, left);
    return (window_span){.image = row / w->outs_y, .y = row % w->outs_y, .x = x, .count = count};
}

/* Elements begin..end - 1 of a sequence of places that are `step` apart. */
typedef struct inside {
    int64_t begin, end;
} inside;

/* Finds which of `count` places first, first + step, ... are inside 0..size-1. step >= 1. */
static inside places_inside(int64_t first, int64_t step, int64_t size, int64_t count)
{
    const int64_t before = first >= 0 ? 0 : divide_up_i64(-first, step);
    const int64_t upto = first >= size ? 0 : divide_up_i64(size - first, step);
    const int64_t begin = min_i64(before, count);
    return (inside){begin, upto < begin ? begin : min_i64(upto, count)};
}

/* Copies elements that are `stride` apart, widened to the type of panels. */
static void take_span(int32_t type, const void *from, int64_t stride, int64_t count, void *to)
{
    if (type == TYPE_F64) {
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = ((const double *)from)[i * stride];
    } else if (type == TYPE_F32 && stride == 1) {
        memcpy(to, from, (size_t)count * sizeof(float));
    } else if (type == TYPE_F32) {
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = ((const float *)from)[i * stride];
    } else if (type == TYPE_BF16) {
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = widen_bf16(((const uint16_t *)from)[i * stride]);
    } else {
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = widen_f16(((const uint16_t *)from)[i * stride]);
    }
}

static void zero_span(char *to, int64_t count, int64_t bytes)
{
    if (count > 0)
        memset(to, 0, (size_t)(count * bytes));
}

/* Row k of the source. */
static void window_row(const matmul_window_source *source, int64_t k, char *row)
{
    const matmul_window *w = source->window;
    const int32_t type = source->type;
    const int64_t packed = matmul_packed_bytes(type);
    const int64_t tap_x = k % w->taps_x, tap_y = k / w->taps_x % w->taps_y, channel = k / w->taps_x / w->taps_y;
    for (int64_t done = 0; done < source->count;) {
        const window_span s = window_span_at(w, source->first_n + done, source->count - done);
        const int64_t y = w->first_y + s.y * w->step_y + tap_y * w->tap_y;
        const int64_t x = w->first_x + s.x * w->step_x + tap_x * w->tap_x;
        inside in = {s.count, s.count};
        if (y >= 0 && y < w->in_y)
            in = places_inside(x, w->step_x, w->in_x, s.count);
        char *to = row + done * packed;
        zero_span(to, in.begin, packed);
        if (in.begin < in.end) {
            const int64_t at = s.image * w->image_stride + channel * w->channel_stride + y * w->y_stride +
                               (x + in.begin * w->step_x) * w->x_stride;
            take_span(type, source->data + at * matmul_source_bytes(type), w->step_x * w->x_stride, in.end - in.begin,
                      to + in.begin * packed);
        }
        zero_span(to + in.end * packed, s.count - in.end, packed);
        done += s.count;
    }
}

void matmul_pack_window(const matmul_window_source *source, int32_t width, void *row, void *panels)
{
    const size_t packed = (size_t)matmul_packed_bytes(source->type), step = (size_t)width * packed;
    for (int64_t k = 0; k < source->depth; k++) {
        window_row(source, source->first_k + k, row);
        for (int64_t n = 0; n < source->count; n += width) {
            const size_t used = (size_t)min_i64(source->count - n, width) * packed;
            char *to = (char *)panels + (size_t)(n / width * source->depth + k) * step;
            memcpy(to, (const char *)row + (size_t)n * packed, used);
            memset(to + used, 0, step - used);
        }
    }
}
