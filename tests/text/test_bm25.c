/* Sparse vectors of texts: which words they have, their indices, and their weights. */
#include <math.h>
#include <string.h>

#include <warpwave/sparse.h>
#include <warpwave/text.h>

#include "support/check.h"
#include "support/memory.h"

/* MurmurHash3's published values: 0x248bfa47 for hello, 0xba6bd213, which is negative, for test. */
enum { HELLO = 0x248bfa47, TEST = 0x45942ded, ROOM = 16 };

static uint32_t indices[ROOM];
static float values[ROOM];

static int64_t make(const char *text, const ww_bm25 *how)
{
    ww_sparse_room room = {.capacity = ROOM, .indices = indices, .values = values};
    CHECK_OK(ww_sparse_from_text(text, how, &room));
    return room.count;
}

static void a_word_has_the_index_of_its_hash(void **state)
{
    (void)state;
    assert_int_equal(make("test, hello", NULL), 2);
    assert_int_equal(indices[0], HELLO);
    assert_int_equal(indices[1], TEST);
    assert_int_equal(make("", NULL), 0);
    assert_int_equal(make(" .-+!", NULL), 0);
}

static void case_and_what_stands_between_words_do_not_count(void **state)
{
    (void)state;
    uint32_t first[ROOM];
    const int64_t count = make("\xc3\xa4rger_7 \xd0\x96\xd0\xa3\xd0\x9a x", NULL);
    assert_int_equal(count, 3);
    memcpy(first, indices, sizeof first);
    assert_int_equal(make("X--\xc3\x84RGER_7\xe2\x82\xac\xd0\xb6\xd1\x83\xd0\xba", NULL), 3);
    assert_memory_equal(first, indices, 3 * sizeof *first);
}

static void a_weight_follows_the_formula(void **state)
{
    (void)state;
    ww_bm25 how = ww_bm25_default();
    assert_int_equal(make("hello test hello", NULL), 2);
    assert_true(values[0] == (float)(2 * 2.2 / (2 + 1.2 * (1.0 - 0.75 + 0.75 * 3.0 / 256.0))));
    assert_true(values[1] == (float)(2.2 / (1 + 1.2 * (1.0 - 0.75 + 0.75 * 3.0 / 256.0))));
    how.k = 2, how.b = 0, how.average_words = 10;
    (void)make("hello test hello", &how);
    assert_true(values[0] == 1.5f && values[1] == 1.0f);
    how.query = 1;
    (void)make("hello test hello", &how);
    assert_true(values[0] == 1.0f && values[1] == 1.0f);
}

static void a_very_long_word_is_left_out(void **state)
{
    (void)state;
    char text[64] = "";
    memset(text, 'a', 40);
    assert_int_equal(make(text, NULL), 1);
    text[40] = 'a';
    assert_int_equal(make(text, NULL), 0);
    memcpy(text + 41, " hello", 7);
    assert_int_equal(make(text, NULL), 1);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    ww_sparse_room room = {.capacity = 1, .indices = indices, .values = values};
    ww_bm25 how = ww_bm25_default();
    assert_int_equal(ww_sparse_from_text("hello test", NULL, &room), WW_OUT_OF_RANGE);
    assert_int_equal(ww_sparse_from_text(NULL, NULL, &room), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_sparse_from_text("hello", NULL, NULL), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_sparse_from_text("\xff", NULL, &room), WW_INVALID_ARGUMENT);
    how.b = 1.5;
    assert_int_equal(ww_sparse_from_text("hello", &how, &room), WW_OUT_OF_RANGE);
    how = ww_bm25_default(), how.average_words = (double)NAN;
    assert_int_equal(ww_sparse_from_text("hello", &how, &room), WW_OUT_OF_RANGE);
    room.indices = NULL;
    assert_int_equal(ww_sparse_from_text("hello", NULL, &room), WW_INVALID_ARGUMENT);
    room.indices = indices;
    fail_allocation_at(1);
    assert_int_equal(ww_sparse_from_text("hello", NULL, &room), WW_OUT_OF_MEMORY);
    fail_allocation_at(0);
}

static void vectors_of_texts_rank_rows_by_bm25(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"hello fox", "the test of the test", "the hello test and more of it"};
    ww_sparse_index *index = NULL;
    ww_results *found = NULL;
    ww_bm25 how = ww_bm25_default();
    CHECK_OK(ww_sparse_create(&index));
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        const ww_sparse_vector row = {make(TEXTS[i], NULL), indices, values};
        CHECK_OK(ww_sparse_add(index, &row, 1));
    }
    how.query = 1;
    const ww_sparse_vector asked = {make("TEST!", &how), indices, values};
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    sparse.vectors = &asked;
    sparse.modifier = WW_SPARSE_IDF;
    query.sparse = &sparse, query.query_count = 1, query.k = 5;
    CHECK_OK(ww_sparse_search(index, &query, &found));
    assert_int_equal(ww_results_count(found, 0), 2);
    assert_int_equal(ww_results_rows(found, 0)[0], 1);
    assert_int_equal(ww_results_rows(found, 0)[1], 2);
    ww_results_destroy(found);
    ww_sparse_destroy(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_has_the_index_of_its_hash), cmocka_unit_test(case_and_what_stands_between_words_do_not_count),
        cmocka_unit_test(a_weight_follows_the_formula),     cmocka_unit_test(a_very_long_word_is_left_out),
        cmocka_unit_test(wrong_arguments_are_refused),      cmocka_unit_test(vectors_of_texts_rank_rows_by_bm25),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
