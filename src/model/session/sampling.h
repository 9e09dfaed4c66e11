/* Choosing a token by its logits. */
#ifndef WW_MODEL_SAMPLING_H
#define WW_MODEL_SAMPLING_H

#include <warpwave/model.h>

/* Copies and checks a ww_sampling; NULL means the defaults. `call` is for messages. */
ww_status sampling_read(const ww_sampling *callers, const char *call, ww_sampling *out);

/* Logits after a text of `length` tokens. */
typedef struct sampled_text {
    const float *logits;
    int64_t vocabulary;
    const int32_t *tokens;
    size_t length;
    const uint64_t *allowed; /* a bit for each token, at least one set; NULL: all tokens */
} sampled_text;

/* Chooses a token as the comment of ww_sampling describes. */
ww_status sampling_choose(const ww_sampling *sampling, const sampled_text *text, int32_t *token);

#endif
