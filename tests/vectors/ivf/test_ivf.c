/* The lists of an index: the same on every device, from k-means that never makes them worse, and what a build refuses. */
#include <math.h>

#include "vectors/ivf/indexed_scene.h"

/* ---- lists ------------------------------------------------------------------------------------------------------------------
 */

static void lists_are_the_same_on_every_device(void **state)
{
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TYPES; t++) {
            if (!is_tried(*state, m, t) || (device_is_slow(*state) && t > 2))
                continue;
            const ww_collection_config config = config_of(metrics[m], types[t]);
            scene *s = scene_of(*state, &config);
            check_index_is_whole(s->collection);
            check_same_index(s->collection, s->on_cpu);
            scene_free(s);
        }
}

/* Lengths at the limits of what bounds hold for, in steps that roundings of the canonical length cannot tell apart. */
static void lengths_out_of_range_are_found_alike_on_every_device(void **state)
{
    static const float limits[] = {0x1p-40f, 0x1p60f};
    const ww_collection_config config = config_of(WW_COSINE, WW_VECTOR_F32);
    for (int limit = 0; limit < 2; limit++)
        for (int step = -3; step <= 3; step++) {
            scene *s = calloc(1, sizeof *s);
            test_random random = {29};
            clustered_rows(&random, s->rows, COUNT, DIM, 9, WW_VECTOR_F32);
            float *row = s->rows + 100 * DIM, length = limits[limit] * (1.0f + (float)step * 0x1p-22f);
            memset(row, 0, DIM * sizeof *row);
            row[0] = step == 3 ? 4.0f * length : step == -3 ? length / 4.0f : 0.6f * length;
            row[1] = 0.8f * length;
            CHECK_OK(ww_device_open("cpu", &s->cpu));
            s->collection = collection_of(*state, &config, s->rows, COUNT);
            s->on_cpu = collection_of(s->cpu, &config, s->rows, COUNT);
            index_build(s->collection, NLIST);
            index_build(s->on_cpu, NLIST);
            check_same_index(s->collection, s->on_cpu);
            if (step == 3 || step == -3)
                assert_int_equal(proof_extremes_of(s->collection->index).unbounded, (step > 0) == (limit == 1));
            scene_free(s);
        }
}

static void rows_are_in_the_list_of_their_nearest_centroid(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    const ivf *index = s->collection->index;
    assert_int_equal(index->lists_split, 0); /* else rows of other lists may be nearer to the new ones */
    for (int64_t l = 0; l < index->nlist; l++)
        for (int64_t i = 0; i < index->lists[l].count; i++) {
            const float *row = s->rows + (int64_t)index->lists[l].rows[i] * DIM;
            float mine, other;
            CHECK_OK(ww_score(WW_L2, row, index->centroids + l * DIM, DIM, &mine));
            assert_true(mine <= index->lists[l].farthest && mine >= index->lists[l].nearest);
            for (int64_t o = 0; o < index->nlist; o++) {
                CHECK_OK(ww_score(WW_L2, row, index->centroids + o * DIM, DIM, &other));
                assert_true(other > mine || (other == mine && o >= l));
            }
        }
    scene_free(s);
}

static void another_seed_gives_other_lists(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config other = ww_ivf_config_default();
    other.nlist = NLIST;
    other.sample_rows = 300;
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    const size_t bytes = NLIST * DIM * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, s->on_cpu->index->centroids, bytes);
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    assert_memory_equal(before, s->on_cpu->index->centroids, bytes);
    other.seed = 1;
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    assert_memory_not_equal(before, s->on_cpu->index->centroids, bytes);
    free(before);
    scene_free(s);
}

