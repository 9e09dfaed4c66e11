/* Token ids that a text must have, for tests of tokenizers. Inlined, so that only tests that link them need them. */
#ifndef TESTS_TOKENS_H
#define TESTS_TOKENS_H

#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "support/check.h"
#include "support/data/vocabulary.h"
#include "support/memory.h"

static inline tokenizer *open_vocabulary(const test_vocabulary *v)
{
    ww_gguf *g = NULL;
    tokenizer *t = NULL;
    CHECK_OK(ww_gguf_open(vocabulary_write(v), &g));
    CHECK_OK(tokenizer_create(g, &t));
    ww_gguf_close(g); /* nothing of it is needed any more */
    return t;
}

static inline void check_refused(const test_vocabulary *v, ww_status expected, const char *word)
{
    ww_gguf *g = NULL;
    tokenizer *t = NULL;
    CHECK_OK(ww_gguf_open(vocabulary_write(v), &g));
    const int64_t held = blocks_held();
    CHECK_FAILS(expected, tokenizer_create(g, &t));
    assert_null(t);
    if (!strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
    assert_int_equal(blocks_held(), held);
    ww_gguf_close(g);
}

/* Ids up to -1. */
static inline void check_ids(const tokenizer *t, const char *text, size_t bytes, unsigned flags, const int32_t *ids)
{
    token_list list = {0};
    int64_t count = 0;
    CHECK_OK(tokenizer_encode(t, text, bytes, flags, &list));
    while (ids[count] >= 0)
        count++;
    for (int64_t i = 0; i < count && i < list.count; i++)
        if (list.ids[i] != ids[i])
            fail_msg("'%s': token %d is %d, not %d", text, (int)i, list.ids[i], ids[i]);
    if (list.count != count)
        fail_msg("'%s': %d tokens, not %d", text, (int)list.count, (int)count);
    token_list_free(&list);
}
#define IDS(...)                   ((const int32_t[]){__VA_ARGS__, -1})
#define NONE                       ((const int32_t[]){-1})
#define CHECK_IDS(t, text, f, ids) check_ids(t, text, strlen(text), f, ids)
#define CHECK_TEXT(t, text, ids)   CHECK_IDS(t, text, TOKENIZE_NO_ADD, ids)

#endif
