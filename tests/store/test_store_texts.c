/* Texts of rows in a store: stored next to payloads, found by their words, with or without vectors, and consistent with the
 * rows after every write. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <warpwave/ranking.h>
#include <warpwave/store.h>

#include "store/sqlite/sql.h"
#include "support/check.h"
#include "support/faults/fault_counts.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scratch.h"

static ww_device *device;
static ww_store *store;
static ww_collection *docs;

enum { DIM = 2, ROWS = 5 };
static const float VECTORS[ROWS * DIM] = {1, 0, 0.9f, 0.1f, 0, 1, -1, 0, 0.5f, 0.5f};
static const char *const IDS[ROWS] = {"a", "b", "c", "d", "e"};
static const char *const PAYLOADS[ROWS] = {"{\"n\":1}", "{\"n\":2}", "{\"n\":3}", NULL, "{\"n\":5}"};
static const char *const TEXTS[ROWS] = {"a squirrel stores nuts", "a boat with sails", "the squirrel and the squirrel", "bread",
                                        NULL};

static ww_rows the_rows(void)
{
    ww_rows rows = ww_rows_default();
    rows.count = ROWS, rows.dim = DIM, rows.vectors = VECTORS, rows.ids = IDS, rows.payloads = PAYLOADS, rows.texts = TEXTS;
    return rows;
}

static int setup(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF; /* no power fails here */
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("texts.db"), device, &how, &store));
    config.name = "do'cs", config.dim = DIM;
    CHECK_OK(ww_store_create(store, &config, &docs));
    const ww_rows rows = the_rows();
    CHECK_OK(ww_collection_add(docs, &rows));
    return 0;
}

static int teardown(void **state)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

/* The ids that words find, concatenated: "ac". */
static const char *words_find(const char *words, const char *where)
{
    static char ids[64];
    ww_results *found = NULL;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    match.texts = &words, match.mode = WW_MATCH_TEXT;
    query.match = &match, query.query_count = 1, query.dim = DIM, query.k = 10, query.fetch = WW_FETCH_IDS, query.where = where;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    ids[0] = '\0';
    for (int64_t i = 0; i < ww_results_count(found, 0); i++)
        strcat(ids, ww_results_id(found, 0, i));
    ww_results_destroy(found);
    return ids;
}

static void texts_and_payloads_are_both_kept(void **state)
{
    (void)state;
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    get.count = ROWS, get.ids = IDS, get.fetch = WW_FETCH_PAYLOADS | WW_FETCH_TEXTS;
    for (int again = 0; again < 2; again++) {
        CHECK_OK(ww_collection_get(docs, &get, &found));
        for (int64_t i = 0; i < ROWS; i++) {
            const char *payload = ww_results_payload(found, 0, i), *text = ww_results_text(found, 0, i);
            assert_true(PAYLOADS[i] ? payload && strcmp(payload, PAYLOADS[i]) == 0 : !payload);
            assert_true(TEXTS[i] ? text && strcmp(text, TEXTS[i]) == 0 : !text);
        }
        ww_results_destroy(found);
        ww_collection_destroy(docs);
        docs = NULL;
        ww_store_close(store);
        CHECK_OK(ww_store_open(scratch_path("texts.db"), device, NULL, &store));
        CHECK_OK(ww_store_collection(store, "do'cs", &docs));
    }
}

static void words_find_rows_best_first(void **state)
{
    (void)state;
    assert_string_equal(words_find("squirrel", NULL), "ca"); /* twice in c */
    assert_string_equal(words_find("SQUIRREL sails", NULL), "bca");
    assert_string_equal(words_find("nothing here", NULL), "");
    assert_string_equal(words_find("", NULL), "");
    assert_string_equal(words_find("squirrel", "payload->>'$.n' = 1"), "a");
}

