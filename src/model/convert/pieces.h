/* SentencePiece's own file, tokenizer.model: the pieces of a vocabulary with their scores, which tokenizer.json does not have.
 */
#ifndef WW_MODEL_CONVERT_PIECES_H
#define WW_MODEL_CONVERT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct piece_text {
    const char *text; /* points into the file, without a NUL */
    size_t bytes;
    float score;
    int32_t kind; /* GGUF uses the same numbers */
} piece_text;

typedef struct piece_list {
    char *file;
    size_t file_bytes;
    piece_text *pieces;
    int64_t count;
    bool bpe;          /* false: another algorithm than merging pairs */
    bool space_prefix; /* a space is put before a text */
    int64_t bos, eos, unknown, padding;
} piece_list;

/* Reads tokenizer.model of a folder. WW_NOT_FOUND if it does not exist, WW_CORRUPT_FILE if it is invalid. Blocks. */
ww_status pieces_read(const char *folder, piece_list *out);
void pieces_free(piece_list *list);

#endif
