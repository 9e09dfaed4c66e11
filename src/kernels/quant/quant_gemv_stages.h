/* Moves the rows and columns of a gemv through shared memory, chunk by chunk, in a ring of stages. A chunk is some blocks of
 * each of 16 rows, and the activations for them; quant_gemv_layout.h says where they lie in a stage. Bytes are copied, no more,
 * so nothing in this file affects a result.
 *
 * The file has three forms of the same six functions, which quant_gemv.h calls in this order:
 *
 *   stages_begin()     by all threads: which rows, which part of them each thread fetches
 *   stages_rows()      starts to fill the first stages with rows; before earlier kernels have ended, as rows never change
 *   stages_columns()   the same with columns, after launches_wait()
 *   stages_take()      waits for the current chunk; returns its offset in shared memory
 *   stages_give()      is done with it; goes to the next chunk
 *   stages_know_width()  makes the width a constant for the compiler (third form)
 *
 *   1. sm_90 on: the copy engine. The first threads of each team fetch one row or section per stage by a bulk copy, and a
 *      barrier in memory (simt/ring.h) counts the bytes. No thread has loads in flight, so registers are free for products.
 *   2. other NVIDIA chips: all threads copy 16 bytes each in the background (cp.async). stages_take() has one barrier, and
 *      starts to refill the stage before.
 *   3. AMD chips and the emulator: threads load the next chunk into registers while they multiply the current one, and
 *      store it in stages_give(). So two stages suffice, or one with a second barrier.
 *
 * A row starts at any address: it is copied from its first byte rounded down to a multiple of 16, and stage_row() says where it
 * begins in a stage. Pieces past the end of a row or of a split are replaced or left out; what they leave is not multiplied.
 *
 * To change how many stages there are: gpu/quant/quant_plan.c (fit_gemv()). What a stage holds: quant_gemv_layout.h.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_STAGES_H
#define WW_KERNELS_QUANT_QUANT_GEMV_STAGES_H

#include "kernels/quant/quant_gemv_layout.h"
#include "kernels/simt/ring.h"

/* Threads per thread block. A kernel with more defines it before it includes this file. */
#if !defined(GEMV_THREADS)
#define GEMV_THREADS QUANT_THREADS
#endif

/* The thread's index below GEMV_THREADS. The emulator also runs this code for chips whose kernel has more threads: the extra
 * threads repeat the work of the others. */
#if defined(__AMDGCN__) || defined(__NVPTX__)
#define stage_thread() thread_index()
#else
#define stage_thread() (thread_index() % GEMV_THREADS)
#endif

/* Whether thread blocks can share rows: threads can skip the blocks of another split, the copy engine cannot. */
#if defined(__NVPTX__) && __CUDA_ARCH__ >= 900
enum { STAGES_CAN_SPLIT = 0 };
#else
enum { STAGES_CAN_SPLIT = 1 };
#endif

/* Which 16 rows this thread block works on, and which split of them. */
DEVICE uint32_t stage_tile(const quant_gemv_args *args)
{
    return STAGES_CAN_SPLIT ? block_index() / args->splits : block_index();
}

DEVICE uint32_t stage_split(const quant_gemv_args *args)
{
    return block_index() % args->splits;
}

DEVICE bool stage_has_class(const quant_gemv_args *args, uint32_t number)
{
    return number / (QUANT_CLASSES / args->splits) == stage_split(args);
}

DEVICE const uint8_t *stage_row_begin(const quant_gemv_args *args, uint32_t group, uint32_t row)
{
    const uint64_t wanted = (uint64_t)stage_tile(args) * STAGE_ROWS + row, at = wanted < args->rows ? wanted : args->rows - 1;
    return args->weights + ((args->first_rows ? args->first_rows[group] : 0) + at) * args->weights_stride;
}

/* Offset of a row in a stage, in bytes. */
DEVICE uint32_t stage_row(int32_t type, const quant_gemv_args *args, uint32_t group, uint32_t row)
{
    return row * stage_slot_bytes(type) + row / 8 * STAGE_MOVED + (uint32_t)((uintptr_t)stage_row_begin(args, group, row) & 15);
}

/* The columns of a group. */
typedef struct stage_columns {
    const uint32_t *codes, *sums;
    const float *factors;
} stage_columns;

