/* In place of the follower where the build found no libpq: to follow says what is missing. */
#include "base/status.h"
#include "server/cluster/follow.h"
#include "server/cluster/sql_writer.h"
#include "server/nodes/members.h"
#include "server/nodes/nodes.h"
#include "server/nodes/scatter.h"
#include "server/out.h"

ww_status follower_start(ww_store *store, const follow_config *config, const follow_listener *listener, follower **started)
{
    (void)store, (void)config, (void)listener, (void)started;
    return ww_fail(WW_UNSUPPORTED,
                   "this program was built without PostgreSQL's client library or libcurl, so it cannot follow a database; "
                   "install libpq-dev and libcurl4-gnutls-dev and build it again");
}

void follower_stop(follower *f)
{
    (void)f;
}

follow_health follower_health(follower *f, char *why, size_t capacity)
{
    (void)f;
    if (capacity > 0)
        why[0] = '\0';
    return FOLLOW_FRESH;
}

void follower_name(follower *f, char name[NODE_NAME_BYTES])
{
    (void)f;
    name[0] = '\0';
}

bool follower_serves(follower *f)
{
    return f != NULL;
}

void follower_hurry(follower *f, uint64_t lsn)
{
    (void)f, (void)lsn;
}

uint64_t follower_lsn(follower *f)
{
    return f ? 1 : 0;
}

uint64_t follower_version(follower *f)
{
    return follower_lsn(f);
}

bool follower_rows(follower *f, uint64_t version, uint64_t *digest)
{
    *digest = 0;
    return f && version == 0;
}

void follower_hold(follower *f)
{
    (void)f;
}

void follower_release(follower *f)
{
    (void)f;
}

void follower_distrust(follower *f, const char *why)
{
    (void)f, (void)why;
}

void follower_describe(follower *f, const char *collection, out *o)
{
    (void)f, (void)collection;
    out_text(o, "{}");
}

void follower_metrics(follower *f, out *o)
{
    (void)f, (void)o;
}

ww_status nodes_start(const follow_config *config, follower *f, nodes **started)
{
    (void)f, (void)started;
    return follower_start(NULL, config, NULL, NULL);
}

void nodes_stop(nodes *n)
{
    (void)n;
}

int32_t nodes_list(nodes *n, cluster_node list[NODES_MAX])
{
    (void)n, (void)list;
    return 0;
}

void nodes_why(nodes *n, char *why, size_t capacity)
{
    (void)n;
    if (capacity > 0)
        why[0] = '\0';
}

ww_status members_list(const char *conninfo, void (*tell)(void *user, const cluster_member *member), void *user)
{
    (void)conninfo, (void)tell, (void)user;
    return follower_start(NULL, NULL, NULL, NULL);
}

ww_status members_remove(const char *conninfo, const char *name, bool force)
{
    (void)name, (void)force;
    return members_list(conninfo, NULL, NULL);
}

ww_status scatter_start(struct server *s, nodes *n, scatter **started)
{
    (void)s, (void)n, (void)started;
    return follower_start(NULL, NULL, NULL, NULL);
}

void scatter_stop(scatter *sc)
{
    (void)sc;
}

void scatter_submit(scatter *sc, struct request *r, const scatter_target *target)
{
    (void)sc, (void)r, (void)target;
}

bool scatter_is_exact(const struct request *r)
{
    return r == NULL;
}

bool scatter_can_verify(scatter *sc, const struct request *r)
{
    (void)r;
    return sc != NULL;
}

void scatter_metrics(scatter *sc, out *o)
{
    (void)sc, (void)o;
}

/* ---- the writer, which is never made ------------------------------------------------------------------------------------- */

static ww_status absent(void)
{
    return follower_start(NULL, NULL, NULL, NULL);
}

ww_status sql_writer_create(const follow_config *config, follower *f, sql_writer **made)
{
    (void)config, (void)f, (void)made;
    return absent();
}

void sql_writer_destroy(sql_writer *w)
{
    (void)w;
}

ww_status sql_writer_begin(sql_writer *w)
{
    (void)w;
    return absent();
}

ww_status sql_writer_commit(sql_writer *w)
{
    return sql_writer_begin(w);
}

void sql_writer_rollback(sql_writer *w)
{
    (void)w;
}

sql_writer *sql_writer_here(void)
{
    return NULL;
}

ww_status sql_writer_upsert(sql_writer *w, const char *collection, const ww_rows *rows)
{
    (void)w, (void)collection, (void)rows;
    return absent();
}

ww_status sql_writer_update(sql_writer *w, const char *collection, const ww_rows *rows)
{
    return sql_writer_upsert(w, collection, rows);
}

ww_status sql_writer_discard(sql_writer *w, const char *collection, const char *const *ids, int64_t count)
{
    (void)w, (void)collection, (void)ids, (void)count;
    return absent();
}

ww_status sql_writer_set_payloads(sql_writer *w, const char *collection, const char *const *ids, const char *const *payloads,
                                  int64_t count)
{
    (void)payloads;
    return sql_writer_discard(w, collection, ids, count);
}

ww_status sql_writer_copy_points(sql_writer *w, const char *from, const char *to)
{
    (void)to;
    return sql_writer_drop_collection(w, from);
}

ww_status sql_writer_load(sql_writer *w, const char *collection, ww_collection *to, const char *const *ids, int64_t count)
{
    (void)to;
    return sql_writer_discard(w, collection, ids, count);
}

ww_status sql_writer_create_collection(sql_writer *w, const ww_collection_config *config, const char *kind)
{
    (void)w, (void)config, (void)kind;
    return absent();
}

ww_status sql_writer_drop_collection(sql_writer *w, const char *name)
{
    (void)w, (void)name;
    return absent();
}

ww_status sql_writer_note(sql_writer *w, const char *name, const char *value)
{
    (void)value;
    return sql_writer_drop_collection(w, name);
}

ww_status sql_writer_notes(sql_writer *w, const char *prefix, void (*tell)(void *user, const char *rest, const char *value),
                           void *user)
{
    (void)tell, (void)user;
    return sql_writer_drop_collection(w, prefix);
}
