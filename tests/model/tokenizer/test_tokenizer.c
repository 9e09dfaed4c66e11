/* Tokenizers with vocabularies of a few pieces, for which every id can be found by hand: their common part, WordPiece, and
 * SentencePiece. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/data/tokens.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81"
enum { WORD_BYTES = 3 };

/* ---- WordPiece ----------------------------------------------------------------------------------------------------------- */

enum { PAD, UNK, CLS, SEP, THE, UN, AFF, ABLE, COMMA, TO, KYO, CAFE, X_, AFF_WORD, S };

static test_vocabulary words(void)
{
    test_vocabulary v = vocabulary_empty("bert");
    static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    static const char *const normal[] = {WORD "the",          WORD "un",   "aff",    "able",     WORD ",", WORD "\xE6\x9D\xB1",
                                         WORD "\xE4\xBA\xAC", WORD "cafe", WORD "x", WORD "aff", "s"};
    for (int i = 0; i < 4; i++)
        vocabulary_add(&v, special[i], 3, 0);
    for (int i = 0; i < 11; i++)
        vocabulary_add(&v, normal[i], 1, 0);
    v.bos = CLS;
    v.eos = SEP;
    v.unknown = UNK;
    return v;
}

static void words_are_cut_into_the_longest_pieces(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    CHECK_IDS(t, "The unaffable, \xE6\x9D\xB1\xE4\xBA\xAC caf\xC3\xA9", 0,
              IDS(CLS, THE, UN, AFF, ABLE, COMMA, TO, KYO, CAFE, SEP));
    CHECK_IDS(t, "", 0, IDS(CLS, SEP));
    CHECK_TEXT(t, "", NONE);
    CHECK_TEXT(t, " \t\n ", NONE);
    CHECK_TEXT(t, "unable able unaff", IDS(UN, ABLE, UNK, UN, AFF));   /* "able" starts no word */
    CHECK_TEXT(t, "CAFE\xCC\x81S the\xE2\x80\x8B", IDS(CAFE, S, THE)); /* a mark and a format character are removed */
    CHECK_TEXT(t, "the\0the", IDS(THE));
    check_ids(t, "the\0 the", 8, TOKENIZE_NO_ADD, IDS(THE, THE));
    assert_string_equal(tokenizer_model(t), "bert");
    assert_int_equal(tokenizer_bos(t), CLS);
    assert_int_equal(tokenizer_eos(t), SEP);
    tokenizer_destroy(t);
}

static void characters_newer_than_unicode_8_are_neither_punctuation_nor_marks(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "the\xE2\xB9\x82the", IDS(THE, UNK, THE)); /* U+2E42, of Unicode 7 */
    CHECK_TEXT(t, "the\xE2\xB9\x83the", IDS(UNK));           /* U+2E43, of Unicode 9 */
    CHECK_TEXT(t, "the\xE1\x99\xADthe", IDS(THE, UNK, THE)); /* U+166D, which became a symbol later */
    CHECK_TEXT(t, "cafe\xE1\xB7\xB5", IDS(CAFE));            /* U+1DF5, of Unicode 7 */
    CHECK_TEXT(t, "cafe\xE1\xB7\xB6", IDS(UNK));             /* U+1DF6, of Unicode 10 */
    CHECK_TEXT(t, "the\xD8\x9Cthe", IDS(UNK));               /* U+061C, a control of Unicode 6.3, is removed */
    CHECK_TEXT(t,
               "ca\xF0\x93\x90\xB0"
               "fe",
               IDS(UNK)); /* U+13430, a control of Unicode 12, stays */
    tokenizer_destroy(t);
}

static void the_word_mark_of_vocabularies_is_an_ordinary_character_in_texts(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    /* In the vocabulary, the key of the rest of the word would be "the", the start of a word. */
    CHECK_TEXT(t, "x" WORD "the", IDS(UNK));
    CHECK_TEXT(t, WORD "the", IDS(UNK));
    CHECK_TEXT(t, "xaff", IDS(X_, AFF));
    CHECK_TEXT(t, "x aff", IDS(X_, AFF_WORD));
    tokenizer_destroy(t);
}

