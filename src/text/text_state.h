/* A collection of text, for the files of this room. */
#ifndef WW_TEXT_TEXT_STATE_H
#define WW_TEXT_TEXT_STATE_H

#include <stdbool.h>

#include <warpwave/text.h>

#include "base/status.h"

struct ww_text {
    ww_collection *collection;
    ww_model *model;
    bool model_is_own; /* it was opened here */
    ww_model_info info;
    ww_store_model kept;
};

/* Fails with WW_INVALID_ARGUMENT if it is NULL. */
ww_status text_check_handle(const ww_text *t, const char *function);

/* Embeds texts with a prefix before each. Writes count x width floats to `vectors`, memory_free(). */
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

/* Embeds texts and, in one transaction, writes them and removes the rows with the ids of `discards`. */
ww_status text_write(ww_text *t, const ww_text_rows *rows, const id_list *discards, bool upsert);

#endif
