/* Choosing tokens: what each setting keeps, that frequencies equal the probabilities, and that a seed always gives the same
 * sequence; and text from pieces of tokens, only whole characters.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings/text_stream.h"
#include "model/session/sampling.h"
#include "support/check.h"

enum { TOKENS = 8, DRAWS = 20000 };

static const float logits[TOKENS] = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f, 0.5f, -4.0f, 2.5f};

static int32_t choose(const ww_sampling *s, const int32_t *tokens, size_t length)
{
    const sampled_text text = {logits, TOKENS, tokens, length, NULL};
    int32_t token = -1;
    ww_sampling checked;
    CHECK_OK(sampling_read(s, "test", &checked));
    CHECK_OK(sampling_choose(&checked, &text, &token));
    return token;
}

/* How often each token is drawn, at DRAWS places of a text. */
static void count_draws(const ww_sampling *s, int *counts)
{
    static int32_t text[DRAWS];
    memset(counts, 0, TOKENS * sizeof *counts);
    for (size_t i = 1; i <= DRAWS; i++)
        counts[choose(s, text, i)]++;
}

static void the_first_of_the_largest_is_chosen_without_temperature(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    assert_int_equal(choose(&s, NULL, 0), 1);
    s.temperature = 0.7;
    s.top_k = 1;
    assert_int_equal(choose(&s, NULL, 5), 1);
    s.top_k = 0;
    s.top_p = 1e-9;
    assert_int_equal(choose(&s, NULL, 6), 1);
}

static void tokens_are_drawn_as_often_as_they_are_likely(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    int counts[TOKENS];
    double mass = 0.0;
    s.temperature = 1.5;
    s.repetition_window = 0;
    s.seed = 77;
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        mass += exp((double)logits[i] / 1.5);
    for (int i = 0; i < TOKENS; i++) {
        const double p = exp((double)logits[i] / 1.5) / mass, deviation = sqrt(DRAWS * p * (1.0 - p));
        if (fabs(counts[i] - DRAWS * p) > 5.0 * deviation)
            fail_msg("token %d: %d times, not %g", i, counts[i], DRAWS * p);
    }
}

static void top_k_top_p_and_min_p_leave_the_likeliest(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    int counts[TOKENS];
    s.temperature = 3.0;
    s.top_k = 3; /* 1 and 3 are equal; then 7 */
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(counts[i] > 0, i == 1 || i == 3 || i == 7);
    s.top_k = 2; /* those of 1, 3, 7 that fit */
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(counts[i] > 0, i == 1 || i == 3);
    s.top_k = 0;
    s.top_p = 0.7; /* 0.32 + 0.32, and 0.19 passes it */
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(counts[i] > 0, i == 1 || i == 3 || i == 7);
    s.top_k = 3;
    s.top_p = 0.7; /* of the mass of these three */
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(counts[i] > 0, i == 1 || i == 3);
    s.top_k = 0;
    s.top_p = 1.0;
    s.min_p = 0.3; /* e^-1 is above, e^-2 below */
    count_draws(&s, counts);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(counts[i] > 0, i == 1 || i == 2 || i == 3 || i == 7);
}

static void recent_tokens_are_less_likely(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    const int32_t text[] = {1, 3, 4, 4, 3};
    s.repetition_penalty = 2.0;
    assert_int_equal(choose(&s, text, 5), 7); /* 1 and 3 become 1.5, once each, however often 3 was there */
    s.repetition_window = 2;                  /* 4 and 3 */
    assert_int_equal(choose(&s, text, 5), 1);
    s.repetition_window = -1;
    assert_int_equal(choose(&s, text, 5), 7);
    s.repetition_window = 0;
    assert_int_equal(choose(&s, text, 5), 1);
}

