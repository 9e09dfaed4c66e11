/* The screen for many queries on chips that multiply from shared memory (simt/matrix_wgmma.h): int8 products of tiles of 128
 * rows x up to 256 queries, and the list of rows that may be among a query's best.
 *
 * Bits: products of codes are integers, and exact. The test (screen_product_min()) leaves a row out only if its bound, with the
 * rounding of the test itself, proves that it cannot be a hit (docs/design/exactness.md). Results come from exact scores later,
 * so this file decides how many rows are scored, and no bit. The order of a list is not fixed and does not matter.
 *
 * Three kernels of one body, screen_wgmma(), and one that prepares:
 *   screen_measure_rows   the two or three numbers of each row that the test needs, one thread per row
 *   screen_wgmma_sample   estimates for a sample of tiles; each thread leaves its best of 32 rows: thresholds come from these
 *   screen_wgmma_keep_2   all tiles: appends rows that pass the test to the queries' lists; cosine and dot need 2 numbers
 *   screen_wgmma_keep_3   the same for l2, with 3
 *
 * Who does what. A thread block, one per compute unit, keeps the codes of its queries in shared memory and walks over tiles:
 * number, number + block_count(), ... block_index_y() is the group of queries.
 *   feeding team    one thread of it fills a ring of stages of 64 bytes of each row by the copy engine (wgmma_feed_all())
 *   other teams     up to four of 128 threads have 64 queries each and run independently (wgmma_work()): while one tests its
 *                   sums, the tensor cores work for the others. wgmma_multiply() for each stage; then wgmma_keep() or
 *                   wgmma_name() for the tile
 *   thread          64 sums: 2 queries x 32 rows of the tile; the gates of its 2 queries stay in registers
 *
 * A sum costs two or three fma and a comparison. Eight are tested before a wave asks whether any is kept, because that is rare.
 * Each wave gathers kept rows (wgmma_gather()) and appends them when it has as many as lanes (wgmma_flush()), because a list's
 * length is an atomic in global memory. When a list is full, wgmma_brake() closes the query's gate, and the query will be
 * searched again (gpu/search/screen_round.c).
 *
 * Why so: tests and products use different units, so teams that are in different places of their work keep both busy. Loading
 * needs few registers and testing many, so the feeding team gives up some (RING_REGISTERS_FEWER).
 *
 * To change: the bound, arithmetic/screen.h; how many teams and stages fit, screen_args.h and gpu/search/screen_round.c; the
 * instruction, simt/matrix_wgmma.h. screen_batch.c and screen_mfma.c are the same screen on other chips.
 */
#include "kernels/screen/screen_limits.h"
#include "kernels/simt/matrix_wgmma.h"
#include "kernels/simt/ring.h"

enum {
    STAGE_WORDS = 2 * SCREEN_SLAB,
    GROUP_SUMS = 8,  /* sums tested together before a wave checks whether any is kept */
    CHAINS = 4,      /* independent chains of comparisons */
    BRAKE_TILES = 16 /* after this many a thread checks whether its queries' lists are full */
};

typedef struct wgmma_shared {
    uint32_t *queries; /* teams x chunks slabs */
    uint32_t *stages;  /* of STAGE_WORDS */
    float *pairs;      /* a slot of 128 x 2 for each tile in flight */
    float *thirds;     /* the same with 128 */
    uint64_t *kept;    /* one per thread of the block; those of a wave are adjacent */
    ring codes, whole; /* the stages; the queries */
    uint32_t slots;
} wgmma_shared;

/* Teams of 64 queries each; one more team loads. */
DEVICE uint32_t wgmma_teams(void)
{
    return block_size() / WGMMA_TEAM - 1;
}

DEVICE wgmma_shared wgmma_layout(const screen_scan_args *args, uint32_t *dynamic)
{
    const uint32_t chunks = (uint32_t)args->rows.chunks, stages = args->stages;
    wgmma_shared at;
    at.slots = SCREEN_WGMMA_SLOTS(chunks, stages);
    at.queries = wgmma_aligned(dynamic);
    at.stages = at.queries + wgmma_teams() * chunks * SCREEN_SLAB;
    at.pairs = (float *)(at.stages + stages * STAGE_WORDS);
    at.thirds = at.pairs + at.slots * (WGMMA_ROWS * 2);
    at.kept = (uint64_t *)(at.thirds + at.slots * WGMMA_ROWS);
    at.codes.full = at.kept + wgmma_teams() * WGMMA_TEAM;
    at.codes.empty = at.codes.full + stages;
    at.codes.stages = stages;
    at.whole.full = at.codes.empty + stages;
    at.whole.empty = at.whole.full + 1;
    at.whole.stages = 1;
    return at;
}

