/* Multivectors: checking them, their score, and the exact search of a set of them on a device.
 *
 * A set keeps its rows in segments. All rows of a segment have the same number of vectors: the next of a few lengths, filled up
 * with copies of the row's first vector, which change no maximum. So one matrix product of a segment with the query has all
 * similarities, one reduction their maxima, and another the scores: canonical operations of tensors on every device.
 */
#ifndef WW_VECTORS_MULTI_H
#define WW_VECTORS_MULTI_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/multi.h>
#include <warpwave/tensor.h>

#include "base/status.h"
#include "base/tables/key_list.h"

/* ---- multivectors -------------------------------------------------------------------------------------------------------- */

/* Checks a multivector; `what` and `number` name it in messages: "row", 3. One without vectors is accepted. */
ww_status multi_check(const char *what, int64_t number, const ww_multivector *v);

/* Fails with WW_DIMENSION_MISMATCH. `name` is that of the collection, or "the index". */
ww_status multi_wrong_dim(const char *name, int32_t dim, int32_t given);

/* Is there a MaxSim of this metric? */
ww_status multi_check_metric(const char *name, ww_metric metric);

/* Writes the vectors as similarities need them: for cosine divided by their norms. */
void multi_prepare(ww_metric metric, const ww_multivector *v, float *to);

/* The length of a vector, not too small: the additions lose less than 2^-30 of it. */
double multi_length(const float *v, int32_t dim);

/* Reads and checks what query->multi says. */
ww_status multi_asked_read(const char *function, const ww_query *query, ww_multi_query *asked);

/* WW_UNSUPPORTED if the device is a group. */
ww_status multi_device_check(const ww_device *device);

/* ---- sets ---------------------------------------------------------------------------------------------------------------- */

/* Rows of a set whose vectors are of one length. */
typedef struct multi_segment {
    int32_t length; /* vectors of a row, with those that fill it up */
    int64_t count, capacity, added;
    uint32_t *rows;    /* their numbers; memory_free() */
    ww_tensor vectors; /* [capacity, length, dim], f32 */
} multi_segment;

typedef struct multi_set {
    ww_device *device; /* not retained */
    int32_t dim;
    ww_metric metric;
    multi_segment *segments;
    int64_t segment_count, segment_room;
    int64_t rows;    /* of all segments */
    double norm_max; /* no vector of theirs is longer */
} multi_set;

/* A set starts zeroed, with its device, dim and metric. */
void multi_set_free(multi_set *set);

/* Adds rows, numbers[i] being the number of row i: all or none. Those without vectors are left out. They are checked. */
ww_status multi_set_add(multi_set *set, const ww_multivector *rows, const uint32_t *numbers, int64_t count);

/* The bytes of its vectors on the device. */
int64_t multi_set_bytes(const multi_set *set);

/* Adds the rows of the set to the lists that are hits of the queries: one list for each. Of the query it reads multi, mode,
 * bound, k and limit. Bit r%64 of word r/64 admits row r; NULL admits all. */
typedef struct multi_admitted {
    const uint64_t *bits;
    int64_t rows;
} multi_admitted;
ww_status multi_set_search(const multi_set *set, const ww_query *query, multi_admitted admitted, key_list *lists);

#endif
