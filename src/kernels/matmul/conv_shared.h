/* Convolutions in fast mode with as many outputs as inputs, at stride one: the image is kept in shared memory.
 *
 * A block computes 64 channels of 256 adjacent outputs (on AMD chips, of args.columns outputs, fewer if some units would
 * otherwise have no block). The pixels that their taps read are adjacent too: tap t of output j reads pixel j + shift(t), with
 * images one after the other, or nothing, depending on its marks. So a slab of channels of those pixels, a few more than 256,
 * is loaded once, with the channels of a pixel together (matrix_f16.h: 64 bytes of k), and every tap is a product of its
 * weights with the same slab, shifted. conv_arrange_* first puts the weights into the order of shared memory, which holds
 * `together` taps of them at a time. Two blocks share a multiprocessor, so one multiplies while the other loads; on AMD chips,
 * only if both fit.
 */
#ifndef WW_KERNELS_MATMUL_CONV_SHARED_H
#define WW_KERNELS_MATMUL_CONV_SHARED_H

#include "kernels/matmul/conv_tiles.h"

#if defined(SIMT_MFMA)

#include "kernels/matmul/conv_shared_mfma.h"

#else /* a wave computes 64 channels of one output per lane */

#if defined(__NVPTX__) || defined(__AMDGCN__)
enum { CONV_THREADS = MATMUL_THREADS };
#else
enum { CONV_THREADS = 2 * MATMUL_THREADS }; /* emulated, for any chip: waves without outputs only load pixels */
#endif

enum { CONV_SUMS = FAST_SUMS, CONV_PLACES = FAST_PLACES };

DEVICE uint32_t conv_first_column(void)
{
    return wave_index() * wave_size();
}

DEVICE uint32_t conv_place_column(uint32_t place)
{
    return fast_place_column(place);
}

DEVICE void conv_multiply(int32_t type, const uint32_t *weights, const uint32_t *pixels, const uint32_t *places, float *sums)
{
    UNROLL for (uint32_t part = 0; part < FAST_PARTS; part++) fast_multiply(type, weights, pixels, places, part, sums);
}

DEVICE void conv_write(int32_t type, const matmul_args *product, bool pairs, int32_t first_row, int32_t first_column,
                       const float *sums)
{
    conv_put(type, product, 0, pairs, first_row, first_column, sums);
}

#endif

enum {
    TAP_WORDS = FAST_ROWS * FAST_WORDS,
    PIECES = 4, /* pieces of 16 bytes in a slab */
};

