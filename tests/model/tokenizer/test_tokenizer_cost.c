/* The cost of tokenizers that a file can cause: vocabularies and tokens that are chosen to be slow take no longer than
 * others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/tokenizer/family.h"
#include "support/check.h"
#include "support/data/random.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Chosen inputs may take ten times as long as ordinary ones and a tenth of a second, since caches and machines differ; one step
 * per pair of tokens would be thousands of times as long. */
static void check_cost(const char *what, double chosen, double ordinary)
{
    if (chosen > 10 * ordinary + 0.1)
        fail_msg("%s: %.3f s, and %.3f s where nothing was chosen", what, chosen, ordinary);
}

/* ---- pieces that would meet in one slot ---------------------------------------------------------------------------------- */

enum { STAGES = 15, COLLIDING = 1 << STAGES, BLOCK = 8, PIECE_BYTES = STAGES * BLOCK };

/* FNV-1a, which anyone can compute. */
static uint32_t fnv(uint32_t hash, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT32_C(16777619);
    return hash;
}

/* Blocks of letters at random: the hash spreads texts that differ in little too evenly. */
static void block_text(uint32_t number, char text[BLOCK])
{
    test_random rng = {number};
    const uint64_t bits = random_bits(&rng);
    for (int i = 0; i < BLOCK; i++)
        text[i] = (char)('A' + (bits >> (5 * i)) % 32);
}

/* Two blocks that take the hash from one state to the same next one. Chains of such pairs are 2^n texts with one hash. */
static uint32_t find_pair_of_blocks(uint32_t state, char first[BLOCK], char second[BLOCK])
{
    enum { SLOTS = 1 << 22 };
    static uint32_t seen[SLOTS]; /* block + 1, by a part of the hash */
    memset(seen, 0, sizeof seen);
    for (uint32_t block = 0; block < 1 << 20; block++) {
        block_text(block, first);
        const uint32_t hash = fnv(state, first, BLOCK);
        uint32_t *slot = &seen[hash % SLOTS];
        if (*slot > 0) {
            block_text(*slot - 1, second);
            if (fnv(state, second, BLOCK) == hash)
                return hash;
        }
        *slot = block + 1;
    }
    fail_msg("no two blocks were found");
    return 0;
}

static char pieces_text[COLLIDING][PIECE_BYTES];
static ww_gguf_span pieces[COLLIDING];

static void make_colliding(void)
{
    static char blocks[STAGES][2][BLOCK];
    uint32_t state = UINT32_C(2166136261);
    for (int i = 0; i < STAGES; i++)
        state = find_pair_of_blocks(state, blocks[i][0], blocks[i][1]);
    for (int n = 0; n < COLLIDING; n++) {
        for (int i = 0; i < STAGES; i++)
            memcpy(pieces_text[n] + i * BLOCK, blocks[i][n >> i & 1], BLOCK);
        assert_int_equal(fnv(UINT32_C(2166136261), pieces_text[n], PIECE_BYTES), state);
        pieces[n] = (ww_gguf_span){.text = pieces_text[n], .bytes = PIECE_BYTES};
    }
}

static double time_to_make(void)
{
    vocabulary v;
    const double before = seconds();
    CHECK_OK(vocabulary_make(&v, &(vocabulary_source){.pieces = pieces, .count = COLLIDING}, "a test"));
    const double taken = seconds() - before;
    for (int id = 0; id < COLLIDING; id += 97)
        assert_int_equal(vocabulary_find(&v, pieces[id].text, pieces[id].bytes), id);
    vocabulary_free(&v);
    return taken;
}

static void tokens_that_are_chosen_to_collide_open_as_fast_as_others(void **state)
{
    (void)state;
    make_colliding();
    const double chosen = time_to_make();
    for (int n = 0; n < COLLIDING; n++)
        snprintf(pieces_text[n], PIECE_BYTES, "%*d", PIECE_BYTES - 1, n);
    check_cost("colliding tokens", chosen, time_to_make());
}

/* ---- merges that would meet in one slot ---------------------------------------------------------------------------------- */

enum { ATOMS = 94 * 10, MERGES = 1 << 15, MERGE_SLOTS = 2 * MERGES, BPE_TOKENS = ATOMS + MERGES };

static char atoms_text[ATOMS][4], joined_text[MERGES][8], merges_text[MERGES][16];
static ww_gguf_span tokens[BPE_TOKENS], merges[MERGES];

/* The slot of a merge in a table of 2^16 slots with a fixed multiplier. */
static uint32_t fixed_slot(int left, int right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % MERGE_SLOTS;
}

static void atom_text(int atom, char text[4])
{
    snprintf(text, 4, "%c%c", '!' + atom % 94, '0' + atom / 94); /* pairs, so that all of the alphabet is among them */
}

/* As many merges of atoms as there is room for, whose slots are below `slots`. */
static double time_to_make_merges(uint32_t slots)
{
    int count = 0;
    for (int i = 0; i < ATOMS; i++) {
        atom_text(i, atoms_text[i]);
        tokens[i] = (ww_gguf_span){.text = atoms_text[i], .bytes = strlen(atoms_text[i])};
    }
    tokens[0] = (ww_gguf_span){.text = "!", .bytes = 1}; /* a byte */
    for (int left = 1; left < ATOMS && count < MERGES; left++)
        for (int right = 1; right < ATOMS && count < MERGES; right++) {
            if (fixed_slot(left, right) >= slots)
                continue;
            char *text = joined_text[count];
            snprintf(text, 8, "%s%s", atoms_text[left], atoms_text[right]);
            snprintf(merges_text[count], 16, "%s %s", atoms_text[left], atoms_text[right]);
            tokens[ATOMS + count] = (ww_gguf_span){.text = text, .bytes = strlen(text)};
            merges[count] = (ww_gguf_span){.text = merges_text[count], .bytes = strlen(merges_text[count])};
            count++;
        }
    assert_true(count > MERGES / 2);
    tokenizer_source source = tokenizer_source_default();
    source.name = "a test";
    source.model = "gpt2";
    source.pre = "gpt-2";
    source.vocabulary = (vocabulary_source){.pieces = tokens, .count = ATOMS + count};
    source.merges = merges;
    source.merge_count = count;
    tokenizer *t = NULL;
    const double before = seconds();
    CHECK_OK(tokenizer_make(&source, &t));
    const double taken = seconds() - before;
    tokenizer_destroy(t);
    return taken;
}