static void a_word_of_more_than_100_characters_is_unknown(void **state)
{
    (void)state;
    char text[320];
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    memset(text, 's', sizeof text);
    text[0] = 'x';
    token_list list = {0};
    CHECK_OK(tokenizer_encode(t, text, 100, TOKENIZE_NO_ADD, &list));
    assert_int_equal(list.count, 100);
    token_list_free(&list);
    check_ids(t, text, 101, TOKENIZE_NO_ADD, IDS(UNK));
    tokenizer_destroy(t);
}

static void case_and_accents_are_kept_if_the_file_says_so(void **state)
{
    (void)state;
    test_vocabulary v = words();
    v.lowercase = 0;
    const int32_t upper = vocabulary_add(&v, WORD "The", 1, 0);
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "The the caf\xC3\xA9", IDS(upper, THE, UNK));
    tokenizer_destroy(t);
}

static void special_tokens_in_a_text_are_found_unless_it_is_plain(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    CHECK_IDS(t, "the[SEP]the", TOKENIZE_NO_ADD, IDS(THE, SEP, THE));
    CHECK_IDS(t, "the[SEP]the", TOKENIZE_NO_ADD | TOKENIZE_PLAIN, IDS(THE, UNK, UNK, UNK, THE));
    CHECK_IDS(t, "[SE[SEP]P]", TOKENIZE_NO_ADD, IDS(UNK, UNK, SEP, UNK, UNK));
    assert_true(tokenizer_is_special(t, SEP));
    assert_false(tokenizer_is_special(t, THE));
    assert_false(tokenizer_is_special(t, -1));
    assert_true(tokenizer_is_end(t, SEP));
    tokenizer_destroy(t);
}

static void a_list_is_cut_with_its_end(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    token_list list = {0};
    CHECK_OK(tokenizer_encode(t, "the the the", 11, 0, &list));
    tokenizer_truncate(t, 0, 9, &list);
    assert_int_equal(list.count, 5);
    tokenizer_truncate(t, 0, 3, &list);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.ids[2], SEP);
    tokenizer_truncate(t, TOKENIZE_NO_ADD, 2, &list);
    assert_int_equal(list.ids[1], THE);
    CHECK_OK(tokenizer_encode(t, "x", 1, TOKENIZE_NO_ADD, &list)); /* texts are appended */
    assert_int_equal(list.count, 3);
    assert_int_equal(list.ids[2], X_);
    token_list_free(&list);
    tokenizer_destroy(t);
}

static void tokens_become_text(void **state)
{
    (void)state;
    const test_vocabulary v = words();
    tokenizer *t = open_vocabulary(&v);
    char *text = NULL;
    size_t bytes = 0;
    const char *piece = NULL;
    CHECK_OK(tokenizer_decode(t, IDS(CLS, THE, UN, AFF, ABLE, SEP), 6, &text, &bytes));
    assert_string_equal(text, "the unaffable");
    assert_int_equal(bytes, 13);
    memory_free(text);
    CHECK_OK(tokenizer_piece(t, THE, &piece, &bytes));
    assert_int_equal(bytes, 4);
    assert_memory_equal(piece, " the", 4);
    CHECK_FAILS(WW_OUT_OF_RANGE, tokenizer_piece(t, v.count, &piece, &bytes));
    CHECK_FAILS(WW_OUT_OF_RANGE, tokenizer_decode(t, IDS(THE, 1000), 2, &text, &bytes));
    CHECK_FAILS(WW_OUT_OF_RANGE, tokenizer_encode(t, "", (size_t)1 << 30, 0, &(token_list){0}));
    tokenizer_destroy(t);
}

/* ---- SentencePiece ------------------------------------------------------------------------------------------------------- */

static test_vocabulary pieces(void)
{
    test_vocabulary v = vocabulary_empty("llama");
    vocabulary_add(&v, "<unk>", 2, 0);
    vocabulary_add(&v, "<s>", 3, 0);
    vocabulary_add(&v, "</s>", 3, 0);
    v.unknown = 0;
    v.bos = 1;
    v.eos = 2;
    return v;
}