/* ---- feeding: by one thread ---------------------------------------------------------------------------------------------- */

typedef struct wgmma_feed {
    uint32_t number; /* index of the tile in the order of this block */
    uint32_t slot;
    int32_t chunk;
    ring_cursor at;
    segment_place place;
    const uint32_t *codes[2]; /* of the tile's two words */
} wgmma_feed;

/* Finds the words of the next tile; past the end, the last word stands in. */
DEVICE void wgmma_find(bool sample, const screen_scan_args *args, wgmma_feed *feed)
{
    UNROLL
    for (uint32_t w = 0; w < 2; w++) {
        uint32_t word = (sample ? feed->number * args->sample_stride : feed->number) * SCREEN_TILE_WORDS + w;
        word = word < args->rows.word_count ? word : args->rows.word_count - 1;
        if (!segment_place_has(&feed->place, word))
            feed->place = segment_place_of(&args->rows, word);
        feed->codes[w] = IN_GLOBAL(const uint32_t, feed->place.segment->codes) +
                         (size_t)(word - feed->place.word_begin) * (size_t)args->rows.chunks * SCREEN_SLAB;
    }
}

/* Loads the numbers of the tile's rows, with its first stage. */
DEVICE void wgmma_fetch_numbers(bool sample, bool third, const screen_scan_args *args, const wgmma_feed *feed,
                                const wgmma_shared *at)
{
    const float *pairs = sample ? args->guesses : args->pairs;
    ring_copy(&at->codes, feed->at, AT_RANGE(at->pairs, feed->slot * (WGMMA_ROWS * 2), WGMMA_ROWS * 2),
              pairs + (size_t)feed->number * (WGMMA_ROWS * 2), WGMMA_ROWS * 8);
    if (third)
        ring_copy(&at->codes, feed->at, AT_RANGE(at->thirds, feed->slot * WGMMA_ROWS, WGMMA_ROWS),
                  args->thirds + (size_t)feed->number * WGMMA_ROWS, WGMMA_ROWS * 4);
}

/* Starts to load the next stage, if there is one. */
DEVICE void wgmma_fetch(bool sample, bool third, const screen_scan_args *args, wgmma_feed *feed, const wgmma_shared *at)
{
    if (feed->number >= args->tile_end)
        return;
    if (feed->chunk == 0)
        wgmma_find(sample, args, feed);
    ring_acquire(&at->codes, feed->at);
    ring_expect(&at->codes, feed->at,
                feed->chunk != 0 ? STAGE_WORDS * 4
                : third          ? STAGE_WORDS * 4 + WGMMA_ROWS * 12
                                 : STAGE_WORDS * 4 + WGMMA_ROWS * 8);
    uint32_t *to = at->stages + feed->at.stage * STAGE_WORDS;
    UNROLL
    for (uint32_t w = 0; w < 2; w++)
        ring_copy(&at->codes, feed->at, AT_RANGE(to, w * SCREEN_SLAB, SCREEN_SLAB),
                  feed->codes[w] + (size_t)feed->chunk * SCREEN_SLAB, SCREEN_SLAB * 4);
    if (feed->chunk == 0)
        wgmma_fetch_numbers(sample, third, args, feed, at);
    ring_next(&at->codes, &feed->at);
    if (++feed->chunk == args->rows.chunks) {
        feed->chunk = 0;
        feed->number += block_count();
        feed->slot = feed->slot + 1 == at->slots ? 0 : feed->slot + 1;
    }
}

/* Loads the block's queries, once. */
DEVICE void wgmma_fetch_queries(const screen_scan_args *args, const wgmma_shared *at)
{
    const uint32_t words = (uint32_t)args->rows.chunks * SCREEN_SLAB; /* of 64 queries */
    const ring_cursor first = {0, 0};
    ring_expect(&at->whole, first, wgmma_teams() * words * 4);
    for (uint32_t team = 0; team < wgmma_teams(); team++)
        ring_copy(&at->whole, first, AT_RANGE(at->queries, team * words, words),
                  args->queries.codes + (block_index_y() * (size_t)wgmma_teams() + team) * words, words * 4);
}

