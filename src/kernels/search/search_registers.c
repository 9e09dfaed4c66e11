/* Scores many queries against all rows of one or two chunks (up to 128 elements). The queries stay in registers.
 *
 * The speed of arithmetic is bound by loading operands: shared memory delivers 16 bytes per lane in the time of four
 * multiply-adds of four. So a lane loads its share of eight queries once, for the whole kernel, and each 16 bytes of a row
 * serve eight queries. Sixteen lanes hold a row or a query (packed_layout.h). A group of sixteen lanes owns eight queries. The
 * other groups of a block own other queries, or the same ones for other rows: `groups` of them share a row, so a block has 8 to
 * 128 queries.
 *
 * Two rows at a time give sixteen sums, one for each lane of the group. At each step of the fold a lane adds the neighbour's
 * share of the sums it keeps and hands over its share of the others. Each lane keeps different sums, but in the same places: a
 * lane has query i ^ (its low three bits) in place i, and row i ^ (its fourth bit), so it always keeps the even place and gives
 * the odd one away. The order of additions is canonical, because a sum of two is the same from either side.
 *
 * Rows pass through shared memory in tiles of 32. The next tiles are being copied while one is scored.
 */
#define ROW_TYPE(rows) ROW_F32
#include "kernels/simt/simt.h"

#include "kernels/search/pack_row.h"
#include "kernels/search/tile_list.h"
#include "kernels/search/topk_lists.h"

enum {
    REGISTERS_QUERIES = 8, /* of a group */
    REGISTERS_CHUNKS_MAX = 2,
    REGISTERS_GROUPS = SEARCH_THREADS / PACKED_GROUPS,
    REGISTERS_PIECES_MAX = REGISTERS_CHUNKS_MAX * PACKED_GROUPS, /* pieces of 16 bytes in a row */
    REGISTERS_COPIES_MAX = SEARCH_REGISTERS_ROWS * REGISTERS_PIECES_MAX / SEARCH_THREADS,
    REGISTERS_COPIES_APART = SEARCH_THREADS * 4,                  /* floats, in memory */
    REGISTERS_ROW_2 = 2 * CANON_LANES + 16,                       /* floats of a row of two chunks in a stage */
    REGISTERS_NORMS_AT = SEARCH_REGISTERS_ROWS * REGISTERS_ROW_2, /* floats of a stage before the norms of its rows */
    REGISTERS_STAGE = SEARCH_REGISTERS_STAGE_FLOATS,
    REGISTERS_REFRESH_TILES = 16 /* after at most this many tiles a block checks what the others have found */
};

/* A kernel's shape, a compile-time constant. */
typedef struct registers_shape {
    int32_t chunks;
    int32_t metric;
} registers_shape;

/* A lane's share of its group's queries. */
typedef struct registers_queries {
    f32x4 pieces[REGISTERS_QUERIES][REGISTERS_CHUNKS_MAX]; /* place i holds query i ^ (lane & 7) of the group */
    uint32_t mine;                                         /* the query of the block whose sums end in this lane */
    float norm;                                            /* its norm */
} registers_queries;

/* The copies of one tile into shared memory. */
typedef struct registers_copies {
    f32x4_copy rows[REGISTERS_COPIES_MAX];
    f32x4_copy norms;
} registers_copies;

/* Floats from one row of a stage to the next. */
DEVICE int32_t registers_row_floats(registers_shape shape)
{
    return shape.chunks == 1 ? CANON_LANES : REGISTERS_ROW_2;
}

/* The place of piece `number` of a row in its stage. The pieces of two chunks stay interleaved as in memory (packed_layout.h),
 * because copies of neighbours are combined. 16 spare bytes after every eight pieces put those that are read together into
 * different banks. */
DEVICE int32_t registers_piece_at(registers_shape shape, int32_t row, int32_t number)
{
    return row * registers_row_floats(shape) + number * 4 + (shape.chunks == 1 ? 0 : number / 8 * 4);
}