static void the_best_scored_pair_is_merged_and_the_leftmost_of_equals(void **state)
{
    (void)state;
    test_vocabulary v = pieces();
    const int32_t space = vocabulary_add(&v, WORD, 1, -9), a = vocabulary_add(&v, "a", 1, -9),
                  b = vocabulary_add(&v, "b", 1, -9);
    const int32_t aa = vocabulary_add(&v, "aa", 1, -2), ab = vocabulary_add(&v, "ab", 1, -1),
                  bb = vocabulary_add(&v, "bb", 1, -2);
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "aaa", IDS(space, aa, a)); /* the leftmost */
    CHECK_TEXT(t, "aab", IDS(space, a, ab)); /* the best one, although it is not the first */
    CHECK_TEXT(t, "abb", IDS(space, ab, b));
    CHECK_TEXT(t, "bbb", IDS(space, bb, b));
    CHECK_TEXT(t, "a b", IDS(space, a, space, b));
    CHECK_TEXT(t, "", NONE);
    CHECK_IDS(t, "b", 0, IDS(1, space, b));              /* BOS by default, no EOS */
    CHECK_TEXT(t, "b</s>b", IDS(space, b, 2, space, b)); /* the text after a control token is tokenized as a new start */
    CHECK_TEXT(t, "zz a", IDS(space, 0, space, a));      /* no byte tokens: one unknown for both */
    tokenizer_destroy(t);
    v.add_space_prefix = 0;
    v.add_eos = 1;
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "a b", IDS(a, space, b));
    CHECK_TEXT(t, "a" WORD "b", IDS(a, space, b)); /* the same to SentencePiece */
    CHECK_IDS(t, "b", 0, IDS(1, b, 2));
    tokenizer_destroy(t);
}

static void characters_that_are_no_pieces_become_bytes(void **state)
{
    (void)state;
    test_vocabulary v = pieces();
    const int32_t zero = v.count;
    char *text = NULL;
    size_t bytes = 0;
    vocabulary_add_bytes(&v);
    const int32_t space = vocabulary_add(&v, WORD, 1, -9);
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "\xC3\xA9", IDS(space, zero + 0xC3, zero + 0xA9));
    CHECK_TEXT(t, "<0x41>", IDS(space, zero + '<', zero + '0', zero + 'x', zero + '4', zero + '1', zero + '>'));
    CHECK_OK(tokenizer_decode(t, IDS(1, space, zero + 0xC3, zero + 0xA9, space, zero + 'x'), 6, &text, &bytes));
    assert_string_equal(text, "\xC3\xA9 x");
    memory_free(text);
    /* Invalid UTF-8 becomes U+FFFD, one for each part that could have become a character. */
    CHECK_TEXT(t, "\xE2\x82z", IDS(space, zero + 0xEF, zero + 0xBF, zero + 0xBD, zero + 'z'));
    CHECK_TEXT(t, "\xFF\x80", IDS(space, zero + 0xEF, zero + 0xBF, zero + 0xBD, zero + 0xEF, zero + 0xBF, zero + 0xBD));
    tokenizer_destroy(t);
}

static void user_defined_pieces_are_found_in_plain_text_and_stay_whole(void **state)
{
    (void)state;
    test_vocabulary v = pieces();
    v.add_space_prefix = 0;
    const int32_t space = vocabulary_add(&v, WORD, 1, -9), a = vocabulary_add(&v, "a", 1, -9);
    const int32_t two = vocabulary_add(&v, WORD WORD, 4, 0), three = vocabulary_add(&v, "   ", 4, 0);
    const int32_t long_one = vocabulary_add(&v, WORD "a", 1, -1);
    tokenizer *t = open_vocabulary(&v);
    CHECK_IDS(t, "a  a", TOKENIZE_NO_ADD | TOKENIZE_PLAIN, IDS(a, two, a));
    CHECK_TEXT(t, "a   a", IDS(a, three, a)); /* the longest */
    CHECK_TEXT(t, "a a", IDS(a, long_one));
    CHECK_TEXT(t, "     ", IDS(three, two));
    CHECK_TEXT(t, " ", IDS(space));
    tokenizer_destroy(t);
}

static void an_unused_piece_falls_apart(void **state)
{
    (void)state;
    test_vocabulary v = pieces();
    v.add_space_prefix = 0;
    const int32_t a = vocabulary_add(&v, "a", 1, -9), b = vocabulary_add(&v, "b", 1, -9);
    vocabulary_add(&v, "ab", 5, -1);
    const int32_t abab = vocabulary_add(&v, "abab", 1, -2);
    tokenizer *t = open_vocabulary(&v);
    CHECK_TEXT(t, "ab", IDS(a, b));
    CHECK_TEXT(t, "abab", IDS(abab)); /* it serves on the way */
    CHECK_TEXT(t, "ababab", IDS(abab, a, b));
    tokenizer_destroy(t);
    vocabulary_add(&v, "az", 5, -1); /* one of whose parts is no piece */
    t = open_vocabulary(&v);
    CHECK_TEXT(t, "azb", IDS(a, 0, b));
    tokenizer_destroy(t);
}

