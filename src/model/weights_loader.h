/* Finds tensors of a file by name, checks them, and loads them onto the device. Used by weights.c. */
#ifndef WW_MODEL_WEIGHTS_LOADER_H
#define WW_MODEL_WEIGHTS_LOADER_H

#include "model/weights.h"

enum { LOADER_NAME_BYTES = 96 };

typedef struct loader {
    const weights_source *source;
    weights *w;
    bool *used; /* for each tensor in the file */
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
    bool biased; /* the bias must exist; otherwise it may */
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

/* Writes the name of a tensor of a layer, or of the whole model (layer -1), to `to`, and returns it. */
const char *loader_name(char *to, int32_t layer, const char *what, const char *ending);

/* Loads a tensor as a matrix; stays NULL if it is optional and missing. */
ww_status loader_matrix(loader *l, const wanted *want, ww_quant **out);

/* Loads a tensor as f32 of shape [n]. */
ww_status loader_vector(loader *l, const wanted *want, ww_tensor *out);

ww_status loader_norm(loader *l, norm_name n, norm *out);
ww_status loader_linear(loader *l, linear_name n, linear *out);

/* Can the parts be joined: do all exist, with one type and without biases? Joining matrices that are multiplied with the same
 * activations saves two thirds of the launches and barriers, and gives the same bits. */
bool loader_can_join(const loader *l, const joined_name *n);
ww_status loader_joined(loader *l, const joined_name *n, linear *out);

/* ---- positions (positions.c) -------------------------------------------------------------------------------------------- */

/* Slopes of heads; learned numbers for distances; factors of rope, if the file has any. */
ww_status positions_slopes(loader *l);
ww_status positions_distances(loader *l);
ww_status positions_factors(loader *l);

#endif
