/* Choosing a token by its logits. */
#ifndef WW_MODEL_SAMPLING_H
#define WW_MODEL_SAMPLING_H

#include <warpwave/model.h>

/* The numbers of a ww_sampling, checked; NULL are the defaults. `call` is for messages. */
ww_status sampling_read(const ww_sampling *callers, const char *call, ww_sampling *out);

/* Logits behind a text of `length` tokens. */
typedef struct sampled_text {
    const float *logits;
    int64_t vocabulary;
    const int32_t *tokens;
    size_t length;
    const uint64_t *allowed; /* a bit for each token; NULL: all of them. One at least is set. */
} sampled_text;

/* The token that ww_sampling's comment says. */
ww_status sampling_choose(const ww_sampling *sampling, const sampled_text *text, int32_t *token);

#endif