typedef struct nest {
    const tokenizer *t;
    const char *text;
    size_t bytes;
    token_list list;
    ww_status status;
} nest;

static void *encode_nest(void *context)
{
    nest *n = context;
    n->status = tokenizer_encode(n->t, n->text, n->bytes, TOKENIZE_NO_ADD, &n->list);
    return NULL;
}

/* Unused pieces, each a letter longer than the one before, so that one falls apart 3,000 times: on a small stack. */
static void nested_unused_pieces_fall_apart_on_a_small_stack(void **state)
{
    (void)state;
    enum { DEPTH = 3000, STACK_BYTES = 160 << 10 };
    static test_vocabulary v;
    static char text[DEPTH + 1];
    v = pieces();
    v.add_space_prefix = 0;
    static char longer[DEPTH * (DEPTH + 3) / 2], *at = longer;
    text[0] = 'a';
    memset(text + 1, 'b', DEPTH - 1);
    const int32_t a = vocabulary_add(&v, "a", 1, -9), b = vocabulary_add(&v, "b", 1, -9);
    for (int i = 2; i <= DEPTH; i++, at += i) {
        memcpy(at, text, (size_t)i); /* and a NUL after it */
        vocabulary_add(&v, at, 5, -(float)i);
    }
    pthread_attr_t attributes;
    pthread_t thread;
    nest n = {.t = open_vocabulary(&v), .text = text, .bytes = DEPTH};
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, encode_nest, &n), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    CHECK_OK(n.status);
    assert_int_equal(n.list.count, DEPTH);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(n.list.ids[i], i == 0 ? a : b);
    token_list_free(&n.list);
    tokenizer_destroy((tokenizer *)(uintptr_t)n.t);
}

static void check_quotes(const tokenizer *t, const quoted_text *text, const int32_t *ids)
{
    token_list list = {0};
    int64_t count = 0;
    CHECK_OK(tokenizer_encode_quotes(t, text, &list));
    while (ids[count] >= 0)
        count++;
    assert_int_equal(list.count, count);
    assert_memory_equal(list.ids, ids, (size_t)count * sizeof *ids);
    token_list_free(&list);
}

static void in_a_quote_special_tokens_are_text(void **state)
{
    (void)state;
    test_vocabulary v = pieces();
    v.add_space_prefix = 0;
    const int32_t space = vocabulary_add(&v, WORD, 1, -9), less = vocabulary_add(&v, "<", 1, -9),
                  x = vocabulary_add(&v, "x", 1, -9), more = vocabulary_add(&v, ">", 1, -9);
    const int32_t control = vocabulary_add(&v, "<x>", 3, 0), defined = vocabulary_add(&v, "<xx>", 4, 0),
                  run = vocabulary_add(&v, "   ", 4, 0);
    tokenizer *t = open_vocabulary(&v);
    const text_span all = {0, 7}, behind = {3, 7}, three = {WORD_BYTES, WORD_BYTES + 3};
    check_quotes(t, &(quoted_text){"<x>x<x>", 7, &all, 1, "<x>"}, IDS(less, x, more, x, less, x, more));
    check_quotes(t, &(quoted_text){"<x>x<x>", 7, &behind, 1, "<x>"}, IDS(control, x, less, x, more));
    check_quotes(t, &(quoted_text){"<x>x<x>", 7, NULL, 0, "<x>"}, IDS(control, x, control));
    /* A user-defined token is text if the template has it. */
    check_quotes(t, &(quoted_text){"<xx>   ", 7, &all, 1, "<x>"}, IDS(defined, run));
    check_quotes(t, &(quoted_text){"<xx>   ", 7, &all, 1, "<xx>   "}, IDS(less, x, x, more, run));
    check_quotes(t, &(quoted_text){"<xx>   ", 7, &behind, 1, "<xx>"}, IDS(defined, run));
    /* Quotes move with the text where U+2581 becomes a space. */
    check_quotes(t, &(quoted_text){WORD "<x><x>", WORD_BYTES + 6, &three, 1, ""}, IDS(space, less, x, more, control));
    CHECK_FAILS(WW_INVALID_ARGUMENT, tokenizer_encode_quotes(t, &(quoted_text){"\xFF", 1, NULL, 0, ""}, &(token_list){0}));
    tokenizer_destroy(t);
}