static void more_iterations_never_raise_the_loss(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    double last = INFINITY;
    for (int32_t i = 1; i < (device_is_slow(*state) ? 4 : 6); i++) {
        ww_ivf_config asked = ww_ivf_config_default();
        ww_ivf_info info = ww_ivf_info_default();
        asked.nlist = NLIST;
        asked.iterations = i; /* the sample is all rows */
        CHECK_OK(ww_collection_build_ivf(s->on_cpu, &asked));
        CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &info));
        assert_true(info.loss > 0.0 && info.loss <= last);
        last = info.loss;
    }
    scene_free(s);
}

/* Most rows are equal, so most of the first centroids are, too, and their lists have no rows. Each gets a row that is far away,
 * until every value has its own list. */
static void lists_without_rows_get_others(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    ww_ivf_config asked = ww_ivf_config_default();
    ww_ivf_info info = ww_ivf_info_default();
    ww_device *cpu = NULL;
    float *rows = malloc(COUNT * DIM * sizeof *rows);
    (void)state;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int64_t i = 0; i < COUNT * DIM; i++)
        rows[i] = i / DIM < 300 ? 0.0f : (float)(10 * (1 + i / DIM % (NLIST - 1)));
    ww_collection *c = collection_of(cpu, &config, rows, COUNT);
    asked.nlist = NLIST;
    asked.iterations = 30;
    CHECK_OK(ww_collection_build_ivf(c, &asked));
    CHECK_OK(ww_collection_describe_ivf(c, &info));
    assert_int_equal(info.nlist, NLIST);
    assert_true(info.loss == 0.0);
    for (int64_t l = 0; l < NLIST; l++)
        assert_true(c->index->lists[l].count > 0);
    ww_collection_destroy(c);
    ww_device_close(cpu);
    free(rows);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------------------
 */

static int stop_at_half(int64_t done, int64_t total, void *user)
{
    long long *most = user;
    assert_true(done >= *most && done <= total);
    *most = done;
    return done * 2 >= total;
}

static void a_cancelled_build_leaves_the_old_index(void **state)
{
    const ww_collection_config config = config_of(WW_DOT, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config asked = ww_ivf_config_default();
    long long most = 0;
    asked.nlist = 5;
    asked.progress = stop_at_half;
    asked.progress_user = &most;
    CHECK_FAILS(WW_CANCELLED, ww_collection_build_ivf(s->collection, &asked));
    assert_true(most > 0);
    check_same_index(s->collection, s->on_cpu);
    scene_free(s);
}

static void impossible_arguments_are_refused(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config asked = ww_ivf_config_default();
    ww_ivf_info info = ww_ivf_info_default();
    ww_query query = ww_query_default();
    ww_results *results = NULL;
    asked.nlist = COUNT + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked.nlist = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked = ww_ivf_config_default();
    asked.iterations = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked.iterations = 0;
    asked.sample_rows = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_build_ivf(NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_describe_ivf(s->collection, NULL));
    check_same_index(s->collection, s->on_cpu);
    query.queries = s->queries;
    query.query_count = 1;
    query.dim = DIM;
    query.nprobe = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(s->collection, &query, &results));
    query.nprobe = 1;
    query.mode = WW_QUERY_RANGE;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->collection, &query, &results));
    query.mode = WW_QUERY_NEAREST;
    query.k = 3;
    CHECK_OK(ww_collection_drop_ivf(s->collection));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->collection, &query, &results));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_drop_ivf(s->collection));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(s->collection, &info));
    CHECK_OK(ww_collection_clear(s->collection));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_build_ivf(s->collection, NULL));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_same_on_every_device),
        cmocka_unit_test(lengths_out_of_range_are_found_alike_on_every_device),
        cmocka_unit_test(rows_are_in_the_list_of_their_nearest_centroid),
        cmocka_unit_test(another_seed_gives_other_lists),
        cmocka_unit_test(more_iterations_never_raise_the_loss),
        cmocka_unit_test(lists_without_rows_get_others),
        cmocka_unit_test(a_cancelled_build_leaves_the_old_index),
        cmocka_unit_test(impossible_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("ivf", tests);
}
