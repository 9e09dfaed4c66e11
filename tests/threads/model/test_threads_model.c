/* One model, many threads: each has a session of its own, or embeds texts, and gets the bits that it would get alone. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_calls.h"
#include "support/scratch.h"

enum { THREADS = 4, STEPS = 6, VOCABULARY = 96, WIDTH = 64 };

static ww_model *decoder, *encoder;
static const int32_t text[STEPS] = {3, 14, 15, 92, 65, 35};
static float expected[VOCABULARY], expected_vector[WIDTH];

static void generate(float *logits)
{
    ww_session *session, *fork;
    CHECK_OK(ww_session_create(decoder, &session));
    for (int i = 0; i < STEPS; i++)
        CHECK_OK(ww_session_feed(session, &text[i], 1));
    CHECK_OK(ww_session_fork(session, &fork));
    CHECK_OK(ww_session_feed(session, text, 2)); /* the fork keeps its page */
    CHECK_OK(ww_session_logits(fork, logits));
    ww_session_destroy(session);
    ww_session_destroy(fork);
}

static void embed(float *vector)
{
    const size_t count = STEPS;
    CHECK_OK(ww_model_embed_tokens(encoder, text, &count, 1, vector));
}

static void *work(void *wrong)
{
    float logits[VOCABULARY], vector[WIDTH];
    for (int round = 0; round < 5; round++) {
        generate(logits);
        embed(vector);
        if (memcmp(logits, expected, sizeof logits) != 0 || memcmp(vector, expected_vector, sizeof vector) != 0)
            *(int *)wrong = 1;
    }
    return NULL;
}

static void concurrent_threads_get_the_bits_of_single_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};
    generate(expected);
    embed(expected_vector);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(wrong[i], 0);
}

static ww_model *open_tiny(ww_device *device, const char *architecture)
{
    ww_model *model;
    write_tiny_model(architecture, WW_QUANT_F32, 2, "model.gguf");
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, NULL, &model));
    return model;
}

static ww_device *device;
static char scratch_path_of_words[SCRATCH_PATH_BYTES];

/* Several threads tokenize them, and the next some thousand while one is embedded: vectors are in the order of the texts, and
 * those of each alone. */
static void many_texts_have_the_same_embeddings_as_single_texts(void **state)
{
    enum { TEXTS = 4100 };
    static const char *const words[] = {"a", "fox", "a fox", "fox a fox", "x"};
    static const char *many[TEXTS];
    ww_model *model;
    (void)state;
    tiny_write_words("bert", scratch_path("words.gguf"));
    CHECK_OK(ww_model_open(scratch_path("words.gguf"), device, NULL, &model));
    for (int i = 0; i < TEXTS; i++)
        many[i] = words[i * 7 % 5];
    float alone[5][WIDTH], *vectors = malloc(sizeof(float) * TEXTS * WIDTH);
    for (int i = 0; i < 5; i++)
        CHECK_OK(ww_model_embed(model, &words[i], NULL, 1, NULL, alone[i]));
    CHECK_OK(ww_model_embed(model, many, NULL, TEXTS, NULL, vectors));
    for (int i = 0; i < TEXTS; i++)
        if (memcmp(vectors + (size_t)i * WIDTH, alone[i * 7 % 5], sizeof alone[0]) != 0)
            fail_msg("text %d of %d has another vector than alone", i, (int)TEXTS);
    free(vectors);
    ww_model_close(model);
}

/* A file's pages, its tokenizer and its grammar are one thread's; the file is everybody's. */
static void *open_and_use(void *wrong)
{
    static const char rule[] = "root ::= [a-f]+";
    static const char *const words = "a fox";
    for (int round = 0; round < 4; round++) {
        float vector[WIDTH];
        int32_t ids[16];
        size_t count = 0;
        ww_model *model = NULL;
        ww_grammar *grammar = NULL;
        *(int *)wrong |= ww_model_open(scratch_path_of_words, device, NULL, &model) != WW_OK ||
                         ww_model_tokenize(model, words, strlen(words), 0, ids, 16, &count) != WW_OK || count != 4 ||
                         ww_grammar_create(model, WW_GRAMMAR_GBNF, rule, strlen(rule), &grammar) != WW_OK ||
                         ww_model_embed(model, &words, NULL, 1, NULL, vector) != WW_OK ||
                         memcmp(vector, expected_vector, sizeof vector) != 0;
        ww_grammar_destroy(grammar);
        ww_model_close(model);
    }
    return NULL;
}

static void threads_open_one_file_at_the_same_time(void **state)
{
    (void)state;
    static const char *const words = "a fox";
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};
    ww_model *model = NULL;
    tiny_write_words("bert", scratch_path("words.gguf"));
    snprintf(scratch_path_of_words, sizeof scratch_path_of_words, "%s", scratch_path("words.gguf"));
    CHECK_OK(ww_model_open(scratch_path_of_words, device, NULL, &model));
    CHECK_OK(ww_model_embed(model, &words, NULL, 1, NULL, expected_vector));
    ww_model_close(model);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_use, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(wrong[i], 0);
}

static int setup(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    CHECK_OK(ww_device_open("cpu", &device));
    decoder = open_tiny(device, "llama");
    encoder = open_tiny(device, "bert");
    return 0;
}

static int teardown(void **state)
{
    ww_model_close(decoder);
    ww_model_close(encoder);
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(concurrent_threads_get_the_bits_of_single_threads),
                                       cmocka_unit_test(many_texts_have_the_same_embeddings_as_single_texts),
                                       cmocka_unit_test(threads_open_one_file_at_the_same_time)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
