/* Searches that two replicas of each shard compute. Equal rows give equal bits on every device, so answers of replicas that say
 * they have the same rows must be equal. If they are not, both compute the search again on the CPU from their files, which is
 * the answer then; the one whose memory does not give that leaves service by itself (again.c). */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json/json_value.h"
#include "base/text.h"
#include "server/nodes/merge.h"
#include "server/nodes/scatter_state.h"

static const double LATE_SECONDS = 1; /* then the answer goes out without the second replica's */

enum { LOGGED_BYTES = 64 << 10 }; /* of each answer */

bool scatter_is_exact(const request *r)
{
    return merge_is_exact(r);
}

bool scatter_can_verify(scatter *sc, const request *r)
{
    cluster_node list[NODES_MAX];
    int32_t replicas = 0;
    if (!merge_is_exact(r))
        return false;
    const int32_t count = nodes_list(sc->nodes, list);
    for (int32_t i = 0; i < count; i++)
        replicas += list[i].alive;
    return replicas > sc->server->config.follow.shards;
}

static part *part_of(const gather *g, int32_t shard, part_kind kind)
{
    return &g->parts[shard + (int32_t)kind * g->count];
}

void verify_begin(scatter *sc, gather *g)
{
    for (int32_t i = 0; i < g->count; i++) {
        part *witness = part_of(g, i, PART_WITNESS);
        memcpy(witness->tried, part_of(g, i, PART_ANSWER)->tried, sizeof witness->tried);
        part_continue(sc, g, i + g->count);
        part_of(g, i, PART_ANSWER_AGAIN)->done = part_of(g, i, PART_WITNESS_AGAIN)->done = true;
    }
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

typedef enum verdict { SAME, UNKNOWN, DIFFERENT } verdict;

static verdict compare(const part *a, const part *b)
{
    if (a->missing || b->missing || a->from == b->from || a->status != 200 || b->status != 200)
        return UNKNOWN;
    const char *first = merge_result(&(shard_answer){a->body.bytes, a->status});
    const char *second = merge_result(&(shard_answer){b->body.bytes, b->status});
    if (!first || !second)
        return UNKNOWN;
    const size_t length = (size_t)(json_end(first) - first);
    if (length == (size_t)(json_end(second) - second) && memcmp(first, second, length) == 0)
        return SAME;
    return a->rows[0] != '\0' && strcmp(a->rows, b->rows) == 0 ? DIFFERENT : UNKNOWN;
}

/* Returns true if the witness has answered or can no longer be expected to. */
static bool is_over(scatter *sc, part *witness)
{
    const double now = server_seconds();
    bool late = true;
    for (int i = 0; i < ATTEMPTS; i++)
        late = late && (witness->attempts[i].peer < 0 || now > witness->attempts[i].begun_seconds + LATE_SECONDS);
    if (witness->done || !late)
        return witness->done;
    part_end(sc, witness);
    witness->done = witness->missing = true;
    return true;
}

/* Asks the two replicas of a shard that differ to compute it again. */
static void ask_again(scatter *sc, gather *g, int32_t shard)
{
    for (int i = 0; i < 2; i++) {
        const part *first = part_of(g, shard, i == 0 ? PART_ANSWER : PART_WITNESS);
        const int32_t index = shard + (int32_t)(i == 0 ? PART_ANSWER_AGAIN : PART_WITNESS_AGAIN) * g->count;
        part *p = &g->parts[index];
        part_begin(p);
        p->again = true;
        p->only = first->from;
        memcpy(p->name, first->name, sizeof p->name);
        part_continue(sc, g, index);
    }
}

static void compare_all(scatter *sc, gather *g)
{
    bool known = true;
    g->verify = VERIFY_OVER;
    for (int32_t i = 0; i < g->count; i++) {
        const verdict found = compare(part_of(g, i, PART_ANSWER), part_of(g, i, PART_WITNESS));
        known = known && found != UNKNOWN;
        if (found != DIFFERENT)
            continue;
        g->verify = VERIFY_DECIDES;
        ask_again(sc, g, i);
    }
    if (g->verify == VERIFY_DECIDES)
        atomic_fetch_add(&sc->differences, 1);
    else
        atomic_fetch_add(known ? &sc->verified : &sc->unverified, 1);
}

/* ---- deciding ------------------------------------------------------------------------------------------------------------ */

static void put_result(out *o, const char *key, const part *p)
{
    const char *result = p->missing || p->status != 200 ? NULL : merge_result(&(shard_answer){p->body.bytes, p->status});
    size_t length = result ? (size_t)(json_end(result) - result) : 0;
    out_format(o, ",\"%s\":", key);
    if (length > LOGGED_BYTES)
        out_format(o, "{\"bytes\":%zu}", length);
    else if (length > 0)
        out_bytes(o, result, length);
    else
        out_text(o, "null");
}

/* One line of JSON in the access log, or on standard error if there is none. */
static void log_difference(const scatter *sc, const gather *g, int32_t shard)
{
    const request *r = g->request;
    const part *first = part_of(g, shard, PART_ANSWER), *second = part_of(g, shard, PART_WITNESS);
    struct timespec now;
    struct tm utc;
    char text[32];
    out line = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    out_format(&line, "{\"time\":\"%s\",\"difference\":\"two replicas with the same rows gave different answers\"", text);
    out_format(&line, ",\"shard\":\"%d/%d\",\"lsn\":\"%s\",\"rows\":\"%s\",\"id\":", (int)shard + 1, (int)g->count, first->lsn,
               first->rows);
    out_quoted(&line, r->id, strlen(r->id));
    out_text(&line, ",\"path\":");
    out_quoted(&line, g->path, strlen(g->path));
    out_text(&line, ",\"request\":");
    if (r->body_length > 0 && r->body_length <= LOGGED_BYTES)
        out_quoted(&line, r->body, r->body_length);
    else
        out_format(&line, "{\"bytes\":%zu}", r->body_length);
    out_format(&line, ",\"nodes\":[\"%s\",\"%s\"]", first->name, second->name);
    put_result(&line, "first", first);
    put_result(&line, "second", second);
    put_result(&line, "first_from_file", part_of(g, shard, PART_ANSWER_AGAIN));
    put_result(&line, "second_from_file", part_of(g, shard, PART_WITNESS_AGAIN));
    out_text(&line, "}\n");
    if (!line.failed)
        (void)!write(sc->server->log >= 0 ? sc->server->log : STDERR_FILENO, line.bytes, line.length);
    out_free(&line);
}

/* The answer is what both files say, or the only one that does. */
static void decide(const scatter *sc, gather *g, int32_t shard)
{
    part *answer = part_of(g, shard, PART_ANSWER);
    part *first = part_of(g, shard, PART_ANSWER_AGAIN), *second = part_of(g, shard, PART_WITNESS_AGAIN);
    part *right = first->missing || first->status != 200 ? second : first;
    log_difference(sc, g, shard);
    if (right->missing || right->status != 200 || compare(first, second) == DIFFERENT) {
        answer->missing = true;
        text_copy(answer->why, sizeof answer->why, "its replicas give different answers, and cannot decide which is right");
        return;
    }
    out_free(&answer->body);
    answer->body = right->body;
    right->body = (out){0};
    memcpy(answer->lsn, right->lsn, sizeof answer->lsn);
}

bool verify_done(scatter *sc, gather *g)
{
    bool over = true;
    for (int32_t i = 0; g->verify == VERIFY_COMPARES && i < g->count; i++)
        over = is_over(sc, part_of(g, i, PART_WITNESS)) && over;
    if (g->verify == VERIFY_COMPARES && over)
        compare_all(sc, g);
    for (int32_t i = 0; g->verify == VERIFY_DECIDES && i < g->part_count; i++)
        over = over && g->parts[i].done;
    if (g->verify != VERIFY_DECIDES || !over)
        return g->verify == VERIFY_OVER;
    for (int32_t i = 0; i < g->count; i++)
        if (part_of(g, i, PART_ANSWER_AGAIN)->again)
            decide(sc, g, i);
    g->verify = VERIFY_OVER;
    return true;
}
