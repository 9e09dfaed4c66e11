/* Pages of the cache: keys and values of 256 positions of one sequence, for every layer. Forked sessions share pages until one
 * of them writes. All functions are called with the model's lock held.
 */
#ifndef WW_MODEL_PAGES_H
#define WW_MODEL_PAGES_H

#include <stdbool.h>

#include <warpwave/tensor.h>

enum { PAGE_POSITIONS = 256 };

typedef struct page {
    ww_tensor memory; /* u8 */
    uint64_t address; /* on the device */
    int32_t users;
    struct page *next; /* in the list of free pages */
} page;

typedef struct page_pool {
    ww_device *device;
    int32_t type; /* of attention_type */
    int32_t key_heads, head_size;
    int64_t layer_bytes, bytes; /* of a layer's part, and of all */
    page *free;
} page_pool;

/* Take a page with one user: zeroed, or with arbitrary contents if nobody will read them. */
ww_status page_take(page_pool *pool, page **out);
ww_status page_take_dirty(page_pool *pool, page **out);
/* Releases one use of a page. Accepts NULL. */
void page_drop(page_pool *pool, page *p);
/* Makes a private copy of a shared page, and releases one use of that. */
ww_status page_copy(page_pool *pool, page *from, page **out);
/* Frees unused pages. */
void page_pool_trim(page_pool *pool);

#endif
