/* How stages of a gemv (quant_gemv_layout.h) are brought to shared memory and taken from there: by the copy engine from sm_90
 * on, otherwise by all threads, 16 bytes each at a time.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_STAGES_H
#define WW_KERNELS_QUANT_QUANT_GEMV_STAGES_H

#include "kernels/quant/quant_gemv_layout.h"
#include "kernels/simt/ring.h"

/* Threads of a thread block; a kernel that may have more says so before it includes this. */
#if !defined(GEMV_THREADS)
#define GEMV_THREADS QUANT_THREADS
#endif

/* The number of a thread among those. The emulator runs this code for chips whose kernel has more threads, too: they do what
 * the others do once more. */
#if defined(__AMDGCN__) || defined(__NVPTX__)
#define stage_thread() thread_index()
#else
#define stage_thread() (thread_index() % GEMV_THREADS)
#endif

/* Whether thread blocks can share rows: threads can leave out what another split works on, the copy engine cannot. */
#if defined(__NVPTX__) && __CUDA_ARCH__ >= 900
enum { STAGES_CAN_SPLIT = 0 };
#else
enum { STAGES_CAN_SPLIT = 1 };
#endif

/* The 16 rows of this thread block, and which of their splits it is. */
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

/* Where in a stage a row begins, in bytes. */
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

/* By the bulk copy engine: the first two or three threads of each team have something to fetch for a stage, a row or what
 * columns have, and tell the stage's barrier how much comes. */
typedef struct stage_source {
    const uint8_t *from;
    uint32_t left;    /* bytes of it, a multiple of 16; 0: nothing */
    uint32_t further; /* bytes from chunk to chunk */
    uint32_t most;    /* bytes of a chunk */
    uint32_t to;      /* in a stage, in words */
    ring arrivals;
} stage_source;

/* In words of a stage, and in bytes of a block. */
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
    const uint32_t bytes = from->left - done < from->most ? from->left - done : from->most;
    const ring_cursor at = {number, 0};
    ring_expect(&from->arrivals, at, bytes);
    ring_copy(&from->arrivals, at, stage + from->to, from->from + done, bytes);
}

#define stages_know_width(...)

/* Stages on their way through shared memory. */
typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    ring arrivals;
    uint32_t chunks, bytes; /* of a row; of a stage */
    uint32_t chunk;         /* that is worked on, */
    ring_cursor now;        /* and where it is */
} stage_ring;

/* By all threads. What the first stages want comes by stages_rows(), which is for before kernels in front of this one have
 * ended, too: rows do not change; and by stages_columns(). */
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

/* By some threads of each team: what each has to fetch. */
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

/* Waits for the chunk that comes next; where it is, in bytes. */
DEVICE uint32_t stages_take(int32_t type, const stage_ring *r)
{
    (void)type;
    ring_await(&r->arrivals, r->now);
    return r->now.stage * r->bytes;
}

/* A wave is done with it. The stage before it is filled again: other waves are done with that one sooner, so that nobody waits.
 */
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

/* What is fetched: by this thread some of a row, from piece `piece` on every STAGE_ABREASTth, and some of the columns. */
typedef struct stage_source {
    const uint8_t *row; /* from the last multiple of 16 before its first byte */
    uint32_t left;      /* bytes from there on */
    uint32_t piece;
    uint32_t slot; /* in a stage, in words */
    stage_columns columns;
    uint32_t blocks; /* of a row */
    uint32_t width;
    uint32_t first_class, classes; /* that are wanted */
    uint32_t before;               /* where in a round `row` is */
} stage_source;

/* The row of a thread, and its first piece. Where rows are moved, eight lanes that write one of the first eight rows stand
 * beside eight that write the one eight below: in different banks. */
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

/* Is any of the 16 bytes from `at` on, in rounds, in one of the blocks that are wanted? */
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

/* Chunk `chunk` of something of which each block has `words`, in fours. */
DEVICE void stage_fetch_words(int32_t type, const stage_source *source, uint32_t *to, const uint32_t *from, uint32_t chunk,
                              uint32_t words)
{
    const uint32_t most = stage_blocks(type) * words, done = chunk * most, all = source->blocks * words;
    const uint32_t left = all - done < most ? all - done : most;
    for (uint32_t i = thread_index() * 4; i < left; i += QUANT_THREADS * 4) {
        if (!stage_wants_block(source, i / words))
            continue;
        copy_16(AT_RANGE(to, i, 4), from + done + i);
    }
}

/* Begins to copy the rows of chunk number `chunk` into a stage. Their last 16 bytes may reach into the next row, or into the
 * padding behind the last. */
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

/* And what columns have for it. */
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

/* Stages on their way through shared memory. */
typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    uint32_t stages, chunks, bytes; /* chunks of a row, bytes of a stage */
    uint32_t chunk, now;            /* that is worked on, and where it is */
} stage_ring;

/* By all threads; as above, but rows of the first stages are asked for at once. */
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

/* Waits for the chunk that comes next, and begins to fill the stage before it again, with which all are done when they meet
 * here; where the chunk is, in bytes. */
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

/* Where copies are not in the background, a chunk waits in registers while the one before it is worked on: all of its loads are
 * on their way together. Two stages do. */
enum {
    STAGE_HELD_ROWS = 10,                                      /* 16 bytes each: of a row of q8_k, */
    STAGE_HELD_COLUMNS = GEMV_THREADS / 128,                   /* columns, 512 words of codes each, */
    STAGE_HELD_CODES = QUANT_GEMV_COLUMNS / STAGE_HELD_COLUMNS /* and of those of eight */
};

