/* Comparing replicas. */
#include "server/cluster/digests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void digests_add(replica_digests *to, pg_lsn lsn, uint64_t digest)
{
    if (to->count > 0 && to->list[to->count - 1].lsn == lsn) {
        to->list[to->count - 1].digest = digest;
        return;
    }
    if (to->count == DIGESTS_KEPT)
        memmove(to->list, to->list + 1, (size_t)--to->count * sizeof *to->list);
    to->list[to->count++] = (row_digest){lsn, digest};
}

void digests_write(const replica_digests *from, char text[DIGESTS_TEXT_BYTES])
{
    size_t length = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < from->count; i++) {
        char lsn[PG_LSN_BYTES];
        pg_lsn_write(from->list[i].lsn, lsn);
        length += (size_t)snprintf(text + length, DIGESTS_TEXT_BYTES - length, "%s%s:%016llx", i > 0 ? " " : "", lsn,
                                   (unsigned long long)from->list[i].digest);
    }
}

void digests_read(const char *text, replica_digests *to)
{
    to->count = 0;
    while (to->count < DIGESTS_KEPT) {
        const size_t length = strcspn(text, " "), colon = strcspn(text, ":");
        char lsn[PG_LSN_BYTES], *end = NULL;
        if (length == 0 || colon >= length || colon >= sizeof lsn)
            return;
        memcpy(lsn, text, colon);
        lsn[colon] = '\0';
        row_digest *one = &to->list[to->count];
        one->digest = strtoull(text + colon + 1, &end, 16);
        if (end != text + length || !pg_lsn_read(lsn, &one->lsn))
            return;
        to->count++;
        text += length + (text[length] == ' ');
    }
}

static const row_digest *find(const replica_digests *replica, pg_lsn lsn)
{
    for (int32_t i = replica->count - 1; i >= 0; i--)
        if (replica->list[i].lsn == lsn)
            return &replica->list[i];
    return NULL;
}

/* Replicas with the same digest at a place. */
typedef struct group {
    uint64_t digest;
    int32_t count;
    pg_lsn copied;
    const char *name;
} group;

static group group_of(const replica_digests *list, int32_t count, row_digest same)
{
    group g = {.digest = same.digest, .name = ""};
    for (int32_t i = 0; i < count; i++) {
        const row_digest *one = find(&list[i], same.lsn);
        if (!one || one->digest != same.digest)
            continue;
        g.count++;
        g.copied = list[i].copied > g.copied ? list[i].copied : g.copied;
        g.name = g.name[0] == '\0' || strcmp(list[i].name, g.name) < 0 ? list[i].name : g.name;
    }
    return g;
}

static bool is_better(const group *a, const group *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->copied != b->copied ? a->copied > b->copied : strcmp(a->name, b->name) < 0;
}

digest_verdict digests_compare(const replica_digests *list, int32_t count, int32_t own, pg_lsn *at)
{
    for (int32_t k = list[own].count - 1; k >= 0; k--) {
        const row_digest mine = list[own].list[k];
        const group us = group_of(list, count, mine);
        int32_t others = 0;
        bool better = false;
        for (int32_t i = 0; i < count; i++) {
            const row_digest *one = i == own ? NULL : find(&list[i], mine.lsn);
            if (!one)
                continue;
            others++;
            const group them = group_of(list, count, *one);
            better = better || (one->digest != mine.digest && is_better(&them, &us));
        }
        *at = mine.lsn;
        if (others > 0)
            return better ? DIGESTS_OWN_WRONG : us.count == others + 1 ? DIGESTS_AGREE : DIGESTS_OTHER_WRONG;
    }
    return DIGESTS_AGREE;
}