/* The place in a stage of a thread's first copy. Its next copies are whole rows apart: as much as all threads copy together. */
DEVICE int32_t registers_copy_at(registers_shape shape)
{
    const int32_t pieces = shape.chunks * PACKED_GROUPS;
    return registers_piece_at(shape, (int32_t)thread_index() / pieces, (int32_t)thread_index() % pieces);
}

DEVICE int32_t registers_copies_apart(registers_shape shape)
{
    return SEARCH_THREADS / (shape.chunks * PACKED_GROUPS) * registers_row_floats(shape);
}

DEVICE bool registers_copies_norms(registers_shape shape)
{
    return shape.metric == CANON_COSINE && thread_index() < SEARCH_REGISTERS_ROWS / 4;
}

DEVICE void registers_fetch(registers_shape shape, const row_word *tile, float *stage, registers_copies *copies)
{
    const float *from = IN_GLOBAL(const float, tile->rows) + thread_index() * 4;
    float *to = stage + registers_copy_at(shape);
    UNROLL
    for (int32_t i = 0; i < SEARCH_REGISTERS_ROWS * shape.chunks * PACKED_GROUPS / SEARCH_THREADS; i++)
        f32x4_copy_begin(&copies->rows[i], AT_RANGE(to, i * registers_copies_apart(shape), 4),
                         from + i * REGISTERS_COPIES_APART);
    if (registers_copies_norms(shape))
        f32x4_copy_begin(&copies->norms, AT_RANGE(stage, REGISTERS_NORMS_AT + thread_index() * 4, 4),
                         IN_GLOBAL(const float, tile->norms) + thread_index() * 4);
}

/* Completes the copies of a stage. After a barrier all threads can read it. */
DEVICE void registers_arrive(registers_shape shape, float *stage, registers_copies *copies)
{
    float *to = stage + registers_copy_at(shape);
    UNROLL
    for (int32_t i = 0; i < SEARCH_REGISTERS_ROWS * shape.chunks * PACKED_GROUPS / SEARCH_THREADS; i++)
        f32x4_copy_end(&copies->rows[i], AT_RANGE(to, i * registers_copies_apart(shape), 4));
    if (registers_copies_norms(shape))
        f32x4_copy_end(&copies->norms, AT_RANGE(stage, REGISTERS_NORMS_AT + thread_index() * 4, 4));
}

/* Returns a lane's share of the sum of one query and one row. */
DEVICE float registers_share(registers_shape shape, const f32x4 *query, const f32x4 *x)
{
    f32x4 acc = F32X4_ZERO;
    UNROLL
    for (int32_t chunk = 0; chunk < shape.chunks; chunk++) {
        if (shape.metric == CANON_L2) {
            const f32x4 t = f32x4_sub(query[chunk], x[chunk]);
            acc = f32x4_fma(t, t, acc);
        } else {
            acc = f32x4_fma(query[chunk], x[chunk], acc);
        }
    }
    return fold_group(acc);
}

/* Scores one row with the group's eight queries. Returns two lanes' share, eight lanes apart, of the sum of query (lane &
 * 7). */
DEVICE float registers_row(registers_shape shape, const registers_queries *queries, const float *stage, int32_t row)
{
    f32x4 x[REGISTERS_CHUNKS_MAX];
    float sums[REGISTERS_QUERIES / 2];
    UNROLL
    for (int32_t chunk = 0; chunk < shape.chunks; chunk++)
        x[chunk] = load_f32x4(AT_RANGE(stage, registers_piece_at(shape, row, group_lane() * shape.chunks + chunk), 4));
    UNROLL
    for (int32_t i = 0; i < REGISTERS_QUERIES / 2; i++) {
        const float keep = registers_share(shape, queries->pieces[2 * i], x),
                    give = registers_share(shape, queries->pieces[2 * i + 1], x);
        sums[i] = keep + wave_shuffle_xor_f32(give, 1);
    }
    sums[0] = sums[0] + wave_shuffle_xor_f32(sums[1], 2);
    sums[2] = sums[2] + wave_shuffle_xor_f32(sums[3], 2);
    return sums[0] + wave_shuffle_xor_f32(sums[2], 4);
}

