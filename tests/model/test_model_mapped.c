/* Weights that a CPU uses where their file has them: which, that they give the same bits as copies, that they outlive the
 * file's name, and what happens to a file that becomes shorter while it is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/map.h"
#include "model_calls.h"
#include "support/scratch.h"

enum { TOKENS = 6, FILE_BYTES = 100000 };

static ww_device *device;

/* Opens scratch/model.gguf. */
static ww_model *opened(bool copy, int64_t *mapped)
{
    ww_model_options options = ww_model_options_default();
    ww_model_info info = ww_model_info_default();
    ww_model *model = NULL;
    options.copy_weights = copy;
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
    CHECK_OK(ww_model_describe(model, &info));
    *mapped = info.mapped_bytes;
    assert_true(info.mapped_bytes >= 0 && info.mapped_bytes < info.weight_bytes);
    return model;
}

static bool is_mapped(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found = found || (strstr(line, "model.gguf") && strstr(line, "r--p"));
    (void)fclose(maps);
    return found;
}

static void embed(ww_model *model, float vector[CALLS_WIDTH])
{
    ww_session *session = NULL;
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(model, &info));
    assert_int_equal(info.width, CALLS_WIDTH);
    if (info.kind == WW_MODEL_ENCODER) {
        CHECK_OK(ww_model_embed_tokens(model, calls_prompt, &(size_t){TOKENS}, 1, vector));
        return;
    }
    float logits[CALLS_VOCABULARY];
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, calls_prompt, TOKENS));
    CHECK_OK(ww_session_logits(session, logits));
    memcpy(vector, logits, CALLS_WIDTH * sizeof *vector);
    ww_session_destroy(session);
}

static void check_kind(const char *kind, ww_quant_type type, bool shared)
{
    float mapped_vector[CALLS_WIDTH], copied_vector[CALLS_WIDTH];
    int64_t mapped = 0, copied = 0;
    if (strcmp(kind, "bert") == 0)
        write_tiny_embedder(kind, type, "model.gguf");
    else
        write_tiny_model(kind, type, 2, "model.gguf");
    ww_model *uses = opened(false, &mapped), *copies = opened(true, &copied);
    if ((mapped > 0) != shared || copied != 0 || is_mapped() != shared)
        fail_msg("%s of type %d: %lld bytes are mapped, %lld in the copy", kind, (int)type, (long long)mapped,
                 (long long)copied);
    assert_int_equal(unlink(scratch_path("model.gguf")), 0);
    embed(uses, mapped_vector);
    embed(copies, copied_vector);
    assert_memory_equal(mapped_vector, copied_vector, sizeof mapped_vector);
    ww_model_close(uses);
    assert_false(is_mapped());
    ww_model_close(copies);
}

static void plain_weights_are_used_where_the_file_has_them(void **state)
{
    (void)state;
    check_kind("llama", WW_QUANT_F32, true);
    check_kind("llama", WW_QUANT_F16, true);
    check_kind("llama", WW_QUANT_BF16, true);
    check_kind("qwen3moe", WW_QUANT_F16, true);
    check_kind("bert", WW_QUANT_F32, true);
    check_kind("bert", WW_QUANT_F16, true);    /* its embedding; its matrices become f32 */
    check_kind("llama", WW_QUANT_Q8_0, false); /* has its own order on a CPU */
}

static void a_file_that_becomes_shorter_is_an_error_and_not_the_end_of_the_process(void **state)
{
    (void)state;
    static char bytes[FILE_BYTES];
    file_source source;
    file_map *map = NULL;
    memset(bytes, 'x', sizeof bytes);
    scratch_write("mapped", bytes, sizeof bytes);
    CHECK_OK(source_open(&source, scratch_path("mapped")));
    CHECK_OK(file_map_open(&source, &map));
    assert_non_null(map);
    CHECK_OK(file_map_load(map, &source, 0, FILE_BYTES));
    CHECK_OK(file_map_load(map, &source, 99999, 1));
    CHECK_OK(file_map_load(map, &source, FILE_BYTES, 0));
    assert_memory_equal(map->bytes, bytes, sizeof bytes);
    assert_int_equal(truncate(scratch_path("mapped"), 5000), 0);
    CHECK_FAILS(WW_IO_ERROR, file_map_load(map, &source, 0, FILE_BYTES));
    assert_non_null(strstr(ww_error_message(), "mapped"));
    source_close(&source);
    file_map_release(map);
    file_map_release(NULL);
}

static void what_cannot_be_mapped_is_left_to_be_read(void **state)
{
    (void)state;
    file_source source;
    file_map *map = NULL;
    source_over(&source, "bytes", "abc", 3);
    CHECK_OK(file_map_open(&source, &map));
    assert_null(map);
    scratch_write("empty", "", 0);
    CHECK_OK(source_open(&source, scratch_path("empty")));
    CHECK_OK(file_map_open(&source, &map));
    assert_null(map);
    source_close(&source);
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
        cmocka_unit_test(plain_weights_are_used_where_the_file_has_them),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error_and_not_the_end_of_the_process),
        cmocka_unit_test(what_cannot_be_mapped_is_left_to_be_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
