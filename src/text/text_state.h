/* A collection of text as the files of this room see it. */
#ifndef WW_TEXT_TEXT_STATE_H
#define WW_TEXT_TEXT_STATE_H

#include <stdbool.h>

#include <warpwave/text.h>

#include "base/status.h"

struct ww_text {
    ww_collection *collection;
    ww_model *model;
    bool model_is_own; /* opened here */
    ww_model_info info;
    ww_store_model kept;
};

/* WW_INVALID_ARGUMENT for NULL. */
ww_status text_check_handle(const ww_text *t, const char *function);

/* Embeds texts with a prefix before each: count x width floats in `vectors`, memory_free(). */
typedef struct text_list {
    const char *const *texts;
    int64_t count;
    const char *prefix;
    ww_progress progress;
    void *progress_user;
} text_list;
ww_status text_embed(ww_text *t, const text_list *list, float **vectors);

/* Ids of rows. */
typedef struct id_list {
    char **ids;
    int64_t count;
} id_list;

/* Embeds texts, and writes them and removes the rows with the ids of `discards` in one transaction. */
ww_status text_write(ww_text *t, const ww_text_rows *rows, const id_list *discards, bool upsert);

#endif
