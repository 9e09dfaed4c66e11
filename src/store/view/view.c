/* Opening and closing a view, and choosing the mirror that answers for its snapshot (view.h says what a view is).
 *
 * A view has up to three collections in memory, mirrors, and one rule decides which of them answers:
 *
 *   shared    one for all connections of the process with these settings. Only committed rows enter it. It only goes
 *             forward.
 *   overlay   rows that this connection's transaction has added, beside a mask of the shared rows that it has removed
 *   own       a copy of this view's alone, read whole through its connection
 *
 *   the snapshot is ...                                             it is answered by
 *   at the shared mirror's sequence                                 shared
 *   later, and the connection has no changes of its own             shared, after shared_catch_up()
 *   later by changes of its own, to rows                            shared at `base`, the state before them, and overlay
 *   later by changes of its own, to the index                       own
 *   later by changes of its own, under view_begin_whole()           own
 *   perhaps not committed (`uncertain`), and not at that sequence   own
 *   earlier than the shared mirror                                  own; with `restarts` WW_BUSY: a new transaction will do
 *   in a database without a file                                    own
 *
 * The steps of begin(): read the record (uid, epoch, sequence: one row); look for changes of its own (`changed` and another
 * sequence than `base`); shared_lock() at the record, or at `base`; then overlay_ready() or own_ready(). The mirror that was
 * chosen stays locked for reading until view_end().
 *
 * Who moves the shared mirror: shared_catch_up(), with what the file has since (view_load.c), and view_committed(), with rows
 * that a write of this process still has in memory. Both hold its lock for writing and compare sequences first, so their order
 * does not matter. A mirror that cannot be brought forward (a log of removals that was trimmed, a failure on the way) is
 * abandoned: its readers finish, and the next one makes another.
 *
 * `uncertain` is a view that was opened in the middle of a write transaction: what it reads may never be committed, so nothing
 * of it enters the shared mirror until that transaction ends.
 */
#include "store/view/view_state.h"

#include <string.h>
#include <sys/stat.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "device/share.h"
#include "vectors/internal/mirror.h"

/* Smaller collections are loaded in a few hundredths of a second. */
enum { GLANCE_BYTES_MIN = 64 * 1024 * 1024 };

/* A removed vector may still be in its table, but no row has its place. */
#define HAS_ROW " AND EXISTS (SELECT 1 FROM \"%w\".\"%w_rows\" AS r WHERE r.handle = v.handle AND r.place = v.place)"

static const char *const TEXTS[VIEW_STATEMENT_COUNT] = {
    [READ_VECTORS] = "SELECT place, handle, vector, checksum FROM \"%w\".\"%w_vectors\" WHERE place >= ?1 ORDER BY place",
    [READ_REMOVED] = "SELECT place FROM \"%w\".\"%w_removed\" WHERE sequence > ?1",
    [READ_ENTRY] = "SELECT place, id, payload, checksum, text_checksum FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [READ_VECTOR] = "SELECT handle, vector, checksum FROM \"%w\".\"%w_vectors\" WHERE place = ?1",
    [FIND_BY_ID] = "SELECT handle, place FROM \"%w\".\"%w_rows\" WHERE id = ?1",
    [LIST_PLACES] = ("SELECT v.place, v.handle FROM \"%w\".\"%w_vectors\" AS v WHERE v.place > ?1" HAS_ROW " ORDER BY v.place"),
    [FIND_PLACE] = ("SELECT v.handle FROM \"%w\".\"%w_vectors\" AS v WHERE v.place = ?1" HAS_ROW),
    [READ_GONE] = "SELECT place FROM \"%w\".\"%w_removed\" WHERE place >= ?1 ORDER BY place",
    [READ_TEXT] = "SELECT text FROM \"%w\".\"%w_fts\" WHERE rowid = ?1",
};

/* The same for tables without checksums. */
static const char *const UNCHECKED_TEXTS[VIEW_STATEMENT_COUNT] = {
    [READ_VECTORS] = "SELECT place, handle, vector FROM \"%w\".\"%w_vectors\" WHERE place >= ?1 ORDER BY place",
    [READ_ENTRY] = "SELECT place, id, payload FROM \"%w\".\"%w_rows\" WHERE handle = ?1",
    [READ_VECTOR] = "SELECT handle, vector FROM \"%w\".\"%w_vectors\" WHERE place = ?1",
};