/* The scores of words in a collection by ids: `scores` gets that of IDS[i], 0 if it is not found. */
static ww_status find_scores(ww_collection *c, const char *words, const ww_word_counts *counts, float scores[ROWS])
{
    ww_results *found = NULL;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    match.texts = &words, match.mode = WW_MATCH_TEXT, match.counts = counts;
    query.match = &match, query.query_count = 1, query.dim = DIM, query.k = 10, query.fetch = WW_FETCH_IDS;
    const ww_status status = ww_collection_query(c, &query, &found);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(found, 0); i++)
        scores[ww_results_id(found, 0, i)[0] - 'a'] = ww_results_scores(found, 0)[i];
    ww_results_destroy(found);
    return status;
}

enum { PARTS = 3 }; /* the last one has a row without a text */
static const int64_t PART_STARTS[PARTS + 1] = {0, 2, 4, ROWS};

static ww_collection *make_part(int part)
{
    static const char *const NAMES[PARTS] = {"left", "right", "bare"};
    ww_collection_config config = ww_collection_config_default();
    ww_collection *made = NULL;
    const int64_t first = PART_STARTS[part];
    ww_rows rows = the_rows();
    config.name = NAMES[part], config.dim = DIM;
    rows.count = PART_STARTS[part + 1] - first;
    rows.vectors += first * DIM, rows.ids += first, rows.payloads += first, rows.texts += first;
    CHECK_OK(ww_store_create(store, &config, &made));
    CHECK_OK(ww_collection_add(made, &rows));
    return made;
}

static void scores_over_parts_are_those_of_one_collection(void **state)
{
    (void)state;
    static const char *const SEARCHES[] = {"squirrel", "the SQUIRREL sails squirrel", "boat unheard", "",
                                           "re-d \"quoted\" nuts !"};
    ww_collection *parts[PARTS];
    for (int k = 0; k < PARTS; k++)
        parts[k] = make_part(k);
    for (size_t s = 0; s < sizeof SEARCHES / sizeof *SEARCHES; s++) {
        int64_t sums[WW_MATCH_WORDS_MAX] = {0}, found[WW_MATCH_WORDS_MAX];
        ww_word_counts all = {.found = sums};
        float whole[ROWS] = {0}, spread[ROWS] = {0};
        for (int k = 0; k < PARTS; k++) {
            ww_word_counts one = {.count = WW_MATCH_WORDS_MAX, .found = found};
            CHECK_OK(ww_collection_count_words(parts[k], SEARCHES[s], &one));
            all.texts += one.texts, all.words += one.words, all.count = one.count;
            for (int64_t i = 0; i < one.count; i++)
                sums[i] += found[i];
        }
        assert_int_equal(all.texts, 4);
        assert_int_equal(all.words, 14);
        for (int k = 0; k < PARTS; k++)
            CHECK_OK(find_scores(parts[k], SEARCHES[s], &all, spread));
        CHECK_OK(find_scores(docs, SEARCHES[s], NULL, whole));
        assert_memory_equal(whole, spread, sizeof whole);
        assert_true(s != 0 || (whole[0] > 0 && whole[2] > whole[0]));
    }
    for (int k = 0; k < PARTS; k++)
        ww_collection_destroy(parts[k]);
}

static void wrong_counts_are_refused(void **state)
{
    (void)state;
    int64_t found[4] = {0};
    float scores[ROWS];
    ww_collection_config config = ww_collection_config_default();
    ww_collection *memory = NULL;
    ww_word_counts counts = {.count = 1, .found = found};
    assert_int_equal(ww_collection_count_words(docs, "two words", &counts), WW_OUT_OF_RANGE);
    counts.count = 4;
    assert_int_equal(ww_collection_count_words(NULL, "a", &counts), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_collection_count_words(docs, NULL, &counts), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_collection_count_words(docs, "a", NULL), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_collection_count_words(docs, "\xff", &counts), WW_INVALID_ARGUMENT);
    CHECK_OK(ww_collection_count_words(docs, "squirrel nuts", &counts));
    assert_int_equal(counts.count, 2);
    assert_int_equal(found[0], 2);
    assert_int_equal(found[1], 1);
    assert_int_not_equal(find_scores(docs, "squirrel", &counts, scores), WW_OK); /* one word too many */
    found[1] = -1;
    assert_int_equal(find_scores(docs, "squirrel nuts", &counts, scores), WW_INVALID_ARGUMENT);
    config.dim = DIM;
    CHECK_OK(ww_collection_create(device, &config, &memory));
    assert_int_equal(ww_collection_count_words(memory, "a", &counts), WW_INVALID_ARGUMENT);
    ww_collection_destroy(memory);
}

