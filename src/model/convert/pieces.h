/* SentencePiece's own file, tokenizer.model: the pieces of a vocabulary with their scores, which tokenizer.json does not have.
 */
#ifndef WW_MODEL_CONVERT_PIECES_H
#define WW_MODEL_CONVERT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct piece_text {
    const char *text; /* in the bytes of the file, not ended */
    size_t bytes;
    float score;
    int32_t kind; /* as GGUF numbers them, which took them from here */
} piece_text;

typedef struct piece_list {
    char *file;
    size_t file_bytes;
    piece_text *pieces;
    int64_t count;
    bool bpe;          /* else another algorithm than merging pairs */
    bool space_prefix; /* a space is put before a text */
    int64_t bos, eos, unknown, padding;
} piece_list;

/* Reads tokenizer.model of a folder. WW_NOT_FOUND if there is none, WW_CORRUPT_FILE if it is none. Blocks. */
ww_status pieces_read(const char *folder, piece_list *out);
void pieces_free(piece_list *list);

#endif