ww_status view_ready(view *v, view_statement which)
{
    const char *text = !v->has_checksums && UNCHECKED_TEXTS[which] ? UNCHECKED_TEXTS[which] : TEXTS[which];
    return v->statements[which] ? WW_OK
                                : schema_statement(v->db, &v->statements[which], text, v->schema, v->name, v->schema, v->name);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

/* The file behind the connection's database; false if there is none (":memory:", a temporary one). */
static bool file_key(const view *v, mirror_key *key)
{
    struct stat file;
    const char *path = sqlite3_db_filename(v->db, v->schema);
    if (!path || !path[0] || stat(path, &file) != 0)
        return false;
    key->file_device = (uint64_t)file.st_dev;
    key->file_inode = (uint64_t)file.st_ino;
    key->sqlite = sqlite_identity();
    return true;
}

/* Counts this connection as a user of its file: no other SQLite may have it open. A file that does not exist yet is counted
 * later. */
static ww_status file_enter(view *v)
{
    mirror_key file = {0};
    if (v->file_entered || !file_key(v, &file))
        return WW_OK;
    const ww_status status = mirror_file_enter(&file, sqlite3_db_filename(v->db, v->schema));
    v->file_entered = status == WW_OK;
    v->file = file;
    return status;
}

ww_status view_open(const view_config *config, view **opened)
{
    view *v = memory_alloc_zeroed(1, sizeof *v);
    if (!v)
        return memory_failed("a view of a collection", sizeof *v);
    const char *device_name = config->device_name ? config->device_name : "auto";
    v->db = config->db;
    v->screen = config->screen;
    v->keep_host_copy = config->keep_host_copy;
    v->rows = config->rows;
    v->memory_bytes = config->memory_bytes;
    v->restarts = config->restarts;
    v->progress = config->progress;
    v->progress_user = config->progress_user;
    v->schema = memory_copy_text(config->schema, strlen(config->schema));
    v->name = memory_copy_text(config->name, strlen(config->name));
    v->device_name = memory_copy_text(device_name, strlen(device_name));
    ww_status status = WW_OK;
    if (!v->schema || !v->name || !v->device_name)
        status = memory_failed("a view of a collection", strlen(config->schema) + strlen(config->name));
    if (status == WW_OK)
        status = file_enter(v);
    if (status == WW_OK && config->device)
        status = device_share(config->device, &v->device);
    if (status == WW_OK)
        *opened = v;
    else
        view_close(v);
    return status;
}

static void overlay_drop(view *v)
{
    mirror_release(v->overlay);
    memory_free(v->overlay_mask);
    v->overlay = NULL;
    v->overlay_mask = NULL;
}

static void own_drop(view *v)
{
    mirror_release(v->own);
    v->own = NULL;
}

static void shared_drop(view *v)
{
    overlay_drop(v);
    mirror_release(v->shared);
    v->shared = NULL;
}

static void statements_finalize(view *v)
{
    for (int i = 0; i < VIEW_STATEMENT_COUNT; i++) {
        sqlite3_finalize(v->statements[i]);
        v->statements[i] = NULL;
    }
}

void view_finalize(view *v)
{
    sqlite3_finalize(v->find);
    v->find = NULL;
    statements_finalize(v);
}

void view_close(view *v)
{
    if (!v)
        return;
    view_end(v);
    shared_drop(v);
    own_drop(v);
    view_finalize(v);
    if (v->file_entered)
        mirror_file_leave(&v->file);
    ww_device_close(v->device);
    memory_free(v->kept_mask);
    memory_free(v->device_name);
    memory_free(v->name);
    memory_free(v->schema);
    memory_free(v);
}

const collection_record *view_record(const view *v)
{
    return &v->record;
}

int64_t view_preparations(const view *v)
{
    int64_t count = sqlite_preparations(v->find) + v->index_reads;
    for (int i = 0; i < VIEW_STATEMENT_COUNT; i++)
        count += sqlite_preparations(v->statements[i]);
    return count;
}

/* ---- which mirror -------------------------------------------------------------------------------------------------------- */

ww_collection_config view_mirror_config(const view *v)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = v->record.name;
    config.dim = v->record.dim;
    config.metric = v->record.metric;
    config.type = v->record.type;
    config.screen = v->screen;
    config.keep_host_copy = v->keep_host_copy;
    config.rows = v->rows;
    return config;
}

