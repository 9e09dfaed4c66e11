/* Every collection call that can fail because memory or a device does, as a list for fault tests.
 *
 * Each call is made on a collection with several segments, removed and replaced rows, and payloads.
 */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include "support/collections.h"

typedef struct collection_call {
    const char *name;
    ww_status (*call)(ww_collection *collection);
    bool needs_memory; /* must fail at least once when allocations do */
    bool needs_device; /* the same for calls of the device */
    bool by_type;      /* its work depends on the type of rows, so it also runs on rows of f16 */
} collection_call;

extern const collection_call collection_calls[]; /* ends with a NULL name */

/* The collection that they are made on; and one of rows of another type. */
ww_collection *collection_for_calls_of(ww_device *device, ww_vector_type type);
ww_collection *collection_for_calls(ww_device *device);

/* Puts the same into an empty collection of dimension 9. */
void collection_for_calls_fill(ww_collection *collection);

#endif
