/* The screen for queries that read some lists of an index, one query or thousands.
 *
 * An item is a part of a list and up to four of the queries that read it, so a list's codes come from memory once for all its
 * queries, or from the cache for the four after the first. A block takes an item, and its waves share the words of 64 rows
 * (screen_small.h). An entry has the number of its row. Samples and lists contain these numbers, so the later kernels
 * (screen_score.c) find vectors in the segments as usual.
 *
 * Whether a row is live and admitted is looked up in the segments: for every row in a sample, otherwise only for kept rows.
 */
#include "kernels/screen/screen_small.h"
#include "kernels/search/pack_row.h"

/* ---- filling lists ------------------------------------------------------------------------------------------------------- */

KERNEL(screen_lists_gather, screen_lists_gather_args, SCREEN_THREADS)
{
    const screen_list_page page = IN_GLOBAL(const screen_list_page, args.pages)[block_index()];
    const kernel_list list = IN_GLOBAL(const kernel_list, args.lists)[page.list];
    const int32_t chunks = args.rows.chunks;
    const uint32_t piece = (uint32_t)group_lane() / 4, word = (uint32_t)group_lane() % 4;
    for (uint32_t i = group_index(); i < page.count; i += SCREEN_THREADS / PACKED_GROUPS) {
        const uint32_t number = IN_GLOBAL(const uint32_t, args.numbers)[(size_t)block_index() * 64 + i], at = page.first + i;
        const segment_place place = segment_place_of(&args.rows, number / 64);
        const uint32_t row = number - place.word_begin * 64;
        const kernel_segment *from = place.segment;
        for (int32_t chunk = 0; chunk < chunks; chunk++)
            IN_GLOBAL(uint32_t, list.codes)
        [screen_code_at(chunks, at, chunk, piece) + word] =
            IN_GLOBAL(const uint32_t, from->codes)[screen_code_at(chunks, row, chunk, piece) + word];
        if (group_lane() == 0) {
            IN_GLOBAL(float, list.scales)[at] = IN_GLOBAL(const float, from->scales)[row];
            IN_GLOBAL(float, list.residuals)[at] = IN_GLOBAL(const float, from->residuals)[row];
            IN_GLOBAL(float, list.norms)[at] = IN_GLOBAL(const float, from->norms)[row];
            IN_GLOBAL(uint32_t, list.numbers)[at] = number;
        }
    }
}

/* ---- reading them -------------------------------------------------------------------------------------------------------- */

/* A block's item, in shared memory. */
typedef struct lists_shared {
    screen_limit *limits; /* SCREEN_LIST_QUERIES; past the item's queries they discard everything */
    uint32_t *slots;      /* slots of the queries, as many; past the item's queries the first again */
    uint32_t *buckets;    /* as many */
} lists_shared;

DEVICE bool lists_admits(const kernel_rows *rows, uint32_t number)
{
    const segment_place place = segment_place_of(rows, number / 64);
    return (segment_admitted(rows, place.segment, number / 64 - place.word_begin) >> number % 64 & 1) != 0;
}

/* All threads call it; it ends with a barrier. */
DEVICE void lists_take_item(const bool sample, const screen_lists_args *args, const screen_list_item *item,
                            const lists_shared *at)
{
    barrier(); /* all threads are done with the last item */
    if (thread_index() < SCREEN_LIST_QUERIES) {
        const bool real = thread_index() < item->pairs;
        const screen_list_pair pair =
            IN_GLOBAL(const screen_list_pair, args->pairs)[item->first_pair + (real ? thread_index() : 0)];
        const uint32_t query = real ? pair.query : UINT32_MAX;
        AT(at->slots, thread_index()) = pair.query;
        AT(at->buckets, thread_index()) = pair.bucket;
        AT(at->limits, thread_index()) =
            sample ? screen_estimate_of(&args->queries, query) : screen_limit_of_codes(&args->rows, &args->queries, query);
    }
    barrier();
}

/* Records the best of each 32 of the wave's entries, which start at `first`, for query q of the item. */
DEVICE void lists_name(const screen_lists_args *args, const lists_shared *at, const kernel_list *list, uint32_t q,
                       uint32_t first, float estimate)
{
    const float worst = canon_bits_float(0xff800000u);
    float best = __builtin_fmaxf(worst, screen_labelled(estimate, small_own() % SCREEN_BUCKET_ROWS));
    UNROLL
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        best = __builtin_fmaxf(best, wave_shuffle_xor_f32(best, mask));
    if (lane() % SCREEN_BUCKET_ROWS != 0)
        return;
    const uint32_t bucket = AT(at->buckets, q) + (first + lane()) / SCREEN_BUCKET_ROWS;
    const uint32_t entry = first + lane() + screen_label(best);
    args->samples[(size_t)AT(at->slots, q) * args->buckets + bucket] =
        best > worst ? canon_make_key(CANON_DOT, best, IN_GLOBAL(const uint32_t, list->numbers)[entry]) : CANON_KEY_WORST;
}

