/* Collections with an index, for tests (indexed.h). It reads the index's internals, because callers cannot see lists. */
#include "support/data/indexed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors/ivf/ivf.h"

void clustered_rows(test_random *random, float *rows, int64_t count, int32_t dim, int32_t centers, ww_vector_type type)
{
    float *places = malloc((size_t)centers * (size_t)dim * sizeof *places);
    for (int64_t i = 0; i < (int64_t)centers * dim; i++)
        places[i] = (float)random_below(random, 161) - 80.0f;
    for (int64_t r = 0; r < count; r++) {
        const float *center = places + (int64_t)random_below(random, (uint64_t)centers) * dim;
        for (int32_t i = 0; i < dim; i++)
            rows[r * dim + i] = center[i] + (float)random_below(random, 41) - 20.0f + (type == WW_VECTOR_U8 ? 100.0f : 0.0f);
    }
    free(places);
}

ww_collection *collection_of(ww_device *device, const ww_collection_config *config, const float *rows, int64_t count)
{
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, config, &c));
    for (int64_t done = 0; done < count;) {
        ww_rows some = ww_rows_default();
        some.count = count - done < 300 ? count - done : 300;
        some.dim = config->dim;
        some.vectors = rows + done * config->dim;
        CHECK_OK(ww_collection_add(c, &some));
        done += some.count;
    }
    return c;
}

void index_build(ww_collection *collection, int64_t nlist)
{
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = nlist;
    config.iterations = 2;
    config.seed = 7;
    CHECK_OK(ww_collection_build_ivf(collection, &config));
}

void check_same_index(ww_collection *a, ww_collection *b)
{
    const ivf *x = a->index, *y = b->index;
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(x->nlist, y->nlist);
    assert_int_equal(x->rows, y->rows);
    assert_memory_equal(x->centroids, y->centroids, (size_t)x->nlist * (size_t)x->dim * sizeof *x->centroids);
    for (int64_t l = 0; l < x->nlist; l++) {
        assert_int_equal(x->lists[l].count, y->lists[l].count);
        if (x->lists[l].count == 0)
            continue;
        assert_memory_equal(x->lists[l].rows, y->lists[l].rows, (size_t)x->lists[l].count * sizeof *x->lists[l].rows);
        assert_memory_equal(&x->lists[l].farthest, &y->lists[l].farthest, sizeof x->lists[l].farthest);
        assert_memory_equal(&x->lists[l].nearest, &y->lists[l].nearest, sizeof x->lists[l].nearest);
        assert_int_equal(x->lists[l].unbounded, y->lists[l].unbounded);
    }
}

void check_index_is_whole(ww_collection *collection)
{
    const ivf *index = collection->index;
    const row_store *store = &collection->store;
    uint8_t *seen = calloc((size_t)store->rows_count + 1, 1);
    int64_t rows = 0;
    assert_non_null(index);
    const proof_extremes extremes = proof_extremes_of(collection->index);
    for (int64_t l = 0; l < index->nlist; l++) {
        const ivf_list *list = &index->lists[l];
        const bool l2 = index->assigned == CANON_L2;
        rows += list->count;
        if (list->count > 0) {
            assert_true(l2 ? list->farthest <= extremes.farthest : list->farthest >= extremes.farthest);
            assert_true(extremes.unbounded || !list->unbounded);
        }
        for (int64_t i = 0; i < list->count; i++) {
            assert_true(list->rows[i] < store->rows_count);
            assert_true(i == 0 || list->rows[i - 1] < list->rows[i]);
            assert_int_equal(seen[list->rows[i]]++, 0);
        }
    }
    assert_int_equal(rows, index->rows);
    assert_int_equal(index->store.rows_count, index->nlist);
    for (int64_t row = 0; row < store->rows_count; row++)
        assert_true(seen[row] || !store_is_live(store, row));
    free(seen);
}

ww_results *query_lists(ww_collection *collection, const float *queries, int64_t count, int32_t k, int64_t nprobe)
{
    ww_results *results = NULL;
    ww_query asked = ww_query_default();
    asked.queries = queries;
    asked.query_count = count;
    asked.dim = collection->dim;
    asked.k = k;
    asked.nprobe = nprobe;
    CHECK_OK(ww_collection_query(collection, &asked, &results));
    return results;
}

void check_same_results(const ww_results *a, const ww_results *b)
{
    assert_int_equal(ww_results_query_count(a), ww_results_query_count(b));
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        const size_t count = (size_t)ww_results_count(a, q);
        assert_int_equal(count, ww_results_count(b, q));
        if (count == 0)
            continue;
        assert_memory_equal(ww_results_rows(a, q), ww_results_rows(b, q), count * sizeof(int64_t));
        assert_memory_equal(ww_results_scores(a, q), ww_results_scores(b, q), count * sizeof(float));
    }
}
