/* The screen for many queries on chips that multiply from shared memory (matrix_wgmma.h): tiles of 128 rows x up to 256
 * queries.
 *
 * A block keeps its queries' codes and walks over tiles of rows, which come through a ring of stages of 64 bytes of each row;
 * one wave has nothing to do but to fill it. Up to four teams of 128 threads have 64 queries each and go their own way: while
 * one tests its sums the tensor cores work for the others. What the rows have to do with the test was made before, a pair or a
 * triple of numbers a row (screen.h), and comes with the first stage of a tile; what the queries have to do with it each thread
 * holds in registers. So a sum costs two or three fused multiply-adds and a comparison.
 *
 * What is kept is gathered by each wave, and appended to the queries' lists when the wave has as many as lanes: a list's
 * length is an atomic far away. When a list is full the query's gate is closed: it will be asked again.
 */
#include "kernels/screen/screen_words.h"
#include "kernels/simt/matrix_wgmma.h"
#include "kernels/simt/ring.h"

enum {
    STAGE_WORDS = 2 * SCREEN_SLAB,
    GROUP_SUMS = 8,  /* tested together before a wave looks whether any is kept */
    CHAINS = 4,      /* of comparisons that do not wait for one another */
    BRAKE_TILES = 16 /* after so many a thread looks whether its queries' lists are full */
};

typedef struct wide_shared {
    uint32_t *queries; /* teams x runs slabs */
    uint32_t *stages;  /* of STAGE_WORDS */
    float *pairs;      /* a slot of 128 x 2 for each tile on its way */
    float *thirds;     /* the same of 128 */
    uint64_t *kept;    /* as many as the block has threads, a wave's own beside each other */
    ring codes, whole; /* the stages; the queries */
    uint32_t slots;
} wide_shared;

/* Of 64 queries each; one more feeds. */
DEVICE uint32_t wide_teams(void)
{
    return block_size() / WIDE_TEAM - 1;
}

DEVICE wide_shared wide_layout(const screen_scan_args *args, uint32_t *dynamic)
{
    const uint32_t runs = (uint32_t)args->rows.runs, stages = args->stages;
    wide_shared at;
    at.slots = SCREEN_WGMMA_SLOTS(runs, stages);
    at.queries = wide_aligned(dynamic);
    at.stages = at.queries + wide_teams() * runs * SCREEN_SLAB;
    at.pairs = (float *)(at.stages + stages * STAGE_WORDS);
    at.thirds = at.pairs + at.slots * (WIDE_ROWS * 2);
    at.kept = (uint64_t *)(at.thirds + at.slots * WIDE_ROWS);
    at.codes.full = at.kept + wide_teams() * WIDE_TEAM;
    at.codes.empty = at.codes.full + stages;
    at.codes.stages = stages;
    at.whole.full = at.codes.empty + stages;
    at.whole.empty = at.whole.full + 1;
    at.whole.stages = 1;
    return at;
}

/* ---- feeding: by one thread ---------------------------------------------------------------------------------------------- */

typedef struct wide_feed {
    uint32_t number; /* of the tile, in the order of this block */
    uint32_t slot;
    int32_t run;
    ring_cursor at;
    screen_place place;
    const uint32_t *codes[2]; /* of the tile's two words */
} wide_feed;

/* Where the words of the next tile are; behind the end the last word stands for one that is not there. */
DEVICE void wide_find(bool sample, const screen_scan_args *args, wide_feed *feed)
{
    UNROLL
    for (uint32_t w = 0; w < 2; w++) {
        uint32_t word = (sample ? feed->number * args->sample_stride : feed->number) * SCREEN_TILE_WORDS + w;
        word = word < args->rows.word_count ? word : args->rows.word_count - 1;
        if (!screen_place_has(&feed->place, word))
            feed->place = screen_place_of(&args->rows, word);
        feed->codes[w] = IN_GLOBAL(const uint32_t, feed->place.segment->codes) +
                         (size_t)(word - feed->place.word_begin) * (size_t)args->rows.runs * SCREEN_SLAB;
    }
}