/* Loads everything the block works on. The feeding team calls it, and its first thread does the work. */
DEVICE void wgmma_feed_all(bool sample, bool third, const screen_scan_args *args, const wgmma_shared *at)
{
    const bool feeds = thread_index() == wgmma_teams() * WGMMA_TEAM;
    wgmma_feed feed;
    feed.number = args->tile_begin + block_index();
    feed.slot = 0;
    feed.chunk = 0;
    feed.at.stage = feed.at.phase = 0;
    feed.place = segment_place_none(&args->rows);
    if (feeds) {
        wgmma_fetch_queries(args, at);
        for (uint32_t i = 1; i < at->codes.stages; i++)
            wgmma_fetch(sample, third, args, &feed, at);
    }
    ring_pass(&at->whole);
    for (uint32_t number = args->tile_begin + block_index(); number < args->tile_end; number += block_count())
        for (int32_t chunk = 0; chunk < args->rows.chunks; chunk++) {
            if (feeds)
                wgmma_fetch(sample, third, args, &feed, at);
            ring_pass(&at->codes);
        }
}

/* ---- kept rows ----------------------------------------------------------------------------------------------------------- */

/* The entries that a wave has gathered: queries in the upper halves, positions in the lower. */
typedef struct wgmma_kept {
    uint64_t *entries;
    uint32_t count; /* the same in all lanes */
} wgmma_kept;

/* Appends all gathered entries to the lists. A whole wave calls it. */
DEVICE void wgmma_flush(const screen_scan_args *args, wgmma_kept *kept)
{
    wave_barrier();
    if (lane() < kept->count) {
        const uint64_t entry = AT(kept->entries, lane());
        const uint32_t query = (uint32_t)(entry >> 32), position = (uint32_t)entry, word = position / 64;
        if (query < args->queries.count && word < args->rows.word_count) {
            const segment_place place = segment_place_of(&args->rows, word);
            if ((segment_admitted(&args->rows, place.segment, word - place.word_begin) >> position % 64 & 1) != 0) {
                const uint32_t at = atomic_add_u32(&args->queries.counts[query], 1);
                if (at < args->capacity)
                    args->lists[(size_t)query * args->capacity + at] = position;
            }
        }
    }
    wave_barrier();
    kept->count = 0;
}

/* Gathers the entries of lanes that have one. A whole wave calls it. */
DEVICE void wgmma_gather(const screen_scan_args *args, wgmma_kept *kept, bool has, uint64_t entry)
{
    const uint64_t ballot = wave_ballot(has);
    const uint32_t more = (uint32_t)__builtin_popcountll(ballot);
    if (kept->count + more > wave_size())
        wgmma_flush(args, kept);
    if (has)
        AT(kept->entries, kept->count + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1))) = entry;
    kept->count += more;
}

/* A thread's queries: their numbers in the search, and their gates; for a sample their scales. */
typedef struct wgmma_mine {
    uint32_t query[2];
    screen_gate gate[2];
    float scale[2];
} wgmma_mine;

/* The numbers of the rows of a group of a thread's sums. */
typedef struct wgmma_measures {
    f32x4 pair[GROUP_SUMS / 4]; /* of two rows each */
    float third[GROUP_SUMS / 2];
} wgmma_measures;

DEVICE wgmma_measures wgmma_load(bool third, const float *pairs, const float *thirds, uint32_t group)
{
    wgmma_measures loaded;
    UNROLL
    for (uint32_t j = 0; j < GROUP_SUMS / 4; j++) {
        const uint32_t first = wgmma_row(group * (GROUP_SUMS / 4) + j, 0);
        loaded.pair[j] = wgmma_numbers(AT_RANGE(pairs, first * 2, 4));
        loaded.third[2 * j] = third ? AT(thirds, first) : 0.0f;
        loaded.third[2 * j + 1] = third ? AT(thirds, first + 1) : 0.0f;
    }
    return loaded;
}

/* Whether sum `at` of the group is kept. */
DEVICE bool wgmma_keeps(bool third, const wgmma_mine *mine, const wgmma_measures *rows, uint32_t at, int32_t sum)
{
    const uint32_t j = at / 4, i = at / 2 % 2, c = at % 2;
    screen_measure measure;
    measure.first = c == 0 ? rows->pair[j].x : rows->pair[j].z;
    measure.second = c == 0 ? rows->pair[j].y : rows->pair[j].w;
    measure.third = rows->third[2 * j + c];
    return sum >= screen_product_min(mine->gate[i], measure, third);
}

