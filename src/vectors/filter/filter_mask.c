/* Tests a filter against every row. A word of the mask covers one page of payloads, so threads share no word. */
#include "vectors/filter/filter_mask.h"

#include <stdatomic.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/pool.h"
#include "device/backend.h"
#include "vectors/filter/filter.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/write/payloads.h"

enum {
    ITEM_WORDS = 16,       /* words that a thread fills at a time */
    WORDS_FOR_THREADS = 64 /* with fewer words, waking threads would take longer */
};

typedef struct mask_job {
    const ww_collection *collection;
    const row_store *store;
    const ww_query *query;
    const ww_filter *filter;
    uint64_t *mask;
    int64_t words;
    atomic_int failed; /* the status of the first payload for which there was not enough memory, or WW_OK */
} mask_job;

/* The bits of a word that the query's own mask admits. */
static uint64_t word_admitted(const ww_query *query, int64_t word)
{
    if (!query->mask)
        return ~UINT64_C(0);
    const int64_t rows = query->mask_rows - word * 64;
    if (rows <= 0)
        return 0;
    return query->mask[word] & (rows >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << rows) - 1);
}

static ww_status fill_word(const mask_job *job, int64_t word)
{
    const uint64_t admitted = word_admitted(job->query, word);
    for (int64_t bit = 0; bit < 64; bit++) {
        const int64_t row = word * 64 + bit;
        bool matches = false;
        if (row >= job->store->rows_count || !(admitted >> bit & 1) || !store_is_live(job->store, row))
            continue;
        char digits[HANDLE_DIGITS];
        const id_text id = collection_row_id(job->collection, row, digits);
        const filter_row held = {id.bytes, id.length, payload_get(job->store, row)};
        const ww_status status = filter_matches(job->filter, &held, &matches);
        if (status != WW_OK)
            return status;
        job->mask[word] |= (uint64_t)matches << bit;
    }
    return WW_OK;
}

static void fill_words(void *context, int64_t item, int32_t worker)
{
    mask_job *job = context;
    (void)worker;
    const int64_t end = min_i64((item + 1) * ITEM_WORDS, job->words);
    for (int64_t word = item * ITEM_WORDS; word < end && atomic_load(&job->failed) == WW_OK; word++) {
        const ww_status status = fill_word(job, word);
        if (status != WW_OK)
            atomic_store(&job->failed, (int)status);
    }
}

ww_status filter_mask_make(const ww_collection *collection, const ww_query *query, uint64_t **mask)
{
    mask_job job = {.collection = collection, .store = &collection->store, .query = query, .filter = query->filter};
    job.words = divide_up_i64(job.store->rows_count, 64);
    atomic_init(&job.failed, WW_OK);
    job.mask = memory_alloc_zeroed((size_t)job.words + 1, sizeof *job.mask);
    if (!job.mask)
        return memory_failed("a mask", ((size_t)job.words + 1) * sizeof *job.mask);
    const int64_t items = divide_up_i64(job.words, ITEM_WORDS);
    pool *threads = job.words >= WORDS_FOR_THREADS ? collection->device->backend->threads(collection->device) : NULL;
    if (threads)
        (void)pool_run(threads, items, fill_words, NULL, &job);
    else
        pool_run_here(items, fill_words, &job);
    *mask = job.mask;
    if (atomic_load(&job.failed) == WW_OK)
        return WW_OK;
    memory_free(job.mask);
    return ww_fail((ww_status)atomic_load(&job.failed), "filter: out of memory for the text of a payload");
}
