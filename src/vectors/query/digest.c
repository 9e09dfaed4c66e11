/* The digest of a collection in memory: the sum of its rows' checksums, as a store keeps it. */
#include "vectors/query/digest.h"
#include "arithmetic/row_types.h"
#include "arithmetic/row_values.h"
#include "base/checksum.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/query/fetch.h"

#include <string.h>

enum { ROWS_AT_ONCE = 1024 };

/* Results to hold the next rows after `row`, which becomes the last of them. */
static ww_status next_rows(const ww_collection *c, int64_t count, int64_t *row, ww_results **results)
{
    const ww_status status = results_create(1, count, results);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        *row = store_next(&c->store, *row);
        (*results)->rows[i] = *row;
        (*results)->scores[i] = 0.0f;
    }
    (*results)->starts[1] = count;
    return results_fetch(*results, c, WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS);
}

/* The sum over the rows of the results. `elements` has room for a vector in the collection's type. */
static uint64_t sum_rows(const ww_collection *c, const ww_results *results, void *elements)
{
    const size_t bytes = (size_t)c->dim * row_type_bytes((int32_t)c->type);
    uint64_t sum = 0;
    for (int64_t i = 0; i < ww_results_count(results, 0); i++) {
        const char *id = ww_results_id(results, 0, i), *payload = ww_results_payload(results, 0, i);
        const checksum_parts parts = {id, strlen(id), payload, payload ? strlen(payload) : 0, 0};
        (void)row_narrow((int32_t)c->type, ww_results_vector(results, 0, i), c->dim, elements); /* exact: it was widened */
        sum += checksum_row(checksum_entry(&parts), checksum_bytes(elements, bytes));
    }
    return sum;
}

ww_status memory_digest(ww_collection *c, uint64_t *digest)
{
    const size_t bytes = (size_t)c->dim * sizeof(float);
    void *elements = memory_alloc(bytes);
    ww_status status = elements ? WW_OK : memory_failed("a vector", bytes);
    uint64_t sum = 0;
    int64_t row = -1;
    collection_lock_read(c);
    for (int64_t left = c->store.rows_live; status == WW_OK && left > 0; left -= ROWS_AT_ONCE) {
        ww_results *some = NULL;
        status = next_rows(c, min_i64(left, ROWS_AT_ONCE), &row, &some);
        if (status == WW_OK)
            sum += sum_rows(c, some, elements);
        ww_results_destroy(some);
    }
    collection_unlock(c);
    memory_free(elements);
    if (status == WW_OK)
        *digest = sum;
    return status;
}

ww_status ww_collection_digest(ww_collection *collection, uint64_t *digest)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_digest");
    if (status != WW_OK)
        return status;
    return digest ? collection->operations->digest(collection, digest) : fail_null("ww_collection_digest", "digest");
}