/* Gathers the kept sums of a group. A whole wave calls it. */
DEVICE void wgmma_gather_group(const bool third, const screen_scan_args *args, const wgmma_mine *mine,
                               const wgmma_measures *rows, uint32_t tile, uint32_t group, const int32_t *sums, wgmma_kept *kept)
{
    uint32_t bits = 0;
    UNROLL
    for (uint32_t at = 0; at < GROUP_SUMS; at++)
        bits |= (uint32_t)wgmma_keeps(third, mine, rows, at, sums[group * GROUP_SUMS + at]) << at;
    for (; wave_any(bits != 0); bits &= bits - 1) {
        const uint32_t at = bits != 0 ? (uint32_t)__builtin_ctz(bits) : 0;
        const uint32_t row = wgmma_row(group * (GROUP_SUMS / 4) + at / 4, at % 2);
        const uint32_t query = at / 2 % 2 ? mine->query[1] : mine->query[0];
        wgmma_gather(args, kept, bits != 0, (uint64_t)query << 32 | (tile * WGMMA_ROWS + row));
    }
}

/* Tests all sums of a tile. The compiler merges a comparison and an or into one instruction; several independent chains hide
 * its latency. */
DEVICE void wgmma_keep(const bool third, const screen_scan_args *args, const wgmma_mine *mine, const float *pairs,
                       const float *thirds, uint32_t tile, const int32_t *sums, wgmma_kept *kept)
{
    UNROLL
    for (uint32_t group = 0; group < WGMMA_SUMS / GROUP_SUMS; group++) {
        const wgmma_measures rows = wgmma_load(third, pairs, thirds, group);
        bool any[CHAINS];
        UNROLL
        for (uint32_t at = 0; at < GROUP_SUMS; at++) {
            /* The products have filled all sums. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
            const bool keeps = wgmma_keeps(third, mine, &rows, at, sums[group * GROUP_SUMS + at]);
            any[at % CHAINS] = at < CHAINS ? keeps : any[at % CHAINS] | keeps;
        }
        if (wave_any((any[0] | any[1]) | (any[2] | any[3])))
            wgmma_gather_group(third, args, mine, &rows, tile, group, sums, kept);
    }
}

/* Leaves the best of the thread's 32 rows for each of its queries. */
DEVICE void wgmma_name(const screen_scan_args *args, const wgmma_mine *mine, const float *pairs, uint32_t number,
                       const int32_t *sums)
{
    const float worst = canon_bits_float(0xff800000u);
    float best[2] = {worst, worst};
    UNROLL
    for (uint32_t j = 0; j < WGMMA_SUMS / 4; j++) {
        const f32x4 pair = wgmma_numbers(AT_RANGE(pairs, wgmma_row(j, 0) * 2, 4));
        if (!wave_any(pair.y > worst ||
                      pair.w > worst)) /* no row is admitted; the branch also keeps later code from being hoisted */
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
        const uint32_t label = screen_label(best[i]), row = wgmma_row(label / 2, label % 2);
        if (mine->query[i] < args->queries.count)
            args->samples[((size_t)mine->query[i] * args->sample_tiles + number) * 4 + thread_index() % 4] =
                best[i] > worst ? canon_make_key(CANON_DOT, best[i], number * args->sample_stride * WGMMA_ROWS + row)
                                : CANON_KEY_WORST;
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

DEVICE wgmma_mine wgmma_begin(const screen_scan_args *args)
{
    wgmma_mine mine;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        mine.query[i] = (block_index_y() * wgmma_teams() + thread_index() / WGMMA_TEAM) * WGMMA_QUERIES + wgmma_query(i);
        const screen_limit limit = screen_limit_of(&args->rows, &args->queries, mine.query[i]);
        mine.gate[i] = mine.query[i] < args->queries.count ? screen_gate_for(args->rows.metric, limit) : screen_gate_closed();
        mine.scale[i] = limit.scale;
    }
    return mine;
}

/* Closes the gates of queries whose lists are full. */
DEVICE void wgmma_brake(const screen_scan_args *args, wgmma_mine *mine)
{
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        if (mine->query[i] < args->queries.count && atomic_load_u32(&args->queries.counts[mine->query[i]]) > args->capacity)
            mine->gate[i] = screen_gate_closed();
}

/* The whole work of a team. */
DEVICE void wgmma_work(const bool sample, const bool third, const screen_scan_args *args, const wgmma_shared *at)
{
    const uint32_t *queries = at->queries + thread_index() / WGMMA_TEAM * (uint32_t)args->rows.chunks * SCREEN_SLAB;
    ring_cursor cursor = {0, 0}, before = {0, 0};
    wgmma_mine mine = wgmma_begin(args);
    wgmma_kept kept;
    kept.entries = at->kept + wave_index() * wave_size();
    kept.count = 0;
    uint32_t slot = 0, tiles = 0;
    ring_await(&at->whole, cursor);
    ring_release(&at->whole, cursor);
    for (uint32_t number = args->tile_begin + block_index(); number < args->tile_end; number += block_count()) {
        int32_t sums[WGMMA_SUMS];
        UNROLL_BY(1)
        for (int32_t chunk = 0; chunk < args->rows.chunks; chunk++) {
            ring_await(&at->codes, cursor);
            wgmma_multiply(queries + (uint32_t)chunk * SCREEN_SLAB, at->stages + cursor.stage * STAGE_WORDS, chunk != 0, sums);
            if (chunk > 0) {
                wgmma_wait_but_last();
                ring_release(&at->codes, before);
            }
            before = cursor;
            ring_next(&at->codes, &cursor);
        }
        wgmma_wait(sums);
        ring_release(&at->codes, before);
        const float *pairs = at->pairs + slot * (WGMMA_ROWS * 2);
        if (sample)
            wgmma_name(args, &mine, pairs, number, sums);
        else
            wgmma_keep(third, args, &mine, pairs, at->thirds + slot * WGMMA_ROWS, number, sums, &kept);
        if (!sample && ++tiles % BRAKE_TILES == 0)
            wgmma_brake(args, &mine);
        slot = slot + 1 == at->slots ? 0 : slot + 1;
    }
    wgmma_flush(args, &kept);
}

DEVICE void screen_wgmma(const bool sample, const bool third, const screen_scan_args *args, uint32_t *dynamic)
{
    const wgmma_shared at = wgmma_layout(args, dynamic);
    ring_begin(&at.whole, 1, wgmma_teams() * WGMMA_TEAM / wave_size());
    ring_begin(&at.codes, 1, wgmma_teams() * WGMMA_TEAM / wave_size());
    if (thread_index() < wgmma_teams() * WGMMA_TEAM) {
        RING_REGISTERS_MORE(112); /* up from the 96 that each of 640 threads has */
        wgmma_work(sample, third, args, &at);
    } else {
        RING_REGISTERS_FEWER(32);
        wgmma_feed_all(sample, third, args, &at);
    }
}

#define SCREEN_WGMMA(name, sample, third)                                                                                      \
    KERNEL_RESIDENT(name, screen_scan_args, SCREEN_WGMMA_THREADS(SCREEN_WGMMA_TEAMS_MAX), 1)                                   \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, dynamic);                                                                                     \
        screen_wgmma(sample, third, &args, dynamic);                                                                           \
    }

SCREEN_WGMMA(screen_wgmma_sample, true, false)
SCREEN_WGMMA(screen_wgmma_keep_2, false, false)
SCREEN_WGMMA(screen_wgmma_keep_3, false, true)

/* Computes the numbers of rows for the test, before the other kernels. One thread per row. */
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
        const segment_place place = segment_place_of(&args.rows, word);
        const size_t within = position - place.word_begin * 64;
        row.scale = IN_GLOBAL(const float, place.segment->scales)[within];
        row.residual = IN_GLOBAL(const float, place.segment->residuals)[within];
        row.norm = IN_GLOBAL(const float, place.segment->norms)[within];
        counts = (segment_admitted(&args.rows, place.segment, word - place.word_begin) >> position % 64 & 1) != 0;
    }
    if (sample) {
        const screen_guess guess = screen_guess_of(args.rows.metric, row);
        args.guesses[(size_t)place_at * 2] = counts ? guess.factor : 0.0f;
        args.guesses[(size_t)place_at * 2 + 1] = counts ? guess.more : canon_bits_float(0xff800000u);
        return;
    }
    const screen_measure measure =
        screen_measure_of(args.rows.metric, args.rows.chunks * CANON_LANES, row, canon_bits_float(*args.rho), counts);
    args.pairs[(size_t)at * 2] = measure.first;
    args.pairs[(size_t)at * 2 + 1] = measure.second;
    if (args.rows.metric == CANON_L2)
        args.thirds[at] = measure.third;
}