/* The numbers of the tile's rows, which come with its first stage. */
DEVICE void wide_fetch_numbers(bool sample, bool third, const screen_scan_args *args, const wide_feed *feed,
                               const wide_shared *at)
{
    const float *pairs = sample ? args->guesses : args->pairs;
    ring_copy(&at->codes, feed->at, AT_RANGE(at->pairs, feed->slot * (WIDE_ROWS * 2), WIDE_ROWS * 2),
              pairs + (size_t)feed->number * (WIDE_ROWS * 2), WIDE_ROWS * 8);
    if (third)
        ring_copy(&at->codes, feed->at, AT_RANGE(at->thirds, feed->slot * WIDE_ROWS, WIDE_ROWS),
                  args->thirds + (size_t)feed->number * WIDE_ROWS, WIDE_ROWS * 4);
}

/* Asks for the next stage, if there is one. */
DEVICE void wide_fetch(bool sample, bool third, const screen_scan_args *args, wide_feed *feed, const wide_shared *at)
{
    if (feed->number >= args->tile_end)
        return;
    if (feed->run == 0)
        wide_find(sample, args, feed);
    ring_open(&at->codes, feed->at);
    ring_expect(&at->codes, feed->at,
                feed->run != 0 ? STAGE_WORDS * 4
                : third        ? STAGE_WORDS * 4 + WIDE_ROWS * 12
                               : STAGE_WORDS * 4 + WIDE_ROWS * 8);
    uint32_t *to = at->stages + feed->at.stage * STAGE_WORDS;
    UNROLL
    for (uint32_t w = 0; w < 2; w++)
        ring_copy(&at->codes, feed->at, AT_RANGE(to, w * SCREEN_SLAB, SCREEN_SLAB),
                  feed->codes[w] + (size_t)feed->run * SCREEN_SLAB, SCREEN_SLAB * 4);
    if (feed->run == 0)
        wide_fetch_numbers(sample, third, args, feed, at);
    ring_next(&at->codes, &feed->at);
    if (++feed->run == args->rows.runs) {
        feed->run = 0;
        feed->number += block_count();
        feed->slot = feed->slot + 1 == at->slots ? 0 : feed->slot + 1;
    }
}

/* The block's queries, once. */
DEVICE void wide_fetch_queries(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t words = (uint32_t)args->rows.runs * SCREEN_SLAB; /* of 64 queries */
    const ring_cursor first = {0, 0};
    ring_expect(&at->whole, first, wide_teams() * words * 4);
    for (uint32_t team = 0; team < wide_teams(); team++)
        ring_copy(&at->whole, first, AT_RANGE(at->queries, team * words, words),
                  args->queries.codes + (block_index_y() * (size_t)wide_teams() + team) * words, words * 4);
}

/* All that the block works on. By the team that has nothing else to do, of which the first thread does it. */
DEVICE void wide_feed_all(bool sample, bool third, const screen_scan_args *args, const wide_shared *at)
{
    const bool feeds = thread_index() == wide_teams() * WIDE_TEAM;
    wide_feed feed;
    feed.number = args->tile_begin + block_index();
    feed.slot = 0;
    feed.run = 0;
    feed.at.stage = feed.at.turn = 0;
    feed.place.segment = args->rows.segments;
    feed.place.word_begin = feed.place.word_end = 0; /* no word is in it */
    if (feeds) {
        wide_fetch_queries(args, at);
        for (uint32_t i = 1; i < at->codes.stages; i++)
            wide_fetch(sample, third, args, &feed, at);
    }
    ring_pass(&at->whole);
    for (uint32_t number = args->tile_begin + block_index(); number < args->tile_end; number += block_count())
        for (int32_t run = 0; run < args->rows.runs; run++) {
            if (feeds)
                wide_fetch(sample, third, args, &feed, at);
            ring_pass(&at->codes);
        }
}

/* ---- what is kept -------------------------------------------------------------------------------------------------------- */

/* What a wave has gathered: queries in the upper halves, positions in the lower. */
typedef struct wide_kept {
    uint64_t *entries;
    uint32_t count; /* the same in all lanes */
} wide_kept;

