/* Collections of text: a store and a model together, with a small encoder of random weights that knows the words a, fox, dog
 * and an s behind a word. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/text.h>

#include "support/check.h"
#include "support/data/random.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

static ww_device *device;
static ww_store *store;
static char model_path[SCRATCH_PATH_BYTES], other_path[SCRATCH_PATH_BYTES];

static int setup(void **state)
{
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF; /* no power fails here */
    scratch_setup(state);
    snprintf(model_path, sizeof model_path, "%s", scratch_path("words.gguf"));
    snprintf(other_path, sizeof other_path, "%s", scratch_path("other.gguf"));
    tiny_write_words("bert", model_path);
    tiny_shape shape = tiny_default("bert");
    tiny_model other;
    shape.seed = 77;
    tiny_make(&other, &shape);
    tiny_write(&other, other_path);
    tiny_free(&other);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("text.db"), device, &how, &store));
    return 0;
}

static int teardown(void **state)
{
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static ww_text *open_text(const char *model, int32_t create)
{
    ww_text *t = NULL;
    ww_text_config config = ww_text_config_default();
    config.model = model, config.device = device, config.create = create;
    CHECK_OK(ww_text_open(store, "notes", &config, &t));
    return t;
}

static const char *const TEXTS[] = {"a fox", "dogs dogs a dog", "a fox and a dog"};
static const char *const IDS[] = {"fox", "dogs", "both"};
static const char *const PAYLOADS[] = {"{\"n\":1}", NULL, "{\"n\":3}"};

static ww_text_rows the_rows(void)
{
    ww_text_rows rows = ww_text_rows_default();
    rows.count = 3, rows.texts = TEXTS, rows.ids = IDS, rows.payloads = PAYLOADS;
    return rows;
}

static ww_results *find(ww_text *t, const char *words, ww_text_mode mode, int32_t k)
{
    ww_results *found = NULL;
    ww_text_query asked = ww_text_query_default();
    ww_query query = ww_query_default();
    query.k = k, query.fetch = WW_FETCH_IDS | WW_FETCH_TEXTS | WW_FETCH_PAYLOADS;
    asked.texts = &words, asked.count = 1, asked.mode = mode, asked.query = &query;
    CHECK_OK(ww_text_search(t, &asked, &found));
    return found;
}

static int count_texts(int64_t done, int64_t total, void *user)
{
    (void)total;
    *(long long *)user = done;
    return 0;
}

static void rows_that_exist_are_refused_before_anything_is_embedded(void **state)
{
    (void)state;
    static const char *const sources[] = {"new", "old"};
    long long embedded = 0;
    ww_text *t = open_text(model_path, 1);
    ww_text_rows rows = the_rows();
    ww_documents documents = ww_documents_default();
    documents.count = 1, documents.texts = TEXTS, documents.sources = sources + 1;
    CHECK_OK(ww_text_add(t, &rows));
    CHECK_OK(ww_text_add_documents(t, &documents, NULL));
    rows.progress = documents.progress = count_texts;
    rows.progress_user = documents.progress_user = &embedded;
    CHECK_FAILS(WW_DUPLICATE_ID, ww_text_add(t, &rows));
    assert_non_null(strstr(ww_error_message(), "'fox'"));
    documents.count = 2, documents.sources = sources;
    CHECK_FAILS(WW_DUPLICATE_ID, ww_text_add_documents(t, &documents, NULL));
    assert_non_null(strstr(ww_error_message(), "'old#0'"));
    assert_int_equal(embedded, 0);
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    assert_int_equal(embedded, 2);
    ww_text_close(t);
}

static void texts_are_found_by_texts(void **state)
{
    (void)state;
    ww_text *t = open_text(model_path, 1);
    const ww_text_rows rows = the_rows();
    CHECK_OK(ww_text_add(t, &rows));
    CHECK_FAILS(WW_DUPLICATE_ID, ww_text_add(t, &rows));
    CHECK_OK(ww_text_upsert(t, &rows));
    ww_text_close(t);
    t = open_text(NULL, 0); /* the kept model is found */
    ww_results *found = find(t, "DOGS dogs a dog", WW_TEXT_VECTOR, 1);
    assert_string_equal(ww_results_id(found, 0, 0), "dogs");
    assert_string_equal(ww_results_text(found, 0, 0), TEXTS[1]);
    assert_true(ww_results_scores(found, 0)[0] > 0.9999f); /* the same tokens, the same vector */
    ww_results_destroy(found);
    found = find(t, "fox", WW_TEXT_WORDS, 9);
    assert_int_equal(ww_results_count(found, 0), 2);
    assert_string_equal(ww_results_payload(found, 0, 0), PAYLOADS[0]); /* the shorter text */
    ww_results_destroy(found);
    found = find(t, "a fox", WW_TEXT_HYBRID, 9);
    assert_string_equal(ww_results_id(found, 0, 0), "fox");
    assert_int_equal(ww_results_parts(found, 0)[0].ranks[0], 1);
    assert_int_equal(ww_results_parts(found, 0)[0].ranks[1], 1);
    ww_results_destroy(found);
    assert_string_equal(ww_text_kept(t)->pooling, "mean");
    ww_text_close(t);
}

static void another_model_is_refused(void **state)
{
    (void)state;
    ww_text *t = open_text(model_path, 1), *other = NULL;
    ww_text_config config = ww_text_config_default();
    config.model = other_path, config.device = device;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_open(store, "notes", &config, &other));
    assert_non_null(strstr(ww_error_message(), "cannot be compared"));
    config.create = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_open(store, "notes", &config, &other));
    config.create = 0, config.model = NULL;
    CHECK_FAILS(WW_NOT_FOUND, ww_text_open(store, "nobody", &config, &other));
    ww_collection_config plain = ww_collection_config_default();
    plain.name = "plain", plain.dim = 64;
    ww_collection *vectors = NULL;
    CHECK_OK(ww_store_create(store, &plain, &vectors));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_open(store, "plain", &config, &other)); /* no model is kept, none is given */
    static const float one[64] = {1};
    ww_rows rows = ww_rows_default();
    rows.count = 1, rows.dim = 64, rows.vectors = one;
    CHECK_OK(ww_collection_add(vectors, &rows));
    config.model = model_path;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_open(store, "plain", &config, &other)); /* whose vectors are these? */
    ww_collection_destroy(vectors);
    ww_text_close(t);
}