static void words_are_never_a_language(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"",           "\"\"",      "squirrel\"", "NEAR(",     "squirrel AND", "OR",   "NOT squirrel",
        "text:",        "-text : x", "squirrel*",  "^squirrel", "{text} : x",   "(",    ")",
        "a + b",        "*",         "'",          "';--",      "\\",           "%s%n", "\xc3\xa9",
        "\xe2\x80\xa8", "\x01\x1f",  "rank:",      "do'cs_fts:"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)words_find(texts[i], NULL);
    assert_string_equal(words_find("NOT squirrel", NULL), "ca");
    assert_string_equal(words_find("squirrel* AND \"nuts", NULL), "ac"); /* and: the word is in c */
}

static ww_results *hybrid(const float *vector, const char *words, ww_query *query, const ww_fuse *fuse)
{
    ww_results *found = NULL;
    ww_match match = ww_match_default();
    match.texts = &words, match.fuse = fuse;
    query->queries = vector, query->query_count = 1, query->dim = DIM, query->match = &match;
    query->k = query->k ? query->k : 10;
    query->fetch = WW_FETCH_IDS | WW_FETCH_TEXTS;
    CHECK_OK(ww_collection_query(docs, query, &found));
    return found;
}

static void both_parts_are_fused_by_ranks(void **state)
{
    (void)state;
    static const float east[DIM] = {1, 0};
    ww_query query = ww_query_default();
    ww_results *found = hybrid(east, "squirrel", &query, NULL);
    const ww_hit_parts *parts = ww_results_parts(found, 0);
    /* Vectors: a b e c d; words: c a. */
    assert_int_equal(ww_results_count(found, 0), ROWS);
    assert_string_equal(ww_results_id(found, 0, 0), "a");
    assert_int_equal(parts[0].ranks[0], 1);
    assert_int_equal(parts[0].ranks[1], 2);
    assert_true(ww_results_scores(found, 0)[0] == (float)(1.0 / 61.0 + 1.0 / 62.0));
    assert_string_equal(ww_results_id(found, 0, 1), "c");
    assert_int_equal(parts[1].ranks[0], 4);
    assert_int_equal(parts[1].ranks[1], 1);
    assert_string_equal(ww_results_text(found, 0, 1), TEXTS[2]);
    assert_string_equal(ww_results_id(found, 0, 2), "b");
    assert_int_equal(parts[2].ranks[1], 0);
    assert_true(isnan(parts[2].scores[1]));
    assert_true(parts[0].scores[0] == 1.0f); /* the collection's own score */
    ww_results_destroy(found);
}

static void both_parts_are_fused_by_weighted_scores(void **state)
{
    (void)state;
    static const float east[DIM] = {1, 0};
    ww_query query = ww_query_default();
    double weights[2] = {0.25, 4.0};
    ww_fuse fuse = ww_fuse_default();
    fuse.fusion = WW_FUSION_SCORES, fuse.weights = weights;
    ww_results *found = hybrid(east, "squirrel", &query, &fuse);
    assert_string_equal(ww_results_id(found, 0, 0), "c");               /* the best of the words */
    assert_true(ww_results_scores(found, 0)[0] == 4.0f + 0.25f * 0.5f); /* cosine 0 is halfway between 1 and -1 */
    ww_results_destroy(found);
    weights[1] = -1.0;
    ww_match match = ww_match_default();
    const char *words = "x";
    match.texts = &words, match.fuse = &fuse;
    query.match = &match;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(docs, &query, &found));
}

