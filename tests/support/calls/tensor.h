/* Every tensor operation that can fail because memory or a device does, as a list for fault tests. Add a line here for a new
 * operation.
 */
#ifndef TESTS_TENSOR_CALLS_H
#define TESTS_TENSOR_CALLS_H

#include "support/tensors.h"

/* What operations are given: x and y are f32 of shape [6, 10], the first a view; target is one, too, which operations that
 * write in place write to. */
typedef struct tensor_operands {
    test_tensor x, y, target;
    test_tensor condition; /* u8, the same shape */
    test_tensor ids;       /* i64 of shape [6], each 0 to 5 */
    ww_device *cpu;
} tensor_operands;

typedef struct tensor_call {
    const char *name;
    ww_status (*call)(const tensor_operands *o, ww_tensor *out); /* leaves *out NULL if it has no result */
} tensor_call;

extern const tensor_call tensor_calls[]; /* ends with a NULL name */

tensor_operands tensor_operands_make(ww_device *device);
void tensor_operands_free(tensor_operands *o);

#endif