/* Appends all that is gathered to the lists. By a whole wave. */
DEVICE void wide_flush(const screen_scan_args *args, wide_kept *kept)
{
    wave_barrier();
    if (lane() < kept->count) {
        const uint64_t entry = AT(kept->entries, lane());
        const uint32_t query = (uint32_t)(entry >> 32), position = (uint32_t)entry, word = position / 64;
        if (query < args->queries.count && word < args->rows.word_count) {
            const screen_place place = screen_place_of(&args->rows, word);
            if ((screen_admitted(&args->rows, &place, word) >> position % 64 & 1) != 0) {
                const uint32_t at = atomic_add_u32(&args->queries.counts[query], 1);
                if (at < args->capacity)
                    args->lists[(size_t)query * args->capacity + at] = position;
            }
        }
    }
    wave_barrier();
    kept->count = 0;
}

/* Gathers the entries of those lanes that have one. By a whole wave. */
DEVICE void wide_gather(const screen_scan_args *args, wide_kept *kept, bool has, uint64_t entry)
{
    const uint64_t ballot = wave_ballot(has);
    const uint32_t more = (uint32_t)__builtin_popcountll(ballot);
    if (kept->count + more > wave_size())
        wide_flush(args, kept);
    if (has)
        AT(kept->entries, kept->count + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1))) = entry;
    kept->count += more;
}

/* A thread's queries: their numbers in the search, and their gates; for a sample their scales. */
typedef struct wide_mine {
    uint32_t query[2];
    screen_gate gate[2];
    float scale[2];
} wide_mine;

/* What a thread needs of the rows that a group of its sums belongs to. */
typedef struct wide_measures {
    f32x4 pair[GROUP_SUMS / 4]; /* of two rows each */
    float third[GROUP_SUMS / 2];
} wide_measures;

DEVICE wide_measures wide_load(bool third, const float *pairs, const float *thirds, uint32_t group)
{
    wide_measures loaded;
    UNROLL
    for (uint32_t j = 0; j < GROUP_SUMS / 4; j++) {
        const uint32_t first = wide_row(group * (GROUP_SUMS / 4) + j, 0);
        loaded.pair[j] = wide_numbers(AT_RANGE(pairs, first * 2, 4));
        loaded.third[2 * j] = third ? AT(thirds, first) : 0.0f;
        loaded.third[2 * j + 1] = third ? AT(thirds, first + 1) : 0.0f;
    }
    return loaded;
}

/* Is sum number `at` of the group kept? */
DEVICE bool wide_keeps(bool third, const wide_mine *mine, const wide_measures *rows, uint32_t at, int32_t sum)
{
    const uint32_t j = at / 4, i = at / 2 % 2, c = at % 2;
    screen_measure measure;
    measure.first = c == 0 ? rows->pair[j].x : rows->pair[j].z;
    measure.second = c == 0 ? rows->pair[j].y : rows->pair[j].w;
    measure.third = rows->third[2 * j + c];
    return sum >= screen_least(mine->gate[i], measure, third);
}

/* Gathers what is kept of a group. By a whole wave. */
DEVICE void wide_gather_group(const bool third, const screen_scan_args *args, const wide_mine *mine, const wide_measures *rows,
                              uint32_t tile, uint32_t group, const int32_t *sums, wide_kept *kept)
{
    uint32_t bits = 0;
    UNROLL
    for (uint32_t at = 0; at < GROUP_SUMS; at++)
        bits |= (uint32_t)wide_keeps(third, mine, rows, at, sums[group * GROUP_SUMS + at]) << at;
    for (; wave_any(bits != 0); bits &= bits - 1) {
        const uint32_t at = bits != 0 ? (uint32_t)__builtin_ctz(bits) : 0;
        const uint32_t row = wide_row(group * (GROUP_SUMS / 4) + at / 4, at % 2);
        const uint32_t query = at / 2 % 2 ? mine->query[1] : mine->query[0];
        wide_gather(args, kept, bits != 0, (uint64_t)query << 32 | (tile * WIDE_ROWS + row));
    }
}

/* Tests all sums of a tile. The compiler makes one instruction of a comparison and an or; a few chains of them hide how long a
 * comparison takes. */
