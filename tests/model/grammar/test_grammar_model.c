/* Grammars with models of random weights, which prefer other texts than the grammar allows: masks compared with trying every
 * token by itself, JSON that follows its schema for every seed, the same tokens on every device, and texts that end.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"
#include "support/data/vocabulary.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { SEEDS = 200, SEEDS_SLOW = 1, TOKENS_MAX = 700, TEXT_MAX = 1 << 16 };

static ww_model *model;
static const int32_t prompt[] = {3, 14, 15, 9};

/* All single bytes; tokens that start, end and lie inside characters and JSON; two with the same text; and special ones. */
static void write_model(const char *name, bool complete, bool ends)
{
    static const char *const more[] = {"{\"",
                                       "\":",
                                       "\",\"",
                                       "null",
                                       "true",
                                       "\xC4\xA0\"",
                                       "}}",
                                       "]}",
                                       "12",
                                       ",\xC4\xA0\"",
                                       "name",
                                       "na",
                                       "\xC3\x83\xC2\xA9",
                                       "\xC4\x8A",
                                       "[]",
                                       "\\u00",
                                       "\\\"",
                                       "ab",
                                       "abc",
                                       "e9",
                                       "-1",
                                       "\"a"};
    static test_vocabulary v;
    tiny_model m;
    tiny_shape shape = tiny_default("llama");
    v = vocabulary_empty("gpt2");
    v.pre = "gpt-2";
    v.merge_count = 0;
    if (complete)
        vocabulary_add_alphabet(&v);
    for (size_t i = 0; complete && i < sizeof more / sizeof *more; i++)
        vocabulary_add(&v, more[i], 1, 0);
    for (char c = 'a'; !complete && c <= 'z'; c++)
        vocabulary_add(&v, memory_copy_text(&c, 1), 1, 0);
    vocabulary_add(&v, "<special>", 3, 0);
    v.kinds_written = v.count + ends;
    if (ends)
        v.eos = vocabulary_add(&v, "<end>", 3, 0);
    shape.vocabulary = v.count;
    shape.layers = 1;
    shape.type = WW_QUANT_Q8_0;
    shape.tokens = &v;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path(name));
    tiny_free(&m);
    for (int32_t i = 0; !complete && i < 26; i++)
        memory_free((void *)v.tokens[i]);
}

static void begin(void **state, const char *name)
{
    CHECK_OK(ww_model_open(scratch_path(name), *state, NULL, &model));
}

static ww_grammar *grammar_of(ww_grammar_kind kind, const char *text)
{
    ww_grammar *grammar = NULL;
    CHECK_OK(ww_grammar_create(model, kind, text, strlen(text), &grammar));
    return grammar;
}

static ww_session *fed(void)
{
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, prompt, sizeof prompt / sizeof *prompt));
    return session;
}

/* ---- masks --------------------------------------------------------------------------------------------------------------- */

/* Whether a token may follow a text, by a matcher of its own that reads all of it. */
static bool may_follow(const ww_grammar *g, const char *text, size_t bytes, int32_t token)
{
    const tokenizer *t = model->tokenizer;
    matcher alone = {0};
    const char *piece;
    size_t count;
    int32_t state;
    CHECK_OK(matcher_begin(&alone, &g->program));
    state = alone.start;
    for (size_t i = 0; i < bytes; i++)
        CHECK_OK(matcher_step(&alone, state, (uint8_t)text[i], &state));
    bool may = tokenizer_is_end(t, token) && alone.states[state].ends;
    CHECK_OK(tokenizer_piece(t, token, &piece, &count));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(matcher_step(&alone, state, (uint8_t)piece[i], &state));
    if (!tokenizer_is_special(t, token) && !tokenizer_is_end(t, token))
        may = count > 0 && state != STATE_DEAD;
    matcher_free(&alone);
    return may;
}

/* Continues with random allowed tokens; each mask must equal the result of trying every token. */
static void check_masks(ww_grammar *g, uint64_t seed)
{
    char text[1024];
    size_t bytes = 0;
    for (int step = 0; step < 12 && !g->ended; step++) {
        const uint64_t *bits;
        bool over;
        int32_t allowed[1024], count = 0;
        CHECK_OK(grammar_mask(g, &bits, &over));
        for (int32_t id = 0; id < tokenizer_size(model->tokenizer); id++) {
            const bool set = bits[id / 64] >> id % 64 & 1;
            if (set != may_follow(g, text, bytes, id))
                fail_msg("behind '%.*s' token %d is %s", (int)bytes, text, (int)id, set ? "allowed" : "forbidden");
            if (set)
                allowed[count++] = id;
            else
                CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_accept(g, id));
        }
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        const char *piece;
        size_t length;
        const int32_t token = allowed[(seed >> 33) % (uint64_t)count];
        CHECK_OK(tokenizer_piece(model->tokenizer, token, &piece, &length));
        CHECK_OK(ww_grammar_accept(g, token));
        memcpy(text + bytes, piece, length);
        bytes += length;
    }
}

