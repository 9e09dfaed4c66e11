/* Memory of tensors on the CPU: up to eight large freed buffers are kept for the next allocation of the same size.
 *
 * Results are new storages. The system clears the pages of large blocks when they are first touched, and takes them back when
 * they are freed; a program that computes the same shapes again and again would spend more time on that than on reading and
 * writing. The kept memory is bounded, counts as pooled, and is freed when the device is trimmed, closed, or runs out of
 * memory.
 */
#include "cpu/tensor/tensor.h"

enum { SPARE_BYTES_MIN = 1 << 20 };              /* the system's allocator keeps smaller blocks itself */
static const size_t spare_bytes_max = 256 << 20; /* maximum for all spare buffers together */

/* Removes buffer number `at` from the list. */
static buffer spare_remove(cpu_spare *spare, int32_t at)
{
    const buffer taken = spare->kept[at];
    spare->count--;
    for (int32_t i = at; i < spare->count; i++)
        spare->kept[i] = spare->kept[i + 1];
    spare->bytes -= taken.bytes;
    return taken;
}

/* Returns the newest spare buffer of exactly this size, or an empty one. */
static buffer spare_find(cpu_spare *spare, size_t bytes)
{
    buffer found = {0};
    pthread_mutex_lock(&spare->lock);
    for (int32_t i = spare->count - 1; i >= 0 && !found.data; i--)
        if (spare->kept[i].bytes == bytes)
            found = spare_remove(spare, i);
    pthread_mutex_unlock(&spare->lock);
    return found;
}

/* Removes the oldest buffer while `room` more bytes do not fit; returns an empty one when they do. */
static buffer spare_oldest(cpu_spare *spare, size_t room)
{
    buffer oldest = {0};
    pthread_mutex_lock(&spare->lock);
    if (spare->count > 0 && (spare->count == SPARE_BUFFERS || spare->bytes + room > spare_bytes_max))
        oldest = spare_remove(spare, 0);
    pthread_mutex_unlock(&spare->lock);
    return oldest;
}

static void make_room(ww_device *device, size_t room)
{
    cpu_device *cpu = (cpu_device *)device;
    for (buffer old = spare_oldest(&cpu->spare, room); old.data; old = spare_oldest(&cpu->spare, room)) {
        cpu_count_bytes(cpu, (int64_t)old.bytes); /* counted again until it is freed */
        cpu_buffer_destroy(device, &old);
    }
}

void cpu_spare_release(ww_device *device)
{
    make_room(device, spare_bytes_max + 1);
}

ww_status cpu_tensor_alloc(ww_device *device, size_t bytes, buffer *out)
{
    cpu_device *cpu = (cpu_device *)device;
    *out = bytes >= SPARE_BYTES_MIN ? spare_find(&cpu->spare, bytes) : (buffer){0};
    if (out->data) {
        cpu_count_bytes(cpu, (int64_t)bytes);
        return WW_OK;
    }
    ww_status status = cpu_buffer_create(device, bytes, out);
    if (status == WW_OUT_OF_MEMORY && cpu->spare.count > 0) {
        cpu_spare_release(device);
        status = cpu_buffer_create(device, bytes, out);
    }
    return status;
}

void cpu_tensor_free(ww_device *device, buffer *b)
{
    cpu_device *cpu = (cpu_device *)device;
    if (!b->data || b->bytes < SPARE_BYTES_MIN || b->bytes > spare_bytes_max) {
        cpu_buffer_destroy(device, b);
        return;
    }
    make_room(device, b->bytes);
    pthread_mutex_lock(&cpu->spare.lock);
    const bool kept = cpu->spare.count < SPARE_BUFFERS; /* another thread may have used the room */
    if (kept) {
        cpu->spare.kept[cpu->spare.count++] = *b;
        cpu->spare.bytes += b->bytes;
    }
    pthread_mutex_unlock(&cpu->spare.lock);
    if (kept)
        cpu_count_bytes(cpu, -(int64_t)b->bytes);
    else
        cpu_buffer_destroy(device, b);
    *b = (buffer){0};
}
