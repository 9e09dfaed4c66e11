/* Convolutions in fast mode whose outputs are as many as their inputs, at steps of one: the image is kept in shared memory.
 *
 * A block makes 64 channels of 256 outputs side by side. All that their taps see lies side by side, too: tap t of output j
 * looks at pixel j + shift(t), images following each other, or at nothing, which its marks say. So a slab of channels of those
 * pixels, some more than 256, is brought once, with the channels of a pixel together (matrix_f16.h: 64 bytes of k), and every
 * tap is a product of its weights with the same slab, moved. Weights come in the order and the places of shared memory:
 * conv_arrange_* makes that of them before, and `together` taps of them are there at a time. Two blocks share a multiprocessor,
 * so that one multiplies while the other brings; on AMD's chips, if there is room for both.
 */
#ifndef WW_KERNELS_MATMUL_CONV_SHARED_H
#define WW_KERNELS_MATMUL_CONV_SHARED_H

#include "kernels/matmul/conv_tiles.h"

enum {
    TAP_WORDS = FAST_ROWS * FAST_WORDS,
    PIECES = 4, /* of 16 bytes in a slab */
};

DEVICE int32_t slab_channels(int32_t type)
{
    return type == TYPE_F32 ? CONV_SLAB_BYTES / 4 : CONV_SLAB_BYTES / 2;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

/* A thread makes a piece: of tile, slab, tap, row, in this order. */
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

/* The first `channels` of a slab's of pixel `i`, which begins at `begin`; +0 for the others. */
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

#else

/* Bit masks in registers of the lane's own, and an address that goes on: a condition and a distance for each element would want
 * registers that all lanes share, and AMD's chips have a hundred of them. */
DEVICE void bring_pixel(int32_t type, const conv_args *args, int64_t begin, int32_t channels, int32_t i, uint32_t *pixels)
{
    const int32_t each = slab_channels(type) / PIECES;
    const uint64_t further = (uint64_t)(args->product.window.channel_stride * element_bytes(type));
    uint64_t from = (uint64_t)(uintptr_t)args->product.b + (uint64_t)(begin * element_bytes(type));
    SETTLE(channels);
    UNROLL for (int32_t two = 0; two < PIECES; two += 2)
    {
        uint32_t elements[16];
        UNROLL for (int32_t e = 0; e < 2 * each; e++)
        {
            const int32_t channel = two * each + e;
            const void *at = IN_GLOBAL(const char, (const char *)(uintptr_t)from);
            elements[e] = conv_word(type, at, 0) & (uint32_t)((channel - channels) >> 31);
            from += further & (uint64_t)(int64_t)((channel + 1 - channels) >> 31); /* not beyond the last channel */
            SETTLE(from);
        }
        UNROLL for (int32_t piece = 0; piece < 2; piece++) *
            (u32x4 *)AT_RANGE(pixels, fast_piece((uint32_t)i, (uint32_t)(two + piece)), 4) =
            conv_piece(type, elements + piece * each);
    }
}

#endif

/* Brings the slab's channels of all pixels: a thread a pixel at a time. Behind the last pixel there is one that is zero. */
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

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* The products of some taps from `first` on with the slab. `marks` are those of the lane's places. */
DEVICE void multiply_taps(int32_t type, const conv_args *args, int32_t first, int32_t count, const uint32_t *pixels,
                          const uint32_t *weights, const uint32_t *marks, float *sums)
{
    const matmul_window_32 *w = &args->product.window;
    UNROLL_BY(1)
    for (int32_t i = 0; i < count; i++) {
        const int32_t y = (first + i) / w->taps_x, x = first + i - y * w->taps_x;
        const int32_t shift = y * w->tap_y * w->in_x + x * w->tap_x - args->least_shift;
        const uint32_t mark = 1u << y | 0x10000u << x;
        uint32_t places[FAST_PLACES];
        UNROLL for (uint32_t p = 0; p < FAST_PLACES; p++)
        {
            const uint32_t column = wave_index() * wave_size() + fast_place_column(p);
            places[p] = (marks[p] & mark) == mark ? column + (uint32_t)shift : (uint32_t)args->pixels;
        }
        UNROLL for (uint32_t part = 0; part < FAST_PARTS; part++)
            fast_multiply(type, weights + i * TAP_WORDS, pixels, places, part, sums);
    }
}

/* Taps whose weights are in shared memory at a time. */
DEVICE int32_t conv_together(const conv_args *args)
{
#if defined(__NVPTX__)
    (void)args;
    return CONV_TAPS_SHARED;
#else
    return args->together;
#endif
}

/* All slabs and taps of a tile. */
DEVICE void sum_tile(int32_t type, const conv_args *args, int32_t tile_down, int32_t first_column, uint32_t *pixels,
                     uint32_t *weights, const uint32_t *marks, float *sums)
{
    const int32_t looks = args->product.window.first_y * args->product.window.in_x + args->product.window.first_x;
    const uint32_t *from = args->weights + (int64_t)tile_down * args->slabs * args->taps * TAP_WORDS;
    UNROLL_BY(1)
    for (int32_t slab = 0; slab < args->slabs; slab++) {
        UNROLL_BY(1)
        for (int32_t tap = 0; tap < args->taps; tap += conv_together(args)) {
            const int32_t left = args->taps - tap, count = left < conv_together(args) ? left : conv_together(args);
            barrier();
            for (int32_t i = 0; i < count; i++) {
                const int32_t at = i * TAP_WORDS + (int32_t)thread_index() * 4;
                copy_16(AT_RANGE(weights, at, 4), from + (int64_t)(slab * args->taps + tap) * TAP_WORDS + at);
            }
            copies_commit();
            if (tap == 0)
                bring_pixels(type, args, first_column + looks + args->least_shift, slab, pixels);
            copies_wait(0);
            barrier();
            multiply_taps(type, args, tap, count, pixels, weights, marks, sums);
        }
    }
}

#define CONV_SHARED(suffix, type)                                                                                              \
    KERNEL(conv_arrange_##suffix, conv_args, MATMUL_THREADS)                                                                   \
    {                                                                                                                          \
        arrange(type, &args);                                                                                                  \
    }                                                                                                                          \
    KERNEL_RESIDENT(conv_shared_##suffix, conv_args, MATMUL_THREADS, 2)                                                        \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, pixels);                                                                                      \
        uint32_t *weights = AT_RANGE(pixels, (args.pixels + 1) * FAST_WORDS, conv_together(&args) * TAP_WORDS);                \
        const int32_t down = args.product.blocks_down, tile_down = (int32_t)block_index() % down;                              \
        const int32_t first_column = (int32_t)block_index() / down * CONV_COLUMNS;                                             \
        uint32_t marks[FAST_PLACES];                                                                                           \
        float sums[FAST_SUMS];                                                                                                 \
        int64_t looks;                                                                                                         \
        UNROLL for (uint32_t p = 0; p < FAST_PLACES; p++) marks[p] = matmul_marks_of(                                          \
            &args.product, first_column + (int32_t)(wave_index() * wave_size() + fast_place_column(p)), &looks);               \
        UNROLL for (int32_t i = 0; i < FAST_SUMS; i++) sums[i] = 0.0f;                                                         \
        sum_tile(type, &args, tile_down, first_column, pixels, weights, marks, sums);                                          \
        const conv_args *again = (const conv_args *)arguments_again(&args);                                                    \
        conv_put(type, &again->product, 0, again->pairs, tile_down *FAST_ROWS, first_column, sums);                            \
    }

#endif
