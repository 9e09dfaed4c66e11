/* What sentence-transformers keeps beside config.json goes into the file: pooling, prompts, the context. And what follows for
 * embeddings: prompts are put before texts, and texts that are cut are counted. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <warpwave/model.h>

#include "model/conversions.h"
#include "support/models/folder.h"
#include "support/scratch.h"

enum { WIDTH = 64 };

#define CHECK_REFUSED(call, expected, says)                                                                                    \
    do {                                                                                                                       \
        CHECK_FAILS(expected, call);                                                                                           \
        assert_non_null(strstr(ww_error_message(), says));                                                                     \
    } while (0)

static ww_device *device;

static const char PROMPTS[] = "{\"prompts\":{\"query\":\"a fox: \",\"passage\":\"\",\"clustering\":\"sort: \"}%s}";

/* A folder of an encoder with WordPiece; `more` follows the prompts. */
static void write_folder(const char *more)
{
    char text[512];
    tiny_model m;
    const tiny_shape shape = folder_shape("bert");
    tiny_make(&m, &shape);
    folder_write(&m, "BertModel");
    tiny_free(&m);
    snprintf(text, sizeof text, PROMPTS, more);
    folder_text_file("config_sentence_transformers.json", text);
}

static ww_model *open_folder(void)
{
    ww_model *model = NULL;
    CHECK_OK(ww_model_open(scratch_path("folder"), device, NULL, &model));
    return model;
}

static ww_model_info info_of(const ww_model *model)
{
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(model, &info));
    return info;
}

static void embed(ww_model *model, const char *prompt, const char *text, float out[WIDTH])
{
    ww_embedding how = ww_embedding_default();
    how.prompt = prompt;
    CHECK_OK(ww_model_embed(model, &text, NULL, 1, &how, out));
}

static void check_same(ww_model *model, const char *prompt, const char *text, const char *whole)
{
    float with[WIDTH], alone[WIDTH];
    embed(model, prompt, text, with);
    embed(model, "", whole, alone);
    assert_memory_equal(with, alone, sizeof with);
}

static void prompts_of_a_folder_are_put_before_texts(void **state)
{
    (void)state;
    const char *text = NULL, *fox = "a fox";
    float vector[WIDTH];
    ww_embedding how = ww_embedding_default();
    write_folder("");
    ww_model *model = open_folder();
    assert_string_equal(info_of(model).prompts, "query, passage, clustering");
    assert_string_equal(info_of(model).default_prompt, "");
    check_same(model, "query", "a fox", "a fox: a fox");
    check_same(model, "clustering", "fox", "sort: fox");
    check_same(model, NULL, "a fox", "a fox");
    check_same(model, "document", "fox", "fox"); /* passage, which is empty */
    CHECK_OK(ww_model_prompt(model, "query", &text));
    assert_string_equal(text, "a fox: ");
    CHECK_REFUSED(ww_model_prompt(model, "nothing", &text), WW_NOT_FOUND, "query, passage, clustering");
    how.prompt = "nothing";
    CHECK_REFUSED(ww_model_embed(model, &fox, NULL, 1, &how, vector), WW_NOT_FOUND, "'nothing'");
    ww_model_close(model);
}

static void the_default_prompt_is_used_when_none_is_named(void **state)
{
    (void)state;
    write_folder(",\"default_prompt_name\":\"query\"");
    ww_model *model = open_folder();
    assert_string_equal(info_of(model).default_prompt, "query");
    check_same(model, NULL, "fox", "a fox: fox");
    check_same(model, "", "fox", "fox");
    ww_model_close(model);
}

static void models_without_prompts_know_query_and_document(void **state)
{
    (void)state;
    const char *text = NULL;
    write_folder("");
    unlink(in_folder("config_sentence_transformers.json"));
    ww_model *model = open_folder();
    assert_string_equal(info_of(model).prompts, "");
    check_same(model, "query", "a fox", "a fox");
    check_same(model, "document", "a fox", "a fox");
    CHECK_REFUSED(ww_model_prompt(model, "clustering", &text), WW_NOT_FOUND, "it has none");
    ww_model_close(model);
}