/* A megabyte of one letter: with n^2 steps this would take hours. */
static void a_long_run_of_one_letter_takes_no_longer_than_it_should(void **state)
{
    (void)state;
    enum { LENGTH = 1000000 };
    test_vocabulary v = pieces();
    v.add_space_prefix = 0;
    vocabulary_add(&v, "a", 1, -9);
    vocabulary_add(&v, "aa", 1, -1);
    vocabulary_add(&v, "aaaa", 1, -2);
    const int32_t eight = vocabulary_add(&v, "aaaaaaaa", 1, -3);
    tokenizer *t = open_vocabulary(&v);
    char *text = malloc(LENGTH);
    token_list list = {0};
    assert_non_null(text);
    memset(text, 'a', LENGTH);
    CHECK_OK(tokenizer_encode(t, text, LENGTH, TOKENIZE_NO_ADD, &list));
    assert_int_equal(list.count, LENGTH / 8);
    assert_int_equal(list.ids[LENGTH / 8 - 1], eight);
    token_list_free(&list);
    free(text);
    tokenizer_destroy(t);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void a_vocabulary_that_is_wrong_is_refused(void **state)
{
    (void)state;
    test_vocabulary v = words();
    v.model = "rwkv";
    check_refused(&v, WW_UNSUPPORTED, "'rwkv'");
    v = words();
    v.model = NULL;
    check_refused(&v, WW_NOT_FOUND, "tokenizer.ggml.model");
    v = words();
    v.unknown = v.count;
    check_refused(&v, WW_CORRUPT_FILE, "the unknown token is 15");
    v = words();
    v.bos = -1;
    check_refused(&v, WW_CORRUPT_FILE, "bos_token_id");
    v = words();
    v.kinds_written = 3;
    check_refused(&v, WW_CORRUPT_FILE, "token_type has 3 elements");
    v = words();
    v.kinds[4] = 7;
    check_refused(&v, WW_CORRUPT_FILE, "token 4 has the type 7");
    v = words();
    v.count = 0;
    v.kinds_written = 0;
    v.bos = v.eos = v.unknown = -1;
    check_refused(&v, WW_CORRUPT_FILE, "0 tokens");
    v = pieces();
    v.scores_written = -1;
    check_refused(&v, WW_CORRUPT_FILE, "scores is missing");
    v = pieces();
    v.scores[1] = __builtin_nanf("");
    check_refused(&v, WW_CORRUPT_FILE, "not a number");
    v = pieces();
    v.unknown = -1;
    check_refused(&v, WW_CORRUPT_FILE, "neither byte tokens nor an unknown token");
    v = pieces();
    vocabulary_add(&v, "<0x41>", 6, 0);
    check_refused(&v, WW_CORRUPT_FILE, "1 of the 256 byte tokens");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_into_the_longest_pieces),
        cmocka_unit_test(characters_newer_than_unicode_8_are_neither_punctuation_nor_marks),
        cmocka_unit_test(the_word_mark_of_vocabularies_is_an_ordinary_character_in_texts),
        cmocka_unit_test(a_word_of_more_than_100_characters_is_unknown),
        cmocka_unit_test(case_and_accents_are_kept_if_the_file_says_so),
        cmocka_unit_test(special_tokens_in_a_text_are_found_unless_it_is_plain),
        cmocka_unit_test(a_list_is_cut_with_its_end),
        cmocka_unit_test(tokens_become_text),
        cmocka_unit_test(the_best_scored_pair_is_merged_and_the_leftmost_of_equals),
        cmocka_unit_test(characters_that_are_no_pieces_become_bytes),
        cmocka_unit_test(user_defined_pieces_are_found_in_plain_text_and_stay_whole),
        cmocka_unit_test(an_unused_piece_falls_apart),
        cmocka_unit_test(nested_unused_pieces_fall_apart_on_a_small_stack),
        cmocka_unit_test(in_a_quote_special_tokens_are_text),
        cmocka_unit_test(a_long_run_of_one_letter_takes_no_longer_than_it_should),
        cmocka_unit_test(a_vocabulary_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
