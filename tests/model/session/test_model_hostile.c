/* Models under difficult conditions: a disk that is full when a session is saved, little memory, and a caller with another
 * rounding mode. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/model_calls.h"
#include "support/calls/float_control.h"
#include "support/devices.h"
#include "support/process.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, DRAWN = 4, MEBIBYTE = 1 << 20 };

static const int32_t prompt[] = {3, 14, 15, 92, 65, 35, 8, 9, 79, 32, 38};
enum { PROMPT = sizeof prompt / sizeof *prompt };

static ww_session *fed_session(ww_model *model)
{
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, prompt, PROMPT));
    return session;
}

/* A limit on the file's size has the same effect as a full disk, at any chosen byte. */
static ww_status save_within(ww_session *session, const char *path, rlim_t bytes)
{
    struct rlimit before, tight = {.rlim_cur = bytes};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const ww_status status = ww_session_save(session, path);
    setrlimit(RLIMIT_FSIZE, &before);
    return status;
}

static void a_full_disk_leaves_the_saved_session_and_the_one_that_is_saved(void **state)
{
    ww_model *model;
    ww_session *loaded;
    float before[VOCABULARY], after[VOCABULARY];
    size_t size, kept_size;
    CHECK_OK(ww_model_open(scratch_path("decoder.gguf"), *state, NULL, &model));
    ww_session *session = fed_session(model);
    CHECK_OK(ww_session_save(session, scratch_path("session")));
    char *whole = scratch_content(scratch_path("session"), &size);
    CHECK_OK(ww_session_feed(session, prompt, 2)); /* what would be saved now is another one */
    CHECK_OK(ww_session_logits(session, before));
    const int entries = scratch_entries();
    const size_t limits[] = {0, 1, 100, size / 2, size - 1};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        CHECK_FAILS(WW_IO_ERROR, save_within(session, scratch_path("session"), limits[i]));
        char *kept = scratch_content(scratch_path("session"), &kept_size);
        assert_int_equal(kept_size, size);
        assert_memory_equal(kept, whole, size);
        free(kept);
        assert_int_equal(scratch_entries(), entries); /* no incomplete file is left */
    }
    CHECK_OK(ww_session_logits(session, after));
    assert_memory_equal(before, after, sizeof before);
    CHECK_OK(ww_session_save(session, scratch_path("session")));
    CHECK_OK(ww_session_load(model, scratch_path("session"), &loaded));
    CHECK_OK(ww_session_logits(loaded, after));
    assert_memory_equal(before, after, sizeof before);
    ww_session_destroy(loaded);
    ww_session_destroy(session);
    ww_model_close(model);
    unlink(scratch_path("session"));
    free(whole);
}

/* ---- little memory ------------------------------------------------------------------------------------------------------- */

/* Everything that a program does with a model, in a process of its own: 0 if it was done, 1 if memory was short and said to be.
 */
static int use_a_model(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    ww_device *device = NULL;
    ww_model *model = NULL;
    ww_session *session = NULL;
    float logits[VOCABULARY];
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    ww_status status = ww_device_open("cpu", &device);
    if (status == WW_OK)
        status = ww_model_open(scratch_path("decoder.gguf"), device, NULL, &model);
    if (status == WW_OK)
        status = ww_session_create(model, &session);
    if (status == WW_OK)
        status = ww_session_feed(session, prompt, PROMPT);
    if (status == WW_OK)
        status = ww_session_logits(session, logits);
    ww_session_destroy(session);
    ww_model_close(model);
    ww_device_close(device);
    return status == WW_OK ? 0 : status == WW_OUT_OF_MEMORY && ww_error_message()[0] != '\0' ? 1 : 3;
}

static int used_in_a_child(rlim_t bytes)
{
    int status = 0;
    const pid_t child = fork_when_idle();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_a_model(bytes));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        fail_msg("with %d MiB of addresses: ended with %x", (int)(bytes / MEBIBYTE), (unsigned)status);
    return WEXITSTATUS(status);
}

static void little_memory_is_enough_or_a_status(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("SKIP: little memory: a sanitizer takes all addresses for itself\n");
    skip();
#endif
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    const rlim_t here = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE); /* including all the kernels in this program */
    assert_int_equal(used_in_a_child(here + (rlim_t)200 * MEBIBYTE), 0);
    int refused = 0;
    for (rlim_t more = 64 * MEBIBYTE; more >= 4096; more /= 2)
        refused += used_in_a_child(here + more);
    assert_true(refused > 0);
}

/* ---- other rounding ------------------------------------------------------------------------------------------------------ */

typedef struct answers {
    float logits[VOCABULARY], loaded[VOCABULARY], vectors[2 * WIDTH];
    int32_t drawn[DRAWN];
} answers;

static void compute(ww_device *device, answers *a)
{
    const size_t counts[2] = {4, 2};
    ww_model *decoder, *encoder;
    ww_session *session, *loaded;
    UNDER(ww_model_open(scratch_path("decoder.gguf"), device, NULL, &decoder));
    UNDER(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    UNDER(ww_session_create(decoder, &session));
    UNDER(ww_session_feed(session, prompt, PROMPT));
    for (int i = 0; i < DRAWN; i++) {
        ww_sampling sampling = ww_sampling_default();
        sampling.temperature = 0.9;
        sampling.top_p = 0.95;
        sampling.repetition_penalty = 1.1;
        sampling.seed = 7;
        UNDER(ww_session_sample(session, &sampling, &a->drawn[i]));
        UNDER(ww_session_feed(session, &a->drawn[i], 1));
    }
    UNDER(ww_session_logits(session, a->logits));
    UNDER(ww_session_save(session, scratch_path("session")));
    UNDER(ww_session_load(decoder, scratch_path("session"), &loaded));
    UNDER(ww_session_feed(loaded, prompt, 1));
    UNDER(ww_session_logits(loaded, a->loaded));
    UNDER(ww_model_embed_tokens(encoder, prompt, counts, 2, a->vectors));
    ww_session_destroy(loaded);
    ww_session_destroy(session);
    ww_model_close(encoder);
    ww_model_close(decoder);
}

static void the_callers_rounding_changes_no_bit(void **state)
{
    static answers right, other;
    const int step = device_is_slow(*state) ? 5 : 1; /* each rounding mode, flushing and trapping among them */
    for (int number = 0; number < ENVIRONMENTS; number += step) {
        hostile = environment(number);
        compute(*state, number == 0 ? &right : &other);
        if (number > 0 && memcmp(&right, &other, sizeof right) != 0)
            fail_msg("other bits under control word %llx", (unsigned long long)hostile);
    }
}

int main(void)
{
    const struct CMUnitTest alone[] = {cmocka_unit_test(little_memory_is_enough_or_a_status)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_leaves_the_saved_session_and_the_one_that_is_saved),
        cmocka_unit_test(the_callers_rounding_changes_no_bit),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    write_tiny_model("llama", WW_QUANT_Q8_0, 2, "decoder.gguf");
    write_tiny_model("bert", WW_QUANT_F32, 2, "encoder.gguf");
    /* First, while this process has taken no memory that its children could use. */
    const int short_of_memory = cmocka_run_group_tests_name("models in little memory", alone, NULL, NULL);
    const int failed = RUN_ON_EVERY_DEVICE("models in hostile places", tests);
    return scratch_teardown(&scratch) != 0 || short_of_memory != 0 || failed;
}
