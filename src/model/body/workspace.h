/* What a pass over the layers needs besides weights and cache: the batch on the device, and the tensors between the operations.
 * It is as large as the largest pass so far, so a pass of one token allocates nothing.
 */
#ifndef WW_MODEL_WORKSPACE_H
#define WW_MODEL_WORKSPACE_H

#include <stdbool.h>

#include <warpwave/tensor.h>

struct ww_model;

enum {
    PASS_TOKENS = 512, /* maximum of one pass; more tokens take several passes */
    LOGIT_ROWS = 64    /* maximum of logit rows computed together */
};

/* Numbers of the batch: a tensor on the device and a copy in host memory. */
typedef struct upload {
    ww_tensor tensor; /* of rank 1 */
    void *host;
    int64_t capacity, used; /* elements; the first `used` are equal on both sides, 0: unknown */
} upload;

typedef struct rope_table {
    ww_tensor cosines, sines; /* positions x pairs */
    int64_t positions;
} rope_table;

/* f32, one row per token of the pass; tensors that an architecture does not need are empty. */
typedef struct pass_tensors {
    ww_tensor x;        /* the residual stream */
    ww_tensor normed;   /* norm(x) */
    ww_tensor q, k, v;  /* of all heads; if one product makes all three, they are in q, row by row */
    ww_tensor q_normed; /* if the architecture norms heads; keys are then in k_normed */
    ww_tensor k_normed;
    ww_tensor attended;
    ww_tensor gate, up; /* of the feed-forward network; if one product makes both, they are in gate */
    ww_tensor y;        /* what is added to x next */
    /* For a mixture of experts: all logits; the largest logits, their shares and their experts; a row of the model's width for
     * each expert used; and the biases of these rows. */
    ww_tensor routed, chosen, shares, chosen_ids, spread, beside;
} pass_tensors;

/* A step or a pass for batches of one shape that was recorded, or was run once and can be recorded. */
typedef struct recorded_step {
    int64_t tokens, pages_stride;
    bool runs; /* sequences have several tokens */
    int32_t keys_max;
    uint64_t generation;                /* of the workspace whose memory it uses */
    struct tensor_recording *recording; /* NULL: not yet */
    bool refused;                       /* it cannot be recorded */
    uint64_t used;                      /* `clock` at the last use */
} recorded_step;

enum { RECORDED_STEPS = 8, RECORDED_PASSES = 4 };

typedef struct workspace {
    ww_device *device;
    uint64_t generation, clock;                                   /* generation increases whenever its memory moves */
    recorded_step steps[RECORDED_STEPS], passes[RECORDED_PASSES]; /* passes of prompts have no logits */
    int64_t tokens;                                               /* room for this many */
    pass_tensors pass;
    ww_tensor logits; /* LOGIT_ROWS x vocabulary */
    upload ids, positions, sequences, lengths, pages, rows, types, scales;
    rope_table rope[2]; /* of layers without and with a window */
} workspace;

/* Room for a pass of `tokens`. */
ww_status workspace_reserve(struct ww_model *model, int64_t tokens);

/* Tables of rope for positions below `positions`. */
ww_status workspace_rope(struct ww_model *model, int64_t positions);

/* Copies `count` elements to the device, unless it already has them. */
ww_status upload_write(workspace *w, upload *to, ww_dtype dtype, const void *from, int64_t count);

/* Discards all recordings. */
void workspace_forget_steps(workspace *w);

void workspace_free(workspace *w);

/* The first rows of a tensor of the workspace, as [rows, cols]; nothing is retained. */
static inline ww_tensor rows_of(const ww_tensor *x, int64_t rows, int64_t cols)
{
    const int64_t shape[2] = {rows, cols};
    return (ww_tensor){.storage = x->storage, .layout = ww_layout_contiguous(2, shape)};
}

/* `count` columns starting at `first`, of rows with `cols` elements. */
static inline ww_tensor columns_of(const ww_tensor *x, int64_t rows, int64_t cols, int64_t first, int64_t count)
{
    ww_tensor part = rows_of(x, rows, count);
    part.layout.strides[0] = cols;
    part.layout.offset = first;
    return part;
}

/* The first elements of an upload. */
static inline ww_tensor list_of(const upload *u, int64_t count)
{
    return (ww_tensor){.storage = u->tensor.storage, .layout = ww_layout_contiguous(1, &count)};
}

#endif