/* Appends the entries that a query keeps. A whole wave calls it. */
DEVICE void lists_append(const screen_lists_args *args, uint32_t query, bool kept, uint32_t number)
{
    const uint64_t ballot = wave_ballot(kept);
    if (ballot == 0)
        return;
    uint32_t first = 0;
    if (lane() == 0)
        first = atomic_add_u32(&args->queries.counts[query], (uint32_t)__builtin_popcountll(ballot));
    const uint32_t at = wave_shuffle_u32(first, 0) + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1));
    if (kept && at < args->capacity)
        args->kept[(size_t)query * args->capacity + at] = number;
}

/* Looks up the lane's row once for all queries. */
DEVICE void lists_name_all(const screen_lists_args *args, const screen_list_item *item, const kernel_list *list,
                           const lists_shared *at, uint32_t first, const screen_vector *row, const int32_t *products)
{
    const uint32_t mine = first + small_own();
    const bool valid = mine < list->count;
    const bool counts = valid && (args->all_count || lists_admits(&args->rows, IN_GLOBAL(const uint32_t, list->numbers)[mine]));
    const screen_guess guess = screen_guess_of(args->rows.metric, *row);
    UNROLL
    for (uint32_t q = 0; q < SCREEN_LIST_QUERIES; q++) {
        if (q >= item->pairs)
            continue;
        const screen_limit limit = AT(at->limits, q);
        const float estimate = fma_f32(fma_f32((float)products[q], limit.scale, limit.h), guess.factor, guess.more);
        lists_name(args, at, list, q, first, counts ? estimate : canon_bits_float(0xff800000u));
    }
}

/* First finds which queries keep the lane's entry, one bit each; usually none does. */
DEVICE void lists_append_all(const screen_lists_args *args, const screen_list_item *item, const kernel_list *list,
                             const lists_shared *at, uint32_t mine, const screen_vector *row, const int32_t *products)
{
    uint32_t kept = 0, number = 0;
    UNROLL
    for (uint32_t q = 0; q < SCREEN_LIST_QUERIES; q++) {
        const screen_limit limit = AT(at->limits, q);
        kept |= (uint32_t)!(screen_value(limit, *row, (float)products[q]) < limit.h) << q;
    }
    kept = mine < list->count ? kept : 0;
    if (kept != 0) {
        number = IN_GLOBAL(const uint32_t, list->numbers)[mine];
        kept = args->all_count || lists_admits(&args->rows, number) ? kept : 0;
    }
    UNROLL_BY(1)
    for (uint32_t q = 0; q < item->pairs; q++)
        lists_append(args, AT(at->slots, q), (kept >> q & 1) != 0, number);
}

/* Processes one entry per lane of the wave, starting at `first`. */
DEVICE void lists_entries(const bool sample, const screen_lists_args *args, const screen_list_item *item,
                          const kernel_list *list, const lists_shared *at, uint32_t first)
{
    /* A zero unknown to the compiler: it must read shared memory each time instead of keeping the values in registers. */
    const uint32_t zero = wave_shuffle_u32(0, 0);
    const lists_shared again = {at->limits + zero, at->slots + zero, at->buckets + zero};
    const uint32_t mine = first + small_own();
    const small_queries from = small_queries_of(&args->rows, &args->queries, again.slots);
    screen_vector row;
    row.scale = IN_GLOBAL(const float, list->scales)[mine];
    row.norm = IN_GLOBAL(const float, list->norms)[mine];
    row.residual = sample ? 0.0f : IN_GLOBAL(const float, list->residuals)[mine];
    int32_t products[SCREEN_LIST_QUERIES];
    small_products(SCREEN_LIST_QUERIES, &from,
                   IN_GLOBAL(const uint32_t, list->codes) + (size_t)(first / 64) * (size_t)args->rows.chunks * SCREEN_SLAB,
                   first % 64, products);
    if (sample)
        lists_name_all(args, item, list, &again, first, &row, products);
    else
        lists_append_all(args, item, list, &again, mine, &row, products);
}

DEVICE void screen_lists(const bool sample, const screen_lists_args *args, const lists_shared *at)
{
    const uint32_t pieces = 64 / wave_size(); /* per word */
    UNROLL_BY(1)
    for (uint32_t number = block_index(); number < args->item_count; number += block_count()) {
        const screen_list_item item = IN_GLOBAL(const screen_list_item, args->items)[number];
        const kernel_list list = IN_GLOBAL(const kernel_list, args->lists)[item.list];
        lists_take_item(sample, args, &item, at);
        UNROLL_BY(1)
        for (uint32_t piece = wave_index(); piece < item.words * pieces; piece += waves_per_block())
            lists_entries(sample, args, &item, &list, at, item.first_word * 64 + piece * wave_size());
    }
}

#define SCREEN_LISTS(name, sample)                                                                                             \
    KERNEL_RESIDENT(name, screen_lists_args, SCREEN_THREADS, 2)                                                                \
    {                                                                                                                          \
        SHARED(screen_limit, limits, SCREEN_LIST_QUERIES);                                                                     \
        SHARED(uint32_t, slots, SCREEN_LIST_QUERIES);                                                                          \
        SHARED(uint32_t, buckets, SCREEN_LIST_QUERIES);                                                                        \
        const lists_shared at = {limits, slots, buckets};                                                                      \
        screen_lists(sample, &args, &at);                                                                                      \
    }

SCREEN_LISTS(screen_lists_sample, true)
SCREEN_LISTS(screen_lists_keep, false)