static void merges_that_are_chosen_to_collide_open_as_fast_as_others(void **state)
{
    (void)state;
    const double chosen = time_to_make_merges(MERGE_SLOTS / 32);
    check_cost("colliding merges", chosen, time_to_make_merges(MERGE_SLOTS));
}

/* ---- special tokens ------------------------------------------------------------------------------------------------------ */

enum { LONG = 60000 };

static void a_long_user_defined_token_costs_a_text_no_more_than_its_length(void **state)
{
    (void)state;
    static char text[LONG], token[LONG + 1];
    const ww_gguf_span given[2] = {{.text = token, .bytes = LONG + 1}, {.text = "a", .bytes = 1}};
    const unsigned char kinds[2] = {TOKEN_USER_DEFINED, TOKEN_USER_DEFINED};
    special_tree tree;
    special_list found = {0};
    double taken[2];
    memset(text, 'a', LONG);
    memset(token, 'a', LONG);
    for (int turn = 0; turn < 2; turn++) {
        token[turn == 0 ? LONG : 0] = 'b'; /* almost the text, from its front and from its end */
        CHECK_OK(special_make(&tree, given, kinds, 2));
        const double before = seconds();
        CHECK_OK(special_find_all(&tree, &(searched_text){text, LONG, NULL, 0}, &found));
        taken[turn] = seconds() - before;
        assert_int_equal(found.count, LONG); /* "a", everywhere */
        assert_int_equal(found.places[0].at, LONG - 1);
        assert_int_equal(found.places[0].id, 1);
        special_free(&tree);
        token[turn == 0 ? LONG : 0] = 'a';
    }
    CHECK_OK(special_make(&tree, given + 1, kinds, 1));
    const double before = seconds();
    CHECK_OK(special_find_all(&tree, &(searched_text){text, LONG, NULL, 0}, &found));
    check_cost("a token that the text almost is", taken[0] + taken[1], seconds() - before);
    special_free(&tree);
    special_list_free(&found);
}

/* The longest at each byte, by comparing with all. */
static int32_t longest_at(const ww_gguf_span *given, const unsigned char *kinds, const char *text, bool plain)
{
    int32_t best = -1;
    for (int32_t id = 0; given[id].text; id++)
        if (given[id].bytes > 0 && (kinds[id] == TOKEN_USER_DEFINED || (!plain && kinds[id] != TOKEN_NORMAL)) &&
            strncmp(text, given[id].text, given[id].bytes) == 0 && (best < 0 || given[id].bytes > given[best].bytes))
            best = id;
    return best;
}

static void special_tokens_are_found_like_by_a_search_for_each_token(void **state)
{
    (void)state;
    enum { TOKENS_MAX = 24, TEXT = 60, ROUNDS = 4000 };
    static const unsigned char some_kinds[] = {TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED};
    test_random rng = {30};
    special_list found = {0};
    int hits = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char texts[TOKENS_MAX][8], text[TEXT + 1] = "";
        ww_gguf_span given[TOKENS_MAX + 1] = {0};
        unsigned char kinds[TOKENS_MAX];
        const int count = (int)random_below(&rng, TOKENS_MAX) + 1;
        for (int i = 0; i < count; i++) {
            const size_t bytes = (size_t)random_below(&rng, 7);
            for (size_t k = 0; k < bytes; k++)
                texts[i][k] = (char)('a' + random_below(&rng, 2 + round % 2));
            given[i] = (ww_gguf_span){.text = texts[i], .bytes = bytes};
            kinds[i] = some_kinds[random_below(&rng, 4)];
        }
        for (int i = 0; i < TEXT; i++)
            text[i] = (char)('a' + random_below(&rng, 3));
        special_tree tree;
        CHECK_OK(special_make(&tree, given, kinds, count));
        for (int plain = 0; plain < 2; plain++) {
            CHECK_OK(special_find_all(&tree, &(searched_text){text, TEXT, &(text_span){0, TEXT}, plain == 1}, &found));
            int64_t next = found.count;
            for (int at = 0; at < TEXT; at++) {
                const int32_t expected = longest_at(given, kinds, text + at, plain == 1);
                const bool here = next > 0 && found.places[next - 1].at == (uint32_t)at;
                const int32_t id = here ? found.places[--next].id : -1;
                if (id != expected)
                    fail_msg("round %d, plain %d: at %d of '%s' token %d, not %d", round, plain, at, text, id, expected);
                hits += id >= 0;
            }
            assert_int_equal(next, 0);
        }
        special_free(&tree);
    }
    assert_true(hits > ROUNDS);
    special_list_free(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_that_are_chosen_to_collide_open_as_fast_as_others),
        cmocka_unit_test(merges_that_are_chosen_to_collide_open_as_fast_as_others),
        cmocka_unit_test(a_long_user_defined_token_costs_a_text_no_more_than_its_length),
        cmocka_unit_test(special_tokens_are_found_like_by_a_search_for_each_token),
    };
    return cmocka_run_group_tests_name("what tokenizers cost", tests, NULL, NULL);
}