static void prefixes_are_kept_and_put_before_texts(void **state)
{
    (void)state;
    ww_text *t = NULL;
    ww_text_config config = ww_text_config_default();
    config.model = model_path, config.device = device, config.create = 1;
    config.document_prefix = "dog dog dog ", config.query_prefix = "fox fox fox ";
    CHECK_OK(ww_text_open(store, "notes", &config, &t));
    const ww_text_rows rows = the_rows();
    CHECK_OK(ww_text_add(t, &rows));
    ww_results *found = find(t, "a fox", WW_TEXT_VECTOR, 1);
    assert_true(ww_results_scores(found, 0)[0] < 0.9999f); /* "fox fox fox a fox" is not "dog dog dog a fox" */
    assert_string_equal(ww_results_text(found, 0, 0) ? "has" : "none", "has");
    ww_results_destroy(found);
    ww_text_close(t);
    config.document_prefix = "other ", t = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_open(store, "notes", &config, &t)); /* there are rows */
    t = open_text(NULL, 0);
    assert_string_equal(ww_text_kept(t)->document_prefix, "dog dog dog ");
    ww_results *list = NULL;
    CHECK_OK(ww_store_list(store, &list));
    assert_non_null(strstr(ww_results_payload(list, 0, 0), "\"query_prefix\":\"fox fox fox \""));
    ww_results_destroy(list);
    ww_text_close(t);
}

/* ---- chunks -------------------------------------------------------------------------------------------------------------- */

static size_t chunks_of(const ww_model *model, const char *text, int64_t tokens, int64_t overlap, ww_chunk *chunks, size_t room)
{
    ww_chunking how = ww_chunking_default();
    size_t count = 0, again = 0;
    how.tokens = tokens, how.overlap = overlap;
    CHECK_OK(ww_text_chunks(model, text, strlen(text), &how, NULL, 0, &count));
    assert_true(count <= room);
    CHECK_OK(ww_text_chunks(model, text, strlen(text), &how, chunks, room, &again));
    assert_int_equal(count, again);
    return count;
}

