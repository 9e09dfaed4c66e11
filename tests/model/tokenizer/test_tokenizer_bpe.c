/* Byte-level BPE with vocabularies of the 256 bytes and a few merges: the order of merging, the pre-tokenizers, and refused
 * files.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/data/tokens.h"
#include "support/scratch.h"

#define G "\xC4\xA0" /* how vocabularies write a space */

/* The 256 bytes; each token's id is then its byte. */
static test_vocabulary bytes(const char *pre)
{
    test_vocabulary v = vocabulary_empty("gpt2");
    v.pre = pre;
    vocabulary_add_alphabet(&v);
    v.merge_count = 0;
    return v;
}

static int32_t add(test_vocabulary *v, const char *token, const char *merge)
{
    if (merge)
        vocabulary_add_merge(v, merge);
    return vocabulary_add(v, token, 1, 0);
}

static void pairs_are_merged_in_the_order_of_the_list(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-2");
    const int32_t ll = add(&v, "ll", "l l"), he = add(&v, "he", "h e"), hell = add(&v, "hell", "he ll"),
                  lo = add(&v, "lo", "l o");
    const int32_t w = add(&v, G "w", G " w");
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "hello", IDS(hell, 'o')); /* "l l" comes before "l o" */
    CHECK_TEXT(t, "helo", IDS(he, lo));
    CHECK_TEXT(t, "lll", IDS(ll, 'l')); /* the leftmost */
    CHECK_TEXT(t, "hello w", IDS(hell, 'o', w));
    CHECK_TEXT(t, "hello  w", IDS(hell, 'o', ' ', w));
    CHECK_TEXT(t, "", NONE);
    CHECK_IDS(t, "w", 0, IDS('w')); /* no BOS by default */
    assert_string_equal(tokenizer_pre(t), "gpt-2");
    tokenizer_destroy(t);
}

static void pieces_are_those_of_the_pre_tokenizer(void **state)
{
    (void)state;
    /* Merges that would join what pre-tokenizers keep apart. */
    test_vocabulary v = bytes("gpt-2");
    const int32_t twelve = add(&v, "12", "1 2"), n_quote = add(&v, "n'", "n '"), two = add(&v, G G, G " " G);
    const int32_t a1 = add(&v, "a1", "a 1"), all = add(&v, "1234", "12 34"), more = add(&v, "34", "3 4");
    vocabulary_add_merge(&v, "12 34");
    (void)a1;
    (void)all;
    (void)n_quote;
    v.merges[4] = "3 4"; /* before the merge that needs it */
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "a1 n't", IDS('a', '1', ' ', 'n', '\'', 't'));
    CHECK_TEXT(t, "12", IDS(twelve));
    CHECK_TEXT(t, "1234", IDS(all));
    CHECK_TEXT(t, "a   b", IDS('a', two, ' ', 'b'));
    tokenizer_destroy(t);
    v.pre = "smollm"; /* every digit by itself, then the text between digits */
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "12", IDS('1', '2'));
    CHECK_TEXT(t, "a  1", IDS('a', two, '1')); /* nothing follows the spaces in their piece */
    tokenizer_destroy(t);
    v.pre = "llama-bpe"; /* at most three digits */
    v.add_bos = 0;
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "1234", IDS(twelve, '3', '4'));
    CHECK_TEXT(t, "34", IDS(more));
    tokenizer_destroy(t);
    v.pre = "qwen2";
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "12", IDS('1', '2'));
    tokenizer_destroy(t);
}

/* U+180E is not white space, but PCRE2's \s matches it. */
static void white_space_is_what_unicode_says(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-2");
    /* After a space: the last character of white space goes with what follows it. So "x" would be by itself, unless it is not
       white space. */
    const int32_t joined = add(&v, G "\xC3\xA1", G " \xC3\xA1");
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, " \xE1\xA0\x8Ex", IDS(joined, 0xA0, 0x8E, 'x'));
    tokenizer_destroy(t);
}