static void a_mask_equals_the_result_of_trying_every_token(void **state)
{
    static const char *const gbnf[] = {
        "root ::= [^\\x00-\\x40]*",
        "root ::= (\"ab\" | \"abc\" | \"\\u00e9\" | \"\xF0\x9F\x98\x80\")+",
        "root ::= \"{\" p* \"}\"\np ::= \"[\" p \"]\" | \"null\"",
        "root ::= .{0,5}",
    };
    if (device_is_slow(*state))
        return; /* nothing is computed on a device here */
    begin(state, "model.gguf");
    for (uint64_t seed = 0; seed < 3; seed++) {
        for (size_t i = 0; i < sizeof gbnf / sizeof *gbnf; i++) {
            ww_grammar *g = grammar_of(WW_GRAMMAR_GBNF, gbnf[i]);
            check_masks(g, seed);
            ww_grammar_destroy(g);
        }
        ww_grammar *g = grammar_of(WW_GRAMMAR_JSON_SCHEMA,
                                   "{\"properties\": {\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}");
        check_masks(g, seed);
        ww_grammar_destroy(g);
    }
    ww_model_close(model);
}

/* ---- schemas ------------------------------------------------------------------------------------------------------------- */

static bool fits(const json_t *root, const json_t *schema, const json_t *value);

static bool fits_type(const char *type, const json_t *value)
{
    return strcmp(type, "null") == 0      ? json_is_null(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "string") == 0  ? json_is_string(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : json_is_object(value);
}

static long long number_of(const json_t *schema, const char *name, long long otherwise)
{
    const json_t *number = json_object_get(schema, name);
    return number ? json_integer_value(number) : otherwise;
}

static bool fits_string(const json_t *schema, const json_t *value)
{
    long long length = 0;
    for (const char *c = json_string_value(value); *c; c++)
        length += (*c & 0xC0) != 0x80;
    return length >= number_of(schema, "minLength", 0) && length <= number_of(schema, "maxLength", INT32_MAX);
}

static bool fits_array(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *items = json_object_get(schema, "items");
    const long long size = (long long)json_array_size(value);
    bool good = size >= number_of(schema, "minItems", 0) && size <= number_of(schema, "maxItems", INT32_MAX);
    for (size_t i = 0; good && items && i < json_array_size(value); i++)
        good = fits(root, items, json_array_get(value, i));
    return good;
}

static bool fits_object(const json_t *root, const json_t *schema, json_t *value)
{
    json_t *required = json_object_get(schema, "required"), *properties = json_object_get(schema, "properties"), *member;
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *name;
    bool good = true;
    for (size_t i = 0; i < json_array_size(required); i++)
        good = good && json_object_get(value, json_string_value(json_array_get(required, i)));
    json_object_foreach(value, name, member)
    {
        const json_t *own = json_object_get(properties, name);
        good = good && (own ? fits(root, own, member) : !others || fits(root, others, member));
    }
    return good;
}

/* A checker of its own for the keywords that the schemas below have. */
static bool fits(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum");
    const json_t *any = json_object_get(schema, "anyOf"), *ref = json_object_get(schema, "$ref");
    bool good = true, found = !values && !any;
    if (json_is_boolean(schema))
        return json_is_true(schema);
    if (ref)
        return fits(root, json_object_get(json_object_get(root, "$defs"), strrchr(json_string_value(ref), '/') + 1), value);
    for (size_t i = 0; i < json_array_size(values); i++)
        found |= json_equal(json_array_get(values, i), value);
    for (size_t i = 0; i < json_array_size(any); i++)
        found |= fits(root, json_array_get(any, i), value);
    if (type)
        good = fits_type(json_string_value(type), value);
    if (good && json_is_string(value))
        good = fits_string(schema, value);
    else if (good && json_is_array(value))
        good = fits_array(root, schema, value);
    else if (good && json_is_object(value))
        good = fits_object(root, schema, (json_t *)value);
    return good && found;
}

/* Everything is bounded, so that every text ends. */
static const char *const schemas[] = {
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 8}, \"age\": {\"type\": "
    "\"integer\"},"
    " \"tags\": {\"type\": \"array\", \"items\": {\"enum\": [\"a\", \"b\\\"\", 3, null]}, \"minItems\": 1, \"maxItems\": 3},"
    " \"ok\": {\"type\": \"boolean\"}}, \"required\": [\"age\", \"tags\"], \"additionalProperties\": false}",
    "{\"anyOf\": [{\"type\": \"number\"}, {\"$ref\": \"#/$defs/pair\"}], \"$defs\": {\"pair\": {\"type\": \"array\","
    " \"items\": {\"type\": \"string\", \"minLength\": 2, \"maxLength\": 4}, \"minItems\": 2, \"maxItems\": 2}}}",
    "{\"type\": \"array\", \"maxItems\": 2, \"items\": {\"type\": \"object\", \"properties\": {\"e9\": {\"type\": \"null\"}},"
    " \"required\": [\"e9\", \"x\"], \"additionalProperties\": {\"type\": \"boolean\"}}}",
};