DEVICE stage_columns stage_columns_of(int32_t type, const quant_gemv_args *args, uint32_t group)
{
    const uint32_t pieces = args->blocks_padded * (uint32_t)dot_pieces(type);
    stage_columns columns;
    columns.codes = args->codes + (uint64_t)group * pieces * args->width * 8;
    columns.sums = args->sums + (uint64_t)group * pieces * QUANT_GEMV_COLUMNS;
    columns.factors = args->factors + (uint64_t)group * args->blocks_padded * QUANT_GEMV_COLUMNS;
    return columns;
}

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 900

/* With the bulk copy engine, each of the first two or three threads of a team fetches one part of a stage: a row, or a section
 * of the columns. It tells the stage's barrier how many bytes to expect. */
typedef struct stage_source {
    const uint8_t *from;
    uint32_t left;      /* bytes from there on, a multiple of 16; 0: nothing to fetch */
    uint32_t further;   /* bytes from chunk to chunk */
    uint32_t max_bytes; /* of a chunk */
    uint32_t to;        /* in a stage, in words */
    ring arrivals;
} stage_source;

/* `to` is in words of a stage, `each` in bytes per block. */
DEVICE stage_source stage_source_of_columns(int32_t type, const quant_gemv_args *args, const void *from, uint32_t to,
                                            uint32_t each, uint64_t *arrivals)
{
    const stage_source source = {
        (const uint8_t *)from,         args->blocks_padded * each, stage_blocks(type) * each, stage_blocks(type) * each, to,
        {arrivals, NULL, args->stages}};
    return source;
}

DEVICE stage_source stage_source_of(int32_t type, const quant_gemv_args *args, uint32_t group, uint64_t *arrivals)
{
    const uint32_t team = thread_index() / QUANT_TEAM, role = thread_index() % QUANT_TEAM, pieces = (uint32_t)dot_pieces(type);
    const stage_columns columns = stage_columns_of(type, args, group);
    if (role < 2) {
        const uint32_t row = team * 2 + role;
        const uint8_t *begin = stage_row_begin(args, group, row);
        const uint32_t skew = (uint32_t)((uintptr_t)begin & 15), bytes = args->blocks * (uint32_t)block_bytes(type);
        const stage_source source = {begin - skew,
                                     (skew + bytes + 15) / 16 * 16,
                                     stage_chunk_bytes(type),
                                     stage_chunk_bytes(type) + (skew ? 16 : 0),
                                     row * stage_slot_bytes(type) / 4,
                                     {arrivals, NULL, args->stages}};
        return source;
    }
    if (role == 2 && team == 0)
        return stage_source_of_columns(type, args, columns.factors, stage_factors_at(type) / 4, QUANT_GEMV_COLUMNS * 4,
                                       arrivals);
    if (role == 2 && team == 1)
        return stage_source_of_columns(type, args, columns.codes, stage_codes_at(type) / 4, pieces * args->width * 32,
                                       arrivals);
    if (role == 2 && team == 2 && dot_has_min(type))
        return stage_source_of_columns(type, args, columns.sums, stage_sums_at(type) / 4, pieces * QUANT_GEMV_COLUMNS * 4,
                                       arrivals);
    return stage_source_of_columns(type, args, NULL, 0, 0, arrivals);
}

DEVICE void stage_fetch(const stage_source *from, uint32_t chunk, uint32_t number, uint32_t *stage)
{
    const uint32_t done = chunk * from->further;
    if (from->left == 0)
        return;
    const uint32_t bytes = from->left - done < from->max_bytes ? from->left - done : from->max_bytes;
    const ring_cursor at = {number, 0};
    ring_expect(&from->arrivals, at, bytes);
    ring_copy(&from->arrivals, at, stage + from->to, from->from + done, bytes);
}

#define stages_know_width(...)

typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    ring arrivals;
    uint32_t chunks, bytes; /* chunks per row, bytes per stage */
    uint32_t chunk;         /* the current chunk */
    ring_cursor now;        /* its stage */
} stage_ring;

/* All threads call it. Then stages_rows() and stages_columns() fill the first stages. stages_rows() may be called before
 * earlier kernels have ended, because rows do not change. */
