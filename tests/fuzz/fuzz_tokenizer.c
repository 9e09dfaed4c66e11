/* Any bytes as a text whose words make a sparse vector, and as a vocabulary and a text: the vocabulary is refused with a
 * message, or every text has tokens of it, the same each time, which have bytes and can be put together again. The first byte
 * chooses the family, the second the pre-tokenizer and the flags. Then lines, each a piece with its kind before it; after an
 * empty line merges, which for unigram are the map of characters; after another one the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/sparse.h>
#include <warpwave/text.h>

#include "base/memory.h"
#include "model/tokenizer/family.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PIECES_MAX = 4096 };

typedef struct fuzz_input {
    ww_gguf_span pieces[PIECES_MAX], merges[PIECES_MAX];
    int64_t kinds[PIECES_MAX];
    double scores[PIECES_MAX];
    tokenizer_source source;
    ww_gguf_span text;
} fuzz_input;

/* Reads the next line. Returns false if it is empty or there is none. */
static bool fuzz_line(const char **next, const char *end, ww_gguf_span *line)
{
    const char *stop = *next < end ? memchr(*next, '\n', (size_t)(end - *next)) : NULL;
    if (!stop)
        stop = end;
    *line = (ww_gguf_span){.text = *next, .bytes = (size_t)(stop - *next)};
    *next = stop < end ? stop + 1 : end;
    return line->bytes > 0;
}

static void fuzz_parse(fuzz_input *in, const char *bytes, size_t size)
{
    static const char *const models[] = {"bert", "gpt2", "llama", "t5"};
    static const char *const pres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "none", NULL, "default"};
    const char *next = bytes + 2, *end = bytes + size;
    ww_gguf_span line;
    int64_t count = 0, merges = 0;
    in->source = tokenizer_source_default();
    in->source.name = "fuzz";
    in->source.model = models[bytes[0] & 3];
    in->source.pre = pres[bytes[1] & 7];
    in->source.add_space_prefix = bytes[1] & 8;
    in->source.lowercase = bytes[1] & 16;
    in->source.add_eos = (bytes[1] >> 5 & 1);
    while (count < PIECES_MAX && fuzz_line(&next, end, &line)) {
        in->kinds[count] = line.text[0] - '0';
        in->scores[count] = -(double)((count * 37) % 11);
        in->pieces[count++] = (ww_gguf_span){.text = line.text + 1, .bytes = line.bytes - 1};
    }
    while (merges < PIECES_MAX && fuzz_line(&next, end, &line))
        in->merges[merges++] = line;
    in->source.vocabulary = (vocabulary_source){.pieces = in->pieces, .kinds = in->kinds, .scores = in->scores, .count = count};
    in->source.merges = in->merges;
    in->source.merge_count = merges;
    if (merges > 0) {
        in->source.charsmap = (const unsigned char *)in->merges[0].text;
        in->source.charsmap_bytes = (size_t)(in->merges[merges - 1].text - in->merges[0].text) + in->merges[merges - 1].bytes;
    }
    in->source.removes_spaces = bytes[1] & 64;
    in->source.unknown = 0;
    in->source.bos = (bytes[0] >> 2) - 1;
    in->source.eos = 0;
    in->text = (ww_gguf_span){.text = next, .bytes = (size_t)(end - next)};
}

static void fuzz_use(const tokenizer *t, ww_gguf_span text, unsigned flags)
{
    token_list first = {0}, second = {0};
    char *back = NULL;
    size_t bytes = 0;
    if (tokenizer_encode(t, text.text, text.bytes, flags, &first) != WW_OK ||
        tokenizer_encode(t, text.text, text.bytes, flags, &second) != WW_OK)
        abort();
    if (first.count != second.count ||
        (first.count > 0 && memcmp(first.ids, second.ids, (size_t)first.count * sizeof *first.ids) != 0))
        abort();
    for (int64_t i = 0; i < first.count; i++) {
        const char *piece = NULL;
        if (tokenizer_piece(t, first.ids[i], &piece, &bytes) != WW_OK || (bytes > 0 && !piece))
            abort();
    }
    if (tokenizer_decode(t, first.ids, first.count, &back, &bytes) != WW_OK || back[bytes] != '\0')
        abort();
    memory_free(back);
    token_list_free(&first);
    token_list_free(&second);
}

/* The words of any text, which ascend by their indices. */
static void fuzz_words(const uint8_t *bytes, size_t size)
{
    static uint32_t indices[WW_SPARSE_MAX];
    static float values[WW_SPARSE_MAX];
    char *text = memory_copy_text((const char *)bytes, size);
    ww_sparse_room room = {.capacity = WW_SPARSE_MAX, .indices = indices, .values = values};
    if (!text)
        abort();
    if (ww_sparse_from_text(text, NULL, &room) == WW_OK)
        for (int64_t i = 0; i < room.count; i++)
            if (!(values[i] > 0.0f) || (i > 0 && indices[i - 1] >= indices[i]))
                abort();
    memory_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static fuzz_input in;
    tokenizer *t = NULL;
    fuzz_words(bytes, size);
    if (size < 2)
        return 0;
    fuzz_parse(&in, (const char *)bytes, size);
    if (tokenizer_make(&in.source, &t) != WW_OK) {
        if (t || strncmp(ww_error_message(), "fuzz: ", 6) != 0)
            abort();
    } else {
        for (unsigned flags = 0; flags < 4; flags++)
            fuzz_use(t, in.text, flags);
        tokenizer_destroy(t);
    }
    if (memory_blocks_held() != 0)
        abort();
    return 0;
}
