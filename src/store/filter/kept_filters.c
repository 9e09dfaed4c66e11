/* Filters are not run again while nothing has changed. Another connection's change raises SQLite's data version, and the
 * connection's own change raises its change count. Within a write transaction nothing is kept. */
#include "store/filter/kept_filters.h"

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"

void kept_filters_clear(kept_filters *kept)
{
    for (int i = 0; i < FILTERS_KEPT; i++) {
        filter_key_free(kept->list[i].key);
        filter_places_free(&kept->list[i].places);
    }
    *kept = (kept_filters){0};
}

/* The slot for a filter: its own, or the least recently used one. */
static kept_filter *place_for(kept_filters *kept, const filter_where *where)
{
    kept_filter *oldest = &kept->list[0];
    for (int i = 0; i < FILTERS_KEPT; i++) {
        kept_filter *f = &kept->list[i];
        if (f->key && filter_key_is(f->key, where))
            return f;
        if (f->last_use < oldest->last_use)
            oldest = f;
    }
    filter_key_free(oldest->key);
    oldest->key = NULL;
    return oldest;
}

static int64_t next_list_number(void)
{
    static atomic_int_least64_t last; /* no number is given twice in a process */
    return atomic_fetch_add(&last, 1) + 1;
}

ww_status kept_filters_find(kept_filters *kept, const filter_where *where, const filter_target *target,
                            const kept_filter **found)
{
    uint32_t data_version = 0;
    const bool may_keep =
        sqlite3_txn_state(target->db, target->schema) != SQLITE_TXN_WRITE &&
        sqlite3_file_control(target->db, target->schema, SQLITE_FCNTL_DATA_VERSION, &data_version) == SQLITE_OK;
    const int64_t changes = sqlite3_total_changes64(target->db);
    kept_filter *f = place_for(kept, where);
    f->last_use = ++kept->uses;
    *found = f;
    if (f->key && may_keep && f->number != 0 && f->data_version == data_version && f->changes == changes)
        return WW_OK;
    ww_status status = f->key ? WW_OK : filter_check(where, target->collection); /* check a text only once */
    if (status == WW_OK && !f->key && !(f->key = filter_key_copy(where)))
        status = memory_failed("a filter", sizeof *f);
    f->places.count = 0;
    f->number = 0;
    if (status == WW_OK)
        status = filter_run(where, target, &f->places);
    if (status == WW_OK && may_keep) {
        f->number = next_list_number();
        f->data_version = data_version;
        f->changes = changes;
    }
    return status;
}