DEVICE void stages_begin(int32_t type, const quant_gemv_args *args, uint32_t group, uint32_t chunks, uint32_t *shared,
                         uint64_t *arrivals, stage_ring *r)
{
    const ring all = {arrivals, arrivals + STAGES_MAX, args->stages};
    const ring_cursor first = {0, 0};
    ring_begin(&all, STAGE_ROWS + 2 + (dot_has_min(type) ? 1 : 0), QUANT_THREADS / QUANT_TEAM);
    r->from = stage_source_of(type, args, group, arrivals);
    r->shared = shared;
    r->arrivals = all;
    r->chunks = chunks;
    r->bytes = stage_bytes(type, args->width);
    r->chunk = 0;
    r->now = first;
}

/* Fetches this thread's part of the first stages. */
DEVICE void stages_fill(const stage_ring *r)
{
    const uint32_t stages = r->arrivals.stages, filled = r->chunks < stages ? r->chunks : stages;
    UNROLL_BY(1)
    for (uint32_t i = 0; i < filled; i++)
        stage_fetch(&r->from, i, i, r->shared + i * r->bytes / 4);
}

DEVICE void stages_rows(int32_t type, const stage_ring *r)
{
    (void)type;
    if (thread_index() % QUANT_TEAM < 2)
        stages_fill(r);
}

DEVICE void stages_columns(int32_t type, const stage_ring *r)
{
    (void)type;
    if (thread_index() % QUANT_TEAM == 2) {
        ring_sees_writes();
        stages_fill(r);
    }
}

/* Waits for the next chunk. Returns its offset in shared memory, in bytes. */
DEVICE uint32_t stages_take(int32_t type, const stage_ring *r)
{
    (void)type;
    ring_await(&r->arrivals, r->now);
    return r->now.stage * r->bytes;
}

/* Releases the current chunk for this wave, and refills the stage before it: all waves finish that one earlier, so waits are
 * short. */
DEVICE void stages_give(int32_t type, stage_ring *r)
{
    (void)type;
    ring_release(&r->arrivals, r->now);
    const uint32_t stages = r->arrivals.stages, lag = stages > 1 ? 1 : 0, next = r->chunk + stages - lag;
    if (thread_index() % QUANT_TEAM < 3 && r->chunk >= lag && next < r->chunks) {
        const bool around = r->now.stage < lag;
        const ring_cursor to = {around ? stages - 1 : r->now.stage - lag, around ? r->now.phase : r->now.phase + 1};
        ring_acquire(&r->arrivals, to);
        stage_fetch(&r->from, next, to.stage, r->shared + to.stage * r->bytes / 4);
    }
    r->chunk++;
    ring_next(&r->arrivals, &r->now);
}

#else

#if defined(__NVPTX__)
#define stages_know_width(...)
#endif

/* Threads that share a row. */
enum { STAGE_ABREAST = GEMV_THREADS / STAGE_ROWS };

/* What this thread fetches: every STAGE_ABREASTth piece of a row, starting with `piece`, and some of the columns. */
typedef struct stage_source {
    const uint8_t *row; /* its first byte, rounded down to a multiple of 16 */
    uint32_t left;      /* bytes from there on */
    uint32_t piece;
    uint32_t slot; /* offset in a stage, in words */
    stage_columns columns;
    uint32_t blocks; /* of a row */
    uint32_t width;
    uint32_t first_class, classes; /* of this split */
    uint32_t before;               /* offset of `row` in a round, in bytes */
} stage_source;

/* The row of a thread, and its first piece. With STAGE_MOVED, eight lanes that write row r are next to eight that write row
 * r + 8, which is in different banks. */
DEVICE uint32_t stage_own_row(void)
{
    return STAGE_MOVED ? stage_thread() / 16 % 8 + stage_thread() / 8 % 2 * 8 : stage_thread() / STAGE_ABREAST;
}

DEVICE uint32_t stage_own_piece(void)
{
    return STAGE_MOVED ? stage_thread() / 128 * 8 + stage_thread() % 8 : stage_thread() % STAGE_ABREAST;
}