static void filters_and_masks_hold_for_both_parts(void **state)
{
    (void)state;
    static const float east[DIM] = {1, 0};
    const uint64_t mask[1] = {0x1e}; /* not a */
    ww_query query = ww_query_default();
    query.filter = filter_of("{\"n\": {\"$gt\": 1}}");
    ww_results *found = hybrid(east, "squirrel", &query, NULL);
    assert_int_equal(ww_results_count(found, 0), 3); /* b c e */
    assert_string_equal(ww_results_id(found, 0, 0), "c");
    ww_results_destroy(found);
    query = ww_query_default();
    query.mask = mask, query.mask_rows = ROWS;
    found = hybrid(east, "squirrel", &query, NULL);
    assert_int_equal(ww_results_count(found, 0), 4);
    assert_int_equal(ww_results_parts(found, 0)[0].ranks[1], 1);
    ww_results_destroy(found);
}

static void equal_hits_are_ordered_by_handle(void **state)
{
    (void)state;
    static const float vectors[4 * DIM] = {0, 1, 0, 1, 0, 1, 0, 1};
    static const char *const ids[4] = {"z", "y", "x", "w"}, *const texts[4] = {"one word", "one word", "one word", "one word"};
    ww_rows rows = ww_rows_default();
    rows.count = 4, rows.dim = DIM, rows.vectors = vectors, rows.ids = ids, rows.texts = texts;
    CHECK_OK(ww_collection_clear(docs));
    assert_string_equal(words_find("squirrel", NULL), "");
    CHECK_OK(ww_collection_add(docs, &rows));
    assert_string_equal(words_find("word", NULL), "zyxw");
    ww_query query = ww_query_default();
    ww_fuse fuse = ww_fuse_default();
    fuse.fusion = WW_FUSION_SCORES; /* all are the best of both parts */
    ww_results *found = hybrid(vectors, "one", &query, &fuse);
    for (int64_t i = 1; i < ww_results_count(found, 0); i++)
        assert_true(ww_results_handles(found, 0)[i] > ww_results_handles(found, 0)[i - 1]);
    ww_results_destroy(found);
}

static void the_index_follows_every_write(void **state)
{
    (void)state;
    static const char *const bread[] = {"d"}, *const first[] = {"a"};
    const char *text = "rye bread", *other = "{\"n\":9}";
    ww_rows rows = ww_rows_default();
    CHECK_OK(ww_collection_remove(docs, &IDS[2], 1));
    assert_string_equal(words_find("squirrel", NULL), "a");
    rows.count = 1, rows.dim = DIM, rows.vectors = VECTORS, rows.ids = first, rows.texts = &text;
    CHECK_OK(ww_collection_upsert(docs, &rows));
    assert_string_equal(words_find("squirrel", NULL), "");
    assert_string_equal(words_find("bread", NULL), "da");
    rows.texts = NULL, rows.ids = bread;
    CHECK_OK(ww_collection_update(docs, &rows)); /* the text stays */
    assert_string_equal(words_find("bread", NULL), "da");
    CHECK_OK(ww_collection_set_payloads(docs, bread, &other, 1));
    assert_string_equal(words_find("bread", "payload->>'$.n' = 9"), "d");
    CHECK_OK(ww_collection_upsert(docs, &rows)); /* a row without a text in its place */
    assert_string_equal(words_find("bread", NULL), "a");
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    assert_string_equal(words_find("rye", NULL), "a");
    assert_string_equal(words_find("sails", NULL), "b");
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_clear(docs));
    assert_string_equal(words_find("sails", NULL), "");
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_store_drop(store, "do'cs"));
}