static void texts_are_composed_if_the_model_requests_it(void **state)
{
    (void)state;
    test_vocabulary v = bytes("qwen2");
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "e\xCC\x81", IDS(0xC3, 0xA9));
    CHECK_TEXT(t, "e\xCC\xA7\xCC\x81", IDS(0xC8, 0xA9, 0xCC, 0x81)); /* cedilla, acute: the first composes, the second cannot */
    CHECK_TEXT(t, "e\xCC\x81\xCC\xA7", IDS(0xC8, 0xA9, 0xCC, 0x81)); /* the same in the other order */
    CHECK_TEXT(t, "\xE1\x84\x82\xE1\x85\xA1", IDS(0xEB, 0x82, 0x98)); /* Hangul */
    tokenizer_destroy(t);
    v.pre = "gpt-2";
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "e\xCC\x81", IDS('e', 0xCC, 0x81));
    tokenizer_destroy(t);
}

static void a_word_that_is_a_token_stays_whole_if_the_model_requests_it(void **state)
{
    (void)state;
    test_vocabulary v = bytes("llama-bpe");
    const int32_t begin = vocabulary_add(&v, "<|begin|>", 3, 0), whole = vocabulary_add(&v, "whole", 1, 0);
    v.bos = begin;
    tokenizer *t = open_vocabulary(&v);
    CHECK_IDS(t, "whole", 0, IDS(begin, whole)); /* no merge makes it; BOS is added by default */
    CHECK_TEXT(t, "<|begin|>", IDS(begin));
    CHECK_IDS(t, "<|begin|>", TOKENIZE_NO_ADD | TOKENIZE_PLAIN, IDS('<', '|', 'b', 'e', 'g', 'i', 'n', '|', '>'));
    tokenizer_destroy(t);
    v.pre = "smaug-bpe"; /* the same without BOS */
    t = open_vocabulary(&v);
    CHECK_IDS(t, "whole", 0, IDS(whole));
    tokenizer_destroy(t);
    v.pre = "gpt-2";
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "whole", IDS('w', 'h', 'o', 'l', 'e'));
    tokenizer_destroy(t);
}

/* RoBERTa's and those of Jina's encoders, whose files need not request it. */
static void encoders_with_bytes_put_texts_between_their_ends(void **state)
{
    (void)state;
    static const char *const names[] = {"roberta-bpe", "jina-v1-en", "jina-v2-code", "jina-v2-de", "jina-v2-es"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_vocabulary v = bytes(names[i]);
        int32_t between[2];
        v.bos = vocabulary_add(&v, "<s>", 3, 0);
        v.eos = vocabulary_add(&v, "</s>", 3, 0);
        tokenizer *t = open_vocabulary(&v);
        CHECK_IDS(t, "ab 1", 0, IDS(v.bos, 'a', 'b', ' ', '1', v.eos));
        assert_int_equal(tokenizer_between(t, between), 2);
        assert_true(between[0] == v.eos && between[1] == v.eos);
        tokenizer_destroy(t);
    }
}

static void a_byte_that_the_vocabulary_lacks_is_left_out(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-2");
    const int32_t ab = add(&v, "ab", "a b");
    v.tokens['z'] = "nothing";
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "azb", IDS(ab));
    CHECK_TEXT(t, "zz", NONE);
    tokenizer_destroy(t);
}

static void bytes_become_text_again(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-2");
    const int32_t end = vocabulary_add(&v, "<|im_end|>", 3, 0);
    static const char text[] = "\tna\xC3\xAFve \xF0\x9F\x8D\x95\n";
    tokenizer *t = open_vocabulary(&v);
    token_list list = {0};
    char *back = NULL;
    const char *piece = NULL;
    size_t size = 0;
    CHECK_OK(tokenizer_encode(t, text, strlen(text), 0, &list));
    CHECK_OK(token_list_add(&list, end));
    CHECK_OK(tokenizer_decode(t, list.ids, list.count, &back, &size));
    assert_string_equal(back, text);
    memory_free(back);
    token_list_free(&list);
    CHECK_OK(tokenizer_piece(t, 0xF0, &piece, &size)); /* a part of a character */
    assert_int_equal(size, 1);
    assert_int_equal((unsigned char)piece[0], 0xF0);
    CHECK_OK(tokenizer_piece(t, end, &piece, &size));
    assert_int_equal(size, 10);
    assert_true(tokenizer_is_end(t, end)); /* by its name */
    assert_false(tokenizer_is_end(t, 'a'));
    tokenizer_destroy(t);
}