static ww_status device_ready(view *v)
{
    return v->device ? WW_OK : ww_device_open(v->device_name, &v->device);
}

/* Gets the shared mirror of the record's collection; without a file there is none. */
static ww_status shared_ready(view *v)
{
    if (v->shared && v->key.uid == v->record.uid && v->key.epoch == v->record.epoch)
        return WW_OK;
    mirror_key key = {.uid = v->record.uid, .epoch = v->record.epoch, .screen = (int64_t)v->screen, .rows = (int64_t)v->rows};
    shared_drop(v);
    if (!file_key(v, &key))
        return WW_OK;
    ww_device_info info = ww_device_info_default();
    ww_status status = file_enter(v);
    if (status == WW_OK)
        status = ww_device_describe(v->device, &info);
    text_copy(key.device, sizeof key.device, info.id);
    const ww_collection_config config = view_mirror_config(v);
    if (status == WW_OK)
        status = mirror_acquire(&key, v->device, &config, &v->shared);
    v->key = key;
    return status;
}

/* Brings the shared mirror up to the snapshot, if nobody else has done so. After a failure there is no mirror. */
static ww_status shared_catch_up(view *v)
{
    mirror *m = v->shared;
    ww_status status = WW_OK;
    mirror_lock_write(m);
    const mirror_state state = mirror_state_of(m);
    if (!state.abandoned && state.loaded && state.sequence < v->record.log_start) {
        mirror_abandon(m); /* the log of removals does not go back that far */
    } else if (!state.abandoned && (!state.loaded || state.sequence < v->record.sequence)) {
        status = view_catch_up(v, m, NULL);
        if (status != WW_OK)
            mirror_abandon(m);
    }
    mirror_unlock(m);
    return status;
}

/* Locks the shared mirror if it can be at the state of `target`. Returns WW_OK without the lock if it cannot; then the caller
 * needs another mirror. */
static ww_status shared_lock(view *v, const collection_record *target, bool *locked)
{
    const bool may_read = target == &v->record && !v->uncertain; /* otherwise the connection may have uncommitted changes */
    *locked = false;
    for (;;) {
        ww_status status = shared_ready(v);
        if (status != WW_OK || !v->shared)
            return status;
        mirror_lock_read(v->shared);
        const mirror_state state = mirror_state_of(v->shared);
        if (!state.abandoned && state.loaded && state.sequence == target->sequence) {
            *locked = true;
            return WW_OK;
        }
        mirror_unlock(v->shared);
        if (state.abandoned) {
            shared_drop(v);
            continue;
        }
        v->behind = state.loaded && state.sequence > target->sequence;
        if (v->behind || !may_read)
            return WW_OK;
        status = shared_catch_up(v);
        if (status != WW_OK)
            return status;
    }
}

/* Reads the changes of the connection's transaction into the overlay. The shared mirror is locked. */
static ww_status overlay_ready(view *v)
{
    const mirror_state state = mirror_state_of(v->shared);
    const size_t words = (size_t)divide_up_i64(state.rows, 64);
    ww_status status = WW_OK;
    if (v->overlay && v->overlay_rows != state.rows)
        overlay_drop(v);
    if (!v->overlay) {
        const ww_collection_config config = view_mirror_config(v);
        status = mirror_create(v->device, &config, &v->overlay);
        if (status != WW_OK)
            return status;
        v->overlay_mask = memory_alloc(words * sizeof *v->overlay_mask);
        if (!v->overlay_mask) {
            overlay_drop(v);
            return memory_failed("changes that are not committed", words * sizeof *v->overlay_mask);
        }
        memset(v->overlay_mask, 0xff, words * sizeof *v->overlay_mask);
        v->overlay_rows = state.rows;
        mirror_set_state(v->overlay, v->base.sequence, v->base.next_place);
    }
    if (mirror_state_of(v->overlay).sequence == v->record.sequence)
        return WW_OK;
    const view_overlay overlay = {.first_place = v->base.next_place, .base = v->shared, .gone = v->overlay_mask};
    status = view_catch_up(v, v->overlay, &overlay);
    if (status != WW_OK)
        overlay_drop(v);
    return status;
}

