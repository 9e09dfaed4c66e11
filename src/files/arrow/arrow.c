/* The texts of a column of Arrow: one block of bytes, in which each text ends with a NUL. */
#include "files/arrow/arrow.h"

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"

struct ww_arrow_texts {
    int64_t count;
    char *bytes;
    const char **pointers;
};

static ww_status fill(const column *c, ww_arrow_form form, ww_arrow_texts *texts, int64_t *starts)
{
    text_builder to = {0};
    ww_status status = WW_OK;
    for (; status == WW_OK && to.row < texts->count; to.row++) {
        const int64_t index = c->array->offset + to.row;
        starts[to.row] = to.count;
        if (column_is_null(c, index)) {
            starts[to.row] = -1;
            continue;
        }
        status = form == WW_ARROW_JSON ? column_write_json(c, index, &to) : column_write_plain(c, index, &to);
        if (status == WW_OK)
            status = text_build(&to, "", 1);
    }
    texts->bytes = to.bytes;
    for (int64_t i = 0; status == WW_OK && i < texts->count; i++)
        texts->pointers[i] = starts[i] >= 0 ? to.bytes + starts[i] : NULL;
    return status;
}

static ww_status create(const column *c, ww_arrow_form form, ww_arrow_texts **texts)
{
    const int64_t count = c->array->length;
    ww_arrow_texts *made = memory_alloc_zeroed(1, sizeof *made);
    int64_t *starts = memory_alloc_zeroed((size_t)count, sizeof *starts);
    if (made) {
        made->count = count;
        made->pointers = memory_alloc_zeroed((size_t)count, sizeof *made->pointers);
    }
    ww_status status =
        made && starts && made->pointers ? WW_OK : memory_failed("the texts of a column", (size_t)count * sizeof *starts);
    if (status == WW_OK)
        status = fill(c, form, made, starts);
    memory_free(starts);
    if (status == WW_OK)
        *texts = made;
    else
        ww_arrow_texts_destroy(made);
    return status;
}

ww_status ww_arrow_texts_create(const void *schema, const void *array, ww_arrow_form form, ww_arrow_texts **texts)
{
    FLOAT_GUARD();
    column c = {0};
    if (!schema || !array || !texts)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_arrow_texts_create: %s is NULL",
                       !schema  ? "schema"
                       : !array ? "array"
                                : "texts");
    if (form != WW_ARROW_PLAIN && form != WW_ARROW_JSON)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_arrow_texts_create: form is %d; it must be WW_ARROW_PLAIN or WW_ARROW_JSON",
                       (int)form);
    ww_status status = column_read(&c, schema, array, 0);
    if (status == WW_OK)
        status = create(&c, form, texts);
    column_free(&c);
    return status;
}

void ww_arrow_texts_destroy(ww_arrow_texts *texts)
{
    if (!texts)
        return;
    memory_free(texts->bytes);
    memory_free(texts->pointers);
    memory_free(texts);
}

int64_t ww_arrow_texts_list(const ww_arrow_texts *texts, const char *const **list)
{
    if (list)
        *list = texts ? texts->pointers : NULL;
    return texts ? texts->count : 0;
}
