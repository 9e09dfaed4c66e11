/* Memory, limits and failures of work on a template. */
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/template/value.h"

enum { BLOCK_MIN = 16 << 10, BLOCK_MAX = 1 << 20, STEP_BYTES = 64 };

typedef struct block {
    struct block *next;
    size_t used, capacity;
    _Alignas(max_align_t) char bytes[];
} block;

void *work_alloc(work *w, size_t bytes)
{
    const size_t align = _Alignof(max_align_t), rounded = (bytes + align) / align * align;
    block *b = w->blocks;
    if (bytes > TEMPLATE_MEMORY_MAX || w->bytes_held + rounded > TEMPLATE_MEMORY_MAX) {
        work_fail(w, WW_OUT_OF_RANGE, "the template needs more than %d MiB", TEMPLATE_MEMORY_MAX >> 20);
        return NULL;
    }
    if (!work_step(w, bytes / STEP_BYTES))
        return NULL;
    if (!b || b->capacity - b->used < rounded) {
        size_t capacity = b ? 2 * b->capacity : BLOCK_MIN;
        capacity = capacity > BLOCK_MAX ? BLOCK_MAX : capacity;
        capacity = capacity < rounded ? rounded : capacity;
        b = memory_alloc_zeroed(1, sizeof *b + capacity);
        if (!b) {
            if (w->status == WW_OK)
                w->status = memory_failed("chat template", sizeof *b + capacity);
            return NULL;
        }
        b->capacity = capacity;
        b->next = w->blocks;
        w->blocks = b;
    }
    b->used += rounded;
    w->bytes_held += rounded;
    return b->bytes + b->used - rounded;
}

void work_free(work *w)
{
    for (block *b = w->blocks, *next; b; b = next) {
        next = b->next;
        memory_free(b);
    }
    w->blocks = NULL;
}

void work_fail(work *w, ww_status status, const char *format, ...)
{
    char message[512], plain[512];
    size_t line = 1, column = 1;
    va_list values;
    if (w->status != WW_OK)
        return;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    text_plain_copy(plain, sizeof plain, message);
    for (size_t i = 0; i < w->at && w->source[i]; i++) {
        line += w->source[i] == '\n';
        column = w->source[i] == '\n' ? 1 : column + 1;
    }
    w->status = ww_fail(status, "chat template, line %zu, column %zu: %s", line, column, plain);
}

bool work_step(work *w, size_t steps)
{
    w->steps += (int64_t)steps;
    if (w->steps > TEMPLATE_STEPS_MAX)
        work_fail(w, WW_OUT_OF_RANGE, "the template takes more than %d steps", TEMPLATE_STEPS_MAX);
    return w->status == WW_OK;
}