typedef struct stage_ring {
    stage_source from;
    uint32_t *shared;
    uint32_t stages, chunks, bytes; /* chunks of a row, bytes of a stage */
    uint32_t chunk, now;            /* that is worked on, and where it is */
    uint32_t wanted;                /* stage_wanted() */
    uint32_t whole;                 /* bits of an address that are cleared, so that lanes read whole cache lines */
    uint32_t before;                /* pieces that were read before the chunk's first because of that */
    uint32_t inside;                /* chunks, from the second on, all pieces of which are read from inside the row */
    u32x4 rows[STAGE_HELD_ROWS], codes[STAGE_HELD_CODES], sums, factors;
} stage_ring;

enum { STAGE_LINE = 128 };

/* Pieces of a row that are read for a chunk, those before its first among them: whole cache lines. */
DEVICE uint32_t stage_row_pieces(int32_t type)
{
    enum { LINE = STAGE_LINE / 16 };
    return (stage_chunk_bytes(type) / 16 + 1 + LINE - 1 + LINE - 1) / LINE * LINE;
}

/* How many of them a thread has; stage_has_piece() says whether it has the last. */
DEVICE uint32_t stage_pieces(int32_t type)
{
    return (stage_row_pieces(type) + STAGE_ABREAST - 1) / STAGE_ABREAST;
}

/* Does the thread have its piece number `m`? */
DEVICE bool stage_has_piece(int32_t type, const stage_source *from, uint32_t m)
{
    return STAGE_ABREAST * (m + 1) <= stage_row_pieces(type) || from->piece + STAGE_ABREAST * m < stage_row_pieces(type);
}

/* Bit m: piece m of this thread is wanted. In a register of its own, since a condition for each would take two scalars. */
DEVICE uint32_t stage_wanted(int32_t type, const stage_source *from)
{
    uint32_t wanted = 0;
    UNROLL_BY(1)
    for (uint32_t m = 0; m < stage_pieces(type); m++)
        wanted |= (uint32_t)stage_wants_bytes(type, from, (from->piece + STAGE_ABREAST * m) * 16 + from->before) << m;
    return wanted;
}

/* Pieces that are not wanted, or before the row or behind its end, are read as well, from where it begins or ends: that costs
 * less than to leave them out. `inside`, a constant: all are wanted and inside. */
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

/* Words `i` and three more of the columns, of which each block has `words`; nothing is read for a thread that has none in a
 * stage. The last ones if the chunk has none there; `whole`, a constant: the chunk is. */
DEVICE void stage_hold(const stage_ring *r, int32_t type, const uint32_t *from, uint32_t chunk, uint32_t words, uint32_t i,
                       bool whole, u32x4 *held)
{
    const uint32_t most = stage_blocks(type) * words, at = chunk * most + i, last = r->from.blocks * words - 4;
    if (i >= most)
        return;
    if (whole)
        *held = load_u32x4(from + (uint64_t)chunk * most + i);
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

/* Words `i` and three more, where a stage has them. */
DEVICE void stage_put(int32_t type, uint32_t *to, uint32_t words, uint32_t i, u32x4 held)
{
    if (i < stage_blocks(type) * words)
        *(u32x4 *)AT_RANGE(to, i, 4) = held;
}

/* What is held of rows goes to their stage. */
DEVICE void stage_put_rows(int32_t type, const stage_ring *r, uint32_t *stage)
{
    UNROLL
    for (uint32_t m = 0; m < stage_pieces(type); m++) {
        const uint32_t piece = r->from.piece + STAGE_ABREAST * m - r->before; /* before the first: a large number */
        const bool inside = m > 0 && STAGE_ABREAST * m + STAGE_ABREAST - 1 <= stage_chunk_bytes(type) / 16;
        if (inside || piece < stage_chunk_bytes(type) / 16 + 1) {
            const u32x2 low = {r->rows[m].x, r->rows[m].y}, high = {r->rows[m].z, r->rows[m].w};
            *(u32x2 *)AT_RANGE(stage, r->from.slot + piece * 4, 2) = low;
            *(u32x2 *)AT_RANGE(stage, r->from.slot + piece * 4 + 2, 2) = high;
        }
    }
}

/* And of columns. */
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

/* By all threads. */
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
    r->whole = args->splits > 1 ? 0 : STAGE_LINE - 1; /* a split leaves out pieces, counted from the chunk's first */
    r->before = 0;
    const uint32_t bytes = args->blocks * (uint32_t)block_bytes(type), reach = stage_pieces(type) * STAGE_ABREAST * 16 + 16;
    r->inside = args->splits > 1 || bytes < reach ? 0 : (bytes - reach) / stage_chunk_bytes(type);
}

DEVICE void stages_rows(int32_t type, stage_ring *r)
{
    stage_hold_rows(type, r, 0);
}

/* Where it is a constant. */
DEVICE void stages_know_width(stage_ring *r, uint32_t width)
{
    r->from.width = width;
}

DEVICE void stages_columns(int32_t type, stage_ring *r)
{
    stage_hold_columns(type, r, 0);
    stage_put_held(type, r, 0);
}

/* Waits for the chunk that comes next and asks for the one behind it; where the chunk is, in bytes. */
DEVICE uint32_t stages_take(int32_t type, stage_ring *r)
{
    barrier();
    const uint32_t next = r->chunk + 1 < r->chunks ? r->chunk + 1 : r->chunk;
    stage_hold_columns(type, r, next);
    stage_hold_rows(type, r, next);
    return r->now * r->bytes & ~15u; /* which it is, unknown to the compiler */
}

/* With the stage that the next chunk goes to all are done since they met, unless there is one alone. */
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