typedef struct told {
    char text[TEXT_MAX];
    size_t bytes;
} told;

static int take_text(const char *text, size_t bytes, void *user)
{
    told *t = user;
    assert_true(t->bytes + bytes < TEXT_MAX);
    memcpy(t->text + t->bytes, text, bytes);
    t->bytes += bytes;
    return 0;
}

static ww_generation_end generate(const char *schema, uint64_t seed, told *t)
{
    ww_generation generation = ww_generation_default();
    ww_sampling sampling = ww_sampling_default();
    ww_generation_end end;
    ww_session *session = fed();
    t->bytes = 0;
    sampling.temperature = seed % 4 ? 0.5 + 0.5 * (double)(seed % 4) : 0.0;
    sampling.top_k = seed % 3 ? 0 : 40;
    sampling.top_p = seed % 5 ? 1.0 : 0.9;
    sampling.repetition_penalty = seed % 2 ? 1.0 : 1.3;
    sampling.seed = seed;
    sampling.grammar = grammar_of(WW_GRAMMAR_JSON_SCHEMA, schema);
    generation.tokens = TOKENS_MAX;
    generation.sampling = &sampling;
    generation.text = take_text;
    generation.user = t;
    CHECK_OK(ww_session_generate(session, &generation, &end));
    ww_grammar_destroy(sampling.grammar);
    ww_session_destroy(session);
    return end;
}

static void a_schema_makes_every_seed_generate_json_that_matches_it(void **state)
{
    static told expected[sizeof schemas / sizeof *schemas], t; /* of the first device, for the first seed */
    int ended = 0, all = 0;
    begin(state, "model.gguf");
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        json_t *schema = json_loads(schemas[i], 0, NULL);
        for (uint64_t seed = 1; seed <= (device_is_slow(*state) ? SEEDS_SLOW : SEEDS); seed++, all++) {
            const ww_generation_end end = generate(schemas[i], seed, &t);
            if (seed == 1 && expected[i].bytes == 0)
                expected[i] = t;
            if (seed == 1)
                assert_int_equal(t.bytes, expected[i].bytes);
            if (seed == 1)
                assert_memory_equal(t.text, expected[i].text, expected[i].bytes);
            if (end != WW_GENERATION_EOS) /* keys of any length may fill the context */
                continue;
            ended++;
            json_error_t error;
            json_t *value = json_loadb(t.text, t.bytes, JSON_DECODE_ANY, &error);
            if (!value)
                fail_msg("seed %d: %s: %.*s", (int)seed, error.text, (int)t.bytes, t.text);
            if (!fits(schema, schema, value))
                fail_msg("seed %d: does not fit: %.*s", (int)seed, (int)t.bytes, t.text);
            json_decref(value);
        }
        json_decref(schema);
    }
    if (!device_is_slow(*state))
        assert_true(ended > all * 2 / 3);
    ww_model_close(model);
}

/* ---- ends and refusals --------------------------------------------------------------------------------------------------- */

static void sampling_and_accepting_gives_the_same_as_generating(void **state)
{
    begin(state, "model.gguf");
    ww_session *one = fed(), *other = fed();
    ww_sampling sampling = ww_sampling_default();
    ww_generation generation = ww_generation_default();
    int32_t ids[2][64], token = -1;
    const char *gbnf = "root ::= [a-f]{3,9} | \"{\\\"\" [^\\\"]{0,5} \"\\\"}\"";
    sampling.temperature = 1.5;
    sampling.seed = 5;
    sampling.grammar = grammar_of(WW_GRAMMAR_GBNF, gbnf);
    generation.sampling = &sampling;
    CHECK_OK(ww_session_generate(one, &generation, NULL));
    const size_t length = ww_session_length(one);
    assert_true(length > 5 && length < 64);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_accept(sampling.grammar, 0));
    ww_grammar_destroy(sampling.grammar);
    sampling.grammar = grammar_of(WW_GRAMMAR_GBNF, gbnf);
    for (;;) {
        CHECK_OK(ww_session_sample(other, &sampling, &token));
        CHECK_OK(ww_grammar_accept(sampling.grammar, token));
        if (ww_model_token_ends(model, token))
            break;
        CHECK_OK(ww_session_feed(other, &token, 1));
    }
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_sample(other, &sampling, &token));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_grammar_accept(sampling.grammar, token));
    assert_int_equal(ww_session_length(other), length);
    CHECK_OK(ww_session_tokens(one, 0, ids[0], length));
    CHECK_OK(ww_session_tokens(other, 0, ids[1], length));
    assert_memory_equal(ids[0], ids[1], length * sizeof **ids);
    ww_grammar_destroy(sampling.grammar);
    ww_session_destroy(one);
    ww_session_destroy(other);
    ww_model_close(model);
}

