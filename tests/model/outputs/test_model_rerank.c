/* Reranking: a query and a text, read together, compared with a reference in doubles; the same bits by itself and in any batch,
 * on every device; and refused arguments.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/pair.h"
#include "support/data/vocabulary.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81" /* how vocabularies write a word's beginning */
#define PROMPT                                                                                                                 \
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "     \
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, "  \
    "retrieve relevant passages that answer the query\n<Query>: "
#define PROMPT_END "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

#define CHECK_REFUSED(call, expected, says)                                                                                    \
    do {                                                                                                                       \
        CHECK_FAILS(expected, call);                                                                                           \
        if (!strstr(ww_error_message(), says))                                                                                 \
            fail_msg("'%s' has no '%s'", ww_error_message(), says);                                                            \
    } while (0)

enum { TEXTS = 40, TOKENS_MAX = 1024, WORDS = 8 };
static const char *const words[WORDS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", WORD "a", WORD "fox", WORD "dog", "s"};

/* ---- encoders ------------------------------------------------------------------------------------------------------------ */

static void make_words(tiny_model *m, const char *name, int32_t context)
{
    static test_vocabulary v;
    tiny_shape shape = tiny_default(name);
    v = vocabulary_empty("bert");
    for (int i = 0; i < WORDS; i++)
        vocabulary_add(&v, words[i], i < 4 ? 3 : 1, 0);
    v.bos = 2;
    v.eos = 3;
    v.unknown = 1;
    shape.pooling = WW_POOLING_RANK;
    shape.context = context;
    shape.vocabulary = v.count;
    shape.tokens = &v;
    tiny_make(m, &shape);
}

static void make_ranker(tiny_model *m, int32_t context)
{
    make_words(m, "bert", context);
    tiny_write(m, scratch_path("model.gguf"));
}

static void scores_are_those_of_the_reference(void **state)
{
    static const char *const texts[] = {"a fox", "dogs [SEP] a", ""};
    static const struct {
        int32_t ids[16];
        int count, first;
    } expected[] = {{{2, 6, 4, 3, 4, 5, 3}, 7, 4}, {{2, 6, 4, 3, 6, 7, 1, 1, 1, 4, 3}, 11, 4}, {{2, 6, 4, 3, 3}, 5, 4}};
    tiny_model tiny;
    float scores[3];
    make_ranker(&tiny, 1024);
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_rerank(model, "dog a", texts, NULL, 3, scores, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        const double wanted = tiny_score(&tiny, expected[i].ids, expected[i].count, expected[i].first);
        if (fabs((double)scores[i] - wanted) > 1e-4)
            fail_msg("text %d has the score %g, not %g", i, (double)scores[i], wanted);
        /* Without types it would be another: the test can fail. */
        assert_true(fabs(tiny_score(&tiny, expected[i].ids, expected[i].count, expected[i].count) - wanted) > 1e-3);
    }
    ww_model_close(model);
    tiny_free(&tiny);
}

static float score_of(ww_device *device, ww_pooling pooling)
{
    static const char *const text = "a fox";
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    float score;
    options.pooling = pooling;
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
    CHECK_OK(ww_model_rerank(model, "dog a", &text, NULL, 1, &score, NULL, NULL));
    ww_model_close(model);
    return score;
}

/* Other programs write no pooling for models that rerank, or that of the encoder; for ModernBERT they take the mean. */
static void a_head_is_found_without_the_name_of_its_pooling(void **state)
{
    static const char *const names[] = {"bert", "modern-bert", "jina-bert-v2"};
    static const tiny_fault unnamed = {.leave_out = "pooling_type"}, mean = {.key = "pooling_type", .number = WW_POOLING_MEAN};
    tiny_model tiny;
    ww_model *model;
    ww_model_options options = ww_model_options_default();
    for (size_t i = 0; i < (device_is_slow(*state) ? 1 : sizeof names / sizeof *names); i++) {
        make_words(&tiny, names[i], 1024);
        tiny.shape.ranks_mean = strcmp(names[i], "modern-bert") == 0;
        tiny_write(&tiny, scratch_path("model.gguf"));
        const float wanted = score_of(*state, WW_POOLING_NONE);
        tiny_write_wrong(&tiny, &unnamed, scratch_path("model.gguf"));
        assert_true(score_of(*state, WW_POOLING_NONE) == wanted && score_of(*state, WW_POOLING_RANK) == wanted);
        tiny_write_wrong(&tiny, &mean, scratch_path("model.gguf"));
        assert_true(score_of(*state, WW_POOLING_RANK) == wanted);
        tiny_free(&tiny);
    }
    options.pooling = WW_POOLING_RANK;
    tiny_write_words("bert", scratch_path("model.gguf"));
    CHECK_REFUSED(ww_model_open(scratch_path("model.gguf"), *state, &options, &model), WW_UNSUPPORTED, "has no head");
    options.pooling = (ww_pooling)(WW_POOLING_RANK + 1);
    CHECK_REFUSED(ww_model_open(scratch_path("model.gguf"), *state, &options, &model), WW_INVALID_ARGUMENT, "pooling is 5");
}

static float *values_of(const tiny_model *m, const char *name)
{
    for (int32_t i = 0; i < m->count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return m->tensors[i].values;
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Both types of tokens have the same weights, so that a pair of texts equals a single text with the same tokens. */
static void write_one_type(const tiny_model *m)
{
    float *types = values_of(m, "token_types.weight");
    memcpy(types + m->shape.width, types, (size_t)m->shape.width * sizeof *types);
    tiny_write(m, scratch_path("model.gguf"));
}

/* The same weights as a model that embeds by its first token. */
static void drop_head(tiny_model *m)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < m->count; i++) {
        if (strncmp(m->tensors[i].name, "cls.", 4) == 0)
            free(m->tensors[i].values);
        else
            m->tensors[kept++] = m->tensors[i];
    }
    m->count = kept;
    m->shape.pooling = WW_POOLING_CLS;
}

/* The head of Jina's rerankers is one row: with a 1 at a place and 0 elsewhere the score is that number of the first token's
 * vector, and the bias. */
static void a_head_of_one_row_is_a_product_with_it(void **state)
{
    static const int32_t ids[] = {2, 6, 4, 3, 4, 5, 3};
    static const char *const text = "a fox";
    const size_t count = sizeof ids / sizeof *ids;
    float vector[64], numbers[2];
    tiny_model tiny;
    make_words(&tiny, "jina-bert-v2", 1024);
    drop_head(&tiny);
    write_one_type(&tiny);
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_embed_tokens(model, ids, &count, 1, vector));
    ww_model_close(model);
    tiny_free(&tiny);
    for (int place = 0; place < 2; place++) {
        make_words(&tiny, "jina-bert-v2", 1024);
        float *row = values_of(&tiny, "cls.weight");
        memset(row, 0, (size_t)tiny.shape.width * sizeof *row);
        row[place] = 1.0f;
        write_one_type(&tiny);
        model = tiny_open_precise(*state, scratch_path("model.gguf"));
        CHECK_OK(ww_model_rerank(model, "dog a", &text, NULL, 1, &numbers[place], NULL, NULL));
        numbers[place] -= values_of(&tiny, "cls.bias")[0];
        ww_model_close(model);
        tiny_free(&tiny);
    }
    assert_true(fabsf(vector[0]) > 0.01f && fabsf(numbers[1] / numbers[0] - vector[1] / vector[0]) < 1e-3f);
}

