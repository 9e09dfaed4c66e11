/* In place of the follower where the build found no libpq: to follow says what is missing. */
#include "base/status.h"
#include "server/cluster/follow.h"
#include "server/out.h"

ww_status follower_start(ww_store *store, const follow_config *config, void (*changed)(void *user), void *user,
                         follower **started)
{
    (void)store, (void)config, (void)changed, (void)user, (void)started;
    return ww_fail(WW_UNSUPPORTED,
                   "this program was built without PostgreSQL's client library, so it cannot follow a database; "
                   "install libpq-dev and build it again");
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

void follower_hurry(follower *f, uint64_t lsn)
{
    (void)f, (void)lsn;
}

uint64_t follower_lsn(follower *f)
{
    return f ? 1 : 0;
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
