/* Tokens of real models, as the programs that they were made with give them (tests/data/model/tokens.jsonl). The models are in
 * the folder that WARPWAVE_MODELS names (scripts/demo/fetch-models.py puts them there); without it this is skipped. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/convert/convert.h"
#include "support/data/tokens.h"
#include "support/scratch.h"

/* Opens a model's tokenizer, after converting a folder. Returns NULL if the model does not exist. */
static tokenizer *open_model(const char *name)
{
    static char path[SCRATCH_PATH_BYTES];
    ww_gguf *g = NULL;
    tokenizer *t = NULL;
    const char *folder = getenv("WARPWAVE_MODELS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    if (!folder || access(path, R_OK) != 0)
        return NULL;
    if (!strstr(name, ".gguf")) {
        ww_device *device = NULL;
        ww_conversion_report report;
        CHECK_OK(ww_device_open("cpu", &device));
        const ww_conversion job = {
            .folder = path, .out_path = scratch_path("converted.gguf"), .type = "q8_0", .device = device};
        CHECK_OK(convert_folder(&job, &report));
        ww_device_close(device);
        CHECK_OK(ww_gguf_open(job.out_path, &g));
    } else {
        CHECK_OK(ww_gguf_open(path, &g));
    }
    CHECK_OK(tokenizer_create(g, &t));
    ww_gguf_close(g);
    return t;
}

static void check_case(const tokenizer *t, const json_t *text, const json_t *ids, unsigned flags)
{
    token_list list = {0};
    CHECK_OK(tokenizer_encode(t, json_string_value(text), json_string_length(text), flags, &list));
    if ((size_t)list.count != json_array_size(ids))
        fail_msg("'%s': %d tokens, not %zu", json_string_value(text), (int)list.count, json_array_size(ids));
    for (int64_t i = 0; i < list.count; i++)
        if (list.ids[i] != (int32_t)json_integer_value(json_array_get(ids, (size_t)i)))
            fail_msg("'%s': token %d is %d", json_string_value(text), (int)i, list.ids[i]);
    token_list_free(&list);
}

static void check_model(const char *name, int expected)
{
    char line[1 << 16];
    int cases = 0;
    tokenizer *t = open_model(name);
    if (!t) {
        printf("SKIP: no %s in the folder that WARPWAVE_MODELS names; scripts/demo/fetch-models.py fetches it\n", name);
        skip();
    }
    FILE *file = fopen(TEST_DATA_DIR "/model/tokens.jsonl", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *one = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(one);
        if (strcmp(json_string_value(json_object_get(one, "model")), name) == 0) {
            const json_t *text = json_object_get(one, "text"), *plain = json_object_get(one, "plain");
            check_case(t, text, json_object_get(one, "ids"), 0);
            if (plain)
                check_case(t, text, plain, TOKENIZE_PLAIN);
            cases++;
        }
        json_decref(one);
    }
    fclose(file);
    tokenizer_destroy(t);
    assert_int_equal(cases, expected);
}

static void minilm_has_the_tokens_of_its_own_tokenizer(void **state)
{
    (void)state;
    check_model("all-MiniLM-L6-v2", 206);
}

static void smollm2_has_the_tokens_of_its_own_tokenizer(void **state)
{
    (void)state;
    check_model("SmolLM2-135M-Instruct.Q4_1.gguf", 205);
}

static void gemma3_has_the_tokens_of_its_own_tokenizer(void **state)
{
    (void)state;
    check_model("gemma-3-270m-q4_k_m.gguf", 3);
}

static void qwen2_has_the_tokens_of_its_own_tokenizer(void **state)
{
    (void)state;
    check_model("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minilm_has_the_tokens_of_its_own_tokenizer),
        cmocka_unit_test(smollm2_has_the_tokens_of_its_own_tokenizer),
        cmocka_unit_test(gemma3_has_the_tokens_of_its_own_tokenizer),
        cmocka_unit_test(qwen2_has_the_tokens_of_its_own_tokenizer),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