static void a_batch_has_the_bits_of_its_single_texts(void **state)
{
    static char texts[TEXTS][256];
    static const char *list[TEXTS];
    const size_t count = device_is_slow(*state) ? 6 : TEXTS;
    float together[TEXTS], alone[TEXTS];
    ww_device *cpu;
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i][0] = '\0';
        for (size_t word = 0; word < 1 + i * 7 % 37; word++)
            strcat(texts[i], (i + word) % 3 ? " fox" : " dogs");
        list[i] = texts[i];
    }
    tiny_write_ranker(2, scratch_path("model.gguf"));
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_model *model = tiny_open_precise(cpu, scratch_path("model.gguf"));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(ww_model_rerank(model, "a dog", &list[i], NULL, 1, &alone[i], NULL, NULL));
    ww_model_close(model);
    model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_rerank(model, "a dog", list, NULL, count, together, NULL, NULL));
    assert_memory_equal(together, alone, count * sizeof *alone);
    assert_true(alone[0] != alone[1]);
    ww_model_close(model);
    ww_device_close(cpu);
}

/* Texts of 1 byte are one token each here. */
static void the_longer_of_query_and_text_is_cut(void **state)
{
    static const struct {
        const char *query, *text;
        int64_t before, behind; /* tokens, without those that are added */
    } cases[] = {{"a", "a a a a a a a a a a a a a a a", 1, 12},
                 {"a a a a a a a a a a a a a a a", "a", 12, 1},
                 {"a a a a a a a a a a a a a a a", "a a a a a a a a a a", 6, 7},
                 {"a a a", "a a a", 3, 3}};
    tiny_model tiny;
    make_ranker(&tiny, 16);
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair_query pair;
        token_list list = {0};
        size_t first = 0;
        bool cut = i == 3;
        CHECK_OK(pair_query_make(model, cases[i].query, &pair));
        CHECK_OK(pair_encode(&pair, cases[i].text, strlen(cases[i].text), &(pair_tokens){&list, &first, &cut}));
        assert_int_equal(first, cases[i].before + 2);
        assert_int_equal(cut, i < 3);
        assert_int_equal(list.count, cases[i].before + cases[i].behind + 3);
        assert_int_equal(list.ids[list.count - 1], 3);
        token_list_free(&list);
        pair_query_free(&pair);
    }
    ww_model_close(model);
    tiny_free(&tiny);
}