/* Logits: 1 and 3 have 3, 7 has 2.5, 2 has 2. */
static void frequent_tokens_are_less_likely(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    const int32_t text[] = {1, 3, 3, 1, 3};
    s.frequency_penalty = 0.25;
    assert_int_equal(choose(&s, text, 5), 1); /* 3 - 2 * 0.25 is as large as the 2.5 of 7, and earlier */
    s.frequency_penalty = 0.26;
    assert_int_equal(choose(&s, text, 5), 7);
    s.repetition_window = 3; /* 3, 1, 3 */
    assert_int_equal(choose(&s, text, 5), 1);
    s.frequency_penalty = 0.0;
    s.presence_penalty = 0.5; /* however often a token occurs */
    s.repetition_window = 64;
    assert_int_equal(choose(&s, text, 5), 1);
    s.presence_penalty = 0.6;
    assert_int_equal(choose(&s, text, 5), 7);
    s.frequency_penalty = -0.5; /* likelier by 0.5 each time: 3.4 and 3.9 */
    assert_int_equal(choose(&s, text, 5), 3);
    s.frequency_penalty = 0.0;
    s.repetition_window = 0;
    assert_int_equal(choose(&s, text, 5), 1);
    s = ww_sampling_default();
    s.repetition_penalty = 1.5; /* first: 3 / 1.5 - 0.1 is below 2 */
    s.presence_penalty = 0.1;
    assert_int_equal(choose(&s, (const int32_t[]){1, 3, 7}, 3), 2);
}

/* Logits: 1 and 3 have 3, 7 has 2.5, 2 has 2. */
static void biases_are_added_to_logits(void **state)
{
    (void)state;
    ww_sampling s = ww_sampling_default();
    const int32_t tokens[] = {1, 3, 2};
    const float biases[] = {-100.0f, 0.25f, 1.5f};
    s.bias_tokens = tokens;
    s.biases = biases;
    s.bias_count = 1;
    assert_int_equal(choose(&s, NULL, 0), 3);
    s.bias_count = 3;
    assert_int_equal(choose(&s, NULL, 0), 2); /* 3.5 and 3.25 */
    s.presence_penalty = 0.5;
    assert_int_equal(choose(&s, (const int32_t[]){2}, 1), 3);
    s.bias_tokens = (const int32_t[]){1, 3, 1000000};
    int32_t token = -1;
    const sampled_text t = {.logits = (const float[]){0, 1}, .vocabulary = 2};
    CHECK_FAILS(WW_OUT_OF_RANGE, sampling_choose(&s, &t, &token));
}