DEVICE stage_source stage_source_of(int32_t type, const quant_gemv_args *args, uint32_t group)
{
    const uint32_t row = stage_own_row();
    const uint8_t *begin = stage_row_begin(args, group, row);
    const uint32_t skew = (uint32_t)((uintptr_t)begin & 15);
    stage_source from;
    from.row = begin - skew;
    from.left = skew + args->blocks * (uint32_t)block_bytes(type);
    from.piece = stage_own_piece();
    from.slot = (row * stage_slot_bytes(type) + row / 8 * STAGE_MOVED) / 4;
    from.columns = stage_columns_of(type, args, group);
    from.blocks = args->blocks_padded;
    from.width = args->width;
    from.classes = QUANT_CLASSES / args->splits;
    from.first_class = stage_split(args) * from.classes;
    from.before = QUANT_CLASSES * (uint32_t)block_bytes(type) - skew;
    return from;
}

/* Whether any of the 16 bytes from offset `at` on, counted in rounds, belongs to a block of this split. */
DEVICE bool stage_wants_bytes(int32_t type, const stage_source *from, uint32_t at)
{
    const uint32_t round = QUANT_CLASSES * (uint32_t)block_bytes(type), begin = at % round, end = begin + 16;
    const uint32_t first = from->first_class * (uint32_t)block_bytes(type),
                   last = first + from->classes * (uint32_t)block_bytes(type);
    return (begin < last && end > first) || end > round + first;
}

DEVICE bool stage_wants_block(const stage_source *from, uint32_t block)
{
    return block % QUANT_CLASSES - from->first_class < from->classes;
}

/* Copies chunk `chunk` of a section with `words` words per block, a multiple of four. */
DEVICE void stage_fetch_words(int32_t type, const stage_source *source, uint32_t *to, const uint32_t *from, uint32_t chunk,
                              uint32_t words)
{
    const uint32_t chunk_words = stage_blocks(type) * words, done = chunk * chunk_words, all = source->blocks * words;
    const uint32_t left = all - done < chunk_words ? all - done : chunk_words;
    for (uint32_t i = thread_index() * 4; i < left; i += QUANT_THREADS * 4) {
        if (!stage_wants_block(source, i / words))
            continue;
        copy_16(AT_RANGE(to, i, 4), from + done + i);
    }
}

/* Starts to copy the rows of chunk `chunk` into a stage. The last 16 bytes may reach into the next row, or into the padding
 * after the last row. */
DEVICE void stage_fetch_rows(int32_t type, const stage_source *from, uint32_t chunk, uint32_t *stage)
{
    const uint32_t pieces = stage_chunk_bytes(type) / 16 + 1, done = chunk * stage_chunk_bytes(type);
    const uint8_t *row = from->row + done;
    const uint32_t left = from->left - done;
    UNROLL
    for (uint32_t m = 0; m < (pieces + 15) / 16; m++) {
        const uint32_t piece = from->piece + 16 * m;
        if (piece < pieces && done < from->left && piece * 16 < left &&
            stage_wants_bytes(type, from, piece * 16 + from->before))
            copy_16(AT_RANGE(stage, from->slot + piece * 4, 4), (const uint32_t *)(row + piece * 16));
    }
}

DEVICE void stage_fetch_columns(int32_t type, const stage_source *from, uint32_t chunk, uint32_t *stage)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type);
    stage_fetch_words(type, from, stage + stage_factors_at(type) / 4, (const uint32_t *)from->columns.factors, chunk,
                      QUANT_GEMV_COLUMNS);
    if (dot_has_min(type))
        stage_fetch_words(type, from, stage + stage_sums_at(type) / 4, from->columns.sums, chunk, pieces * QUANT_GEMV_COLUMNS);
    stage_fetch_words(type, from, stage + stage_codes_at(type) / 4, from->columns.codes, chunk, pieces * from->width * 8);
}

#if defined(__NVPTX__)

typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    uint32_t stages, chunks, bytes; /* chunks per row, bytes per stage */
    uint32_t chunk, now;            /* the current chunk, and its stage */
} stage_ring;

/* All threads call it. It also starts to copy the rows of the first stages. */
DEVICE void stages_begin(int32_t type, const quant_gemv_args *args, uint32_t group, uint32_t chunks, uint32_t *shared,
                         const uint64_t *arrivals, stage_ring *r)
{
    (void)arrivals;
    r->from = stage_source_of(type, args, group);
    r->shared = shared;
    r->stages = args->stages;
    r->chunks = chunks;
    r->bytes = stage_bytes(type, args->width);
    r->chunk = 0;
    r->now = 0;
    UNROLL_BY(1)
    for (uint32_t i = 0; i + 1 < r->stages && i < chunks; i++)
        stage_fetch_rows(type, &r->from, i, AT_RANGE(shared, i * r->bytes / 4, r->bytes / 4));
}

