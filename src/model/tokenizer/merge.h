/* Merging adjacent symbols by a rule until none applies: the heart of both kinds of BPE.
 *
 * The pair that comes first by the rule is merged first, the leftmost on ties. Pairs wait in a heap; a pair that a neighbouring
 * merge has invalidated is dropped when it comes up: n log n steps for n symbols, whatever the text.
 */
#ifndef WW_MODEL_TOKENIZER_MERGE_H
#define WW_MODEL_TOKENIZER_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct merge_symbol {
    int32_t previous, next; /* -1 at the ends */
    int32_t id;             /* of the token; -1: it is not a token */
    uint32_t start, bytes;  /* in the text; 0 bytes: merged into the previous symbol */
} merge_symbol;

typedef struct merge_found {
    uint32_t order; /* smaller is merged first */
    int32_t id;     /* of the result */
} merge_found;

/* Whether and how two neighbours merge. */
typedef struct merge_rule {
    bool (*find)(const void *context, const merge_symbol *left, const merge_symbol *right, merge_found *found);
    void (*waits)(const void *context, const merge_symbol *left,
                  int32_t id); /* called for each pair that is found; may be NULL */
    const void *context;
} merge_rule;

typedef struct merge_entry {
    uint64_t key; /* order, then the left symbol's number */
    int32_t id;
} merge_entry;

/* Starts zeroed; reused for the next piece of text. */
typedef struct merge_work {
    merge_symbol *symbols;
    int32_t count, capacity;
    merge_entry *heap;
    int64_t heap_count, heap_capacity;
} merge_work;

/* Appends a symbol. */
ww_status merge_add(merge_work *work, int32_t id, uint32_t start, uint32_t bytes);

/* Merges the symbols. The result is the chain of symbols from number 0 along `next`. */
ww_status merge_run(merge_work *work, const merge_rule *rule);

/* Empties it for the next piece; frees it. */
void merge_clear(merge_work *work);
void merge_free(merge_work *work);

#endif
