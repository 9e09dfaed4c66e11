/* Texts in a store by the command, with a small encoder of random weights: a folder is converted, texts are added and found,
 * another model is refused. */
#include <fenv.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/command.h"
#include "support/models/folder.h"

static const char TOKENIZER[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[PAD]\",\"special\":true},{\"id\":1,\"content\":\"[UNK]\",\"special\":true},"
    "{\"id\":2,\"content\":\"[CLS]\",\"special\":true},{\"id\":3,\"content\":\"[SEP]\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},"
    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"a\":4,\"small\":5,"
    "\"animal\":6,\"boat\":7,"
    "\"with\":8,\"sails\":9,\"bread\":10,\"##s\":11}}}";

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    scratch_write(path, text, strlen(text));
}

/* A folder of a model with weights by the seed, and the GGUF file of it. */
static const char *make_model(const char *name, uint64_t seed)
{
    char out[64];
    tiny_model m;
    tiny_shape shape = folder_shape("bert");
    shape.seed = seed;
    tiny_make(&m, &shape);
    folder_choose(name);
    folder_write(&m, "BertModel");
    folder_text_file("tokenizer.json", TOKENIZER);
    tiny_free(&m);
    snprintf(out, sizeof out, "%s.gguf", name);
    const char *path = scratch_path(out);
    COMMAND_SAYS(0, "bert, 37 tensors", "gguf", "from-safetensors", scratch_path(name), path);
    return path;
}

