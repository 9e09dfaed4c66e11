/* An index follows every write: new rows enter their lists, large lists are split, and the index moves with its collection. */
#include "vectors/ivf/indexed_scene.h"

static void add_some(ww_collection *c, const float *rows, int64_t count, const char *const *ids)
{
    ww_rows some = ww_rows_default();
    some.count = count;
    some.dim = DIM;
    some.vectors = rows;
    some.ids = ids;
    CHECK_OK(ids ? ww_collection_upsert(c, &some) : ww_collection_add(c, &some));
}

static void the_index_follows_every_write(void **state)
{
    const char *replaced[] = {"4", "340", "77"}, *gone[] = {"5", "351", "64"};
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 0))
            continue;
        const ww_collection_config config = config_of(metrics[m], WW_VECTOR_F32);
        scene *s = scene_of(*state, &config);
        ww_collection *both[] = {s->collection, s->on_cpu};
        for (int i = 0; i < 2; i++) {
            add_some(both[i], s->queries, QUERIES, NULL);
            add_some(both[i], s->queries, 3, replaced);
            CHECK_OK(ww_collection_remove(both[i], gone, 3));
            check_index_is_whole(both[i]);
            ww_results *found = query_lists(both[i], s->queries + 2 * DIM, 1, 1, 1);
            if (metrics[m] != WW_DOT) /* a row is its own nearest, and in the nearest list */
                assert_int_equal(ww_results_rows(found, 0)[0], COUNT + 2);
            ww_results_destroy(found);
            CHECK_OK(ww_collection_compact(both[i], NULL, NULL));
            check_index_is_whole(both[i]);
            assert_int_equal(both[i]->index->rows, both[i]->store.rows_live);
        }
        check_same_index(both[0], both[1]);
        ww_ivf_info info = ww_ivf_info_default();
        CHECK_OK(ww_collection_describe_ivf(s->collection, &info));
        assert_int_equal(info.rows_added, QUERIES + 3);
        assert_int_equal(info.rows, COUNT + QUERIES - 3);
        CHECK_OK(ww_collection_clear(s->collection));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(s->collection, &info));
        scene_free(s);
    }
}

static void a_list_that_grows_is_split(void **state)
{
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 1))
            continue;
        const ww_collection_config config = config_of(metrics[m], WW_VECTOR_F32);
        scene *s = scene_of(*state, &config);
        test_random random = {11};
        enum { MORE = 800 };
        float *near = malloc(MORE * DIM * sizeof *near);
        for (int64_t i = 0; i < MORE * DIM; i++) /* all near one row, all different */
            near[i] = s->rows[i % DIM] + random_normal(&random);
        for (int64_t done = 0; done < MORE; done += 200) {
            add_some(s->collection, near + done * DIM, 200, NULL);
            add_some(s->on_cpu, near + done * DIM, 200, NULL);
            ww_ivf_info info = ww_ivf_info_default();
            CHECK_OK(ww_collection_describe_ivf(s->collection, &info));
            assert_true((double)info.rows_largest <= 4.0 * info.rows_mean);
        }
        assert_true(s->collection->index->lists_split > 0);
        check_index_is_whole(s->collection);
        check_same_index(s->collection, s->on_cpu);
        free(near);
        scene_free(s);
    }
}

static void equal_rows_can_be_indexed(void **state)
{
    ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    float *rows = malloc(COUNT * DIM * sizeof *rows);
    for (int64_t i = 0; i < COUNT * DIM; i++)
        rows[i] = (float)(i % DIM) * 0.1f;
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 2))
            continue;
        config.metric = metrics[m];
        ww_collection *c = collection_of(*state, &config, rows, COUNT);
        index_build(c, NLIST);
        check_index_is_whole(c);
        ww_results *found = query_lists(c, rows, 1, 25, 1), *exact = query_lists(c, rows, 1, 25, 0);
        check_same_results(found, exact);
        add_some(c, rows, 300, NULL);
        check_index_is_whole(c);
        ww_results_destroy(found);
        ww_results_destroy(exact);
        ww_collection_destroy(c);
    }
    free(rows);
}

static void an_index_moves_with_its_collection(void **state)
{
    for (int t = 0; t < TYPES; t++) {
        if (!is_tried(*state, 0, t))
            continue;
        const ww_collection_config config = config_of(WW_COSINE, types[t]);
        scene *s = scene_of(*state, &config);
        ww_device *group = NULL;
        ww_results *before = query_lists(s->collection, s->queries, QUERIES, K, 2);
        CHECK_OK(ww_device_open("cpu+cpu", &group));
        CHECK_OK(ww_collection_move(s->collection, group));
        ww_results *in_group = query_lists(s->collection, s->queries, QUERIES, K, 2);
        check_same_results(before, in_group);
        CHECK_OK(ww_collection_move(s->collection, s->cpu));
        ww_results *after = query_lists(s->collection, s->queries, QUERIES, K, 2);
        check_same_results(before, after);
        check_index_is_whole(s->collection);
        add_some(s->collection, s->queries, QUERIES, NULL);
        check_index_is_whole(s->collection);
        ww_results_destroy(before);
        ww_results_destroy(in_group);
        ww_results_destroy(after);
        ww_device_close(group);
        scene_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_follows_every_write),
        cmocka_unit_test(a_list_that_grows_is_split),
        cmocka_unit_test(equal_rows_can_be_indexed),
        cmocka_unit_test(an_index_moves_with_its_collection),
    };
    return RUN_ON_EVERY_DEVICE("ivf_writes", tests);
}