DEVICE void stages_rows(int32_t type, const stage_ring *r)
{
    (void)type;
    (void)r;
}

DEVICE void stages_columns(int32_t type, const stage_ring *r)
{
    UNROLL_BY(1)
    for (uint32_t i = 0; i + 1 < r->stages; i++) {
        if (i < r->chunks)
            stage_fetch_columns(type, &r->from, i, AT_RANGE(r->shared, i * r->bytes / 4, r->bytes / 4));
        copies_commit();
    }
}

/* Waits for the next chunk and returns its offset in shared memory, in bytes. Then starts to refill the stage before it, which
 * no thread reads any more after the barrier. */
DEVICE uint32_t stages_take(int32_t type, const stage_ring *r)
{
    const uint32_t next = r->chunk + r->stages - 1, to = (r->now == 0 ? r->stages : r->now) - 1;
    if (r->stages > 1)
        copies_wait((int32_t)r->stages - 2);
    barrier();
    if (next < r->chunks) {
        uint32_t *stage = AT_RANGE(r->shared, to * r->bytes / 4, r->bytes / 4);
        stage_fetch_rows(type, &r->from, next, stage);
        stage_fetch_columns(type, &r->from, next, stage);
    }
    copies_commit();
    if (r->stages == 1)
        copies_wait(0), barrier();
    return r->now * r->bytes;
}

DEVICE void stages_give(int32_t type, stage_ring *r)
{
    (void)type;
    r->chunk++;
    r->now = r->now + 1 == r->stages ? 0 : r->now + 1;
}

#else

/* Without asynchronous copies, threads load the next chunk into registers while they work on the current one, so all of its
 * loads are in flight together. Two stages are enough. */
enum {
    STAGE_HELD_ROWS = 10,                    /* max pieces of 16 bytes that a thread holds of rows, for q8_k */
    STAGE_HELD_COLUMNS = GEMV_THREADS / 128, /* columns whose codes, 512 words each, fit in one piece per thread */
    STAGE_HELD_CODES = QUANT_GEMV_COLUMNS / STAGE_HELD_COLUMNS /* pieces per thread for eight columns */
};

typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    uint32_t stages, chunks, bytes; /* chunks per row, bytes per stage */
    uint32_t chunk, now;            /* the current chunk, and its stage */
    uint32_t wanted;                /* stage_wanted() */
    uint32_t whole;                 /* address bits to clear, so that lanes read whole cache lines */
    uint32_t before;                /* pieces read before the chunk's first one because of that */
    uint32_t inside;                /* number of chunks, from the second on, whose pieces all lie inside the row */
    u32x4 rows[STAGE_HELD_ROWS], codes[STAGE_HELD_CODES], sums, factors;
} stage_ring;

enum { STAGE_LINE = 128 };

/* Pieces of a row that are read for a chunk, in whole cache lines, including those before its first piece. */
DEVICE uint32_t stage_row_pieces(int32_t type)
{
    enum { LINE = STAGE_LINE / 16 };
    return (stage_chunk_bytes(type) / 16 + 1 + LINE - 1 + LINE - 1) / LINE * LINE;
}

/* Max pieces per thread; stage_has_piece() says whether a thread has the last. */
DEVICE uint32_t stage_pieces(int32_t type)
{
    return (stage_row_pieces(type) + STAGE_ABREAST - 1) / STAGE_ABREAST;
}

DEVICE bool stage_has_piece(int32_t type, const stage_source *from, uint32_t m)
{
    return STAGE_ABREAST * (m + 1) <= stage_row_pieces(type) || from->piece + STAGE_ABREAST * m < stage_row_pieces(type);
}

/* Bit m is set if this split needs piece m of this thread. One mask, because a condition per piece would take two scalar
 * registers each. */
DEVICE uint32_t stage_wanted(int32_t type, const stage_source *from)
{
    uint32_t wanted = 0;
    UNROLL_BY(1)
    for (uint32_t m = 0; m < stage_pieces(type); m++)
        wanted |= (uint32_t)stage_wants_bytes(type, from, (from->piece + STAGE_ABREAST * m) * 16 + from->before) << m;
    return wanted;
}