/* Scores the group's rows of the tile in `stage` and offers the sums that pass the gate. Returns true if a list is longer than
 * its trigger. */
DEVICE bool registers_score(registers_shape shape, const search_args *args, const topk *top, const registers_queries *queries,
                            uint32_t shift, const row_word *tile, const float *stage)
{
    const float gate = AT(top->gate, queries->mine);
    const int32_t swap = group_lane() >> 3;
    bool crowded = false;
    UNROLL_BY(1)
    for (uint32_t i = 0; i < 1u << shift; i++) { /* equally often in every thread, so a wave stays together */
        const uint32_t pair = (group_index() >> shift) + i * (REGISTERS_GROUPS >> shift);
        const int32_t row = (int32_t)(2 * pair) + swap;
        const float keep = registers_row(shape, queries, stage, row), give = registers_row(shape, queries, stage, row ^ 1);
        const float sum = keep + wave_shuffle_xor_f32(give, 8);
        const float row_norm = shape.metric == CANON_COSINE ? AT(stage, REGISTERS_NORMS_AT + row) : 0.0f;
        /* Rows that are not admitted are few, or not worth a test each, so they are tested after the gate. */
        if (topk_gate_open(shape.metric, gate, sum, queries->norm, row_norm) && (tile->admitted >> row & 1))
            crowded |= topk_offer(top, &args->lists, queries->mine, sum, queries->norm, row_norm,
                                  tile->first_row + (uint32_t)row) > args->lists.trigger;
    }
    return crowded;
}

DEVICE registers_queries registers_load(registers_shape shape, const search_args *args, uint32_t first_query, uint32_t shift)
{
    const uint32_t first = (group_index() & ((1u << shift) - 1)) * REGISTERS_QUERIES,
                   low = (uint32_t)group_lane() % REGISTERS_QUERIES;
    registers_queries queries;
    queries.mine = first + low;
    queries.norm = args->queries.norms[first_query + queries.mine];
    UNROLL
    for (uint32_t i = 0; i < REGISTERS_QUERIES; i++) {
        const float *packed =
            args->queries.packed + (size_t)(first_query + first + (i ^ low)) * (size_t)(shape.chunks * CANON_LANES);
        UNROLL
        for (int32_t chunk = 0; chunk < shape.chunks; chunk++)
            queries.pieces[i][chunk] = load_f32x4(packed + packed_at(shape.chunks, chunk, group_lane()));
    }
    return queries;
}

/* How far a block is: `begun` tiles are started, the next one goes to stage `next`, and stage `here` is scored next. */
typedef struct registers_feed {
    registers_copies copies;
    float *stages;
    uint32_t count; /* of stages */
    uint32_t begun;
    uint32_t next, here; /* stages */
    bool more;           /* there is a next tile */
} registers_feed;

DEVICE uint32_t registers_next_stage(const registers_feed *feed, uint32_t stage)
{
    return stage + 1 == feed->count ? 0 : stage + 1;
}

/* Starts copying the next tile, if there is one. Called by all threads; may have barriers. */
DEVICE void registers_begin(registers_shape shape, const search_args *args, registers_feed *feed, tile_ring *ring)
{
    if (feed->more) {
        registers_fetch(shape, tiles_at(ring, feed->begun), feed->stages + feed->next * REGISTERS_STAGE, &feed->copies);
        feed->next = registers_next_stage(feed, feed->next);
        feed->more = tiles_have(&args->rows, SEARCH_REGISTERS_ROWS, args->lists.parts, ring, ++feed->begun);
    }
    copies_commit();
}