DEVICE void wide_keep(const bool third, const screen_scan_args *args, const wide_mine *mine, const float *pairs,
                      const float *thirds, uint32_t tile, const int32_t *sums, wide_kept *kept)
{
    UNROLL
    for (uint32_t group = 0; group < WIDE_SUMS / GROUP_SUMS; group++) {
        const wide_measures rows = wide_load(third, pairs, thirds, group);
        bool any[CHAINS];
        UNROLL
        for (uint32_t at = 0; at < GROUP_SUMS; at++) {
            /* The products filled them all. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
            const bool keeps = wide_keeps(third, mine, &rows, at, sums[group * GROUP_SUMS + at]);
            any[at % CHAINS] = at < CHAINS ? keeps : any[at % CHAINS] | keeps;
        }
        if (wave_any((any[0] | any[1]) | (any[2] | any[3])))
            wide_gather_group(third, args, mine, &rows, tile, group, sums, kept);
    }
}

/* Leaves the best of the thread's 32 rows for each of its queries. */
DEVICE void wide_name(const screen_scan_args *args, const wide_mine *mine, const float *pairs, uint32_t number,
                      const int32_t *sums)
{
    const float worst = canon_bits_float(0xff800000u);
    float best[2] = {worst, worst};
    UNROLL
    for (uint32_t j = 0; j < WIDE_SUMS / 4; j++) {
        const f32x4 pair = wide_numbers(AT_RANGE(pairs, wide_row(j, 0) * 2, 4));
        if (!wave_any(pair.y > worst || pair.w > worst)) /* no row counts; and a branch keeps what follows from being hoisted */
            continue;
        UNROLL
        for (uint32_t at = 0; at < 4; at++) {
            const uint32_t i = at / 2, c = at % 2;
            const float product = (float)sums[j * 4 + at] * mine->scale[i];
            const float estimate = fma_f32(product, c == 0 ? pair.x : pair.z, c == 0 ? pair.y : pair.w);
            best[i] = __builtin_fmaxf(best[i], screen_labelled(estimate, j * 2 + c));
        }
    }
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t label = screen_label(best[i]), row = wide_row(label / 2, label % 2);
        if (mine->query[i] < args->queries.count)
            args->samples[((size_t)mine->query[i] * args->sample_tiles + number) * 4 + thread_index() % 4] =
                best[i] > worst ? canon_make_key(CANON_DOT, best[i], number * args->sample_stride * WIDE_ROWS + row)
                                : CANON_KEY_WORST;
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

DEVICE wide_mine wide_begin(const screen_scan_args *args)
{
    wide_mine mine;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        mine.query[i] = (block_index_y() * wide_teams() + thread_index() / WIDE_TEAM) * WIDE_QUERIES + wide_query(i);
        const screen_limit limit = screen_limit_of(&args->rows, &args->queries, mine.query[i], args->trust);
        mine.gate[i] = mine.query[i] < args->queries.count ? screen_gate_for(args->rows.metric, limit) : screen_gate_closed();
        mine.scale[i] = limit.scale;
    }
    return mine;
}

/* Closes the gates of queries whose lists are full. */
DEVICE void wide_brake(const screen_scan_args *args, wide_mine *mine)
{
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        if (mine->query[i] < args->queries.count && atomic_load_u32(&args->queries.counts[mine->query[i]]) > args->capacity)
            mine->gate[i] = screen_gate_closed();
}

/* All that a team does. */
DEVICE void wide_work(const bool sample, const bool third, const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t *queries = at->queries + thread_index() / WIDE_TEAM * (uint32_t)args->rows.runs * SCREEN_SLAB;
    ring_cursor cursor = {0, 0}, before = {0, 0};
    wide_mine mine = wide_begin(args);
    wide_kept kept;
    kept.entries = at->kept + wave_index() * wave_size();
    kept.count = 0;
    uint32_t slot = 0, turn = 0;
    ring_take(&at->whole, cursor);
    ring_give(&at->whole, cursor);
    for (uint32_t number = args->tile_begin + block_index(); number < args->tile_end; number += block_count()) {
        int32_t sums[WIDE_SUMS];
        UNROLL_BY(1)
        for (int32_t run = 0; run < args->rows.runs; run++) {
            ring_take(&at->codes, cursor);
            wide_multiply(queries + (uint32_t)run * SCREEN_SLAB, at->stages + cursor.stage * STAGE_WORDS, run != 0, sums);
            if (run > 0) {
                wide_wait_but_last();
                ring_give(&at->codes, before);
            }
            before = cursor;
            ring_next(&at->codes, &cursor);
        }
        wide_wait(sums);
        ring_give(&at->codes, before);
        const float *pairs = at->pairs + slot * (WIDE_ROWS * 2);
        if (sample)
            wide_name(args, &mine, pairs, number, sums);
        else
            wide_keep(third, args, &mine, pairs, at->thirds + slot * WIDE_ROWS, number, sums, &kept);
        if (!sample && ++turn % BRAKE_TILES == 0)
            wide_brake(args, &mine);
        slot = slot + 1 == at->slots ? 0 : slot + 1;
    }
    wide_flush(args, &kept);
}

DEVICE void screen_wgmma(const bool sample, const bool third, const screen_scan_args *args, uint32_t *dynamic)
{
    const wide_shared at = wide_layout(args, dynamic);
    ring_begin(&at.whole, 1, wide_teams() * WIDE_TEAM / wave_size());
    ring_begin(&at.codes, 1, wide_teams() * WIDE_TEAM / wave_size());
    if (thread_index() < wide_teams() * WIDE_TEAM) {
        RING_REGISTERS_MORE(112); /* of 96 that each of 640 threads has */
        wide_work(sample, third, args, &at);
    } else {
        RING_REGISTERS_FEWER(32);
        wide_feed_all(sample, third, args, &at);
    }
}

#define SCREEN_WGMMA(name, sample, third)                                                                                      \
    KERNEL_RESIDENT(name, screen_scan_args, SCREEN_WGMMA_THREADS(SCREEN_WGMMA_TEAMS_MOST), 1)                                  \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, dynamic);                                                                                     \
        screen_wgmma(sample, third, &args, dynamic);                                                                           \
    }

SCREEN_WGMMA(screen_wgmma_sample, true, false)
SCREEN_WGMMA(screen_wgmma_keep_2, false, false)
SCREEN_WGMMA(screen_wgmma_keep_3, false, true)

/* A thread a row, before the rest: what the rows have to do with the test. */
KERNEL(screen_measure_rows, screen_measure_args, SCREEN_THREADS)
{
    const uint32_t at = block_index() * block_size() + thread_index(), all = args.tiles * 128;
    const bool sample = at >= all;
    const uint32_t place_at = sample ? at - all : at;
    if (sample && place_at >= args.sample_tiles * 128)
        return;
    const uint32_t position = sample ? place_at / 128 * args.sample_stride * 128 + place_at % 128 : place_at;
    const uint32_t word = position / 64;
    screen_vector row;
    row.scale = row.residual = row.norm = 0.0f;
    bool counts = word < args.rows.word_count;
    if (counts) {
        const screen_place place = screen_place_of(&args.rows, word);
        const size_t within = position - place.word_begin * 64;
        row.scale = IN_GLOBAL(const float, place.segment->scales)[within];
        row.residual = IN_GLOBAL(const float, place.segment->residuals)[within];
        row.norm = IN_GLOBAL(const float, place.segment->norms)[within];
        counts = (screen_admitted(&args.rows, &place, word) >> position % 64 & 1) != 0;
    }
    if (sample) {
        const screen_guess guess = screen_guess_of(args.rows.metric, row);
        args.guesses[(size_t)place_at * 2] = counts ? guess.factor : 0.0f;
        args.guesses[(size_t)place_at * 2 + 1] = counts ? guess.more : canon_bits_float(0xff800000u);
        return;
    }
    const screen_measure measure =
        screen_measure_of(args.rows.metric, args.rows.runs * CANON_LANES, row, canon_bits_float(*args.rho), counts);
    args.pairs[(size_t)at * 2] = measure.first;
    args.pairs[(size_t)at * 2 + 1] = measure.second;
    if (args.rows.metric == CANON_L2)
        args.thirds[at] = measure.third;
}
