/* Memory, limits and failures while a template is parsed or run. */
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/template/value.h"

enum { BLOCK_BYTES = 64 << 10, STEP_BYTES = 64 };

typedef struct block {
    struct block *next;
    size_t used, capacity;
    _Alignas(max_align_t) char bytes[];
} block;

ww_status work_do(work *w, void (*step)(work *w, void *context), void *context)
{
    if (setjmp(w->failed) == 0)
        step(w, context);
    return w->status;
}

void work_fail(work *w, ww_status status, const char *format, ...)
{
    char message[512], plain[512];
    size_t line = 1, column = 1;
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    text_plain_copy(plain, sizeof plain, message);
    for (size_t i = 0; i < w->at && i < w->source.count; i++) {
        line += w->source.chars[i] == '\n';
        column = w->source.chars[i] == '\n' ? 1 : column + 1;
    }
    w->status = ww_fail(status, "chat template, line %zu, column %zu: %s", line, column, plain);
    longjmp(w->failed, 1);
}

void work_step(work *w, size_t steps)
{
    w->steps += (int64_t)steps;
    if (w->steps > TEMPLATE_STEPS_MAX)
        work_fail(w, WW_OUT_OF_RANGE, "the template takes more than %d steps", TEMPLATE_STEPS_MAX);
}

void work_enter(work *w)
{
    if (++w->depth > TEMPLATE_DEPTH_MAX)
        work_fail(w, WW_OUT_OF_RANGE, "the template is more than %d levels deep", TEMPLATE_DEPTH_MAX);
    work_step(w, 1);
}

static block *block_add(work *w, size_t capacity)
{
    block *b = memory_alloc_zeroed(1, sizeof *b + capacity);
    if (!b) {
        w->status = memory_failed("chat template", sizeof *b + capacity);
        longjmp(w->failed, 1);
    }
    b->capacity = capacity;
    b->next = w->blocks;
    w->blocks = b;
    return b;
}

void *work_alloc(work *w, size_t count, size_t bytes)
{
    const size_t align = _Alignof(max_align_t), available = TEMPLATE_MEMORY_MAX - w->bytes_held;
    if (count > available / bytes || count * bytes + align > available)
        work_fail(w, WW_OUT_OF_RANGE, "the template needs more than %d MiB", TEMPLATE_MEMORY_MAX >> 20);
    const size_t rounded = (count * bytes + align) / align * align;
    work_step(w, rounded / STEP_BYTES);
    block *b = w->blocks;
    if (!b || b->capacity - b->used < rounded)
        b = block_add(w, rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES);
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
