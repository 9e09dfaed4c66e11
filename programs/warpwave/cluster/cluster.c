/* `warpwave cluster`: what a PostgreSQL database keeps for the servers that follow it. It asks the database, not a server, so
 * that it works when servers are gone. */
#include <stdio.h>
#include <string.h>

#include "server/nodes/members.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/operands.h"

typedef struct cluster_settings {
    const char *follow;
    bool force, json;
} cluster_settings;

#define FOLLOW_OPTION                                                                                                          \
    OPTION_IS_TEXT(cluster_settings, follow, true, "--follow", "CONNECTION",                                                   \
                   "the database that the servers follow, as in \"host=db dbname=app\"")
static const option list_options[] = {FOLLOW_OPTION, OPTION_IS_FLAG(cluster_settings, json, "--json", "print one JSON object")};
static const option remove_options[] = {
    FOLLOW_OPTION,
    OPTION_IS_FLAG(cluster_settings, force, "--force", "remove it even if the database still has sessions of it; they end")};

/* ---- list ---------------------------------------------------------------------------------------------------------------- */

static void tell_line(void *user, const cluster_member *m)
{
    int64_t *count = user;
    if ((*count)++ == 0)
        printf("%-26s %-6s %-5s %12s %9s  %s\n", "node", "state", "shard", "log kept", "seen", "address");
    char kept[32] = "no slot", seen[32] = "-";
    if (m->kept_bytes >= 0)
        snprintf(kept, sizeof kept, "%lld KiB", (long long)(m->kept_bytes >> 10));
    if (m->seen_seconds >= 0)
        snprintf(seen, sizeof seen, "%.1f s", m->seen_seconds);
    printf("%-26s %-6s %-5s %12s %9s  %s\n", m->name, m->live ? "live" : "gone", m->shard[0] != '\0' ? m->shard : "-", kept,
           seen, m->url);
}

/* The report begins with the first one: a database that cannot be asked leaves none. */
typedef struct member_report {
    json_writer to;
    bool begun;
} member_report;

static void begin(member_report *r)
{
    if (r->begun)
        return;
    r->begun = true;
    json_open(&r->to, NULL, '{');
    json_open(&r->to, "nodes", '[');
}

static void tell_json(void *user, const cluster_member *m)
{
    member_report *r = user;
    begin(r);
    json_open(&r->to, NULL, '{');
    json_put_text(&r->to, "name", m->name);
    json_put_bool(&r->to, "live", m->live);
    json_put_text(&r->to, "shard", m->shard[0] != '\0' ? m->shard : NULL);
    json_put_text(&r->to, "url", m->url[0] != '\0' ? m->url : NULL);
    json_put_integer(&r->to, "kept_bytes", m->kept_bytes);
    json_put_real(&r->to, "seen_seconds", m->seen_seconds);
    json_close(&r->to);
}

static ww_status list_as_json(const cluster_settings *s)
{
    member_report r = {.to = {.to = stdout, .digits = JSON_DIGITS_F32}};
    const ww_status status = members_list(s->follow, tell_json, &r);
    if (status != WW_OK)
        return status;
    begin(&r);
    json_close(&r.to);
    json_close(&r.to);
    return WW_OK;
}

static ww_status list_run(const char **operands, const cluster_settings *s)
{
    int64_t count = 0;
    (void)operands;
    if (s->json)
        return list_as_json(s);
    const ww_status status = members_list(s->follow, tell_line, &count);
    if (status == WW_OK && count == 0)
        puts("no server follows this database");
    return status;
}

/* ---- remove -------------------------------------------------------------------------------------------------------------- */

static ww_status remove_run(const char **operands, const cluster_settings *s)
{
    const ww_status status = members_remove(s->follow, operands[0], s->force);
    if (status == WW_OK)
        printf("%s is removed: its replication slot, its publication and its row in warpwave.nodes\n", operands[0]);
    return status;
}

typedef struct cluster_way {
    ww_status (*run)(const char **operands, const cluster_settings *s);
} cluster_way;

#define TAKES(options, function)                                                                                               \
    (options), sizeof(options) / sizeof *(options), &(const cluster_way)                                                       \
    {                                                                                                                          \
        function                                                                                                               \
    }

static const action actions[] = {
    {"list", "", "list the servers that follow a database, and how much of its log it keeps for each",
     TAKES(list_options, list_run)},
    {"remove", "NODE", "drop the replication slot, the publication and the row of a server that is gone for good",
     TAKES(remove_options, remove_run)},
};

static exit_code run(const char *const *arguments, size_t count)
{
    cluster_settings settings = {0};
    const char *operands[1] = {NULL};
    const action *asked = command_action(&command_cluster, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code =
        operands_parse(&command_cluster, asked, (argument_list){arguments + 1, count - 1}, operands, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    const cluster_way *way = asked->way;
    return command_end(&command_cluster, way->run(operands, &settings));
}

const command command_cluster = {
    .name = "cluster",
    .summary = "List and remove the servers that follow a PostgreSQL database",
    .notes =
        "A replication slot keeps the database's log until its server has read it. Remove the slot of a server that is gone\n"
        "for good, or the database's disk fills up.\n",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = run,
};
