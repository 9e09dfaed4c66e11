/* Searches that two replicas of each shard compute. Equal rows give equal bits on every device, so answers of replicas that say
 * they have the same rows must be equal. If they are not, both compute the search again on the CPU from their files, which is
 * the answer then; the one whose memory does not give that leaves service by itself (again.c). If the files differ, too, a
 * third replica decides, and the one that it contradicts must leave service. */
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
        part_of(g, i, PART_ANSWER_AGAIN)->done = part_of(g, i, PART_WITNESS_AGAIN)->done = part_of(g, i, PART_THIRD)->done =
            true;
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

/* Makes a part for the replica that has answered as `from`, and for no other. */
static void begin_again(gather *g, const part *from, int32_t index)
{
    part *p = &g->parts[index];
    part_begin(p);
    p->again = true;
    p->only = from->from;
    memcpy(p->name, from->name, sizeof p->name);
}

/* Asks the two replicas of a shard that differ to compute it again. */
static void ask_again(scatter *sc, gather *g, int32_t shard)
{
    for (int i = 0; i < 2; i++) {
        const int32_t index = shard + (int32_t)(i == 0 ? PART_ANSWER_AGAIN : PART_WITNESS_AGAIN) * g->count;
        begin_again(g, part_of(g, shard, i == 0 ? PART_ANSWER : PART_WITNESS), index);
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
    if (part_of(g, shard, PART_THIRD)->again) {
        out_format(&line, ",\"third_node\":\"%s\"", part_of(g, shard, PART_THIRD)->name);
        put_result(&line, "third_from_file", part_of(g, shard, PART_THIRD));
    }
    out_text(&line, "}\n");
    if (!line.failed)
        (void)!write(sc->server->log >= 0 ? sc->server->log : STDERR_FILENO, line.bytes, line.length);
    out_free(&line);
}

static bool has_answer(const part *p)
{
    return !p->missing && p->status == 200;
}

/* Do the files of both say something else, so that a third replica must decide? */
static bool is_split(const gather *g, int32_t shard)
{
    const part *first = part_of(g, shard, PART_ANSWER_AGAIN), *second = part_of(g, shard, PART_WITNESS_AGAIN);
    return first->again && has_answer(first) && has_answer(second) && compare(first, second) == DIFFERENT;
}

/* Asks a third replica to compute it from its file. */
static void ask_third(scatter *sc, gather *g, int32_t shard)
{
    part *third = part_of(g, shard, PART_THIRD);
    part_begin(third);
    third->again = true;
    third->tried[part_of(g, shard, PART_ANSWER)->from] = third->tried[part_of(g, shard, PART_WITNESS)->from] = 1;
    part_continue(sc, g, shard + (int32_t)PART_THIRD * g->count);
}

/* Which of the two that differ says what the third one says; PART_KINDS: none. */
static part_kind vote(const gather *g, int32_t shard)
{
    const part *third = part_of(g, shard, PART_THIRD);
    if (third->again && compare(third, part_of(g, shard, PART_ANSWER_AGAIN)) == SAME)
        return PART_ANSWER_AGAIN;
    return third->again && compare(third, part_of(g, shard, PART_WITNESS_AGAIN)) == SAME ? PART_WITNESS_AGAIN : PART_KINDS;
}

/* Tells the replica whose file a third one has contradicted. */
static void tell_outvoted(scatter *sc, gather *g, int32_t shard, part_kind winner)
{
    const part_kind kind = winner == PART_ANSWER_AGAIN ? PART_WITNESS_AGAIN : PART_ANSWER_AGAIN;
    const int32_t index = shard + (int32_t)kind * g->count;
    out_free(&g->parts[index].body);
    begin_again(g, part_of(g, shard, kind == PART_ANSWER_AGAIN ? PART_ANSWER : PART_WITNESS), index);
    g->parts[index].outvoted = true;
    part_continue(sc, g, index);
    g->verify = VERIFY_TELLS;
}

/* The answer is what both files say, or the only one that does, or what two of three say. */
static void decide(scatter *sc, gather *g, int32_t shard)
{
    part *answer = part_of(g, shard, PART_ANSWER), *first = part_of(g, shard, PART_ANSWER_AGAIN);
    const bool split = is_split(g, shard);
    const part_kind winner = split ? vote(g, shard) : has_answer(first) ? PART_ANSWER_AGAIN : PART_WITNESS_AGAIN;
    part *right = winner == PART_KINDS ? NULL : part_of(g, shard, winner);
    log_difference(sc, g, shard);
    if (!right || !has_answer(right)) {
        answer->missing = true;
        text_copy(answer->why, sizeof answer->why, "its replicas give different answers, and cannot decide which is right");
        return;
    }
    out_free(&answer->body);
    answer->body = right->body;
    right->body = (out){0};
    memcpy(answer->lsn, right->lsn, sizeof answer->lsn);
    if (split)
        tell_outvoted(sc, g, shard, winner);
}

static bool all_done(const gather *g)
{
    for (int32_t i = 0; i < g->part_count; i++)
        if (!g->parts[i].done)
            return false;
    return true;
}

bool verify_done(scatter *sc, gather *g)
{
    bool over = true;
    for (int32_t i = 0; g->verify == VERIFY_COMPARES && i < g->count; i++)
        over = is_over(sc, part_of(g, i, PART_WITNESS)) && over;
    if (g->verify == VERIFY_COMPARES && over)
        compare_all(sc, g);
    if (g->verify == VERIFY_DECIDES && all_done(g)) {
        g->verify = VERIFY_VOTES;
        for (int32_t i = 0; i < g->count; i++)
            if (is_split(g, i))
                ask_third(sc, g, i);
    }
    if (g->verify == VERIFY_VOTES && all_done(g)) {
        g->verify = VERIFY_OVER;
        for (int32_t i = 0; i < g->count; i++)
            if (part_of(g, i, PART_ANSWER_AGAIN)->again)
                decide(sc, g, i);
    }
    if (g->verify == VERIFY_TELLS && all_done(g))
        g->verify = VERIFY_OVER;
    return g->verify == VERIFY_OVER;
}