/* Reads all rows into a mirror of this view's own. */
static ww_status own_ready(view *v)
{
    /* An uncertain view does not learn of a rollback to a savepoint, after which other rows may get the same sequence. */
    const int64_t changes = v->uncertain ? sqlite3_total_changes64(v->db) : 0;
    if (v->own && v->own_uid == v->record.uid && v->own_epoch == v->record.epoch && v->own_changes == changes &&
        mirror_state_of(v->own).sequence == v->record.sequence)
        return WW_OK;
    own_drop(v);
    const ww_collection_config config = view_mirror_config(v);
    ww_status status = mirror_create(v->device, &config, &v->own);
    if (status == WW_OK)
        status = view_catch_up(v, v->own, NULL);
    if (status != WW_OK)
        own_drop(v);
    v->own_uid = v->record.uid;
    v->own_epoch = v->record.epoch;
    v->own_changes = changes;
    return status;
}

/* Prepares the statements anew if the collection has got checksums, or if a collection without them has its name now. */
static void statements_follow(view *v)
{
    if (v->has_checksums == record_has_checksums(&v->record))
        return;
    statements_finalize(v);
    v->has_checksums = record_has_checksums(&v->record);
}

/* Chooses whether a search reads the rows from the file: if they are not in memory, and too large for the limit. The first
 * search of a process does so, too, because reading and scoring once takes half the time of loading. */
static ww_status choose_streaming(view *v, view_need need)
{
    const ww_status status = shared_ready(v);
    if (status != WW_OK || !v->shared)
        return status;
    const int64_t bytes = mirror_bytes(v->shared, v->record.live);
    const bool too_large = v->memory_bytes > 0 && bytes > v->memory_bytes;
    mirror_lock_read(v->shared);
    const mirror_state state = mirror_state_of(v->shared);
    mirror_unlock(v->shared);
    v->streaming = (!state.loaded || state.abandoned) &&
                   (too_large || (need == VIEW_GLANCE && bytes >= GLANCE_BYTES_MIN && mirror_first_search(v->shared)));
    return WW_OK;
}

/* Chooses the mirror that answers; `whole`: it must have all rows, without an overlay. */
static ww_status begin(view *v, view_need need, bool whole)
{
    view_end(v);
    v->behind = false;
    ww_status status = v->find ? WW_OK : schema_prepare_find(v->db, v->schema, v->name, &v->find);
    if (status == WW_OK)
        status = schema_read(v->find, v->name, &v->record);
    if (status == WW_OK)
        statements_follow(v);
    if (status == WW_OK && need != VIEW_RECORD)
        status = device_ready(v);
    if (status != WW_OK || need == VIEW_RECORD)
        return status;
    if (sqlite3_txn_state(v->db, v->schema) != SQLITE_TXN_WRITE)
        v->uncertain = false;
    const bool pending = v->changed && (v->record.sequence != v->base.sequence || v->record.epoch != v->base.epoch);
    bool locked = false;
    if (need != VIEW_MEMORY && !pending && !v->uncertain)
        status = choose_streaming(v, need);
    if (status != WW_OK || v->streaming)
        return status;
    if (!pending || (v->record.epoch == v->base.epoch && !whole && !v->index_changed))
        status = shared_lock(v, pending ? &v->base : &v->record, &locked);
    if (status == WW_OK && locked) {
        v->active = v->shared;
        v->overlaid = pending;
        if (pending)
            status = overlay_ready(v);
    } else if (status == WW_OK && !(v->behind && v->restarts)) {
        status = own_ready(v);
        if (status == WW_OK) {
            v->active = v->own;
            mirror_lock_read(v->own);
        }
    } else if (status == WW_OK) {
        status = ww_fail(WW_BUSY, "collection '%s': a write came between; try again", v->name);
    }
    if (status != WW_OK)
        view_end(v);
    return status;
}

ww_status view_begin(view *v, view_need need)
{
    return begin(v, need, false);
}

ww_status view_begin_whole(view *v)
{
    return begin(v, VIEW_MEMORY, true);
}

void view_index_changed(view *v)
{
    v->index_changed = true;
    own_drop(v);
}

void view_end(view *v)
{
    if (v->active)
        mirror_unlock(v->active);
    v->active = NULL;
    v->overlaid = v->streaming = false;
}