static void a_folder_without_pooling_takes_the_mean_and_says_so(void **state)
{
    (void)state;
    float assumed[WIDTH], said[WIDTH];
    write_folder("");
    ww_model *model = open_folder();
    assert_int_equal(info_of(model).pooling_assumed, 0);
    embed(model, "", "a fox", said);
    ww_model_close(model);
    unlink(in_folder("1_Pooling/config.json"));
    model = open_folder();
    assert_int_equal(info_of(model).pooling, WW_POOLING_MEAN);
    assert_int_equal(info_of(model).pooling_assumed, 1);
    embed(model, "", "a fox", assumed);
    assert_memory_equal(assumed, said, sizeof said);
    ww_model_close(model);
    folder_text_file("1_Pooling/config.json", "{\"pooling_mode\":\"cls\"}"); /* as newer folders have it */
    model = open_folder();
    assert_int_equal(info_of(model).pooling, WW_POOLING_CLS);
    ww_model_close(model);
}

static void the_converter_takes_a_pooling(void **state)
{
    (void)state;
    ww_gguf *g = NULL;
    int64_t pooling = 0;
    ww_conversion_report report;
    write_folder("");
    unlink(in_folder("1_Pooling/config.json"));
    const ww_conversion job = {.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device};
    CHECK_OK(convert_folder(&job, &report));
    assert_true(report.pooling_assumed);
    ww_conversion given = job;
    given.pooling = WW_POOLING_LAST;
    CHECK_OK(convert_folder(&given, &report));
    assert_false(report.pooling_assumed);
    CHECK_OK(ww_gguf_open(scratch_path("out.gguf"), &g));
    CHECK_OK(ww_gguf_i64(g, "bert.pooling_type", &pooling));
    assert_int_equal(pooling, WW_POOLING_LAST);
    ww_gguf_close(g);
}

static void a_text_that_is_cut_is_counted(void **state)
{
    (void)state;
    static const char *const texts[] = {"a", "a a a a a a a a a a a", "a a a a", "a a a a a"};
    static float vectors[4 * WIDTH];
    int64_t cut = -1;
    ww_embedding how = ww_embedding_default();
    how.cut = &cut;
    write_folder("");
    folder_text_file("sentence_bert_config.json", "{\"max_seq_length\":6}");
    ww_model *model = open_folder();
    CHECK_OK(ww_model_embed(model, texts, NULL, 4, &how, vectors)); /* with [CLS] and [SEP] four tokens fit */
    assert_int_equal(cut, 2);
    CHECK_OK(ww_model_embed(model, texts, NULL, 1, &how, vectors));
    assert_int_equal(cut, 0);
    how.prompt = "query"; /* makes room for one token less */
    CHECK_OK(ww_model_embed(model, texts + 2, NULL, 1, &how, vectors));
    assert_int_equal(cut, 1);
    assert_int_equal(info_of(model).texts_cut, 3);
    ww_model_close(model);
}

static void check_message(const char *word)
{
    ww_model *model = NULL;
    CHECK_FAILS(WW_NOT_FOUND, ww_model_open(scratch_path("folder"), device, NULL, &model));
    if (!strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
}

static void a_folder_that_cannot_be_read_says_what_to_do(void **state)
{
    (void)state;
    write_folder("");
    unlink(in_folder("model.safetensors"));
    check_message("model.safetensors");
    folder_text_file("pytorch_model.bin", "");
    check_message("save_pretrained");
    unlink(in_folder("config.json"));
    check_message("a folder with config.json, tokenizer.json and *.safetensors");
    folder_text_file("model.onnx", "");
    check_message("ONNX files are not read");
    folder_text_file("some.gguf", "");
    check_message("folder/some.gguf");
}

static ww_array floats(const char *name, int64_t rows, int64_t cols, const float *data)
{
    ww_array a = ww_array_default();
    a.name = name;
    a.element = WW_ELEMENT_F32;
    a.rank = cols ? 2 : 1;
    a.shape[0] = rows;
    a.shape[1] = cols;
    a.data = data;
    return a;
}

static void make_unit(float *v, int count)
{
    double squared = 0.0;
    for (int i = 0; i < count; i++)
        squared += (double)v[i] * (double)v[i];
    for (int i = 0; i < count; i++)
        v[i] = (float)((double)v[i] / sqrt(squared));
}

static void check_near(const float *found, const float *right, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabsf(found[i] - right[i]) < 1e-5f))
            fail_msg("number %d is %g, not %g", i, (double)found[i], (double)right[i]);
}