static void chunks_end_where_sentences_end(void **state)
{
    (void)state;
    static const char text[] = "A fox. A dog! \"A fox?\" A dog.\n\nfoxes\nand dogs";
    ww_chunk chunks[16];
    ww_text *t = open_text(model_path, 1);
    const size_t count = chunks_of(ww_text_model(t), text, 8, 0, chunks, 16);
    for (size_t i = 0; i < count; i++) {
        const int64_t end = chunks[i].end;
        const bool at_end = end == (int64_t)strlen(text) || strchr(" \n", text[end - 1]);
        assert_true(at_end);
        assert_int_equal(chunks[i].start, i == 0 ? 0 : chunks[i - 1].end);
    }
    assert_true(count > 1);
    assert_int_equal(chunks[count - 1].end, strlen(text));
    assert_int_equal(chunks_of(ww_text_model(t), "", 8, 0, chunks, 16), 0);
    ww_chunking wrong = ww_chunking_default();
    size_t number = 0;
    wrong.overlap = wrong.tokens;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_text_chunks(ww_text_model(t), text, 3, &wrong, NULL, 0, &number));
    CHECK_FAILS(WW_OUT_OF_RANGE,
                ww_text_chunks(ww_text_model(t), text, strlen(text), &(ww_chunking){sizeof wrong, 4, 0}, chunks, 1, &number));
    ww_text_close(t);
}

/* Random documents of words, stops, long words and characters of several bytes. */
static void chunks_leave_nothing_out_and_fit(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "a ", "fox ", "dogs", ". ", "! ", "\n\n", "\n", " ", "?", "\xc3\xa9", "\xe3\x80\x82", "\xf0\x9f\xa6\x8a", "\"", ") "};
    static char text[4096];
    static ww_chunk chunks[4096];
    ww_text *t = open_text(model_path, 1);
    test_random random = {11};
    for (int round = 0; round < 150; round++) {
        const int64_t tokens = 1 + (int64_t)random_below(&random, 20),
                      overlap = (int64_t)random_below(&random, (uint64_t)tokens);
        text[0] = '\0';
        for (uint64_t n = random_below(&random, 200); n > 0; n--)
            strcat(text, parts[random_below(&random, sizeof parts / sizeof *parts)]);
        const size_t count = chunks_of(ww_text_model(t), text, tokens, overlap, chunks, 4096);
        int64_t end = 0;
        for (size_t i = 0; i < count; i++) {
            size_t own = 0;
            assert_true(chunks[i].start <= end && chunks[i].end > end); /* it starts where the previous one ended, or earlier */
            assert_true(i == 0 || chunks[i].start > chunks[i - 1].start);
            assert_true(((unsigned char)text[chunks[i].start] & 0xc0) != 0x80);
            CHECK_OK(ww_model_tokenize(ww_text_model(t), text + chunks[i].start, (size_t)(chunks[i].end - chunks[i].start),
                                       WW_TOKENS_PLAIN | WW_TOKENS_NO_ADD, NULL, 0, &own));
            assert_true((int64_t)own <= tokens || chunks[i].end - chunks[i].start <= 4); /* one character is always a chunk */
            end = chunks[i].end;
        }
        assert_int_equal(end, strlen(text));
    }
    ww_text_close(t);
}

static const char DOCUMENT[] = "A fox is here. A dog is there. The fox runs away. Dogs are dogs. A fox sleeps.";

static ww_documents the_documents(const ww_chunking *how)
{
    static const char *const texts[] = {DOCUMENT, "A dog."}, *const sources[] = {"a \"1\".txt", "b.txt"};
    static const char *const payloads[] = {"{ \"lang\": \"en\"}", NULL};
    ww_documents documents = ww_documents_default();
    documents.count = 2, documents.texts = texts, documents.sources = sources, documents.payloads = payloads;
    documents.chunking = how;
    return documents;
}

