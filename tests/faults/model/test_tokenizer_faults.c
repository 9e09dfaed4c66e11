/* Every allocation of a tokenizer fails in turn: a status, nothing lost, nothing changed. */
#include <string.h>

#include "base/memory.h"
#include "model/chat.h"
#include "support/data/tokens.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81"

static const char TEXT[] = "e\xCC\x81\xCC\xA7 the [SEP]  \xFF caf\xC3\xA9 \xE6\x9D\xB1 " WORD "aa 123";

/* Makes a tokenizer, encodes and decodes. An injected failure must return WW_OUT_OF_MEMORY and leave the list unchanged.
 * `tokens` is the expected number of tokens, or receives it. */
static ww_status use(const ww_gguf *g, int64_t *tokens)
{
    tokenizer *t = NULL;
    token_list list = {0};
    char *text = NULL;
    size_t bytes = 0;
    ww_status status = tokenizer_create(g, &t);
    if (status == WW_OK) {
        status = tokenizer_encode(t, TEXT, strlen(TEXT), 0, &list);
        assert_int_equal(list.count, status != WW_OK ? 0 : *tokens < 0 ? list.count : *tokens);
        token_list quoted = {0};
        if (status == WW_OK)
            status = tokenizer_encode_quotes(t, &(quoted_text){WORD "aa", 5, &(text_span){3, 5}, 1, ""}, &quoted);
        token_list_free(&quoted);
        if (status == WW_OK)
            *tokens = list.count;
    }
    if (status == WW_OK) {
        status = tokenizer_decode(t, list.ids, list.count, &text, &bytes);
        if (status != WW_OK)
            assert_null(text);
    }
    memory_free(text);
    token_list_free(&list);
    tokenizer_destroy(t);
    return status;
}

static void fail_in_turn(const test_vocabulary *v)
{
    ww_gguf *g = NULL;
    CHECK_OK(ww_gguf_open(vocabulary_write(v), &g));
    const int64_t held = blocks_held();
    int64_t n = 1, tokens = -1;
    CHECK_OK(use(g, &tokens));
    for (;; n++) {
        fail_allocation_at(n);
        const ww_status status = use(g, &tokens);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_true(n < 20000);
    }
    assert_true(n > 10);
    fault_count("allocation", (long)n - 1);
    ww_gguf_close(g);
}

static void a_wordpiece_tokenizer_survives_failed_allocations(void **state)
{
    (void)state;
    test_vocabulary v = vocabulary_empty("bert");
    vocabulary_add(&v, "[UNK]", 3, 0);
    vocabulary_add(&v, "[SEP]", 3, 0);
    vocabulary_add(&v, WORD "the", 1, 0);
    vocabulary_add(&v, WORD "e", 1, 0);
    v.unknown = 0;
    v.bos = v.eos = 1;
    fail_in_turn(&v);
}

static void a_sentencepiece_tokenizer_survives_failed_allocations(void **state)
{
    (void)state;
    test_vocabulary v = vocabulary_empty("llama");
    vocabulary_add(&v, "<s>", 3, 0);
    vocabulary_add_bytes(&v);
    vocabulary_add(&v, "a", 1, -1);
    vocabulary_add(&v, "aa", 5, -1);
    v.bos = 0;
    fail_in_turn(&v);
}

static void a_unigram_tokenizer_survives_failed_allocations(void **state)
{
    (void)state;
    static const unsigned char map[] = {4, 0, 0, 0, 0, 0, 0, 0, 'x', 0}; /* without a sequence */
    test_vocabulary v = vocabulary_empty("t5");
    vocabulary_add(&v, "<s>", 3, 0);
    vocabulary_add(&v, "<unk>", 2, 0);
    vocabulary_add(&v, "a", 1, -1);
    vocabulary_add(&v, "aa", 1, -1);
    v.bos = v.eos = 0;
    v.unknown = 1;
    v.charsmap = map;
    v.charsmap_bytes = sizeof map;
    fail_in_turn(&v);
}

static void byte_level_tokenizers_survive_failed_allocations(void **state)
{
    (void)state;
    static const char *const pres[] = {"smollm", "llama-bpe", "qwen2"};
    for (size_t i = 0; i < 3; i++) {
        test_vocabulary v = vocabulary_empty("gpt2");
        v.pre = pres[i];
        vocabulary_add_alphabet(&v);
        vocabulary_add(&v, "aa", 1, 0);
        vocabulary_add(&v, "the", 1, 0); /* a word that no merge makes */
        vocabulary_add_merge(&v, "a a");
        v.add_bos = 0;
        fail_in_turn(&v);
    }
}

static void a_conversation_survives_failed_allocations(void **state)
{
    (void)state;
    static const chat_message messages[] = {{"user", "a question of some length, so that the buffer grows more than once"},
                                            {"assistant", "an answer of some length, so that the buffer grows more than once"}};
    static const char text[] =
        "{% macro f(x, y='b') %}{{ x | upper }}{{ y }}{% endmacro %}{% set n = namespace(a=[1, {'k': 2.5}]) %}"
        "{% for m in messages if m.role %}{% set n.a = n.a + [m] %}<|{{ f(m.role) }}|>{{ m.content.split(' ') | join('-') }}"
        "{{ m | tojson(indent=2) }}{% endfor %}{{ n.a[:1] }}{% set b %}{{ strftime_now('%Y') }}{% endset %}{{ 'a' * 20000 }}";
    template_quotes quotes = {0};
    for (int64_t n = 1;; n++) {
        text_buffer out = {0};
        template_program *program = NULL;
        fail_allocation_at(n);
        ww_status status = template_parse(text, strlen(text), &program);
        const chat_format format = {.program = program, .bos = "", .eos = "", .quotes = &quotes};
        if (status == WW_OK)
            status = chat_render(&format, messages, 2, true, &out);
        fail_allocation_at(0);
        template_free(program);
        assert_true((quotes.count > 2) == (status == WW_OK));
        if (status != WW_OK)
            assert_int_equal(out.bytes, 0);
        template_quotes_free(&quotes);
        text_buffer_free(&out);
        if (status == WW_OK) {
            assert_true(n > 6);
            fault_count("allocation", (long)n - 1);
            break;
        }
        assert_int_equal(status, WW_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wordpiece_tokenizer_survives_failed_allocations),
        cmocka_unit_test(a_sentencepiece_tokenizer_survives_failed_allocations),
        cmocka_unit_test(a_unigram_tokenizer_survives_failed_allocations),
        cmocka_unit_test(byte_level_tokenizers_survive_failed_allocations),
        cmocka_unit_test(a_conversation_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