static void texts_are_found_by_texts(void **state)
{
    (void)state;
    static const char lines[] = "a small animal\na boat with sails\n\nbread\n";
    char model[SCRATCH_PATH_BYTES], other[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES], texts[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", make_model("first", 5));
    snprintf(other, sizeof other, "%s", make_model("second", 6));
    snprintf(store, sizeof store, "%s", scratch_path("texts.db"));
    snprintf(texts, sizeof texts, "%s", scratch_write("texts.txt", lines, strlen(lines)));
    COMMAND_SAYS(0, "3 rows (the collection was empty)", "store", "add", store, "docs", "--text", texts, "--model", model,
                 "--device", "cpu");
    json_t *report =
        COMMAND_JSON("search", "--store", store, "--text", "A boat with SAILS", "-k", "1", "--device", "cpu", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(report, "results"), 0), 0);
    assert_string_equal(json_string_value(json_object_get(hit, "text")), "a boat with sails");
    assert_true(fabs(json_number_value(json_object_get(hit, "score")) - 1.0) < 1e-5); /* the same tokens, the same vector */
    json_decref(report);
    /* The folder from which the file was made is the same model. */
    char folder[SCRATCH_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", scratch_path("first"));
    COMMAND_SAYS(0, "bread", "search", "--store", store, "--text", "bread", "--model", folder, "--device", "cpu");
    /* Another model's vectors are no neighbours of these. */
    COMMAND_SAYS(3, "cannot be compared", "store", "add", store, "docs", "--text", texts, "--model", other, "--device", "cpu");
    COMMAND_SAYS(3, "cannot be compared", "search", "--store", store, "--text", "bread", "--model", other, "--device", "cpu");
    /* The same one may be elsewhere. */
    const char *moved = scratch_path("moved.gguf");
    assert_int_equal(rename(model, moved), 0);
    COMMAND_SAYS(3, "first.gguf", "search", "--store", store, "--text", "bread", "--device", "cpu");
    COMMAND_SAYS(0, "bread", "search", "--store", store, "--text", "bread", "--model", moved, "--device", "cpu");
}

static void texts_bring_ids_and_payloads(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"id\": \"x\", \"text\": \"bread\", \"payload\": {\"n\": 1}}\n{\"id\": \"y\", \"text\": \"boats\"}\n";
    char model[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES], texts[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", make_model("third", 7));
    snprintf(store, sizeof store, "%s", scratch_path("ids.db"));
    snprintf(texts, sizeof texts, "%s", scratch_write("texts.jsonl", lines, strlen(lines)));
    COMMAND_SAYS(0, "2 rows", "store", "add", store, "docs", "--text", texts, "--model", model, "--device", "cpu");
    COMMAND_SAYS(0, "{\"n\":1}", "store", "get", store, "docs", "--id", "x");
    COMMAND_SAYS(0, "y  boats", "store", "search", store, "docs", "--text", "boats", "-k", "1", "--device", "cpu");
}

static void the_kept_model_is_found_and_shown(void **state)
{
    (void)state;
    static const char lines[] = "a small animal\na boat with sails\n";
    char model[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES], texts[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", make_model("kept", 8));
    snprintf(store, sizeof store, "%s", scratch_path("kept.db"));
    snprintf(texts, sizeof texts, "%s", scratch_write("kept.txt", lines, strlen(lines)));
    COMMAND_SAYS(0, "2 rows", "store", "add", store, "docs", "--text", texts, "--model", model, "--query-prefix", "a ",
                 "--device", "cpu");
    COMMAND_SAYS(0, "4 rows (2 before)", "store", "add", store, "docs", "--text", texts, "--device", "cpu");
    COMMAND_SAYS(0, "docs  (model ", "store", "list", store);
    COMMAND_SAYS(0, "\"query_prefix\":\"a \"", "store", "list", store, "--json");
    COMMAND_SAYS(0, "\"pooling\":\"mean\"", "store", "info", store, "--json");
    COMMAND_SAYS(3, "prefixes", "store", "add", store, "docs", "--text", texts, "--query-prefix", "b ", "--device", "cpu");
    COMMAND_SAYS(2, "--model M is missing", "store", "add", store, "new", "--text", texts, "--device", "cpu");
    COMMAND_SAYS(0, "boat", "store", "search", store, "docs", "--text", "sails", "--mode", "text"); /* words need no model */
    json_t *report =
        COMMAND_JSON("store", "search", store, "docs", "--text", "boat", "--mode", "hybrid", "--device", "cpu", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(report, "results"), 0), 0);
    assert_string_equal(json_string_value(json_object_get(hit, "text")), "a boat with sails");
    assert_int_equal(json_integer_value(json_object_get(hit, "text_rank")), 1);
    assert_true(json_is_integer(json_object_get(hit, "vector_rank")));
    json_decref(report);
    /* Texts travel with JSON lines. */
    char exported[SCRATCH_PATH_BYTES];
    snprintf(exported, sizeof exported, "%s", scratch_path("exported.jsonl"));
    COMMAND_SAYS(0, "4 rows", "store", "export", store, "docs", exported);
    COMMAND_SAYS(0, "4 rows", "store", "import", store, "copy", exported);
    COMMAND_SAYS(0, "a boat with sails", "store", "search", store, "copy", "--text", "sails", "--mode", "text", "--json");
    COMMAND_SAYS(0, "\"text\":", "store", "get", store, "copy", "--limit", "1", "--json");
    COMMAND_SAYS(2, "--mode hybrid", "store", "search", store, "docs", "--text", "boat", "--fusion", "scores");
    COMMAND_SAYS(2, "two numbers", "store", "search", store, "docs", "--text", "boat", "--mode", "hybrid", "--weights", "1",
                 "--device", "cpu");
    COMMAND_SAYS(2, "from 0 to 1", "store", "search", store, "docs", "--text", "boat", "--mmr", "2", "--device", "cpu");
    COMMAND_SAYS(0, "animal", "store", "search", store, "docs", "--text", "boat", "--mmr", "0.1", "-k", "2", "--device", "cpu");
    COMMAND_SAYS(2, "go with --text", "store", "add", store, "docs", "--vector", "[1]", "--chunk", "5");
}

static void documents_of_a_folder_become_chunks(void **state)
{
    (void)state;
    char model[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES], folder[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", make_model("chunks", 9));
    snprintf(store, sizeof store, "%s", scratch_path("chunks.db"));
    snprintf(folder, sizeof folder, "%s", scratch_path("folder"));
    mkdir(folder, 0700);
    write_text("folder", "one.txt", "A small animal. A boat with sails. Bread. A small boat. Animals with bread.");
    write_text("folder", "two.md", "Bread with bread.");
    write_text("folder", "three.bin", "not text");
    COMMAND_SAYS(0, "left out 1 file: documents end in .txt", "store", "add", store, "docs", "--text", folder, "--model", model,
                 "--chunk", "8", "--overlap", "4", "--device", "cpu");
    json_t *report = COMMAND_JSON("store", "search", store, "docs", "--text", "sails", "--mode", "text", "-k", "1", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(report, "results"), 0), 0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(hit, "payload"), "source")), "one.txt");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(hit, "payload"), "chunk")), 1);
    json_decref(report);
    COMMAND_SAYS(0, "A small animal. A boat with sails. Bread. A small boat", "store", "search", store, "docs", "--text",
                 "sails", "--mode", "text", "-k", "1", "--expand", "1", "--device", "cpu");
    report = COMMAND_JSON("store", "search", store, "docs", "--text", "bread", "--mode", "hybrid", "--group-by", "source",
                          "--device", "cpu", "--json");
    assert_int_equal(json_array_size(json_array_get(json_object_get(report, "results"), 0)), 2);
    json_decref(report);
    write_text("folder", "one.txt", "Bread.");
    COMMAND_SAYS(0, "2 rows", "store", "add", store, "docs", "--text", folder, "--upsert", "--device", "cpu");
}