/* <|end|> ends the turn of Phi, and one of several messages in an answer of gpt-oss. */
static void a_message_of_an_answer_ends_before_the_answer(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-4o");
    const int32_t end = vocabulary_add(&v, "<|end|>", 3, 0);
    tokenizer *t = open_vocabulary(&v);
    assert_true(tokenizer_is_end(t, end));
    tokenizer_destroy(t);
    const int32_t answer = vocabulary_add(&v, "<|return|>", 3, 0), call = vocabulary_add(&v, "<|call|>", 3, 0);
    t = open_vocabulary(&v);
    assert_false(tokenizer_is_end(t, end));
    assert_true(tokenizer_is_end(t, answer) && tokenizer_is_end(t, call));
    tokenizer_destroy(t);
}

static void merges_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    test_vocabulary v = bytes("gpt-2");
    vocabulary_add_merge(&v, "a b");
    check_refused(&v, WW_CORRUPT_FILE, "merge 0 ('a b'): its result is not in the vocabulary");
    v.merges[0] = "xy a";
    check_refused(&v, WW_CORRUPT_FILE, "the left piece");
    v.merges[0] = "a xy";
    check_refused(&v, WW_CORRUPT_FILE, "the right piece");
    v.merges[0] = "a "; /* "a" with nothing is "a": this would never end */
    check_refused(&v, WW_CORRUPT_FILE, "not two pieces");
    v.merges[0] = " a";
    check_refused(&v, WW_CORRUPT_FILE, "not two pieces");
    v.merges[0] = "";
    check_refused(&v, WW_CORRUPT_FILE, "not two pieces");
    v.merge_count = -1;
    check_refused(&v, WW_CORRUPT_FILE, "merges is missing");
    v = bytes(NULL);
    check_refused(&v, WW_UNSUPPORTED, "tokenizer.ggml.pre is missing");
    v = bytes("none-such");
    check_refused(&v, WW_UNSUPPORTED, "'none-such'");
    v = vocabulary_empty("gpt2");
    v.pre = "gpt-2";
    v.merge_count = 0;
    vocabulary_add(&v, "abc", 1, 0);
    check_refused(&v, WW_CORRUPT_FILE, "none of the 256 byte tokens");
}

static void long_pieces_take_no_longer_than_they_should(void **state)
{
    (void)state;
    enum { LENGTH = 1000000 };
    test_vocabulary v = bytes("gpt-2");
    add(&v, "aa", "a a");
    const int32_t four = add(&v, "aaaa", "aa aa");
    tokenizer *t = open_vocabulary(&v);
    char *text = malloc(LENGTH);
    token_list list = {0};
    assert_non_null(text);
    memset(text, 'a', LENGTH);
    CHECK_OK(tokenizer_encode(t, text, LENGTH, 0, &list));
    assert_int_equal(list.count, LENGTH / 4);
    assert_int_equal(list.ids[LENGTH / 4 - 1], four);
    token_list_free(&list);
    memset(text, ' ', LENGTH); /* an expression that looks ahead again after each space would take n^2 steps */
    text[LENGTH - 1] = 'a';
    CHECK_OK(tokenizer_encode(t, text, LENGTH, 0, &list));
    assert_int_equal(list.count, LENGTH);
    token_list_free(&list);
    tokenizer_destroy(t);
    v.pre = "qwen2"; /* marks in the wrong order, which are sorted */
    for (size_t i = 0; i + 4 <= LENGTH; i += 4)
        memcpy(text + i, "\xCC\x81\xCC\xA7", 4);
    t = open_vocabulary(&v);
    CHECK_OK(tokenizer_encode(t, text, LENGTH, 0, &list));
    assert_int_equal(list.count, LENGTH);
    assert_int_equal(list.ids[1], 0xA7);
    assert_int_equal(list.ids[LENGTH - 1], 0x81);
    token_list_free(&list);
    free(text);
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_merged_in_the_order_of_the_list),
        cmocka_unit_test(pieces_are_those_of_the_pre_tokenizer),
        cmocka_unit_test(white_space_is_what_unicode_says),
        cmocka_unit_test(texts_are_composed_if_the_model_requests_it),
        cmocka_unit_test(a_word_that_is_a_token_stays_whole_if_the_model_requests_it),
        cmocka_unit_test(encoders_with_bytes_put_texts_between_their_ends),
        cmocka_unit_test(a_byte_that_the_vocabulary_lacks_is_left_out),
        cmocka_unit_test(bytes_become_text_again),
        cmocka_unit_test(a_message_of_an_answer_ends_before_the_answer),
        cmocka_unit_test(merges_that_make_no_sense_are_refused),
        cmocka_unit_test(long_pieces_take_no_longer_than_they_should),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