/* Loads this thread's pieces. A piece that is not wanted or lies outside the row is replaced by the row's first or last piece:
 * a redundant load costs less than a branch. `inside`, a constant: all pieces are wanted and lie inside the row. */
DEVICE void stage_hold_pieces(int32_t type, stage_ring *r, uint32_t begin, bool inside)
{
    const uint32_t last = (r->from.left - 1) / 16 * 16;
    const int32_t done = (int32_t)(begin + r->from.piece * 16 - r->before * 16);
    const uint8_t *from = r->from.row + done;
    UNROLL
    for (uint32_t m = 0; m < stage_pieces(type); m++) {
        const int32_t at = done + (int32_t)(16 * STAGE_ABREAST * m), there = m > 0 || at > 0 ? at : 0;
        const uint32_t mask = (uint32_t)((int32_t)(r->wanted << (31 - m)) >> 31);
        const uint8_t *one = r->from.row + (((uint32_t)there < last ? (uint32_t)there : last) & mask);
        if (stage_has_piece(type, &r->from, m))
            r->rows[m] = load_u32x4((const uint32_t *)(inside ? from + 16 * STAGE_ABREAST * m : one));
    }
}

DEVICE void stage_hold_rows(int32_t type, stage_ring *r, uint32_t chunk)
{
    const uint32_t begin = chunk * stage_chunk_bytes(type);
    r->before = (((uint32_t)(uintptr_t)r->from.row + begin) & r->whole) / 16;
    if (chunk - 1 < r->inside)
        stage_hold_pieces(type, r, begin, true);
    else
        stage_hold_pieces(type, r, begin, false);
}

/* Loads words i to i + 3 of a section of the columns with `words` words per block. Past the end of the columns it loads their
 * last four words; past the end of a stage it loads nothing. `whole`, a constant: the chunk fills its stage. */
DEVICE void stage_hold(const stage_ring *r, int32_t type, const uint32_t *from, uint32_t chunk, uint32_t words, uint32_t i,
                       bool whole, u32x4 *held)
{
    const uint32_t chunk_words = stage_blocks(type) * words, at = chunk * chunk_words + i, last = r->from.blocks * words - 4;
    if (i >= chunk_words)
        return;
    if (whole)
        *held = load_u32x4(from + (uint64_t)chunk * chunk_words + i);
    else
        *held = load_u32x4(from + (at < last ? at : last));
}

DEVICE void stage_hold_sections(int32_t type, stage_ring *r, uint32_t chunk, bool whole)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type), words = pieces * r->from.width * 8, first = stage_thread() * 4;
    stage_hold(r, type, (const uint32_t *)r->from.columns.factors, chunk, QUANT_GEMV_COLUMNS, first, whole, &r->factors);
    if (dot_has_min(type))
        stage_hold(r, type, r->from.columns.sums, chunk, pieces * QUANT_GEMV_COLUMNS, first, whole, &r->sums);
    stage_hold(r, type, r->from.columns.codes, chunk, words, first, whole, &r->codes[0]);
    if (r->from.width > STAGE_HELD_COLUMNS) {
        UNROLL
        for (uint32_t m = 1; m < STAGE_HELD_CODES; m++)
            stage_hold(r, type, r->from.columns.codes, chunk, words, first + m * GEMV_THREADS * 4, whole, &r->codes[m]);
    }
}

DEVICE void stage_hold_columns(int32_t type, stage_ring *r, uint32_t chunk)
{
    if ((chunk + 1) * stage_blocks(type) <= r->from.blocks)
        stage_hold_sections(type, r, chunk, true);
    else
        stage_hold_sections(type, r, chunk, false);
}

/* Stores words i to i + 3 if they are inside the stage. */
DEVICE void stage_put(int32_t type, uint32_t *to, uint32_t words, uint32_t i, u32x4 held)
{
    if (i < stage_blocks(type) * words)
        *(u32x4 *)AT_RANGE(to, i, 4) = held;
}