/* `model rerank` has the order of all texts; a search has the best of them in the same one, and with the same scores. */
static void hits_are_put_into_the_order_of_a_model_that_reranks(void **state)
{
    (void)state;
    static const char lines[] = "a fox\nthe dog\na small dog\ndogs\n";
    char model[SCRATCH_PATH_BYTES], ranker[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES], texts[SCRATCH_PATH_BYTES];
    snprintf(model, sizeof model, "%s", make_model("ranked", 10));
    snprintf(ranker, sizeof ranker, "%s", scratch_path("ranker.gguf"));
    snprintf(store, sizeof store, "%s", scratch_path("ranked.db"));
    snprintf(texts, sizeof texts, "%s", scratch_write("ranked.txt", lines, strlen(lines)));
    tiny_write_ranker(2, ranker);
    COMMAND_SAYS(0, "4 rows", "store", "add", store, "docs", "--text", texts, "--model", model, "--device", "cpu");
    json_t *expected = COMMAND_JSON("model", "rerank", ranker, "--query", "a fox", "--in", texts, "--device", "cpu", "--json");
    json_t *found = COMMAND_JSON("store", "search", store, "docs", "--text", "a fox", "-k", "3", "--rerank", ranker,
                                 "--candidates", "4", "--device", "cpu", "--json");
    json_t *hits = json_array_get(json_object_get(found, "results"), 0);
    assert_int_equal(json_array_size(hits), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *hit = json_array_get(hits, i), *right = json_array_get(expected, i);
        assert_string_equal(json_string_value(json_object_get(hit, "text")), json_string_value(json_object_get(right, "text")));
        assert_true(json_number_value(json_object_get(hit, "score")) == json_number_value(json_object_get(right, "score")));
    }
    json_decref(found);
    json_decref(expected);
    COMMAND_SAYS(0, "a fox", "search", "--store", store, "--text", "a fox", "--rerank", ranker, "--device", "cpu");
    COMMAND_SAYS(3, "does not rerank", "search", "--store", store, "--text", "a fox", "--rerank", model, "--device", "cpu");
    COMMAND_SAYS(2, "go with --text", "store", "search", store, "docs", "--vector", "[1]", "--rerank", ranker);
    COMMAND_SAYS(2, "neither --mmr nor", "store", "search", store, "docs", "--text", "a", "--rerank", ranker, "--mmr", "1");
    COMMAND_SAYS(2, "go with --store", "search", "--base", "x.npy", "--queries", "x.npy", "--rerank", ranker);
}

static void conflicting_options_are_refused(void **state)
{
    (void)state;
    char store[SCRATCH_PATH_BYTES], texts[SCRATCH_PATH_BYTES];
    snprintf(store, sizeof store, "%s", scratch_path("refused.db"));
    snprintf(texts, sizeof texts, "%s", scratch_write("some.txt", "a\n", 2));
    COMMAND_SAYS(2, "--model M is missing", "store", "add", store, "docs", "--text", texts);
    COMMAND_SAYS(2, "ids and payloads are in .jsonl", "store", "add", store, "docs", "--text", texts, "--model", "m", "--id",
                 "x");
    COMMAND_SAYS(3, "none.gguf", "store", "add", store, "docs", "--text", texts, "--model", scratch_path("none.gguf"),
                 "--device", "cpu");
    COMMAND_SAYS(0, "created", "store", "create", store, "plain", "--dim", "4");
    COMMAND_SAYS(1, "no model is kept", "search", "--store", store, "--text", "a", "--device", "cpu");
    COMMAND_SAYS(2, "go with --store", "search", "--base", "x.npy", "--text", "a");
    COMMAND_SAYS(2, "--queries FILE is missing", "search", "--store", store);
}

/* Converts the numbers of config.json and of the tensors. The command resets the rounding mode that a preloaded library has
 * set. */
static void a_folder_becomes_the_same_file_under_every_rounding_mode(void **state)
{
    (void)state;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    char *right = NULL;
    size_t right_size = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        command_round(modes[i]);
        size_t size = 0;
        char *content = scratch_content(make_model("rounded", 7), &size);
        command_round(FE_TONEAREST);
        if (i == 0) {
            right = content;
            right_size = size;
            continue;
        }
        assert_int_equal(size, right_size);
        assert_memory_equal(content, right, size);
        free(content);
    }
    free(right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_found_by_texts),
        cmocka_unit_test(texts_bring_ids_and_payloads),
        cmocka_unit_test(the_kept_model_is_found_and_shown),
        cmocka_unit_test(documents_of_a_folder_become_chunks),
        cmocka_unit_test(hits_are_put_into_the_order_of_a_model_that_reranks),
        cmocka_unit_test(conflicting_options_are_refused),
        cmocka_unit_test(a_folder_becomes_the_same_file_under_every_rounding_mode),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