static void documents_become_chunks_with_neighbours(void **state)
{
    (void)state;
    ww_chunking how = ww_chunking_default();
    ww_text *t = open_text(model_path, 1);
    ww_results *found = NULL;
    int64_t chunks = 0;
    how.tokens = 9, how.overlap = 4;
    ww_documents documents = the_documents(&how);
    CHECK_OK(ww_text_add_documents(t, &documents, &chunks));
    assert_true(chunks > 3);
    assert_int_equal(ww_collection_count(ww_text_collection(t)), chunks);
    ww_text_query asked = ww_text_query_default();
    ww_query query = ww_query_default();
    const char *words = "runs";
    query.k = 1;
    asked.texts = &words, asked.count = 1, asked.mode = WW_TEXT_WORDS, asked.query = &query;
    query.fetch = WW_FETCH_TEXTS | WW_FETCH_PAYLOADS;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_non_null(strstr(ww_results_payload(found, 0, 0), "{\"source\":\"a \\\"1\\\".txt\",\"chunk\":"));
    assert_non_null(strstr(ww_results_payload(found, 0, 0), ",\"lang\": \"en\"}"));
    const char *hit = strstr(DOCUMENT, ww_results_text(found, 0, 0));
    assert_non_null(hit);
    const size_t length = strlen(ww_results_text(found, 0, 0));
    ww_results_destroy(found);
    asked.expand = 1;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_non_null(strstr(DOCUMENT, ww_results_text(found, 0, 0))); /* nothing is repeated, nothing is missing */
    assert_true(strlen(ww_results_text(found, 0, 0)) > length);
    ww_results_destroy(found);
    asked.expand = WW_EXPAND_MAX;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_string_equal(ww_results_text(found, 0, 0), DOCUMENT);
    ww_results_destroy(found);
    ww_text_close(t);
}

static void a_shorter_document_leaves_no_chunks_behind(void **state)
{
    (void)state;
    static const char *const shorter[] = {"A fox.", "A dog."}, *const wrong[] = {"{\"source\":1}", "[]"};
    ww_chunking how = ww_chunking_default();
    ww_text *t = open_text(model_path, 1);
    how.tokens = 6, how.overlap = 0;
    ww_documents documents = the_documents(&how);
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    assert_true(ww_collection_count(ww_text_collection(t)) > 2);
    documents.texts = shorter;
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    assert_int_equal(ww_collection_count(ww_text_collection(t)), 2);
    documents.payloads = wrong;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_upsert_documents(t, &documents, NULL));
    documents.payloads = wrong + 1, documents.count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_upsert_documents(t, &documents, NULL));
    documents.payloads = NULL;
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(ww_text_model(t), &info));
    how.tokens = info.context; /* all that the model takes: what it puts around a text counts */
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    how.tokens = info.context + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_text_upsert_documents(t, &documents, NULL)); /* more than the model's context */
    assert_int_equal(ww_collection_count(ww_text_collection(t)), 2);
    ww_text_close(t);
}

/* How many transactions have changed the collection. */
static int64_t changes(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_open(scratch_path("text.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sequence FROM warpwave_collections", -1, &asked, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    const int64_t count = sqlite3_column_int64(asked, 0);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    return count;
}

static void a_shorter_document_replaces_a_longer_one_in_one_transaction(void **state)
{
    (void)state;
    static const char *const shorter[] = {"A fox.", "A dog."}, *const empty[] = {"", ""};
    ww_chunking how = ww_chunking_default();
    ww_text *t = open_text(model_path, 1);
    how.tokens = 6, how.overlap = 0;
    ww_documents documents = the_documents(&how);
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    assert_true(ww_collection_count(ww_text_collection(t)) > 4);
    const int64_t before = changes();
    documents.texts = shorter;
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL));
    assert_int_equal(ww_collection_count(ww_text_collection(t)), 2);
    assert_int_equal(changes(), before + 1);
    documents.texts = empty;
    CHECK_OK(ww_text_upsert_documents(t, &documents, NULL)); /* nothing is embedded, and rows go */
    assert_int_equal(ww_collection_count(ww_text_collection(t)), 0);
    assert_int_equal(changes(), before + 2);
    ww_text_close(t);
}

static void hits_are_grouped_by_their_source(void **state)
{
    (void)state;
    ww_chunking how = ww_chunking_default();
    ww_text *t = open_text(model_path, 1);
    ww_results *found = NULL;
    const char *words = "a dog";
    how.tokens = 6, how.overlap = 0;
    ww_documents documents = the_documents(&how);
    CHECK_OK(ww_text_add_documents(t, &documents, NULL));
    ww_grouping grouping = ww_grouping_default();
    ww_diversity diversity = ww_diversity_default();
    ww_text_query asked = ww_text_query_default();
    grouping.field = "source";
    asked.texts = &words, asked.count = 1, asked.mode = WW_TEXT_HYBRID, asked.grouping = &grouping;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_int_equal(ww_results_count(found, 0), 2); /* one of each document */
    ww_results_destroy(found);
    asked.grouping = NULL, asked.diversity = &diversity, asked.mode = WW_TEXT_WORDS;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_true(ww_results_count(found, 0) > 1);
    ww_results_destroy(found);
    ww_text_close(t);
}