DEVICE int32_t slab_channels(int32_t type)
{
    return type == TYPE_F32 ? CONV_SLAB_BYTES / 4 : CONV_SLAB_BYTES / 2;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

/* A thread writes one piece; pieces are ordered by tile, slab, tap and row. */
DEVICE void arrange(int32_t type, const conv_args *args)
{
    const int32_t each = slab_channels(type) / PIECES, taps = args->taps;
    const int64_t number = (int64_t)block_index() * MATMUL_THREADS + thread_index(), of_tap = number / (FAST_ROWS * PIECES);
    const int32_t piece = (int32_t)(number % PIECES), tap = (int32_t)(of_tap % taps);
    const uint32_t tile_row = (uint32_t)(number / PIECES % FAST_ROWS);
    const int64_t of_slab = of_tap / taps;
    const int32_t slab = (int32_t)(of_slab % args->slabs),
                  row = (int32_t)(of_slab / args->slabs) * FAST_ROWS + (int32_t)tile_row;
    uint32_t elements[8];
    if (number >= args->pieces)
        return;
    UNROLL for (int32_t i = 0; i < each; i++)
    {
        const int32_t channel = (slab * PIECES + piece) * each + i;
        const bool there = row < args->product.m && channel < args->channels;
        elements[i] = there ? conv_word(type, args->product.a, row * args->product.a_row + channel * taps + tap) : 0u;
    }
    *(u32x4 *)(args->weights + of_tap * TAP_WORDS + fast_piece(tile_row, (uint32_t)piece)) = conv_piece(type, elements);
}

/* ---- pixels -------------------------------------------------------------------------------------------------------------- */

/* Loads the first `channels` channels of a slab of pixel `i`, which starts at `begin`; +0 for the others. */
#if defined(__NVPTX__)

DEVICE void bring_pixel(int32_t type, const conv_args *args, int64_t begin, int32_t channels, int32_t i, uint32_t *pixels)
{
    const matmul_window_32 *w = &args->product.window;
    const int32_t each = slab_channels(type) / PIECES;
    const char *from = (const char *)args->product.b + begin * element_bytes(type);
    UNROLL for (int32_t two = 0; two < PIECES; two += 2)
    {
        uint32_t elements[16];
        UNROLL for (int32_t e = 0; e < 2 * each; e++) elements[e] =
            two * each + e < channels ? conv_word(type, from, (two * each + e) * w->channel_stride) : 0u;
        UNROLL for (int32_t piece = 0; piece < 2; piece++) *
            (u32x4 *)AT_RANGE(pixels, fast_piece((uint32_t)i, (uint32_t)(two + piece)), 4) =
            conv_piece(type, elements + piece * each);
    }
}

/* Loads the slab's channels of all pixels, a pixel at a time per thread. After the last pixel there is a zero one. */
DEVICE void bring_pixels(int32_t type, const conv_args *args, int32_t first, int32_t slab, uint32_t *pixels)
{
    const matmul_window_32 *w = &args->product.window;
    const int32_t channel = slab * slab_channels(type);
    const uint32_t plane = (uint32_t)(w->in_y * w->in_x);
    UNROLL_BY(1)
    for (int32_t i = (int32_t)thread_index(); i <= args->pixels; i += MATMUL_THREADS) {
        const int32_t pixel = first + i;
        const bool there = i < args->pixels && pixel >= 0 && pixel < args->product.n;
        const uint32_t image = there ? (uint32_t)pixel / plane : 0;
        const int64_t begin =
            image * w->image_stride + (there ? pixel - (int32_t)(image * plane) : 0) + channel * w->channel_stride;
        bring_pixel(type, args, begin, there ? args->channels - channel : 0, i, pixels);
    }
}

#else

/* A pixel of a slab: `at` bytes from the slab's first channel of the block's first image. That address is the same for all
 * lanes, so the scalar unit steps from one channel to the next. `channels` of the slab exist, at least one, and `mask` is 0 for
 * missing pixels. */
typedef struct slab_pixel {
    uint64_t from;    /* the address, in global memory */
    uint64_t further; /* bytes from a channel to the next */
    int32_t channels;
    uint32_t at, mask;
} slab_pixel;

DEVICE uint32_t pixel_word(int32_t type, uint64_t from, uint32_t at)
{
    return type == TYPE_F32 ? LOAD_GLOBAL(uint32_t, from + at) : LOAD_GLOBAL(uint16_t, from + at);
}

/* Loads pieces `two` and `two` + 1 of pixel i. With `part`, only some of their channels exist. */
DEVICE void bring_two_pieces(int32_t type, slab_pixel *p, int32_t two, bool part, int32_t i, uint32_t *pixels)
{
    const int32_t each = slab_channels(type) / PIECES;
    uint32_t elements[16];
    UNROLL for (int32_t e = 0; e < 2 * each; e++)
    {
        const int32_t channel = two * each + e;
        elements[e] = pixel_word(type, p->from, p->at);
        if (part)
            SETTLE_UNIFORM(p->channels); /* otherwise each element's condition and distance would be computed before the loop */
        if (part)
            elements[e] &= (uint32_t)((channel - p->channels) >> 31);
        p->from += !part || channel + 1 < p->channels ? p->further : 0; /* not beyond the last channel */
        SETTLE_UNIFORM(p->from);
    }
    UNROLL for (int32_t piece = 0; piece < 2; piece++)
    {
        u32x4 words = conv_piece(type, elements + piece * each);
        words.x &= p->mask;
        words.y &= p->mask;
        words.z &= p->mask;
        words.w &= p->mask;
        *(u32x4 *)AT_RANGE(pixels, fast_piece((uint32_t)i, (uint32_t)(two + piece)), 4) = words;
    }
}

/* Loads the slab's channels of all pixels, a pixel at a time per thread. After the last pixel there is a zero one. */
DEVICE void bring_pixels(int32_t type, const conv_args *args, int32_t first, int32_t slab, uint32_t *pixels)
{
    const matmul_window_32 *w = &args->product.window;
    const int32_t channel = slab * slab_channels(type), channels = args->channels - channel,
                  bytes = (int32_t)element_bytes(type);
    const uint32_t plane = (uint32_t)(w->in_y * w->in_x), first_image = first > 0 ? (uint32_t)first / plane : 0;
    const uint64_t from = (uint64_t)(uintptr_t)args->product.b +
                          (uint64_t)((first_image * w->image_stride + channel * w->channel_stride) * bytes);
    UNROLL_BY(1)
    for (int32_t i = (int32_t)thread_index(); i <= args->pixels; i += (int32_t)block_size()) {
        const int32_t pixel = first + i;
        const bool there = i < args->pixels && pixel >= 0 && pixel < args->product.n;
        const uint32_t image = there ? (uint32_t)pixel / plane : first_image;
        const uint32_t in_plane = there ? (uint32_t)pixel - image * plane : 0;
        const uint32_t at = ((image - first_image) * (uint32_t)w->image_stride + in_plane) * (uint32_t)bytes;
        slab_pixel p = {from, (uint64_t)(w->channel_stride * bytes), channels, at, there ? ~0u : 0u};
        SETTLE(p.at); /* a 32-bit offset from a pointer that all lanes share */
        if (channels >= slab_channels(type)) {
            UNROLL for (int32_t two = 0; two < PIECES; two += 2) bring_two_pieces(type, &p, two, false, i, pixels);
        } else {
            UNROLL for (int32_t two = 0; two < PIECES; two += 2) bring_two_pieces(type, &p, two, true, i, pixels);
        }
    }
}

#endif

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* A tap by its row and column. */
typedef struct conv_tap {
    int32_t y, x;
} conv_tap;

/* Multiplies some taps, starting at `first`, which is `tap`, with the slab. `marks` are those of the lane's outputs. */
DEVICE void multiply_taps(int32_t type, const conv_args *args, int32_t first, int32_t count, conv_tap *tap,
                          const uint32_t *pixels, const uint32_t *weights, const uint32_t *marks, float *sums)
{
    const matmul_window_32 *w = &args->product.window;
    UNROLL_BY(1)
    for (int32_t i = 0; i < count; i++) {
#if defined(__NVPTX__)
        tap->y = (first + i) / w->taps_x;
        tap->x = first + i - tap->y * w->taps_x;
#else
        (void)first;
#endif
        const int32_t shift = tap->y * w->tap_y * w->in_x + tap->x * w->tap_x - args->shift_min;
        const uint32_t mark = 1u << tap->y | 0x10000u << tap->x;
        uint32_t places[CONV_PLACES];
        UNROLL for (uint32_t p = 0; p < CONV_PLACES; p++)
        {
            const uint32_t column = conv_first_column() + conv_place_column(p);
            places[p] = (marks[p] & mark) == mark ? column + (uint32_t)shift : (uint32_t)args->pixels;
        }
        conv_multiply(type, weights + i * TAP_WORDS, pixels, places, sums);
#if !defined(__NVPTX__)
        const bool row_ends = tap->x + 1 == w->taps_x;
        tap->x = row_ends ? 0 : tap->x + 1;
        tap->y += row_ends ? 1 : 0;
#endif
    }
}

/* Taps whose weights are in shared memory at a time, and outputs of a block. */
DEVICE int32_t conv_together(const conv_args *args)
{
#if defined(__NVPTX__)
    (void)args;
    return CONV_TAPS_SHARED;
#else
    return args->together;
#endif
}

DEVICE int32_t conv_columns(const conv_args *args)
{
#if defined(__NVPTX__)
    (void)args;
    return CONV_COLUMNS;
#else
    return args->columns;
#endif
}

/* Whether the wave has outputs. */
DEVICE bool conv_multiplies(const conv_args *args)
{
#if defined(__NVPTX__) || defined(__AMDGCN__)
    (void)args;
    return true;
#else
    return (int32_t)conv_first_column() < args->columns;
#endif
}

/* Loads the weights of `count` taps. */
DEVICE void bring_weights(const uint32_t *from, int32_t count, uint32_t *weights)
{
#if defined(__NVPTX__)
    for (int32_t i = 0; i < count; i++) {
        const int32_t at = i * TAP_WORDS + (int32_t)thread_index() * 4;
        copy_16(AT_RANGE(weights, at, 4), from + at);
    }
#else
    const int32_t all = count * TAP_WORDS, further = (int32_t)block_size() * 4;
    UNROLL_BY(1)
    for (int32_t at = (int32_t)thread_index() * 4; at < all; at += 2 * further) { /* two loads in flight at a time */
        const int32_t second = at + further < all ? at + further : at;
        const u32x4 one = load_u32x4(from + at), other = load_u32x4(from + second);
        *(u32x4 *)AT_RANGE(weights, at, 4) = one;
        *(u32x4 *)AT_RANGE(weights, second, 4) = other;
    }
#endif
    copies_commit();
}

/* Multiplies all slabs and taps of a tile. */
DEVICE void sum_tile(int32_t type, const conv_args *args, int32_t tile_down, int32_t first_column, uint32_t *pixels,
                     uint32_t *weights, const uint32_t *marks, float *sums)
{
    const int32_t looks = args->product.window.first_y * args->product.window.in_x + args->product.window.first_x;
    const uint32_t *from = args->weights + (int64_t)tile_down * args->slabs * args->taps * TAP_WORDS;
    UNROLL_BY(1)
    for (int32_t slab = 0; slab < args->slabs; slab++) {
        conv_tap next = {0, 0};
        UNROLL_BY(1)
        for (int32_t tap = 0; tap < args->taps; tap += conv_together(args)) {
            const int32_t left = args->taps - tap, count = left < conv_together(args) ? left : conv_together(args);
            barrier();
            bring_weights(from + (int64_t)(slab * args->taps + tap) * TAP_WORDS, count, weights);
            if (tap == 0)
                bring_pixels(type, (const conv_args *)arguments_again(args), first_column + looks + args->shift_min, slab,
                             pixels);
            copies_wait(0);
            barrier();
            if (conv_multiplies(args))
                multiply_taps(type, args, tap, count, &next, pixels, weights, marks, sums);
        }
    }
}

/* Computes a block's tile; `pixels` is the block's shared memory. */
DEVICE void conv_shared_tile(const int32_t type, const conv_args *args, uint32_t *pixels)
{
    uint32_t *weights = AT_RANGE(pixels, (args->pixels + 1) * FAST_WORDS, conv_together(args) * TAP_WORDS);
    const int32_t down = args->product.blocks_down, tile_down = (int32_t)block_index() % down;
    const int32_t first_column = (int32_t)block_index() / down * conv_columns(args);
    uint32_t marks[CONV_PLACES];
    float sums[CONV_SUMS];
    int64_t looks;
    UNROLL for (uint32_t p = 0; p < CONV_PLACES; p++) marks[p] =
        matmul_marks_of(&args->product, first_column + (int32_t)(conv_first_column() + conv_place_column(p)), &looks);
    UNROLL for (int32_t i = 0; i < CONV_SUMS; i++) sums[i] = 0.0f;
    sum_tile(type, args, tile_down, first_column, pixels, weights, marks, sums);
    const conv_args *again = (const conv_args *)arguments_again(args);
    if (conv_multiplies(again))
        conv_write(type, &again->product, again->pairs, tile_down * FAST_ROWS, first_column, sums);
}

#endif
