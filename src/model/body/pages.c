/* Pages of the cache: taking, sharing, copying on write. Free pages are kept for reuse. */
#include "model/body/pages.h"

#include <warpwave/tensor_foreign.h>

#include "base/memory.h"

static ww_status page_make(page_pool *pool, page **out)
{
    void *address = NULL;
    page *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("page of a cache", sizeof *made);
    ww_status status = ww_tensor_zeros(pool->device, WW_U8, 1, &pool->bytes, &made->memory);
    if (status == WW_OK)
        status = ww_tensor_data(&made->memory, &address);
    if (status != WW_OK) {
        ww_tensor_release(&made->memory);
        memory_free(made);
        return status;
    }
    made->address = (uint64_t)(uintptr_t)address;
    made->users = 1;
    *out = made;
    return WW_OK;
}

ww_status page_take_dirty(page_pool *pool, page **out)
{
    page *p = pool->free;
    if (!p)
        return page_make(pool, out);
    pool->free = p->next;
    p->next = NULL;
    p->users = 1;
    *out = p;
    return WW_OK;
}

ww_status page_take(page_pool *pool, page **out)
{
    /* Another session's data must not leak, for example into a saved file. */
    const bool used = pool->free != NULL;
    const uint8_t zero = 0;
    page *taken;
    ww_status status = page_take_dirty(pool, &taken);
    if (status == WW_OK && used)
        status = ww_tensor_const_set(&taken->memory, &zero);
    if (status == WW_OK)
        *out = taken;
    else if (used)
        page_drop(pool, taken);
    return status;
}

void page_drop(page_pool *pool, page *p)
{
    if (!p || --p->users > 0)
        return;
    p->next = pool->free;
    pool->free = p;
}

ww_status page_copy(page_pool *pool, page *from, page **out)
{
    page *made;
    ww_status status = page_take(pool, &made);
    if (status != WW_OK)
        return status;
    status = ww_tensor_copy_strided(&from->memory, &made->memory);
    if (status != WW_OK) {
        page_drop(pool, made);
        return status;
    }
    page_drop(pool, from);
    *out = made;
    return WW_OK;
}

void page_pool_trim(page_pool *pool)
{
    while (pool->free) {
        page *p = pool->free;
        pool->free = p->next;
        ww_tensor_release(&p->memory);
        memory_free(p);
    }
}