/* These tokens are a promise: a text that was generated can be generated again. */
static void a_seed_gives_one_sequence_for_ever(void **state)
{
    (void)state;
    static const int32_t expected[12] = {3, 7, 7, 3, 1, 1, 1, 2, 3, 1, 3, 1};
    ww_sampling s = ww_sampling_default();
    int32_t text[12] = {0};
    s.temperature = 1.0;
    s.repetition_window = 0;
    s.seed = 42;
    for (size_t i = 0; i < 12; i++)
        text[i] = choose(&s, text, i);
    for (int i = 0; i < 12; i++)
        if (text[i] != expected[i])
            fail_msg("token %d is %d, not %d: %d %d %d %d %d %d %d %d %d %d %d %d", i, text[i], expected[i], text[0], text[1],
                     text[2], text[3], text[4], text[5], text[6], text[7], text[8], text[9], text[10], text[11]);
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    ww_sampling out;
    const struct {
        ww_sampling value;
        const char *word;
    } wrong[] = {
        {{.temperature = -0.1, .top_p = 1, .repetition_penalty = 1}, "temperature"},
        {{.temperature = NAN, .top_p = 1, .repetition_penalty = 1}, "temperature"},
        {{.top_k = -1, .top_p = 1, .repetition_penalty = 1}, "top_k"},
        {{.top_p = 0, .repetition_penalty = 1}, "top_p"},
        {{.top_p = 1.5, .repetition_penalty = 1}, "top_p"},
        {{.top_p = 1, .min_p = 2, .repetition_penalty = 1}, "min_p"},
        {{.top_p = 1, .repetition_penalty = 0}, "repetition_penalty"},
        {{.top_p = 1, .repetition_penalty = 1, .repetition_window = -2}, "repetition_window"},
        {{.top_p = 1, .repetition_penalty = 1, .frequency_penalty = NAN}, "frequency_penalty"},
        {{.top_p = 1, .repetition_penalty = 1, .presence_penalty = -INFINITY}, "presence_penalty"},
        {{.top_p = 1, .repetition_penalty = 1, .bias_count = -1}, "bias_count"},
        {{.top_p = 1, .repetition_penalty = 1, .bias_count = 1}, "bias_tokens"},
        {{.top_p = 1, .repetition_penalty = 1, .bias_tokens = &(int32_t){0}, .biases = &(float){NAN}, .bias_count = 1},
         "biases"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ww_sampling value = wrong[i].value;
        value.struct_size = sizeof value;
        CHECK_FAILS(WW_INVALID_ARGUMENT, sampling_read(&value, "test", &out));
        assert_non_null(strstr(ww_error_message(), wrong[i].word));
    }
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

/* The text of bytes that arrive in pieces of `piece`, reported after each. */
static void check_stream(const char *bytes, size_t count, size_t piece, const char *expected)
{
    text_stream s = {0};
    char told[256] = "";
    for (size_t at = 0; at < count; at += piece) {
        CHECK_OK(text_stream_add(&s, bytes + at, count - at < piece ? count - at : piece));
        strncat(told, s.text, s.bytes);
        s.bytes = 0;
    }
    text_stream_finish(&s);
    if (s.bytes > 0)
        strncat(told, s.text, s.bytes);
    text_stream_free(&s);
    if (strcmp(told, expected) != 0)
        fail_msg("pieces of %zu: '%s', not '%s'", piece, told, expected);
}

#define FFFD "\xef\xbf\xbd"

static void whole_characters_are_reported_and_invalid_bytes_as_a_replacement(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xbf\xef\xb8\x8f!", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xbf\xef\xb8\x8f!"},
        {"a\x80z", "a" FFFD "z"},
        {"\xe2\x82z", FFFD "z"}, /* begun, and not ended */
        {"\xe2\x82\xe2\x82\xac", FFFD "\xe2\x82\xac"},
        {"\xc0\xaf", FFFD FFFD},                        /* never starts anything */
        {"\xed\xa0\x80", FFFD FFFD FFFD},               /* a surrogate */
        {"\xf4\x90\x80\x80x", FFFD FFFD FFFD FFFD "x"}, /* past the last character */
        {"end\xf0\x9f", "end" FFFD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= 5; piece++)
            check_stream(cases[i].bytes, strlen(cases[i].bytes), piece, cases[i].text);
}

static int32_t choose_allowed(const ww_sampling *s, uint64_t allowed, const int32_t *tokens, size_t length)
{
    const sampled_text text = {logits, TOKENS, tokens, length, &allowed};
    int32_t token = -1;
    CHECK_OK(sampling_choose(s, &text, &token));
    return token;
}

/* With every mask and several settings: as if the vocabulary did not have the other tokens. */
static void forbidden_tokens_have_no_probability(void **state)
{
    static const int32_t text[3] = {1, 3, 7};
    (void)state;
    for (uint64_t mask = 1; mask < 1 << TOKENS; mask++)
        for (uint64_t seed = 0; seed < 24; seed++) {
            ww_sampling s = ww_sampling_default();
            s.seed = seed;
            s.temperature = seed % 2 ? 3.0 : 0.0;
            s.top_k = seed % 3 == 1 ? 3 : 0;
            s.top_p = seed % 3 == 2 ? 0.8 : 1.0;
            s.min_p = seed % 5 == 1 ? 0.1 : 0.0;
            s.repetition_penalty = seed % 4 > 1 ? 1.7 : 1.0;
            const int32_t token = choose_allowed(&s, mask, text, 3);
            assert_true(token >= 0 && token < TOKENS && mask >> token & 1);
            if (mask + 1 == 1 << TOKENS)
                assert_int_equal(token, choose(&s, text, 3));
            if (s.temperature > 0.0 || s.repetition_penalty != 1.0)
                continue;
            for (int32_t i = 0; i < TOKENS; i++) /* the first of the largest that are allowed */
                assert_true(!(mask >> i & 1) || logits[i] < logits[token] || (logits[i] == logits[token] && i >= token));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forbidden_tokens_have_no_probability),
        cmocka_unit_test(the_first_of_the_largest_is_chosen_without_temperature),
        cmocka_unit_test(tokens_are_drawn_as_often_as_they_are_likely),
        cmocka_unit_test(top_k_top_p_and_min_p_leave_the_likeliest),
        cmocka_unit_test(recent_tokens_are_less_likely),
        cmocka_unit_test(frequent_tokens_are_less_likely),
        cmocka_unit_test(biases_are_added_to_logits),
        cmocka_unit_test(a_seed_gives_one_sequence_for_ever),
        cmocka_unit_test(numbers_that_make_no_sense_are_refused),
        cmocka_unit_test(whole_characters_are_reported_and_invalid_bytes_as_a_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
