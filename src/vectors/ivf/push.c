/* Keeps the lists of an index on a device that reads them from its own memory: copies them before the first search that needs
 * them, and afterwards only the changes. */
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

void ivf_changed(ivf *index)
{
    index->stale = true;
    atomic_store_explicit(&index->extremes, 0, memory_order_relaxed);
}

bool ivf_is_stale(const ww_collection *c)
{
    return c->index && c->index->stale && c->store.screen && c->device->backend->lists_push;
}

bool ivf_reads_lists(const ww_collection *c)
{
    const backend *api = c->device->backend;
    return api->rows_search_lists && (!api->lists_push || api->on_host || (c->index->held && !c->index->stale));
}

ww_status ivf_push(ww_collection *c)
{
    ivf *index = c->index;
    if (!ivf_is_stale(c))
        return WW_OK;
    const size_t nlist = (size_t)index->nlist, bytes = nlist * (sizeof(row_list) + sizeof(int64_t));
    row_list *lists = memory_alloc(bytes);
    if (!lists)
        return memory_failed("lists of an index", bytes);
    int64_t *held = (int64_t *)(lists + nlist);
    for (size_t i = 0; i < nlist; i++) {
        lists[i] = (row_list){.rows = index->lists[i].rows, .count = index->lists[i].count};
        held[i] = index->lists[i].held;
    }
    const list_push job = {.segments = c->store.segments,
                           .segment_count = store_segments_used(&c->store),
                           .dim = c->dim,
                           .type = (int32_t)c->type,
                           .lists = lists,
                           .count = index->nlist,
                           .held = held};
    ww_status status = c->device->backend->lists_push(c->device, &job, &index->held);
    if (status == WW_OUT_OF_MEMORY)
        status = WW_OK;
    for (size_t i = 0; i < nlist; i++)
        index->lists[i].held = held[i];
    index->stale = status != WW_OK;
    memory_free(lists);
    return status;
}

void ivf_forget(ivf *index)
{
    ww_device *device = index->store.device;
    if (index->held)
        device->backend->lists_destroy(device, index->held);
    index->held = NULL;
    index->stale = true;
    for (int64_t i = 0; index->lists && i < index->nlist; i++)
        index->lists[i].held = 0;
}
