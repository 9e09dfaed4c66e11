/* Arguments of the kernels that use ids: gather and index_select read at ids; scatter, scatter_add and index_add write there.
 *
 * An id is an index along one dimension of x, whose size is `extent`; the largest value of the ids' type means "skip". A
 * separate kernel checks the ids. Writing kernels wait for it. Reading kernels do not; they skip invalid ids.
 */
#ifndef WW_KERNELS_ELEMENTWISE_INDEX_H
#define WW_KERNELS_ELEMENTWISE_INDEX_H

#include "kernels/elementwise/elementwise.h"

enum { SCATTER_THREADS = 128 };

/* index_check: checks in[0], the ids. An id is bad if it is neither in 0..extent-1 nor the skip value. The kernel then sets
 * `any`, in host memory, or, if `bad` is not NULL, lowers `bad` to the index of the first bad id. Tiles as for element-wise
 * kernels. */
typedef struct index_check_args {
    elementwise_args ids;
    int64_t extent;
    uint64_t *bad, *any;
    int32_t apart; /* work queued before does not write ids: reading may start before it has ended */
    int32_t unused;
} index_check_args;

/* tensor_gather: an element-wise kernel with in[0] = x, whose stride along the dimension is 0, and in[1] = ids. It reads `step`
 * times the id further on. ia is the step, ib the extent. A skipped element is 0. */

/* tensor_scatter_...: a line runs along the dimension, with all other coordinates fixed. `lines` gives where lines start: out =
 * x, in[0] = ids, in[1] = src; its count is the number of lines. A line has `length` ids and sources and `extent` places in x.
 * Each thread of a line owns a part of the places. All threads read all ids of the line in order, and write only their own
 * places. So each place is written by one thread, in the order of the sources. */
typedef struct scatter_args {
    elementwise_args lines;
    int64_t length, extent;
    int64_t x_step, ids_step, src_step;
    int64_t parts; /* threads per line */
    int32_t what;  /* INDEX_SET or INDEX_ADD */
    int32_t unused;
} scatter_args;

#endif