static void a_vocabulary_that_lacks_the_characters_is_a_status(void **state)
{
    begin(state, "letters.gguf");
    ww_session *session = fed();
    ww_sampling sampling = ww_sampling_default();
    ww_generation generation = ww_generation_default();
    ww_generation_end end;
    int32_t token = 0;
    generation.sampling = &sampling;
    sampling.grammar = grammar_of(WW_GRAMMAR_GBNF, "root ::= \"ab\" [0-9]");
    CHECK_FAILS(WW_NOT_FOUND, ww_session_generate(session, &generation, &end));
    assert_int_equal(ww_session_length(session), sizeof prompt / sizeof *prompt + 2);
    CHECK_FAILS(WW_NOT_FOUND, ww_session_sample(session, &sampling, &token));
    ww_grammar_destroy(sampling.grammar);
    /* A model without a token that ends a text ends it all the same. */
    sampling.grammar = grammar_of(WW_GRAMMAR_GBNF, "root ::= \"ab\"");
    CHECK_OK(ww_session_generate(session, &generation, &end));
    assert_int_equal(end, WW_GENERATION_EOS);
    CHECK_FAILS(WW_NOT_FOUND, ww_session_sample(session, &sampling, &token));
    ww_grammar_destroy(sampling.grammar);
    ww_session_destroy(session);
    ww_model_close(model);
}

static void nonsensical_arguments_are_refused(void **state)
{
    ww_grammar *g = NULL, *made;
    begin(state, "model.gguf");
    ww_session *session = fed();
    ww_generation generation = ww_generation_default();
    ww_sampling sampling = ww_sampling_default();
    ww_model *other;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(NULL, WW_GRAMMAR_GBNF, "", 0, &g));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(model, WW_GRAMMAR_GBNF, NULL, 0, &g));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(model, WW_GRAMMAR_GBNF, "", 0, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(model, (ww_grammar_kind)2, "", 0, &g));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(model, WW_GRAMMAR_GBNF, "", 0, &g));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_create(model, WW_GRAMMAR_JSON_SCHEMA, "", 0, &g));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_grammar_accept(NULL, 0));
    assert_null(g);
    made = grammar_of(WW_GRAMMAR_GBNF, "root ::= \"a\"*");
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_grammar_accept(made, -1));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_grammar_accept(made, 100000));
    sampling.grammar = made;
    generation.sampling = &sampling;
    generation.ignore_eos = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_generate(session, &generation, NULL));
    CHECK_OK(ww_model_open(scratch_path("plain.gguf"), *state, NULL, &other));
    CHECK_FAILS(WW_UNSUPPORTED, ww_grammar_create(other, WW_GRAMMAR_GBNF, "root ::= \"a\"", 12, &g));
    ww_session *foreign;
    CHECK_OK(ww_session_create(other, &foreign));
    CHECK_OK(ww_session_feed(foreign, prompt, 1));
    generation.ignore_eos = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_generate(foreign, &generation, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_sample(foreign, &sampling, (int32_t[]){0}));
    ww_session_destroy(foreign);
    ww_model_close(other);
    ww_model_close(model); /* the grammar holds it */
    ww_session_destroy(session);
    ww_grammar_destroy(made);
    ww_grammar_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mask_equals_the_result_of_trying_every_token),
        cmocka_unit_test(a_schema_makes_every_seed_generate_json_that_matches_it),
        cmocka_unit_test(sampling_and_accepting_gives_the_same_as_generating),
        cmocka_unit_test(a_vocabulary_that_lacks_the_characters_is_a_status),
        cmocka_unit_test(nonsensical_arguments_are_refused),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    write_model("model.gguf", true, true);
    write_model("letters.gguf", false, false);
    tiny_model plain;
    const tiny_shape shape = tiny_default("llama");
    tiny_make(&plain, &shape);
    tiny_write(&plain, scratch_path("plain.gguf"));
    tiny_free(&plain);
    const int failed = RUN_ON_EVERY_DEVICE("grammars with models", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