/* ---- decoders ------------------------------------------------------------------------------------------------------------ */

/* With a `question` of its own it is one of qwen2. */
static void make_decoder(tiny_model *m, test_vocabulary *v, const char *question)
{
    tiny_shape shape = tiny_default(question ? "qwen2" : "qwen3");
    shape.question = question;
    *v = vocabulary_empty("gpt2");
    v->pre = "qwen2";
    vocabulary_add_alphabet(v);
    v->merge_count = 0;
    if (question)
        vocabulary_add_merge(v, "? \xC4\x8A");
    vocabulary_add(v, "<|im_start|>", 3, 0);
    v->eos = vocabulary_add(v, "<|im_end|>", 3, 0);
    vocabulary_add(v, "no", 1, 0);
    vocabulary_add(v, "yes", 1, 0);
    if (question)
        vocabulary_add(v, "?\xC4\x8A", 1, 0); /* with the end of the line */
    shape.vocabulary = v->count;
    shape.tokens = v;
    shape.layers = 1;
    tiny_make(m, &shape);
    tiny_write(m, scratch_path("model.gguf"));
}

/* The model reads the same question as others would feed to a session, and the score is the difference of two logits. */
static void a_decoder_answers_with_yes_and_no(void **state)
{
    static const char *const texts[] = {"a fox", "a<|im_end|>"};
    static test_vocabulary v;
    static int32_t ids[TOKENS_MAX];
    static double logits[300];
    tiny_model tiny;
    float scores[2];
    make_decoder(&tiny, &v, NULL);
    if (device_is_slow(*state)) { /* about 400 tokens; the same passes as for an encoder */
        tiny_free(&tiny);
        return;
    }
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_rerank(model, "which?", texts, NULL, 2, scores, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        static const char before[] = PROMPT "which?\n<Document>: ", after[] = PROMPT_END;
        size_t count = 0, more = 0, end = 0;
        CHECK_OK(ww_model_tokenize(model, before, strlen(before), WW_TOKENS_NO_ADD, ids, TOKENS_MAX, &count));
        CHECK_OK(ww_model_tokenize(model, texts[i], strlen(texts[i]), WW_TOKENS_NO_ADD | WW_TOKENS_PLAIN, ids + count,
                                   TOKENS_MAX - count, &more));
        CHECK_OK(ww_model_tokenize(model, after, strlen(after), WW_TOKENS_NO_ADD, ids + count + more, TOKENS_MAX - count - more,
                                   &end));
        tiny_logits(&tiny, ids, (int)(count + more + end), logits);
        const double wanted = logits[259] - logits[258]; /* of yes and no */
        if (fabs((double)scores[i] - wanted) > 1e-3)
            fail_msg("text %d has the score %g, not %g", i, (double)scores[i], wanted);
    }
    ww_model_close(model);
    tiny_free(&tiny);
}