static void a_write_removes_other_rows_in_the_same_transaction(void **state)
{
    (void)state;
    static const char *const gone[] = {"a", "nobody", "c", "b"}, *const nothing[] = {NULL};
    const char *text = "a squirrel in bread";
    ww_collection_info info = ww_collection_info_default();
    ww_rows rows = ww_rows_default();
    rows.count = 1, rows.dim = DIM, rows.vectors = VECTORS, rows.ids = IDS + 1, rows.texts = &text;
    rows.discard_ids = gone, rows.discard_count = 4; /* the last is written again */
    assert_string_equal(words_find("squirrel", NULL), "ca");
    CHECK_OK(ww_collection_upsert(docs, &rows));
    assert_string_equal(words_find("squirrel", NULL), "b");
    assert_int_equal(ww_collection_count(docs), 3);
    rows.count = 0, rows.discard_ids = IDS + 3, rows.discard_count = 1; /* nothing to write */
    CHECK_OK(ww_collection_upsert(docs, &rows));
    assert_string_equal(words_find("bread", NULL), "b");
    rows.count = 1, rows.dim = DIM + 1, rows.discard_ids = IDS;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_upsert(docs, &rows));
    rows.dim = DIM, rows.discard_ids = nothing;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(docs, &rows));
    rows.discard_ids = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(docs, &rows));
    rows.discard_ids = IDS, rows.discard_count = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(docs, &rows));
    rows.vectors = NULL, rows.texts = NULL, rows.payloads = PAYLOADS, rows.discard_count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(docs, &rows));
    CHECK_OK(ww_collection_describe(docs, &info));
    assert_int_equal(info.rows_live, 2);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void nonsensical_arguments_are_refused(void **state)
{
    (void)state;
    ww_collection *memory = NULL, *empty = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_results *found = NULL;
    const char *bad = "\xff", *word = "x";
    config.dim = DIM, config.name = "empty";
    CHECK_OK(ww_collection_create(device, &config, &memory));
    CHECK_OK(ww_store_create(store, &config, &empty));
    ww_rows rows = the_rows();
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(memory, &rows));
    rows.texts = NULL, rows.discard_ids = IDS, rows.discard_count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(memory, &rows));
    assert_non_null(strstr(ww_error_message(), "discard the rows first"));
    rows.discard_count = 0;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    query.match = &match, query.query_count = 1, query.dim = DIM, query.k = 3;
    match.texts = &word, match.mode = WW_MATCH_TEXT;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(memory, &query, &found));
    CHECK_OK(ww_collection_query(empty, &query, &found)); /* there is nothing to find */
    assert_int_equal(ww_results_count(found, 0), 0);
    ww_results_destroy(found);
    rows.texts = NULL;
    CHECK_OK(ww_collection_add(empty, &rows));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(empty, &query, &found));
    assert_non_null(strstr(ww_error_message(), "no texts"));
    match.texts = &bad;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(docs, &query, &found));
    match.texts = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(docs, &query, &found));
    match.texts = &word, match.mode = (ww_match_mode)7;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(docs, &query, &found));
    match.mode = WW_MATCH_HYBRID;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(docs, &query, &found)); /* no vector */
    rows = the_rows();
    rows.count = 1, rows.texts = &bad;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(docs, &rows));
    config.name = "do'cs_fts";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, NULL));
    config.name = "do'cs_fts_data";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, NULL));
    ww_collection_destroy(empty);
    ww_collection_destroy(memory);
}

