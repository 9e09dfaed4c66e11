/* Device memory: the pool that allocates it, and the counts.
 *
 * A block is one driver allocation of a size class. The class follows from the requested bytes, so a buffer needs no record.
 * Allocating a block also reserves its place in the list of free blocks, so freeing it cannot fail.
 */
#include "gpu/memory.h"

#include "base/memory.h"
#include "base/text.h"
#include "gpu/error.h"

typedef struct block {
    void *address;
    size_t bytes;
} block;

struct gpu_pool {
    pthread_mutex_t lock; /* protects everything below */
    block *free_blocks;   /* the block that was freed last is used first */
    size_t free_count;
    size_t capacity; /* of free_blocks; at least `blocks` */
    size_t blocks;   /* handed out or free */
    int64_t ours_bytes;
    int64_t pooled_bytes;
    int64_t peak_bytes;
    atomic_int_least64_t aside_bytes;
};

static const size_t block_granule = 256;
static const size_t classes_per_octave = 64;

size_t gpu_block_bytes(size_t bytes)
{
    size_t step = block_granule;
    while (step < SIZE_MAX / (4 * classes_per_octave) && bytes > 2 * classes_per_octave * step)
        step *= 2;
    return bytes > SIZE_MAX - step ? 0 : (bytes + step - 1) / step * step;
}

static ww_status make_room_in_list(gpu_pool *store)
{
    if (store->blocks < store->capacity)
        return WW_OK;
    const size_t capacity = store->capacity < 32 ? 64 : 2 * store->capacity;
    block *blocks = memory_resize(store->free_blocks, capacity * sizeof *blocks);
    if (blocks == NULL)
        return memory_failed("the list of device memory", capacity * sizeof *blocks);
    store->free_blocks = blocks;
    store->capacity = capacity;
    return WW_OK;
}

ww_status gpu_pool_create(gpu_device *device)
{
    gpu_pool *store = memory_alloc_zeroed(1, sizeof *store);
    if (store == NULL)
        return memory_failed("a memory pool", sizeof *store);
    if (pthread_mutex_init(&store->lock, NULL) != 0) {
        memory_free(store);
        return memory_failed("a lock", sizeof store->lock);
    }
    device->pool = store;
    return make_room_in_list(store);
}

/* The lock is held. */
static int give_all_to_driver(gpu_device *device)
{
    gpu_pool *store = device->pool;
    int first = 0;
    while (store->free_count > 0) {
        const block last = store->free_blocks[--store->free_count];
        store->pooled_bytes -= (int64_t)last.bytes;
        store->blocks--;
        const int number = device->driver->memory_free(last.address);
        first = first == 0 ? number : first;
    }
    return first;
}

void gpu_pool_destroy(gpu_device *device)
{
    gpu_pool *store = device->pool;
    if (store == NULL)
        return;
    (void)give_all_to_driver(device);
    memory_free(store->free_blocks);
    pthread_mutex_destroy(&store->lock);
    memory_free(store);
    device->pool = NULL;
}

int gpu_pool_trim(gpu_device *device)
{
    pthread_mutex_lock(&device->pool->lock);
    const int number = give_all_to_driver(device);
    pthread_mutex_unlock(&device->pool->lock);
    return number;
}

void gpu_pool_count(gpu_device *device, ww_memory_info *memory)
{
    gpu_pool *store = device->pool;
    pthread_mutex_lock(&store->lock);
    const int64_t aside = atomic_load(&store->aside_bytes);
    memory->ours_bytes = store->ours_bytes - aside;
    memory->pooled_bytes = store->pooled_bytes + aside;
    memory->peak_bytes = store->peak_bytes;
    pthread_mutex_unlock(&store->lock);
}

void gpu_pool_count_aside(gpu_device *device, int64_t more)
{
    atomic_fetch_add(&device->pool->aside_bytes, more);
}

