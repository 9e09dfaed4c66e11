/* The part of matrix_f16.h for AMD chips with matrix units. Only that file includes it.
 *
 * Both families give 16 lanes the 16 columns of a tile of 16 x 16 sums. They differ in which rows and which k a lane has. The
 * order of k does not matter, as long as it is the same for rows and columns. So every lane reads whole pieces of 16 bytes
 * (ds_read_b128), and eight lanes that are served together use all 32 banks.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_F16_AMD_H
#define WW_KERNELS_SIMT_MATRIX_F16_AMD_H

#define FAST_OWN_ORDER

enum { FAST_TILE = 16 };

typedef float fast_four __attribute__((ext_vector_type(4)));
typedef float fast_eight __attribute__((ext_vector_type(8)));
typedef uint32_t fast_words __attribute__((ext_vector_type(4)));

/* The same in an array of floats, which aligns them to four bytes. */
typedef fast_four fast_four_sums __attribute__((aligned(4)));
typedef fast_eight fast_eight_sums __attribute__((aligned(4)));

DEVICE uint32_t fast_column(uint32_t c)
{
    return c * FAST_TILE + lane() % FAST_TILE;
}

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return fast_column(i);
}

DEVICE fast_words fast_load(const uint32_t *from)
{
    return *(const fast_words *)from;
}

#if defined(SIMT_MFMA)
/* ---- MFMA: each 16 lanes of a wave have four rows of a tile, and one piece of every slab --------------------------------- */

enum { FAST_PLACES = 4, FAST_PARTS = 1, FAST_LANE_COLUMNS = 4, FAST_ADJACENT = 4 };

DEVICE uint32_t fast_row(uint32_t r)
{
    return r / 4 * FAST_TILE + lane() / FAST_TILE * 4 + r % 4;
}

DEVICE uint32_t fast_sum(uint32_t r, uint32_t c)
{
    return r / 4 * 16 + c * 4 + r % 4;
}

DEVICE uint32_t fast_line(uint32_t place)
{
    return place / 64 * 64 + place % 16 * 4 + place / 16 % 4;
}

DEVICE uint32_t fast_place(uint32_t line)
{
    return line / 64 * 64 + line % 64 / 4 + line % 4 * 16;
}

/* gfx942 has f32 instructions that use 10 bits of the fraction and are four times as fast as those that use all. Values are
 * rounded to 10 bits first. */
DEVICE uint32_t fast_round(uint32_t bits)
{
#if defined(__gfx942__)
    const float x = canon_bits_float(bits);
    return x == x ? (bits + 0x1000u) & 0xffffe000u : 0x7fc00000u;
#else
    return bits;
#endif
}

typedef _Float16 fast_f16_4 __attribute__((ext_vector_type(4)));
typedef short fast_bf16_4 __attribute__((ext_vector_type(4)));
typedef short fast_bf16_2 __attribute__((ext_vector_type(2)));
typedef uint32_t fast_two __attribute__((ext_vector_type(2)));
typedef float fast_f32_2 __attribute__((ext_vector_type(2)));
#if defined(__gfx950__)
typedef _Float16 fast_f16_8 __attribute__((ext_vector_type(8)));
typedef __bf16 fast_bf16_8 __attribute__((ext_vector_type(8)));
#endif

/* Instructions per piece. */
DEVICE uint32_t fast_steps(int32_t type)
{
#if defined(__gfx942__)
    (void)type;
    return 2;
#elif defined(__gfx950__)
    return type == TYPE_F32 ? 4 : 1;
#elif defined(__gfx908__)
    return type == TYPE_F16 ? 2 : 4;
#else
    return type == TYPE_F32 ? 4 : 2;
#endif
}

DEVICE fast_four fast_mfma(int32_t type, fast_words x, fast_words q, uint32_t step, fast_four sum)
{
#if defined(__gfx950__)
    if (type == TYPE_F16)
        return __builtin_amdgcn_mfma_f32_16x16x32_f16(__builtin_bit_cast(fast_f16_8, x), __builtin_bit_cast(fast_f16_8, q), sum,
                                                      0, 0, 0);
    if (type == TYPE_BF16)
        return __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(fast_bf16_8, x), __builtin_bit_cast(fast_bf16_8, q),
                                                       sum, 0, 0, 0);
#endif
    const fast_two a = step % 2 == 0 ? x.xy : x.zw, b = step % 2 == 0 ? q.xy : q.zw;
    if (type == TYPE_F16)
        return __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(fast_f16_4, a), __builtin_bit_cast(fast_f16_4, b), sum,
                                                     0, 0, 0);
#if defined(__gfx908__)
    if (type == TYPE_BF16)
        return __builtin_amdgcn_mfma_f32_16x16x8bf16(__builtin_bit_cast(fast_bf16_2, x[step]),
                                                     __builtin_bit_cast(fast_bf16_2, q[step]), sum, 0, 0, 0);
#else
    if (type == TYPE_BF16)
        return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(fast_bf16_4, a), __builtin_bit_cast(fast_bf16_4, b),
                                                         sum, 0, 0, 0);
