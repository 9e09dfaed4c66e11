/* Pages of the cache: keys and values of 256 positions of one sequence, of every layer. A page is shared by the sessions that
 * were forked with it, until one of them writes. All functions are called with the model's lock held.
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
    struct page *next; /* in the list of free ones */
} page;

typedef struct page_pool {
    ww_device *device;
    int32_t type; /* of attention_type */
    int32_t key_heads, head_size;
    int64_t layer_bytes, bytes; /* of a layer's part, and of all */
    page *free;
} page_pool;

/* A page with one user, zeroed; and one that has whatever is in it, for what nobody will read. */
ww_status page_take(page_pool *pool, page **out);
ww_status page_take_dirty(page_pool *pool, page **out);
/* One user less. Accepts NULL. */
void page_drop(page_pool *pool, page *p);
/* A page of one's own with the bytes of another, which has a user less then. */
ww_status page_copy(page_pool *pool, page *from, page **out);
/* Frees those that nobody uses. */
void page_pool_trim(page_pool *pool);

#endif
