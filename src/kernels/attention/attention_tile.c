/* Attention of many queries that share keys, against one chunk of 256 keys: a prompt. attention_args.h lists all kernels.
 *
 * Bits: arithmetic/attention.h. A score has 8 accumulators over elements, a sum of values 8 over keys; element or key i goes to
 * number i mod 8 in increasing i, and number a then takes in a + 4, a + 2, a + 1 (fold_scores(), value_half()). The order in a
 * chunk and the chunks themselves are fixed, so neither the tile nor the split of work is seen in a result. A key that a row
 * does not see does not affect it, whatever its value is: its p is -1, and value_step() leaves the row's sums.
 *
 * Who does what. Grid: x is chunk and tile, chunk fastest; y is the key head. A tile has 32 rows: row r is token r / group and
 * query head r % group of the key head. A thread has
 *   scores        one accumulator of 8 rows x 8 of 64 keys: 64 fma for 4 loads of 16 bytes. 8 neighbouring threads are the 8
 *                 accumulators; they exchange sums by shuffles, and each ends up with one row
 *   exponentials  every eighth key of one row: an accumulator of l
 *   values        4 rows x 4 elements of the result, one accumulator after the other: 16 fma for 2 loads
 *
 * The way of a block, attention_tile():
 *   describe_rows()       which keys of the chunk each row sees
 *   next_sequence()       rows may belong to several sequences, which are processed one after the other
 *   run_sequence()        score_tile() for 64 keys at a time, cap_scores(), slope_scores(); make_exponentials() in place; then
 *                         value_half() twice for each 128 elements of the result, and leave_rows()
 *   attention_merge       another kernel, if a query has several chunks: leave_rows() has left it m, l and o of each
 *
 * Shared memory (memory): first p[256 keys][32 rows], all the time; behind it stages, of queries and keys, later of values.
 *
 * Why so: rows and keys are staged transposed, so that the 8 of a thread are two loads. `all` and `any` (tile_place) are the
 * keys that all rows and that at least one row sees; only between the two is each step tested, at the ends of a causal mask.
 * The 8 accumulators of values are computed one after the other, so that they need the registers of one; every eighth value is
 * staged for each, or, if few keys are visible, all of them once.
 *
 * To change: the cache's types, attention_cache.h (key_piece(), value_piece()); sizes of tiles, attention_args.h and
 * gpu/tensor/attention.c, which launches; the arithmetic, arithmetic/attention.h and cpu/attention with it.
 */
#include "kernels/attention/attention_cache.h"

enum {
    SCORE_EACH = 8, /* rows and keys per thread */
    ROWS_EACH = 4,
    WIDTH_EACH = 4,
    EIGHTHS = ATTENTION_CHUNK / ATTENTION_LANES, /* keys per accumulator */
};

/* The rows of the block, in shared memory. A row without a sequence does not exist or is done. */
typedef struct tile_rows {
    int32_t *sequence, *first, *end;
} tile_rows;

typedef struct tile_place {
    int64_t first_row;
    int32_t chunk, kv_head;
    int32_t sequence;    /* of the rows processed now */
    attention_range all; /* keys that all of them see */
    attention_range any; /* keys that at least one of them sees */
} tile_place;

DEVICE int64_t token_of(const attention_args *args, const tile_place *place, int32_t row)
{
    return args->first_token + (place->first_row + row) / args->group;
}

DEVICE int32_t head_of(const attention_args *args, const tile_place *place, int32_t row)
{
    return place->kv_head * args->group + (int32_t)((place->first_row + row) % args->group);
}

/* Each of the first 32 threads describes a row. For a row that sees no key, the first chunk's block writes zeros here. */
DEVICE void describe_rows(const attention_args *args, const tile_place *place, const tile_rows *rows)
{
    const int32_t row = (int32_t)thread_index();
    if (row >= ATTENTION_ROWS)
        return;
    AT(rows->sequence, row) = -1;
    if (place->first_row + row >= args->tokens * args->group)
        return;
    const int64_t token = token_of(args, place, row);
    const attention_range seen = seen_by(args, token), part = attention_in_chunk(seen, place->chunk);
    AT(rows->first, row) = part.first;
    AT(rows->end, row) = part.end;
    if (part.end > part.first)
        AT(rows->sequence, row) = args->sequences[token];
    if (seen.end <= seen.first && place->chunk == 0)
        for (int32_t i = 0; i < args->layer.head_size; i++)
            result_of(args, token, head_of(args, place, row))[i] = 0.0f;
}