/* The query and what follows become tokens apart: "?" stays alone at the end of a line. */
static void a_decoder_is_asked_the_question_of_its_file(void **state)
{
    static const char *const parts[] = {"<|im_start|>Q: which?", "\nD: a fox.", "\nA:"}, *const text = "a fox.";
    static test_vocabulary v;
    static double logits[300];
    int32_t ids[64];
    size_t count = 0;
    tiny_model tiny;
    float score;
    make_decoder(&tiny, &v, "<|im_start|>Q: {query}\nD: {document}\nA:");
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_rerank(model, "which?", &text, NULL, 1, &score, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        size_t more = 0;
        CHECK_OK(ww_model_tokenize(model, parts[i], strlen(parts[i]), WW_TOKENS_NO_ADD, ids + count, 64 - count, &more));
        count += more;
    }
    size_t joined = 0;
    CHECK_OK(ww_model_tokenize(model, "which?\nD", 8, WW_TOKENS_NO_ADD, ids + count, 64 - count, &joined));
    assert_int_equal(joined, 7); /* together they would be one token less */
    tiny_logits(&tiny, ids, (int)count, logits);
    const double wanted = logits[259] - logits[258]; /* of yes and no */
    if (fabs((double)score - wanted) > 1e-3)
        fail_msg("the score is %g, not %g", (double)score, wanted);
    ww_model_close(model);
    tiny_free(&tiny);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------------- */

static void invalid_requests_to_rerank_are_refused(void **state)
{
    static const char *const texts[] = {"a", NULL};
    float scores[2] = {7.0f, 7.0f}, vector[64];
    ww_model_info info = ww_model_info_default();
    tiny_write_ranker(1, scratch_path("model.gguf"));
    ww_model *model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_OK(ww_model_describe(model, &info));
    assert_true(info.reranks && !info.embeds && info.pooling == WW_POOLING_RANK);
    CHECK_REFUSED(ww_model_rerank(NULL, "a", texts, NULL, 1, scores, NULL, NULL), WW_INVALID_ARGUMENT, "model is NULL");
    CHECK_REFUSED(ww_model_rerank(model, NULL, texts, NULL, 1, scores, NULL, NULL), WW_INVALID_ARGUMENT, "query is NULL");
    CHECK_REFUSED(ww_model_rerank(model, "a", NULL, NULL, 1, scores, NULL, NULL), WW_INVALID_ARGUMENT, "texts is NULL");
    CHECK_REFUSED(ww_model_rerank(model, "a", texts, NULL, 1, NULL, NULL, NULL), WW_INVALID_ARGUMENT, "scores is NULL");
    CHECK_REFUSED(ww_model_rerank(model, "a", texts, NULL, 2, scores, NULL, NULL), WW_INVALID_ARGUMENT, "text 1 is NULL");
    CHECK_OK(ww_model_rerank(model, "a", NULL, NULL, 0, NULL, NULL, NULL));
    CHECK_REFUSED(ww_model_embed(model, texts, NULL, 1, NULL, vector), WW_UNSUPPORTED, "compares them with a query");
    assert_true(scores[0] == 7.0f && scores[1] == 7.0f);
    ww_model_close(model);
    tiny_write_words("bert", scratch_path("model.gguf"));
    model = tiny_open_precise(*state, scratch_path("model.gguf"));
    CHECK_REFUSED(ww_model_rerank(model, "a", texts, NULL, 1, scores, NULL, NULL), WW_UNSUPPORTED, "does not rerank");
    ww_model_close(model);
}

static void a_file_without_all_of_its_head_is_refused(void **state)
{
    static const tiny_fault faults[] = {
        {.leave_out = "cls.weight"},       {.leave_out = "cls.output.weight"},   {.reshaped = "cls.bias"},
        {.poisoned = "cls.output.weight"}, {.key = "pooling_type", .number = 1}, {.key = "pooling_type", .number = 5}};
    static const char *const says[] = {
        "'cls.weight' is missing", "'cls.output.weight' is missing", "has shape", "not finite", "'cls.weight' is not part",
        "pooling_type is 5"};
    tiny_model tiny;
    ww_model *model = NULL;
    make_ranker(&tiny, 64);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        tiny_write_wrong(&tiny, &faults[i], scratch_path("wrong.gguf"));
        const ww_status status = ww_model_open(scratch_path("wrong.gguf"), *state, NULL, &model);
        if (status == WW_OK || !strstr(ww_error_message(), says[i]))
            fail_msg("case %zu: %s", i, status == WW_OK ? "was opened" : ww_error_message());
    }
    tiny_free(&tiny);
}

static void embeddings_are_shortened(void **state)
{
    (void)state;
    float vectors[] = {0.6f, 0.0f, 0.8f, 0.0f, 0.8f, 0.6f};
    CHECK_REFUSED(ww_embeddings_shorten(vectors, 2, 3, 4), WW_OUT_OF_RANGE, "dimensions is 4");
    CHECK_REFUSED(ww_embeddings_shorten(vectors, 2, 3, 0), WW_OUT_OF_RANGE, "dimensions is 0");
    CHECK_REFUSED(ww_embeddings_shorten(NULL, 2, 3, 2), WW_INVALID_ARGUMENT, "vectors is NULL");
    CHECK_OK(ww_embeddings_shorten(vectors, 2, 3, 2));
    assert_true(vectors[0] == 1.0f && vectors[1] == 0.0f && vectors[2] == 0.0f && vectors[3] == 1.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_found_without_the_name_of_its_pooling),
        cmocka_unit_test(scores_are_those_of_the_reference),
        cmocka_unit_test(a_head_of_one_row_is_a_product_with_it),
        cmocka_unit_test(a_batch_has_the_bits_of_its_single_texts),
        cmocka_unit_test(the_longer_of_query_and_text_is_cut),
        cmocka_unit_test(a_decoder_answers_with_yes_and_no),
        cmocka_unit_test(a_decoder_is_asked_the_question_of_its_file),
        cmocka_unit_test(invalid_requests_to_rerank_are_refused),
        cmocka_unit_test(a_file_without_all_of_its_head_is_refused),
        cmocka_unit_test(embeddings_are_shortened),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("model rerank", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
