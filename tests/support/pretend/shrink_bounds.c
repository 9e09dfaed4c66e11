/* Shrinks the bound of every row by rewriting its residual, which the bound grows with. */
#include <stdlib.h>

#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "vectors/collection.h"

void shrink_bounds(ww_collection *collection, float factor)
{
    const row_store *store = &collection->store;
    const backend *api = collection->device->backend;
    for (int64_t s = 0; s < store->segment_count; s++) {
        const buffer *residuals = &store->segments[s].residuals;
        const buffer_range all = {residuals, 0, (size_t)store->segments[s].count * sizeof(float)};
        float *numbers = malloc(all.bytes);
        CHECK_OK(api->copy_out(collection->device, collection->stream, numbers, all));
        for (int64_t i = 0; i < store->segments[s].count; i++)
            numbers[i] *= factor;
        CHECK_OK(api->copy_in(collection->device, collection->stream, all, numbers));
        CHECK_OK(api->stream_synchronize(collection->device, collection->stream));
        free(numbers);
    }
}
