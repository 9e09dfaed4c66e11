/* Tensors of a file by name: found, compared with what they must be, and loaded onto the device. Used by weights.c. */
#ifndef WW_MODEL_WEIGHTS_LOADER_H
#define WW_MODEL_WEIGHTS_LOADER_H

#include "model/weights.h"

enum { LOADER_NAME_BYTES = 96 };

typedef struct loader {
    const weights_source *source;
    weights *w;
    bool *used; /* of each tensor in the file */
    int64_t tensors, bytes_before, bytes_total;
} loader;

/* What a tensor must be; rows are 0 for a vector. */
typedef struct wanted {
    const char *name;
    int64_t rows, cols;
    int64_t experts; /* 0: it is one matrix */
    bool optional;
} wanted;

/* A norm of `size` elements; an encoder's have biases. */
typedef struct norm_name {
    int32_t layer;
    const char *what;
    int64_t size;
    bool biased;
} norm_name;

typedef struct linear_name {
    int32_t layer;
    const char *what;
    int64_t rows, cols;
    bool biased; /* must be; otherwise may be */
} linear_name;

typedef struct joined_part {
    const char *what;
    int64_t rows;
} joined_part;

enum { JOINED_MAX = 3 };

typedef struct joined_name {
    int32_t layer;
    int32_t count;
    joined_part parts[JOINED_MAX];
    int64_t cols;
} joined_name;

/* The name of a tensor of a layer, or of one that a model has once (layer -1), in `to`, which is returned. */
const char *loader_name(char *to, int32_t layer, const char *what, const char *ending);

/* A tensor as a matrix; stays NULL where it is optional and not there. */
ww_status loader_matrix(loader *l, const wanted *want, ww_quant **out);

/* A tensor as f32 of shape [n]. */
ww_status loader_vector(loader *l, const wanted *want, ww_tensor *out);

ww_status loader_norm(loader *l, norm_name n, norm *out);
ww_status loader_linear(loader *l, linear_name n, linear *out);

/* Matrices that meet the same activations become one, where their types are alike: a third of the launches, and of the waits
 * for all threads, for the same bits. Are all parts there, of one type, without biases? */
bool loader_can_join(const loader *l, const joined_name *n);
ww_status loader_joined(loader *l, const joined_name *n, linear *out);

#endif