/* ---- transactions -------------------------------------------------------------------------------------------------------- */

ww_status view_changed_first(view *v)
{
    if (v->changed || v->uncertain)
        return WW_OK;
    ww_status status = v->find ? WW_OK : schema_prepare_find(v->db, v->schema, v->name, &v->find);
    if (status == WW_OK)
        status = schema_read(v->find, v->name, &v->base);
    if (status != WW_OK)
        return status;
    v->changed = true;
    v->record = v->base;
    statements_follow(v);
    /* Brings a loaded mirror to this state now, because afterwards the connection can no longer see it. */
    if (v->shared && v->key.uid == v->base.uid && v->key.epoch == v->base.epoch)
        status = shared_catch_up(v);
    return status;
}

void view_rolled_back(view *v)
{
    overlay_drop(v);
    own_drop(v);
}

void view_ended(view *v)
{
    view_rolled_back(v);
    v->changed = v->uncertain = v->index_changed = false;
}

void view_uncertain(view *v)
{
    v->uncertain = true;
}

void view_committed(view *v, const view_commit *commit)
{
    if (!v->shared || v->key.uid != commit->after->uid || v->key.epoch != commit->after->epoch)
        return;
    mirror *m = v->shared;
    mirror_lock_write(m);
    const mirror_state state = mirror_state_of(m);
    if (state.loaded && !state.abandoned && state.sequence == commit->before->sequence) {
        ww_status status = commit->added.count > 0 ? mirror_append(m, &commit->added) : WW_OK;
        if (status == WW_OK && commit->removed_count > 0)
            status = mirror_remove(m, commit->removed, commit->removed_count);
        if (status == WW_OK)
            mirror_set_state(m, commit->after->sequence, commit->after->next_place);
        else
            mirror_abandon(m);
    }
    mirror_unlock(m);
}

ww_status view_reserve(view *v, const collection_record *record, int64_t rows_more, bool *loaded)
{
    *loaded = false;
    v->record = *record;
    ww_status status = device_ready(v);
    if (status == WW_OK)
        status = shared_ready(v);
    if (status != WW_OK || !v->shared)
        return status;
    mirror_lock_read(v->shared);
    mirror_state state = mirror_state_of(v->shared);
    mirror_unlock(v->shared);
    if (state.abandoned)
        shared_drop(v);
    *loaded = state.loaded && !state.abandoned;
    if (!*loaded || rows_more == 0)
        return WW_OK;
    mirror_lock_write(v->shared);
    status = mirror_reserve(v->shared, rows_more);
    mirror_unlock(v->shared);
    return status;
}

void view_reload(view *v)
{
    if (!v->shared)
        return;
    mirror_lock_write(v->shared);
    mirror_abandon(v->shared);
    mirror_unlock(v->shared);
}

ww_status view_balance(view *v)
{
    mirror *m = v->shared;
    if (!m)
        return WW_OK;
    mirror_lock_write(m);
    const ww_status status = ww_collection_move(mirror_collection(m), v->device);
    mirror_unlock(m);
    return status;
}

ww_status view_move(view *v, ww_device *device)
{
    ww_device *retained = NULL;
    const ww_status status = device_share(device, &retained);
    if (status != WW_OK)
        return status;
    shared_drop(v);
    own_drop(v);
    ww_device_close(v->device);
    v->device = retained;
    return WW_OK;
}

bool view_is_outdated(const view *v)
{
    return v->behind;
}

ww_status view_check(view *v, ww_damage_report *report, ww_progress progress, void *user)
{
    return ww_collection_check(mirror_collection(v->active), report, progress, user);
}

ww_status view_describe(view *v, ww_collection_info *info)
{
    ww_status status = WW_OK;
    mirror *m = v->shared;
    if (m) {
        ww_collection_info found = ww_collection_info_default();
        mirror_lock_read(m);
        status = ww_collection_describe(mirror_collection(m), &found);
        mirror_unlock(m);
        if (status == WW_OK)
            *info = found;
    }
    info->dim = v->record.dim;
    info->metric = v->record.metric;
    info->screen = v->screen;
    info->type = v->record.type;
    info->rows = v->rows;
    info->rows_live = v->record.live;
    info->mask_rows = v->record.next_place;
    return status;
}