#endif
#if defined(__gfx942__)
    return __builtin_amdgcn_mfma_f32_16x16x8_xf32(__builtin_bit_cast(fast_f32_2, a), __builtin_bit_cast(fast_f32_2, b), sum, 0,
                                                  0, 0);
#else
    return __builtin_amdgcn_mfma_f32_16x16x4f32(canon_bits_float(x[step]), canon_bits_float(q[step]), sum, 0, 0, 0);
#endif
}

DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t part,
                          float *sums)
{
    const uint32_t *from = rows + fast_piece(lane() % FAST_TILE, lane() / FAST_TILE);
    fast_words x[4], q[4];
    (void)part;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        x[i] = fast_load(from + i * FAST_TILE * FAST_WORDS);
        q[i] = fast_load(columns + fast_piece(places[i], lane() / FAST_TILE));
    }
    UNROLL
    for (uint32_t step = 0; step < fast_steps(type); step++) {
        UNROLL
        for (uint32_t tile = 0; tile < 16; tile++) {
            fast_four_sums *sum = (fast_four_sums *)(sums + tile * 4);
            *sum = fast_mfma(type, x[tile / 4], q[tile % 4], step, *sum);
        }
    }
}

#else
/* ---- WMMA: each 16 lanes of a wave have eight rows of a tile; 32 bytes of a slab at a time ------------------------------- */

enum { FAST_PLACES = 2, FAST_PARTS = 2, FAST_LANE_COLUMNS = 2, FAST_ADJACENT = 2 };

DEVICE uint32_t fast_row(uint32_t r)
{
#if defined(__GFX11__)
    return r / 8 * FAST_TILE + r % 8 * 2 + lane() / FAST_TILE;
#else
    return r / 8 * FAST_TILE + lane() / FAST_TILE * 8 + r % 8;
#endif
}

DEVICE uint32_t fast_sum(uint32_t r, uint32_t c)
{
    return (r / 8 * 2 + c) * 8 + r % 8;
}

DEVICE uint32_t fast_line(uint32_t place)
{
    return place / 32 * 32 + place % 8 * 4 + place / 8 % 2 * 2 + place / 16 % 2;
}

DEVICE uint32_t fast_place(uint32_t line)
{
    return line / 32 * 32 + line % 32 / 4 + line / 2 % 2 * 8 + line % 2 * 16;
}

DEVICE uint32_t fast_round(uint32_t bits)
{
    return bits;
}

/* gfx11 needs the same 32 bytes in both halves of a wave, gfx12 one half of them in each. */
#if defined(__GFX11__)
typedef uint32_t fast_operand __attribute__((ext_vector_type(8)));
typedef _Float16 fast_f16 __attribute__((ext_vector_type(16)));
typedef short fast_bf16 __attribute__((ext_vector_type(16)));
#define FAST_WMMA_F16  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#define FAST_WMMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32
#else
typedef fast_words fast_operand;
typedef _Float16 fast_f16 __attribute__((ext_vector_type(8)));
typedef short fast_bf16 __attribute__((ext_vector_type(8)));
#define FAST_WMMA_F16  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12
#define FAST_WMMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12
#endif

DEVICE fast_operand fast_take(const uint32_t *lines, uint32_t line, uint32_t part)
{
#if defined(__GFX11__)
    const fast_words low = fast_load(lines + fast_piece(line, part * 2)),
                     high = fast_load(lines + fast_piece(line, part * 2 + 1));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return fast_load(lines + fast_piece(line, part * 2 + lane() / FAST_TILE));
#endif
}

/* f16 and bf16 only: these chips have no f32 matrix instruction. */
DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t part,
                          float *sums)
{
    fast_operand x[4], q[2];
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        x[i] = fast_take(rows + i * FAST_TILE * FAST_WORDS, lane() % FAST_TILE, part);
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        q[i] = fast_take(columns, places[i], part);
    UNROLL
    for (uint32_t tile = 0; tile < 8; tile++) {
        fast_eight_sums *sum = (fast_eight_sums *)(sums + tile * 8);
        if (type == TYPE_F16)
            *sum = FAST_WMMA_F16(__builtin_bit_cast(fast_f16, x[tile / 2]), __builtin_bit_cast(fast_f16, q[tile % 2]), *sum);
        else
            *sum = FAST_WMMA_BF16(__builtin_bit_cast(fast_bf16, x[tile / 2]), __builtin_bit_cast(fast_bf16, q[tile % 2]), *sum);
    }
}

#endif

DEVICE uint32_t fast_pair(uint32_t low, uint32_t high, uint32_t element)
{
    return __builtin_amdgcn_perm(high, low, element == 0 ? 0x05040100u : 0x07060302u);
}

/* The tile of a block, of `count` tiles. CDNA 3 and 4 distribute blocks round-robin over eight dies, each with its own cache.
 * So every eighth block, which is on the same die, gets the next tile of a contiguous range. */
DEVICE uint32_t fast_tile(uint32_t block, uint32_t count)
{
#if defined(SIMT_CDNA3)
    const uint32_t share = count / 8;
    return block < share * 8 ? block % 8 * share + block / 8 : block;
#else
    (void)count;
    return block;
#endif
}

#endif