/* Finds the next sequence and which keys its rows see. Returns false if no row is left. Same result in all threads. */
DEVICE bool next_sequence(const tile_rows *rows, tile_place *place)
{
    place->sequence = -1;
    place->all.first = 0;
    place->all.end = ATTENTION_CHUNK;
    place->any.first = ATTENTION_CHUNK;
    place->any.end = 0;
    for (int32_t row = 0; row < ATTENTION_ROWS; row++) {
        const int32_t sequence = AT(rows->sequence, row), first = AT(rows->first, row), end = AT(rows->end, row);
        if (sequence < 0 || (place->sequence >= 0 && sequence != place->sequence))
            continue;
        place->sequence = sequence;
        place->all.first = first > place->all.first ? first : place->all.first;
        place->all.end = end < place->all.end ? end : place->all.end;
        place->any.first = first < place->any.first ? first : place->any.first;
        place->any.end = end > place->any.end ? end : place->any.end;
    }
    if (place->all.end < place->all.first) /* no common keys: every step is tested */
        place->all.first = place->all.end = place->any.end;
    return place->sequence >= 0;
}

/* ---- scores -----------------------------------------------------------------------------------------------------------------
 */

/* Loads four elements of a query, at any alignment. */
DEVICE f32x4 load_quad(const float *from)
{
    return ((uintptr_t)from & 15) == 0 ? load_f32x4(from) : make_f32x4(from[0], from[1], from[2], from[3]);
}

/* Loads q[element][row]: elements from `first` on, for rows of all sequences; zeros for rows that do not exist. */
DEVICE void stage_queries(const attention_args *args, const tile_place *place, int32_t first, float *q)
{
    const int32_t size = args->layer.head_size, row = (int32_t)thread_index() % ATTENTION_ROWS;
    const int32_t count = size - first < ATTENTION_STAGE ? size - first : ATTENTION_STAGE;
    const bool there = place->first_row + row < args->tokens * args->group;
    const float *from = args->q;
    if (there)
        from += token_of(args, place, row) * args->q_stride + (int64_t)head_of(args, place, row) * size + first;
    for (int32_t i = (int32_t)thread_index() / ATTENTION_ROWS * 4; i < count; i += ATTENTION_THREADS / ATTENTION_ROWS * 4) {
        const f32x4 x = there ? load_quad(from + i) : make_f32x4(0.0f, 0.0f, 0.0f, 0.0f);
        AT(q, (i + 0) * ATTENTION_ROWS_APART + row) = x.x;
        AT(q, (i + 1) * ATTENTION_ROWS_APART + row) = x.y;
        AT(q, (i + 2) * ATTENTION_ROWS_APART + row) = x.z;
        AT(q, (i + 3) * ATTENTION_ROWS_APART + row) = x.w;
    }
}

/* Loads k[element][key]: elements from `first` on, for keys from `key` on. */
DEVICE void stage_keys(int32_t type, const attention_args *args, const attention_page *page, int32_t key, int32_t first,
                       float *k)
{
    const int32_t left = args->layer.head_size - first;
    const int32_t pieces = (left < ATTENTION_STAGE ? left : ATTENTION_STAGE) / ATTENTION_LANES;
    for (int32_t item = (int32_t)thread_index(); item < pieces * ATTENTION_KEYS; item += ATTENTION_THREADS) {
        const int32_t j = item % ATTENTION_KEYS, i = item / ATTENTION_KEYS * ATTENTION_LANES;
        const attention_piece piece = key_piece(type, args, page, key + j, first + i);
        UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++) AT(k, (i + e) * ATTENTION_KEYS_APART + j) = piece.x[e];
    }
}

/* The accumulator of this thread, number `lane_of`, for its rows and keys. */
typedef struct score_sums {
    float x[SCORE_EACH][SCORE_EACH];
} score_sums;

/* The rows and keys of a thread. The threads of a wave of 32 have the same rows. */
typedef struct score_share {
    int32_t lane_of, row, key;
} score_share;

DEVICE score_share share_of_scores(void)
{
    const int32_t own = (int32_t)thread_index();
    score_share share;
    share.lane_of = own % ATTENTION_LANES;
    share.row = own / 64 * SCORE_EACH;
    share.key = own / ATTENTION_LANES % 8 * SCORE_EACH;
    return share;
}