static ww_status do_all(ww_text *t, ww_model *ranker)
{
    ww_chunking how = ww_chunking_default();
    const char *words = "a fox";
    ww_results *found = NULL;
    ww_text_query asked = ww_text_query_default();
    how.tokens = 9, how.overlap = 4;
    const ww_documents documents = the_documents(&how);
    asked.texts = &words, asked.count = 1, asked.mode = WW_TEXT_HYBRID, asked.expand = 1, asked.rerank = ranker;
    ww_status status = ww_text_upsert_documents(t, &documents, NULL);
    if (status == WW_OK)
        status = ww_text_search(t, &asked, &found);
    ww_results_destroy(found);
    return status;
}

static ww_model *open_ranker(void)
{
    ww_model *ranker = NULL;
    tiny_write_ranker(1, scratch_path("ranker.gguf"));
    CHECK_OK(ww_model_open(scratch_path("ranker.gguf"), device, NULL, &ranker));
    return ranker;
}

/* Two hits of three, in the order of the scores of the model that reads both texts. */
static void hits_are_reranked_by_a_model(void **state)
{
    (void)state;
    static const char *const words = "a fox";
    ww_text *t = open_text(model_path, 1);
    ww_model *ranker = open_ranker();
    ww_text_rows rows = the_rows();
    ww_text_query asked = ww_text_query_default();
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    float scores[3];
    CHECK_OK(ww_text_add(t, &rows));
    CHECK_OK(ww_model_rerank(ranker, words, TEXTS, NULL, 3, scores, NULL, NULL));
    query.k = 2, query.fetch = WW_FETCH_IDS;
    asked.texts = &words, asked.count = 1, asked.query = &query, asked.rerank = ranker;
    CHECK_OK(ww_text_search(t, &asked, &found));
    assert_int_equal(ww_results_count(found, 0), 2);
    const int best = scores[0] > scores[1] ? (scores[0] > scores[2] ? 0 : 2) : (scores[1] > scores[2] ? 1 : 2);
    assert_string_equal(ww_results_id(found, 0, 0), IDS[best]);
    assert_true(ww_results_scores(found, 0)[0] == scores[best]);
    assert_true(ww_results_scores(found, 0)[1] < scores[best]);
    ww_results_destroy(found);
    asked.reranked = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_search(t, &asked, &found));
    asked.reranked = 3, asked.rerank = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_text_search(t, &asked, &found));
    asked.reranked = 0, asked.rerank = ww_text_model(t);
    CHECK_FAILS(WW_UNSUPPORTED, ww_text_search(t, &asked, &found));
    ww_model_close(ranker);
    ww_text_close(t);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ww_text *t = open_text(model_path, 1);
    ww_model *ranker = open_ranker();
    long failures = 0;
    int successes = 0;
    CHECK_OK(do_all(t, ranker));
    const int64_t rows = ww_collection_count(ww_text_collection(t));
    for (int64_t n = 1; successes < 12; n += n < 200 ? 1 : n / 50) {
        fail_allocation_at(n);
        const ww_status status = do_all(t, ranker);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        failures += status != WW_OK;
        successes = status == WW_OK ? successes + 1 : 0;
        assert_int_equal(ww_collection_count(ww_text_collection(t)), rows);
    }
    assert_true(failures > 20);
    fault_count("allocation", failures);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_model_close(ranker);
    ww_text_close(t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(rows_that_exist_are_refused_before_anything_is_embedded),
        TEST(texts_are_found_by_texts),
        TEST(another_model_is_refused),
        TEST(prefixes_are_kept_and_put_before_texts),
        TEST(chunks_end_where_sentences_end),
        TEST(chunks_leave_nothing_out_and_fit),
        TEST(documents_become_chunks_with_neighbours),
        TEST(a_shorter_document_leaves_no_chunks_behind),
        TEST(a_shorter_document_replaces_a_longer_one_in_one_transaction),
        TEST(hits_are_grouped_by_their_source),
        TEST(hits_are_reranked_by_a_model),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