/* Scores the tiles of the block's part, one after the other. If tile i filled a list beyond its trigger, it writes its number
 * to crowded[i % 2], which all threads read after the next barrier. */
DEVICE void registers_tiles(registers_shape shape, const search_args *args, const topk *top, const registers_queries *queries,
                            uint32_t shift, tile_ring *ring, uint32_t *crowded, float *stages)
{
    registers_feed feed;
    __builtin_memset(&feed, 0, sizeof feed);
    feed.stages = stages;
    feed.count = copies_in_background() ? args->stages : SEARCH_STAGES_MIN;
    feed.more = tiles_have(&args->rows, SEARCH_REGISTERS_ROWS, args->lists.parts, ring, 0);
    for (uint32_t i = 1; i < feed.count; i++)
        registers_begin(shape, args, &feed, ring);
    for (uint32_t number = 0; number < feed.begun; number++) {
        float *stage = stages + feed.here * REGISTERS_STAGE;
        feed.here = registers_next_stage(&feed, feed.here);
        copies_wait((int32_t)feed.count - 2);
        registers_arrive(shape, stage, &feed.copies);
        barrier();
        const bool tend = number > 0 && (AT(crowded, (number - 1) % 2) == number - 1 || (number & (number - 1)) == 0 ||
                                         number % REGISTERS_REFRESH_TILES == 0);
        registers_begin(shape, args, &feed, ring);
        if (tend) {
            topk_tend(top, &args->lists, args->lists.trigger, args->lists.kept_max);
            barrier();
        }
        if (registers_score(shape, args, top, queries, shift, tiles_at(ring, number), stage))
            AT(crowded, number % 2) = number;
    }
    copies_wait(0);
    barrier();
}

DEVICE void search_registers(const int32_t chunks, const search_args *args)
{
    const registers_shape shape = {chunks, args->rows.metric};
    SHARED_DYNAMIC(float, stages);
    SHARED(tile_ring, ring, 1);
    SHARED(uint64_t, threshold, SEARCH_REGISTERS_QUERIES_MAX);
    SHARED(uint32_t, length, SEARCH_REGISTERS_QUERIES_MAX);
    SHARED(float, gate, SEARCH_REGISTERS_QUERIES_MAX);
    SHARED(uint32_t, crowded, 2);
    const uint32_t columns = block_count_y(), block_queries = args->queries.slots / columns;
    const uint32_t shift = (uint32_t)__builtin_ctz(block_queries / REGISTERS_QUERIES),
                   first_query = block_index_y() * block_queries;
    const size_t first_list = (size_t)block_index() * args->queries.slots + first_query;
    const uint32_t queries_left = args->queries.count - first_query;
    const topk top = {threshold,
                      length,
                      gate,
                      args->lists.keys + first_list * args->lists.capacity,
                      args->queries.worst + first_query,
                      block_queries,
                      queries_left < block_queries ? queries_left : block_queries,
                      shape.metric};
    topk_begin(&top);
    if (thread_index() < 2)
        AT(crowded, thread_index()) = UINT32_MAX;
    if (thread_index() == 0)
        tiles_begin(ring, block_index());
    barrier();
    const registers_queries queries = registers_load(shape, args, first_query, shift);
    /* Distances have a loop of their own; the others' sums are alike. */
    const registers_shape distances = {chunks, CANON_L2};
    if (shape.metric == CANON_L2)
        registers_tiles(distances, args, &top, &queries, shift, ring, crowded, stages);
    else
        registers_tiles(shape, args, &top, &queries, shift, ring, crowded, stages);
    topk_end(&top, &args->lists, first_query);
}

KERNEL_RESIDENT(search_registers_1, search_args, SEARCH_THREADS, 2)
{
    search_registers(1, &args);
}

KERNEL_RESIDENT(search_registers_2, search_args, SEARCH_THREADS, 2)
{
    search_registers(2, &args);
}