/* Adds `count` elements of a stage to the thread's accumulators. */
DEVICE void join_scores(score_sums *sums, const score_share *share, const float *q, const float *k, int32_t count)
{
    UNROLL_BY(1) for (int32_t i = share->lane_of; i < count; i += ATTENTION_LANES)
    {
        const float *of_rows = AT_RANGE(q, i * ATTENTION_ROWS_APART + share->row, SCORE_EACH);
        const float *of_keys = AT_RANGE(k, i * ATTENTION_KEYS_APART + share->key, SCORE_EACH);
        const f32x4 a = load_f32x4(of_rows), b = load_f32x4(of_rows + 4), c = load_f32x4(of_keys), d = load_f32x4(of_keys + 4);
        const float x[SCORE_EACH] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        const float y[SCORE_EACH] = {c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
        UNROLL for (int32_t r = 0; r < SCORE_EACH; r++) UNROLL for (int32_t j = 0; j < SCORE_EACH; j++) sums->x[r][j] =
            fma_f32(x[r], y[j], sums->x[r][j]);
    }
}

/* Two threads, `apart` lanes from each other, add their sums of the first 2 * `rows` rows: each keeps half of them. */
DEVICE void fold_scores(score_sums *sums, int32_t rows, int32_t lane_of, int32_t apart)
{
    const bool upper = (lane_of & apart) != 0;
    UNROLL for (int32_t r = 0; r < rows; r++) UNROLL for (int32_t j = 0; j < SCORE_EACH; j++)
    {
        /* Both are read before one is chosen: clang 22 would choose an address and keep the sums in memory. */
        const float low = sums->x[r][j], high = sums->x[r + rows][j];
        sums->x[r][j] = (upper ? high : low) + wave_shuffle_xor_f32(upper ? low : high, (uint32_t)apart);
    }
}

/* Computes s[key][row] for the tile's rows and a tile of keys from `key` on. */
DEVICE void score_tile(int32_t type, const attention_args *args, const attention_page *page, const tile_place *place,
                       int32_t key, float *s, float *stages)
{
    const int32_t size = args->layer.head_size;
    const score_share share = share_of_scores();
    float *q = stages, *k = stages + ATTENTION_STAGE * ATTENTION_ROWS_APART;
    score_sums sums;
    UNROLL for (int32_t r = 0; r < SCORE_EACH; r++) UNROLL for (int32_t j = 0; j < SCORE_EACH; j++) sums.x[r][j] = 0.0f;
    for (int32_t first = 0; first < size; first += ATTENTION_STAGE) {
        barrier();
        stage_queries(args, place, first, q);
        stage_keys(type, args, page, key, first, k);
        barrier();
        join_scores(&sums, &share, q, k, size - first < ATTENTION_STAGE ? size - first : ATTENTION_STAGE);
    }
    fold_scores(&sums, 4, share.lane_of, 4);
    fold_scores(&sums, 2, share.lane_of, 2);
    fold_scores(&sums, 1, share.lane_of, 1);
    UNROLL for (int32_t j = 0; j < SCORE_EACH; j++) AT(s, (key + share.key + j) * ATTENTION_ROWS + share.row + share.lane_of) =
        sums.x[0][j] * args->scale;
}

/* Applies the cap to scores of keys that any row sees. A thread has every 256th score. */
DEVICE void cap_scores(const attention_args *args, const tile_place *place, float *s)
{
    for (int32_t i = place->any.first * ATTENTION_ROWS + (int32_t)thread_index(); i < place->any.end * ATTENTION_ROWS;
         i += ATTENTION_THREADS)
        AT(s, i) = attention_capped(AT(s, i), args->cap);
    barrier();
}

/* Lowers scores by the distance of their keys. A thread has every eighth key of a row. Rows of other sequences use the values
 * of the first row; their scores are not used. */
DEVICE void slope_scores(const attention_args *args, const tile_place *place, const tile_rows *rows, float *s)
{
    const int32_t row = (int32_t)thread_index() % ATTENTION_ROWS, first = (int32_t)thread_index() / ATTENTION_ROWS;
    const int32_t of = AT(rows->sequence, row) == place->sequence ? row : 0;
    const float slope = args->slopes[head_of(args, place, of)];
    int32_t chunk = place->chunk;
    SETTLE_UNIFORM(chunk); /* values computed from it need not stay in registers between sequences */
    const int32_t position = args->positions[token_of(args, place, of)] - chunk * ATTENTION_CHUNK;
    for (int32_t j = place->any.first + first; j < place->any.end; j += ATTENTION_THREADS / ATTENTION_ROWS)
        AT(s, j * ATTENTION_ROWS + row) = attention_sloped(AT(s, j * ATTENTION_ROWS + row), slope, position - j);
    barrier();
}

DEVICE int32_t key_of_lane(int32_t from, int32_t lane_of)
{
    return from + ((lane_of - from) & (ATTENTION_LANES - 1));
}

/* Turns scores into p[key][row] in place, and writes m_c and l_c of each row to `largest` and `l`. A key that another row sees
 * but this one does not gets -1. A thread has every eighth key of a row, an accumulator of l_c; `lanes` is shared memory for
 * folding them. */
DEVICE void make_exponentials(const tile_place *place, const tile_rows *rows, float *p, float *lanes, float *largest, float *l)
{
    const int32_t row = (int32_t)thread_index() % ATTENTION_ROWS, a = (int32_t)thread_index() / ATTENTION_ROWS;
    const bool taken = AT(rows->sequence, row) == place->sequence;
    const int32_t first = taken ? AT(rows->first, row) : 0, end = taken ? AT(rows->end, row) : 0;
    float highest = -MATH_INF_F32, sum = 0.0f;
    UNROLL_BY(4)
    for (int32_t j = key_of_lane(place->any.first, a); j < place->any.end; j += ATTENTION_LANES)
        highest = j >= first && j < end ? row_larger_f32(highest, AT(p, j * ATTENTION_ROWS + row)) : highest;
    AT(lanes, a * ATTENTION_ROWS + row) = highest;
    barrier();
    UNROLL for (int32_t i = 0; i < ATTENTION_LANES; i++) highest = row_larger_f32(highest, AT(lanes, i * ATTENTION_ROWS + row));
    UNROLL_BY(4) for (int32_t j = key_of_lane(place->any.first, a); j < place->any.end; j += ATTENTION_LANES)
    {
        const bool seen = j >= first && j < end;
        const float e = seen ? row_exponential_f32(AT(p, j * ATTENTION_ROWS + row), highest) : -1.0f;
        AT(p, j * ATTENTION_ROWS + row) = e;
        sum = seen ? sum + e : sum;
    }
    barrier();
    AT(lanes, a * ATTENTION_ROWS + row) = sum;
    barrier();
    if (a == 0) {
        float sums[ATTENTION_LANES];
        UNROLL for (int32_t i = 0; i < ATTENTION_LANES; i++) sums[i] = AT(lanes, i * ATTENTION_ROWS + row);
        AT(l, row) = attention_fold(sums);
        AT(largest, row) = highest;
    }
}

/* ---- values -----------------------------------------------------------------------------------------------------------------
 */

/* The elements of the result computed at a time, and this thread's share of them. */
typedef struct value_part {
    int32_t first, width; /* elements */
    int32_t row, at;      /* of the thread; `at`: within the width */
    int32_t base, shift;  /* value base + (i << shift) is staged at index i */
    bool idle;
} value_part;

/* Loads v[i][element]: value `begin` + (i << part->shift), if any row sees it. */
DEVICE void stage_values(int32_t type, const attention_args *args, const attention_page *page, const tile_place *place,
                         const value_part *part, int32_t begin, float *v)
{
    const int32_t pieces = part->width / ATTENTION_LANES;
    for (int32_t item = (int32_t)thread_index(); item < EIGHTHS * pieces; item += ATTENTION_THREADS) {
        const int32_t i = item / pieces, e = item % pieces * ATTENTION_LANES, j = begin + (i << part->shift);
        if (j < place->any.first || j >= place->any.end)
            continue;
        const attention_piece piece = value_piece(type, args, page, j, part->first + e);
        float *to = AT_RANGE(v, i * part->width + e, ATTENTION_LANES);
        store_f32x4(to, make_f32x4(piece.x[0], piece.x[1], piece.x[2], piece.x[3]));
        store_f32x4(to + 4, make_f32x4(piece.x[4], piece.x[5], piece.x[6], piece.x[7]));
    }
}

typedef struct value_sums {
    float x[ROWS_EACH][WIDTH_EACH];
} value_sums;

/* Adds one key's value. If tested, rows that do not see the key stay unchanged. */
DEVICE void value_step(value_sums *sums, const float *p, const float *v, const value_part *part, int32_t j, bool tested)
{
    const f32x4 of_rows = load_f32x4(AT_RANGE(p, j * ATTENTION_ROWS + part->row, 4));
    const f32x4 of_elements = load_f32x4(AT_RANGE(v, ((j - part->base) >> part->shift) * part->width + part->at, 4));
    const float x[ROWS_EACH] = {of_rows.x, of_rows.y, of_rows.z, of_rows.w};
    const float y[WIDTH_EACH] = {of_elements.x, of_elements.y, of_elements.z, of_elements.w};
    UNROLL for (int32_t r = 0; r < ROWS_EACH; r++) UNROLL for (int32_t e = 0; e < WIDTH_EACH; e++)
    {
        const float sum = fma_f32(x[r], y[e], sums->x[r][e]);
        sums->x[r][e] = tested && x[r] < 0.0f ? sums->x[r][e] : sum;
    }
}

/* Accumulator `lane_of` of the thread's elements. */
DEVICE value_sums value_chain(const tile_place *place, const value_part *part, const float *p, const float *v, int32_t lane_of)
{
    value_sums sums;
    UNROLL for (int32_t r = 0; r < ROWS_EACH; r++) UNROLL for (int32_t e = 0; e < WIDTH_EACH; e++) sums.x[r][e] = 0.0f;
    if (part->idle)
        return sums;
    int32_t j = key_of_lane(place->any.first, lane_of);
    for (; j < place->all.first; j += ATTENTION_LANES)
        value_step(&sums, p, v, part, j, true);
    UNROLL_BY(4) for (; j < place->all.end; j += ATTENTION_LANES) value_step(&sums, p, v, part, j, false);
    for (; j < place->any.end; j += ATTENTION_LANES)
        value_step(&sums, p, v, part, j, true);
    return sums;
}

DEVICE void add_values(value_sums *to, const value_sums *more)
{
    UNROLL for (int32_t r = 0; r < ROWS_EACH; r++) UNROLL for (int32_t e = 0; e < WIDTH_EACH; e++) to->x[r][e] += more->x[r][e];
}

/* Writes the part of each row of the sequence, or its result if there is only one chunk. */
DEVICE void leave_rows(const attention_args *args, const tile_place *place, const tile_rows *rows, const value_part *part,
                       const value_sums *sums, const float *largest, const float *l)
{
    UNROLL for (int32_t r = 0; r < ROWS_EACH; r++)
    {
        const int32_t row = part->row + r, at = part->first + part->at;
        if (part->idle || AT(rows->sequence, row) != place->sequence)
            continue;
        const int64_t token = token_of(args, place, row);
        const int32_t head = head_of(args, place, row);
        const attention_range chunks = attention_chunks(seen_by(args, token));
        if (chunks.end - chunks.first == 1) {
            float *out = result_of(args, token, head) + at;
            UNROLL for (int32_t e = 0; e < WIDTH_EACH; e++) out[e] =
                result_of_one(args, head, sums->x[r][e], AT(l, row), AT(largest, row));
            continue;
        }
        float *to = part_of(args, token, head, place->chunk);
        UNROLL for (int32_t e = 0; e < WIDTH_EACH; e++) to[ATTENTION_PART_SUMS + at + e] = sums->x[r][e];
        if (at == 0) {
            to[0] = AT(largest, row);
            to[1] = AT(l, row);
        }
    }
}

/* What a thread needs to compute its sums of values. */
typedef struct value_work {
    const attention_args *args;
    const attention_page *page;
    const tile_place *place;
    const value_part *part;
    float *p, *v; /* shared */
} value_work;

DEVICE value_sums value_lane(int32_t type, const value_work *w, int32_t lane_of)
{
    if (w->part->shift > 0) {
        barrier();
        stage_values(type, w->args, w->page, w->place, w->part, lane_of, w->v);
        barrier();
    }
    return value_chain(w->place, w->part, w->p, w->v, lane_of);
}

/* Accumulators odd, odd + 4, odd + 2 and odd + 6, in the order in which they are folded. */
DEVICE value_sums value_half(int32_t type, const value_work *w, int32_t odd)
{
    value_sums half = value_lane(type, w, odd);
    value_sums more = value_lane(type, w, odd + 4);
    add_values(&half, &more);
    value_sums other = value_lane(type, w, odd + 2);
    more = value_lane(type, w, odd + 6);
    add_values(&other, &more);
    add_values(&half, &other);
    return half;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------
 */

/* The arguments are read again for each tile of keys and at the end: gfx9 has few scalar registers, and the loops in between
 * need them all. */
DEVICE void run_sequence(int32_t type, const attention_args *args, const tile_place *place, const tile_rows *rows,
                         float *memory)
{
    SHARED(float, largest, ATTENTION_ROWS);
    SHARED(float, l, ATTENTION_ROWS);
    SHARED(float, lanes, ATTENTION_ROWS *ATTENTION_LANES);
    const attention_page page = page_of(args, place->sequence, place->chunk, place->kv_head);
    for (int32_t key = 0; key < ATTENTION_CHUNK; key += ATTENTION_KEYS)
        if (key < place->any.end && key + ATTENTION_KEYS > place->any.first)
            score_tile(type, (const attention_args *)arguments_again(args), &page, place, key, memory,
                       memory + ATTENTION_CHUNK * ATTENTION_ROWS);
    barrier();
    if (args->cap > 0.0f)
        cap_scores(args, place, memory);
    if (args->slopes)
        slope_scores(args, place, rows, memory);
    make_exponentials(place, rows, memory, lanes, largest, l);
    const int32_t size = args->layer.head_size;
    const bool few = place->any.end - place->any.first <= EIGHTHS;
    for (int32_t first = 0; first < size; first += ATTENTION_WIDTH) {
        value_part part;
        part.first = first;
        part.width = size - first < ATTENTION_WIDTH ? size - first : ATTENTION_WIDTH;
        const int32_t across = part.width / WIDTH_EACH, own = (int32_t)thread_index();
        part.base = few ? place->any.first : 0;
        part.shift = few ? 0 : 3; /* every eighth */
        part.idle = own >= across * (ATTENTION_ROWS / ROWS_EACH);
        part.row = part.idle ? 0 : own / across * ROWS_EACH;
        part.at = own % across * WIDTH_EACH;
        value_work work;
        work.args = args;
        work.page = &page;
        work.place = place;
        work.part = &part;
        work.p = memory;
        work.v = memory + ATTENTION_CHUNK * ATTENTION_ROWS;
        if (few) {
            barrier();
            stage_values(type, args, &page, place, &part, part.base, work.v);
            barrier();
        }
        value_sums sums = value_half(type, &work, 0);
        const value_sums odd = value_half(type, &work, 1);
        add_values(&sums, &odd);
        leave_rows((const attention_args *)arguments_again(args), place, rows, &part, &sums, largest, l);
    }
    barrier();
}

DEVICE void attention_tile(int32_t type, const attention_args *args)
{
    SHARED_DYNAMIC(float, memory);
    SHARED(int32_t, sequence, ATTENTION_ROWS);
    SHARED(int32_t, first, ATTENTION_ROWS);
    SHARED(int32_t, end, ATTENTION_ROWS);
    tile_rows rows;
    rows.sequence = sequence;
    rows.first = first;
    rows.end = end;
    tile_place place;
    place.chunk = (int32_t)(block_index() % (uint32_t)args->chunks);
    place.first_row = (int64_t)(block_index() / (uint32_t)args->chunks) * ATTENTION_ROWS;
    place.kv_head = (int32_t)block_index_y();
    describe_rows(args, &place, &rows);
    barrier();
    while (next_sequence(&rows, &place)) {
        run_sequence(type, (const attention_args *)arguments_again(args), &place, &rows, memory);
        if (thread_index() < ATTENTION_ROWS && AT(sequence, thread_index()) == place.sequence)
            AT(sequence, thread_index()) = -1;
        barrier();
    }
}

KERNEL(attention_tile_f16, attention_args, ATTENTION_THREADS)
{
    attention_tile(ATTENTION_F16, &args);
}

KERNEL(attention_tile_f32, attention_args, ATTENTION_THREADS)
{
    attention_tile(ATTENTION_F32, &args);
}

KERNEL(attention_tile_q8_0, attention_args, ATTENTION_THREADS)
{
    attention_tile(ATTENTION_Q8_0, &args);
}

/* One thread per element of a query; queries with one chunk are already done. */
KERNEL(attention_merge, attention_args, ATTENTION_THREADS)
{
    const int32_t size = args.layer.head_size;
    const int64_t count = args.tokens * args.heads * size;
    for (int64_t i = (int64_t)block_index() * ATTENTION_THREADS + thread_index(); i < count;
         i += (int64_t)block_count() * ATTENTION_THREADS) {
        const int64_t query = i / size, token = args.first_token + query / args.heads;
        const int32_t head = (int32_t)(query % args.heads), e = (int32_t)(i - query * size);
        const attention_range chunks = attention_chunks(seen_by(&args, token));
        const int32_t parts = chunks.end - chunks.first;
        if (parts > 1)
            result_of(&args, token, head)[e] = merged(&args, head, part_of(&args, token, head, chunks.first), parts, e);
    }
}
