/* Selects rows by conditions: `store get`, `store remove` and `store count` with --where and --filter, page by page. */
#include <stdio.h>

#include "warpwave/command.h"
#include "warpwave/store/parameters.h"
#include "warpwave/terminal.h"

/* The selection that the options describe; it points to the parameters. */
typedef struct asked_rows {
    parameters parameters;
    ww_filter *filter;
    ww_selection selection;
} asked_rows;

static ww_status selection_read(asked_rows *asked, const store_settings *s)
{
    const ww_status status = s->filter ? ww_filter_read(s->filter, &asked->filter) : WW_OK;
    asked->selection = ww_selection_default();
    asked->selection.where = s->where;
    asked->selection.filter = asked->filter;
    asked->selection.parameters = asked->parameters.list;
    asked->selection.parameter_count = s->params.count;
    asked->selection.first_handle = s->after + 1;
    asked->selection.limit = s->limit > 0 ? s->limit : 0;
    return status == WW_OK ? given_parameters_read(&asked->parameters, s) : status;
}

static void asked_free(asked_rows *asked)
{
    ww_filter_destroy(asked->filter);
    given_parameters_free(&asked->parameters);
}

bool selection_is_given(const store_settings *s)
{
    return s->where || s->filter || s->limit >= 0 || s->after >= 0;
}

static ww_status refuse_ids(const store_settings *s)
{
    if (s->id.count == 0 && !s->ids)
        return WW_OK;
    return command_line_wrong(
        ww_fail(WW_INVALID_ARGUMENT, "give either ids (--id, --ids) or conditions (--where, --filter, --limit, --after)"));
}

ww_status store_get_selected(store_call *call)
{
    asked_rows asked = {0};
    ww_results *found = NULL;
    int64_t missing = -1; /* a selection never misses a row */
    const store_settings *s = &call->settings;
    ww_status status = refuse_ids(s);
    if (status == WW_OK)
        status = selection_read(&asked, s);
    if (status == WW_OK && s->limit != 0)
        status = ww_collection_select(call->collection, &asked.selection,
                                      WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS | (s->vectors ? WW_FETCH_VECTORS : 0),
                                      &found);
    if (status == WW_OK)
        (void)print_found(call, found, &missing);
    const int64_t count = ww_results_count(found, 0);
    if (status == WW_OK && !s->json && count > 0 && count == s->limit)
        printf("the next rows: --after %lld\n", (long long)ww_results_handles(found, 0)[count - 1]);
    ww_results_destroy(found);
    asked_free(&asked);
    return status;
}

ww_status store_remove_selected(store_call *call)
{
    asked_rows asked = {0};
    int64_t removed = 0;
    ww_status status = refuse_ids(&call->settings);
    if (status == WW_OK)
        status = selection_read(&asked, &call->settings);
    if (status == WW_OK)
        status = ww_collection_select_remove(call->collection, &asked.selection, &removed);
    if (status == WW_OK && call->settings.json)
        printf("{\"removed\": %lld}\n", (long long)removed);
    else if (status == WW_OK && terminal_notes())
        printf("removed %lld row%s\n", (long long)removed, plural(removed));
    asked_free(&asked);
    return status;
}

ww_status store_count(store_call *call)
{
    asked_rows asked = {0};
    int64_t count = 0;
    ww_status status = selection_read(&asked, &call->settings);
    if (status == WW_OK)
        status = ww_collection_select_count(call->collection, &asked.selection, &count);
    if (status == WW_OK)
        printf(call->settings.json ? "{\"rows\": %lld}\n" : "%lld\n", (long long)count);
    asked_free(&asked);
    return status;
}