/* Another program writes to the tables. */
static void a_damaged_index_gives_a_status(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE \"do'cs_fts_data\" SET block = x'ff00ff00ff' WHERE id > 1",
        "UPDATE \"do'cs_fts_data\" SET block = zeroblob(4)",
        "DELETE FROM \"do'cs_fts_data\"",
        "DELETE FROM \"do'cs_fts_docsize\"",
        "DELETE FROM \"do'cs_fts_content\"",
        "UPDATE \"do'cs_fts_content\" SET id = id + 100",
        "DROP TABLE \"do'cs_fts\"; CREATE TABLE \"do'cs_fts\"(text)",
        "DROP TABLE \"do'cs_fts\"; CREATE VIRTUAL TABLE \"do'cs_fts\" USING fts5(text, content='sqlite_schema')",
        "DROP TABLE \"do'cs_fts_content\"",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        sqlite3 *db = NULL;
        ww_results *found = NULL;
        const char *word = "squirrel";
        if (i > 0) {
            teardown(state);
            setup(state);
        }
        assert_int_equal(sqlite3_open(scratch_path("texts.db"), &db), SQLITE_OK);
        sql_run(db, damages[i]);
        sqlite3_close(db);
        ww_match match = ww_match_default();
        ww_query query = ww_query_default();
        match.texts = &word, match.mode = WW_MATCH_TEXT;
        query.match = &match, query.query_count = 1, query.dim = DIM, query.k = 3, query.fetch = WW_FETCH_TEXTS;
        (void)ww_collection_query(docs, &query, &found); /* an answer or a status, never a crash */
        ww_results_destroy(found);
        const ww_status sound = ww_store_check(store, NULL, NULL);
        if (i > 1 && sound != WW_CORRUPT_FILE) /* SQLite 3.40's own check does not look into the index */
            fail_msg("%s: the check says %d", damages[i], (int)sound);
        query.match = NULL, query.queries = VECTORS, query.fetch = WW_FETCH_IDS;
        CHECK_OK(ww_collection_query(docs, &query, &found)); /* vectors are found all the same */
        ww_results_destroy(found);
        (void)ww_collection_remove(docs, IDS, 1);
        (void)ww_collection_compact(docs, NULL, NULL);
    }
}

static void compacting_makes_a_damaged_index_again(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(scratch_path("texts.db"), &db), SQLITE_OK);
    sql_run(db, "UPDATE \"do'cs_fts_data\" SET block = x'ff00ff00ff' WHERE id > 10; DELETE FROM \"do'cs_fts_docsize\"");
    sqlite3_close(db);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_string_equal(words_find("squirrel", NULL), "ca");
}

static const ww_filter *positive;

static ww_status write_and_find(void)
{
    static const float east[DIM] = {1, 0};
    const char *words = "squirrel bread";
    ww_results *found = NULL;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    const ww_rows rows = the_rows();
    match.texts = &words;
    query.match = &match, query.queries = east, query.query_count = 1, query.dim = DIM, query.k = 3;
    query.filter = positive, query.fetch = WW_FETCH_IDS | WW_FETCH_TEXTS;
    ww_status status = ww_collection_upsert(docs, &rows);
    if (status == WW_OK)
        status = ww_collection_query(docs, &query, &found);
    ww_results_destroy(found);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    positive = filter_of("{\"n\": {\"$gt\": 0}}");
    CHECK_OK(write_and_find());
    const int64_t held = blocks_held();
    int64_t failures = 0;
    int successes = 0; /* successes in a row: if an allocation only makes things faster, its failure is not noticed */
    for (int64_t n = 1; successes < 12; n++) {
        fail_allocation_at(n);
        const ww_status status = write_and_find();
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        failures += status != WW_OK;
        successes = status == WW_OK ? successes + 1 : 0;
        assert_string_equal(words_find("squirrel", NULL), "ca");
    }
    assert_true(failures > 5);
    fault_count("allocation", (long)failures);
    CHECK_OK(write_and_find());
    assert_true(blocks_held() <= held + 64); /* kept filters and idle readers, not one more for each failure */
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(texts_and_payloads_are_both_kept),
        TEST(words_find_rows_best_first),
        TEST(scores_over_parts_are_those_of_one_collection),
        TEST(wrong_counts_are_refused),
        TEST(words_are_never_a_language),
        TEST(both_parts_are_fused_by_ranks),
        TEST(both_parts_are_fused_by_weighted_scores),
        TEST(filters_and_masks_hold_for_both_parts),
        TEST(equal_hits_are_ordered_by_handle),
        TEST(the_index_follows_every_write),
        TEST(a_write_removes_other_rows_in_the_same_transaction),
        TEST(nonsensical_arguments_are_refused),
        TEST(a_damaged_index_gives_a_status),
        TEST(compacting_makes_a_damaged_index_again),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