DEVICE void stage_put_rows(int32_t type, const stage_ring *r, uint32_t *stage)
{
    UNROLL
    for (uint32_t m = 0; m < stage_pieces(type); m++) {
        const uint32_t piece = r->from.piece + STAGE_ABREAST * m - r->before; /* wraps to a large number before the first */
        const bool inside = m > 0 && STAGE_ABREAST * m + STAGE_ABREAST - 1 <= stage_chunk_bytes(type) / 16;
        if (inside || piece < stage_chunk_bytes(type) / 16 + 1) {
            const u32x2 low = {r->rows[m].x, r->rows[m].y}, high = {r->rows[m].z, r->rows[m].w};
            *(u32x2 *)AT_RANGE(stage, r->from.slot + piece * 4, 2) = low;
            *(u32x2 *)AT_RANGE(stage, r->from.slot + piece * 4 + 2, 2) = high;
        }
    }
}

DEVICE void stage_put_held(int32_t type, const stage_ring *r, uint32_t number)
{
    uint32_t *stage = AT_RANGE(r->shared, number * r->bytes / 4, r->bytes / 4);
    const uint32_t pieces = (uint32_t)dot_pieces(type), words = pieces * r->from.width * 8, first = stage_thread() * 4;
    stage_put_rows(type, r, stage);
    stage_put(type, stage + stage_factors_at(type) / 4, QUANT_GEMV_COLUMNS, first, r->factors);
    if (dot_has_min(type))
        stage_put(type, stage + stage_sums_at(type) / 4, pieces * QUANT_GEMV_COLUMNS, first, r->sums);
    stage_put(type, stage + stage_codes_at(type) / 4, words, first, r->codes[0]);
    if (r->from.width > STAGE_HELD_COLUMNS) {
        UNROLL
        for (uint32_t m = 1; m < STAGE_HELD_CODES; m++)
            stage_put(type, stage + stage_codes_at(type) / 4, words, first + m * GEMV_THREADS * 4, r->codes[m]);
    }
}

DEVICE void stages_begin(int32_t type, const quant_gemv_args *args, uint32_t group, uint32_t chunks, uint32_t *shared,
                         const uint64_t *arrivals, stage_ring *r)
{
    (void)arrivals;
    r->from = stage_source_of(type, args, group);
    r->shared = shared;
    r->stages = args->stages < 2 ? args->stages : 2;
    r->chunks = chunks;
    r->bytes = stage_bytes(type, args->width);
    r->chunk = 0;
    r->now = 0;
    r->wanted = stage_wanted(type, &r->from);
    r->whole = args->splits > 1 ? 0 : STAGE_LINE - 1; /* a split skips pieces by their index from the chunk's first */
    r->before = 0;
    const uint32_t bytes = args->blocks * (uint32_t)block_bytes(type), reach = stage_pieces(type) * STAGE_ABREAST * 16 + 16;
    r->inside = args->splits > 1 || bytes < reach ? 0 : (bytes - reach) / stage_chunk_bytes(type);
}

DEVICE void stages_rows(int32_t type, stage_ring *r)
{
    stage_hold_rows(type, r, 0);
}

/* Makes the width a constant for the compiler. */
DEVICE void stages_know_width(stage_ring *r, uint32_t width)
{
    r->from.width = width;
}

DEVICE void stages_columns(int32_t type, stage_ring *r)
{
    stage_hold_columns(type, r, 0);
    stage_put_held(type, r, 0);
}

/* Waits for the next chunk, starts to load the one after it, and returns the next chunk's offset in shared memory, in bytes. */
DEVICE uint32_t stages_take(int32_t type, stage_ring *r)
{
    barrier();
    const uint32_t next = r->chunk + 1 < r->chunks ? r->chunk + 1 : r->chunk;
    stage_hold_columns(type, r, next);
    stage_hold_rows(type, r, next);
    return r->now * r->bytes & ~15u; /* tells the compiler that it is a multiple of 16 */
}

/* Stores the loaded chunk. With two stages, all threads were done with its stage at the last barrier; a single stage needs
 * another barrier. */
DEVICE void stages_give(int32_t type, stage_ring *r)
{
    const uint32_t to = r->stages == 1 ? 0 : 1 - r->now;
    if (r->stages == 1)
        barrier();
    if (r->chunk + 1 < r->chunks)
        stage_put_held(type, r, to);
    r->chunk++;
    r->now = to;
}

#endif

#endif

#endif
