/* What the kernels that look up by ids take: gather and index_select read at ids; scatter, scatter_add and index_add write
 * there.
 *
 * An id is a number along one dimension of x, whose size is `extent`; the largest value of the ids' type means "skip". A
 * separate kernel checks the ids. Writing waits for it. Reading does not: the reading kernel skips what it cannot read.
 */
#ifndef WW_KERNELS_ELEMENTWISE_INDEX_H
#define WW_KERNELS_ELEMENTWISE_INDEX_H

#include "kernels/elementwise/elementwise.h"

enum { SCATTER_THREADS = 128 };

/* index_check: elements of in[0], the ids. One that is neither in 0..extent-1 nor the skip value is bad: `any`, which is the
 * host's memory, is not 0 if there is one; or `bad`, if it is not NULL, is lowered to the smallest number of one. Tiles as for
 * element-wise kernels. */
typedef struct index_check_args {
    elementwise_args ids;
    int64_t extent;
    uint64_t *bad, *any;
    int32_t apart; /* the work queued before does not write ids: reading may start before it has ended */
    int32_t unused;
} index_check_args;

/* tensor_gather: an element-wise kernel with in[0] = x, whose stride along the dimension is 0, and in[1] = ids: what is
 * `step` times the id behind. ia is the step, ib the extent. A skipped element is 0. */

/* tensor_scatter_...: a line is a choice of all coordinates but that along the dimension. `lines` says where lines begin: out =
 * x, in[0] = ids, in[1] = src; its count is the number of lines. Along the line are `length` ids and sources, and x has
 * `extent` places, of which a thread serves a part: all of a line's threads read all its ids, in order, and write what is
 * theirs. So each place is written by one thread, in the order of the sources. */
typedef struct scatter_args {
    elementwise_args lines;
    int64_t length, extent;
    int64_t x_step, ids_step, src_step;
    int64_t parts; /* threads of a line */
    int32_t what;  /* INDEX_SET or INDEX_ADD */
    int32_t unused;
} scatter_args;

#endif
