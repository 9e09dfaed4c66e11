/* Any bytes as a document: chunks cover every byte, each starts at or before the end of the previous one, and fits unless it is
 * a single character. The first two bytes are the tokens per chunk and the overlap. The tokenizer is simple: a token per four
 * bytes of a word, plus one for a text with an odd number of bytes, so that the tokens of joined pieces do not add up.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

ww_status ww_model_tokenize(const ww_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *ids,
                            size_t capacity, size_t *count)
{
    (void)model, (void)flags, (void)ids, (void)capacity;
    size_t run = 0;
    *count = bytes % 2;
    for (size_t i = 0; i < bytes; i++) {
        run = (unsigned char)text[i] <= ' ' ? 0 : run + 1;
        *count += run % 4 == 1;
    }
    return WW_OK;
}

static void check_chunks(const char *text, size_t size, const ww_chunking *how, const ww_chunk *chunks, size_t count)
{
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        size_t tokens = 0;
        const int64_t length = chunks[i].end - chunks[i].start;
        if (chunks[i].start > end || chunks[i].end <= end || (i > 0 && chunks[i].start <= chunks[i - 1].start))
            abort();
        (void)ww_model_tokenize(NULL, text + chunks[i].start, (size_t)length, 0, NULL, 0, &tokens);
        if ((int64_t)tokens > how->tokens && length > 4)
            abort();
        end = chunks[i].end;
    }
    if (end != (int64_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char model;
    ww_chunking how = ww_chunking_default();
    size_t count = 0, again = 0;
    if (size < 2)
        return 0;
    how.tokens = 1 + bytes[0] % 64;
    how.overlap = bytes[1] % how.tokens;
    char *text = malloc(size);
    ww_chunk *chunks = calloc(size, sizeof *chunks);
    if (!text || !chunks)
        abort();
    memcpy(text, bytes + 2, size - 2);
    const ww_model *any = (const ww_model *)&model; /* only the tokenizer looks at it */
    if (ww_text_chunks(any, text, size - 2, &how, NULL, 0, &count) != WW_OK || count > size ||
        ww_text_chunks(any, text, size - 2, &how, chunks, count, &again) != WW_OK || again != count)
        abort();
    check_chunks(text, size - 2, &how, chunks, count);
    free(chunks);
    free(text);
    return 0;
}