static void a_dense_layer_makes_vectors_of_its_own_length(void **state)
{
    (void)state;
    enum { LENGTH = 24 };
    static float weights[LENGTH * WIDTH], bias[LENGTH];
    float before[WIDTH], after[WIDTH], biased[WIDTH], right[LENGTH] = {0};
    write_folder("");
    ww_model *model = open_folder();
    embed(model, "", "a fox", before);
    ww_model_close(model);
    for (int i = 0; i < LENGTH * WIDTH; i++) {
        weights[i] = (float)(i * 7 % 13 - 6) / 8.0f;
        right[i / WIDTH] += weights[i] * before[i % WIDTH];
    }
    for (int i = 0; i < LENGTH; i++)
        bias[i] = (float)(i - 12);
    make_unit(right, LENGTH);
    const ww_array arrays[] = {floats("linear.weight", LENGTH, WIDTH, weights), floats("linear.bias", LENGTH, 0, bias)};
    mkdir(in_folder("5_Dense_24"), 0700);
    CHECK_OK(ww_safetensors_write(in_folder("5_Dense_24/model.safetensors"), arrays, 1, NULL));
    folder_text_file("5_Dense_24/config.json", "{\"activation_function\":\"torch.nn.modules.linear.Identity\"}");
    folder_text_file("modules.json", "[{\"type\":\"sentence_transformers.models.Transformer\",\"path\":\"\"},"
                                     "{\"type\":\"sentence_transformers.models.Dense\",\"path\":\"5_Dense_24\"}]");
    model = open_folder();
    assert_int_equal(info_of(model).width, LENGTH);
    embed(model, "", "a fox", after);
    check_near(after, right, LENGTH);
    ww_model_close(model);
    CHECK_OK(ww_safetensors_write(in_folder("5_Dense_24/model.safetensors"), arrays, 2, NULL));
    model = open_folder();
    embed(model, "", "a fox", biased);
    assert_true(biased[0] < after[0] - 0.01f && biased[LENGTH - 1] > after[LENGTH - 1] + 0.01f);
    ww_model_close(model);
    unlink(in_folder("modules.json"));
}

/* Unknown words are not part of the mean; a text of nothing else has no direction. */
static void static_embeddings_are_means_of_rows(void **state)
{
    (void)state;
    enum { LENGTH = 20 };
    static float rows[6 * LENGTH];
    static const int32_t able[] = {4, 5};
    float vector[WIDTH], right[LENGTH];
    int32_t ids[8];
    size_t count = 0;
    write_folder("");
    unlink(in_folder("1_Pooling/config.json"));
    for (int i = 0; i < 6 * LENGTH; i++)
        rows[i] = (float)(i * 5 % 17 - 8) / 4.0f;
    const ww_array embeddings = floats("embeddings", 6, LENGTH, rows);
    CHECK_OK(ww_safetensors_write(in_folder("model.safetensors"), &embeddings, 1, NULL));
    folder_text_file("config.json", "{\"architectures\":[\"StaticModel\"],\"model_type\":\"model2vec\"}");
    ww_model *model = open_folder();
    assert_string_equal(info_of(model).architecture, "model2vec");
    assert_int_equal(info_of(model).width, LENGTH);
    assert_int_equal(info_of(model).context, 512);
    assert_int_equal(info_of(model).pooling_assumed, 0);
    CHECK_OK(ww_model_tokenize(model, "Unable", 6, 0, ids, 8, &count));
    assert_int_equal(count, 2);
    assert_memory_equal(ids, able, sizeof able);
    for (int i = 0; i < LENGTH; i++)
        right[i] = rows[4 * LENGTH + i] + rows[5 * LENGTH + i];
    make_unit(right, LENGTH);
    embed(model, "", "unable", vector);
    check_near(vector, right, LENGTH);
    embed(model, "", "xyz unable %", vector);
    check_near(vector, right, LENGTH);
    memset(right, 0, sizeof right);
    embed(model, "", "xyz", vector);
    check_near(vector, right, LENGTH);
    embed(model, "", "", vector);
    check_near(vector, right, LENGTH);
    ww_model_close(model);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    write_folder(",\"default_prompt_name\":\"query\"");
    convert_with_faults(
        &(ww_conversion){.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device});
}

static int setup(void **state)
{
    CHECK_OK(ww_device_open("cpu", &device));
    return scratch_setup(state);
}

static int teardown(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts_of_a_folder_are_put_before_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_default_prompt_is_used_when_none_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(models_without_prompts_know_query_and_document, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_without_pooling_takes_the_mean_and_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(the_converter_takes_a_pooling, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_that_is_cut_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dense_layer_makes_vectors_of_its_own_length, setup, teardown),
        cmocka_unit_test_setup_teardown(static_embeddings_are_means_of_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_read_says_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
