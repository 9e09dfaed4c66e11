/* SentencePiece's unigram model: the ids that sentencepiece gives (tests/data/model/unigram.json, made by make_unigram.py), and
 * invalid files. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/tokens.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81"

static json_t *cases;

/* The vocabulary of the cases. */
static void read_vocabulary(test_vocabulary *v, unsigned char *map, size_t room)
{
    const char *hex = json_string_value(json_object_get(cases, "charsmap"));
    const json_t *tokens = json_object_get(cases, "tokens");
    *v = vocabulary_empty("t5");
    for (size_t i = 0; i < json_array_size(tokens); i++)
        vocabulary_add(v, json_string_value(json_array_get(tokens, i)),
                       (int32_t)json_integer_value(json_array_get(json_object_get(cases, "kinds"), i)),
                       (float)json_number_value(json_array_get(json_object_get(cases, "scores"), i)));
    v->bos = 0;
    v->eos = 2;
    v->unknown = 3;
    v->add_bos = v->add_eos = v->removes_spaces = 1;
    v->charsmap = map;
    v->charsmap_bytes = strlen(hex) / 2;
    assert_true(v->charsmap_bytes <= room);
    for (size_t i = 0; i < v->charsmap_bytes; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        map[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void texts_have_the_tokens_of_sentencepiece(void **state)
{
    (void)state;
    static test_vocabulary v;
    static unsigned char map[4096];
    json_t *one;
    size_t number;
    read_vocabulary(&v, map, sizeof map);
    tokenizer *t = open_vocabulary(&v);
    json_array_foreach(json_object_get(cases, "cases"), number, one)
    {
        const json_t *text = json_array_get(one, 0), *ids = json_array_get(one, 1);
        token_list list = {0};
        CHECK_OK(tokenizer_encode(t, json_string_value(text), json_string_length(text), TOKENIZE_PLAIN, &list));
        bool same = (size_t)list.count == json_array_size(ids);
        for (int64_t i = 0; same && i < list.count; i++)
            same = list.ids[i] == (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
        if (!same)
            fail_msg("case %zu, '%s', has other tokens", number, json_string_value(text));
        token_list_free(&list);
    }
    assert_true(number > 100);
    tokenizer_destroy(t);
}

static test_vocabulary small(void)
{
    test_vocabulary v = vocabulary_empty("t5");
    vocabulary_add(&v, "<s>", 3, 0);
    vocabulary_add(&v, "</s>", 3, 0);
    vocabulary_add(&v, "<unk>", 2, 0);
    vocabulary_add(&v, WORD, 1, -3);
    vocabulary_add(&v, "a", 1, -2);
    vocabulary_add(&v, "aa", 1, -3);
    vocabulary_add(&v, WORD "b", 1, -2.5f);
    vocabulary_add(&v, "<x>", 4, 0);
    v.bos = 0;
    v.eos = 1;
    v.unknown = 2;
    return v;
}

static void the_best_sum_of_scores_is_chosen(void **state)
{
    (void)state;
    test_vocabulary v = small();
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "aa", IDS(3, 5));
    CHECK_TEXT(t, "aaa", IDS(3, 4, 5)); /* both ways have the same sum: the one whose last piece starts first */
    CHECK_TEXT(t, "b", IDS(6));
    CHECK_TEXT(t, "zz a", IDS(3, 2, 3, 4)); /* one unknown for both */
    CHECK_TEXT(t, "a<x>a", IDS(3, 4, 7, 4));
    CHECK_TEXT(t, "a <x> a", IDS(3, 4, 3, 7, 3, 4));
    CHECK_TEXT(t, "   ", NONE);
    CHECK_IDS(t, "a", 0, IDS(3, 4, 1)); /* nothing before it, unless the file requests it */
    CHECK_IDS(t, "a</s>a", TOKENIZE_NO_ADD, IDS(3, 4, 1, 3, 4));
    int32_t between[2];
    assert_int_equal(tokenizer_between(t, between), 2); /* like RoBERTa */
    assert_true(between[0] == 1 && between[1] == 1);
    tokenizer_destroy(t);
    v.removes_spaces = 0;
    v.add_space_prefix = 0;
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "  a ", IDS(3, 3, 4, 3));
    tokenizer_destroy(t);
}

static void invalid_vocabularies_are_refused(void **state)
{
    (void)state;
    static char longest[1100];
    test_vocabulary v = small();
    v.scores_written = -1;
    check_refused(&v, WW_CORRUPT_FILE, "scores is missing");
    v = small();
    v.unknown = -1;
    check_refused(&v, WW_CORRUPT_FILE, "neither byte tokens nor an unknown");
    memset(longest, 'a', sizeof longest - 1);
    v = small();
    vocabulary_add(&v, longest, 1, -1);
    check_refused(&v, WW_UNSUPPORTED, "1099 bytes");
    v = small();
    v.scores[5] = -1.0f / 0.0f;
    check_refused(&v, WW_CORRUPT_FILE, "not finite");
}

/* Maps whose references may all be outside. */
static void invalid_maps_are_refused_or_change_nothing(void **state)
{
    (void)state;
    static const unsigned char none[] = {1, 0}, odd[] = {6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, longer[] = {8, 0, 0, 0, 0, 0, 0, 0},
                               open[] = {4, 0, 0, 0, 0, 0, 0, 0, 'a'}, empty[] = {4, 0, 0, 0, 0, 0, 0, 0};
    static unsigned char endless[2100] = {4};
    static unsigned char wild[4 + 4 * 256 + 1] = {0, 4};
    const struct {
        const unsigned char *bytes;
        size_t count;
        const char *says;
    } wrong[] = {{none, sizeof none, "not a map"},     {odd, sizeof odd, "not a map"},
                 {longer, sizeof longer, "not a map"}, {open, sizeof open, "with a NUL"},
                 {empty, sizeof empty, "with a NUL"},  {endless, sizeof endless, "more than"}};
    memset(endless + 8, 'a', sizeof endless - 9);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        test_vocabulary v = small();
        v.charsmap = wrong[i].bytes;
        v.charsmap_bytes = wrong[i].count;
        check_refused(&v, WW_CORRUPT_FILE, wrong[i].says);
    }
    /* Every unit claims that it is valid, has a leaf, and that its children are far away. */
    for (unsigned i = 0; i < 256; i++)
        memcpy(wild + 4 + (size_t)4 * i, (const unsigned char[]){(unsigned char)i, 0xff, 0xff, 0x7f}, 4);
    memset(wild + 4, 0, 4);
    test_vocabulary v = small();
    v.charsmap = wild;
    v.charsmap_bytes = sizeof wild;
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "aa b", IDS(3, 5, 6));
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_the_tokens_of_sentencepiece),
        cmocka_unit_test(the_best_sum_of_scores_is_chosen),
        cmocka_unit_test(invalid_vocabularies_are_refused),
        cmocka_unit_test(invalid_maps_are_refused_or_change_nothing),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    cases = json_load_file(TEST_DATA_DIR "/model/unigram.json", JSON_ALLOW_NUL, NULL);
    if (!cases)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(cases);
    return scratch_teardown(&scratch) != 0 || failed;
}