static void *take_free_block(gpu_pool *store, size_t bytes)
{
    for (size_t i = store->free_count; i-- > 0;) {
        if (store->free_blocks[i].bytes != bytes)
            continue;
        void *address = store->free_blocks[i].address;
        for (size_t j = i + 1; j < store->free_count; j++)
            store->free_blocks[j - 1] = store->free_blocks[j];
        store->free_count--;
        store->pooled_bytes -= (int64_t)bytes;
        return address;
    }
    return NULL;
}

static ww_status refuse(gpu_device *device, size_t bytes, size_t free_bytes, size_t total_bytes)
{
    char asked[32];
    char left[32];
    char total[32];
    char ours[32];
    return ww_fail(WW_OUT_OF_MEMORY,
                   "%s: %s asked, %s free of %s, %s of it in our buffers; remove rows and compact, or use another device",
                   device->base.info.id, human_bytes(asked, (int64_t)bytes), human_bytes(left, (int64_t)free_bytes),
                   human_bytes(total, (int64_t)total_bytes), human_bytes(ours, device->pool->ours_bytes));
}

/* Gets a block from the driver, unless the count says that it cannot fit. The lock is held. */
static ww_status take_from_driver(gpu_device *device, size_t bytes, void **address)
{
    gpu_pool *store = device->pool;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ww_status status = make_room_in_list(store);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->memory_info(&free_bytes, &total_bytes), "asking for the free memory");
    if (status != WW_OK)
        return status;
    if (bytes > free_bytes)
        return refuse(device, bytes, free_bytes, total_bytes);
    char asked[32];
    char left[32];
    char total[32];
    status = gpu_check(device, device->driver->memory_alloc(bytes, address), "%s asked, %s free of %s",
                       human_bytes(asked, (int64_t)bytes), human_bytes(left, (int64_t)free_bytes),
                       human_bytes(total, (int64_t)total_bytes));
    if (status == WW_OK)
        store->blocks++;
    return status;
}

static ww_status take_block(gpu_device *device, size_t bytes, void **address)
{
    gpu_pool *store = device->pool;
    ww_status status = WW_OK;
    pthread_mutex_lock(&store->lock);
    *address = take_free_block(store, bytes);
    if (*address == NULL)
        status = take_from_driver(device, bytes, address);
    if (status == WW_OK) {
        store->ours_bytes += (int64_t)bytes;
        if (store->ours_bytes > store->peak_bytes)
            store->peak_bytes = store->ours_bytes;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

ww_status gpu_memory_alloc(gpu_device *device, size_t bytes, buffer *out)
{
    *out = (buffer){0};
    if (bytes == 0)
        return WW_OK;
    const size_t block_bytes = gpu_block_bytes(bytes);
    if (block_bytes == 0 || block_bytes > (size_t)INT64_MAX)
        return refuse(device, bytes, (size_t)device->base.info.memory_free_bytes, (size_t)device->base.info.memory_total_bytes);
    void *address = NULL;
    ww_status status = take_block(device, block_bytes, &address);
    if (status == WW_OUT_OF_MEMORY && device->release_unused(device) == 0)
        status = take_block(device, block_bytes, &address);
    if (status == WW_OK)
        *out = (buffer){.data = address, .bytes = bytes};
    return status;
}

void gpu_memory_free(gpu_device *device, buffer *memory)
{
    gpu_pool *store = device->pool;
    if (memory->data != NULL) {
        const size_t bytes = gpu_block_bytes(memory->bytes);
        pthread_mutex_lock(&store->lock);
        store->free_blocks[store->free_count++] = (block){.address = memory->data, .bytes = bytes};
        store->ours_bytes -= (int64_t)bytes;
        store->pooled_bytes += (int64_t)bytes;
        pthread_mutex_unlock(&store->lock);
    }
    memory->data = NULL;
    memory->bytes = 0;
}

void gpu_memory_discard(gpu_device *device, buffer *memory)
{
    gpu_pool *store = device->pool;
    if (memory->data != NULL) {
        pthread_mutex_lock(&store->lock);
        store->ours_bytes -= (int64_t)gpu_block_bytes(memory->bytes);
        store->blocks--;
        pthread_mutex_unlock(&store->lock);
        (void)device->driver->memory_free(memory->data);
    }
    memory->data = NULL;
    memory->bytes = 0;
}
