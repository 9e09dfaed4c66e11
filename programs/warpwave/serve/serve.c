/* `warpwave serve`: serves a store and models over HTTP until SIGTERM or ctrl-C. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/follow_config.h"
#include "server/server.h"
#include "warpwave/command.h"
#include "warpwave/model/place.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

enum { ADDRESS_BYTES = 64, NAME_BYTES = 128 };

typedef struct serve_settings {
    const char *device, *listen;
    text_list models, hosts, origins, tables, vectors, texts, payloads;
    const char *follow, *cluster, *publication, *shard, *advertise, *node_key_file;
    int metric;
    int64_t verify;
    const char *chat_template, *keys, *key_file, *read_only_key_file, *certificate, *private_key, *access_log, *audit_log,
        *snapshots;
    bool no_auth, yes;
    int64_t queue_limit, body_mib, upload_mib, body_memory_mib, disk_reserve_mib, memory_mib, connections, timeout, drain,
        http_threads, workers;
} serve_settings;

static const option options[] = {
    OPTION_IS_LIST(serve_settings, models, false, "--model", "[NAME=]FILE",
                   "a model to serve, a file or a name; may be repeated. The default NAME is the file's, without .gguf"),
    OPTION_IS_FLAG(serve_settings, yes, "--yes", "fetch models that are given by their names without asking"),
    OPTION_IS_TEXT(serve_settings, chat_template, false, "--chat-template", "FILE",
                   "a Jinja template instead of the models' own"),
    OPTION_IS_TEXT(serve_settings, listen, false, "--listen", "ADDRESS:PORT",
                   "where to listen; port 0 takes a free one; default: 127.0.0.1:6333"),
    OPTION_IS_TEXT(serve_settings, device, false, "--device", "NAME", "auto, cpu, cuda:0, ...; default: auto"),
    OPTION_IS_TEXT(serve_settings, key_file, false, "--api-key-file", "FILE", "keys that may read and write, one per line"),
    OPTION_IS_TEXT(serve_settings, read_only_key_file, false, "--read-only-key-file", "FILE",
                   "keys that may only read, one per line"),
    OPTION_IS_TEXT(serve_settings, keys, false, "--keys", "FILE", "limited keys, which 'warpwave key' makes and revokes"),
    OPTION_IS_FLAG(serve_settings, no_auth, "--no-auth", "permit a public address without keys"),
    OPTION_IS_TEXT(serve_settings, follow, false, "--follow", "CONNECTION",
                   "follow tables of PostgreSQL, as in \"host=db dbname=app\": each is a read-only collection"),
    OPTION_IS_TEXT(serve_settings, cluster, false, "--cluster", "CONNECTION",
                   "keep all collections in PostgreSQL, in the schema warpwave, with other nodes; STORE is only a cache"),
    OPTION_IS_LIST(serve_settings, tables, false, "--table", "[NAME=]TABLE",
                   "a table to follow, as in public.docs; may be repeated. The default NAME is the table's"),
    OPTION_IS_LIST(serve_settings, vectors, false, "--vector", "COLUMN",
                   "the column with the vector; once for all tables, or once for each"),
    OPTION_IS_LIST(serve_settings, texts, false, "--text", "COLUMN",
                   "a column whose words can be searched; once for all tables, or once for each"),
    OPTION_IS_LIST(serve_settings, payloads, false, "--payload", "COLUMNS",
                   "columns for the payload, separated by commas, \"*\": all others; once for all tables, or once for each"),
    OPTION_IS_CHOICE(serve_settings, metric, false, "--metric", "cosine|l2|dot", "of followed tables; default: cosine"),
    OPTION_IS_TEXT(serve_settings, publication, false, "--publication", "NAME",
                   "a publication to follow, if this user may not make one"),
    OPTION_IS_TEXT(serve_settings, shard, false, "--shard", "I/N",
                   "have part I of N of the rows; other nodes have the others, and any node answers for all; default: 1/1"),
    OPTION_IS_TEXT(serve_settings, advertise, false, "--advertise", "URL",
                   "be one of several nodes; this is where the others reach this one, as in http://10.0.0.7:6333"),
    OPTION_IS_TEXT(serve_settings, node_key_file, false, "--node-key-file", "FILE",
                   "the key by which nodes know each other; the same for all"),
    OPTION_IS_INTEGER(serve_settings, verify, false, "--verify", "N", 1, 1000000000,
                      "let a second replica compute every N-th search, too, and compare the bits; needs --advertise"),
    OPTION_IS_TEXT(serve_settings, certificate, false, "--tls-cert", "FILE", "the certificate (PEM), for HTTPS"),
    OPTION_IS_TEXT(serve_settings, private_key, false, "--tls-key", "FILE", "the certificate's private key (PEM)"),
    OPTION_IS_LIST(serve_settings, hosts, false, "--host", "NAME",
                   "a name of this server, besides its addresses and localhost; may be repeated"),
    OPTION_IS_LIST(serve_settings, origins, false, "--cors", "ORIGIN",
                   "permit calls from web pages of this origin; \"*\": of any; may be repeated"),
    OPTION_IS_TEXT(serve_settings, access_log, false, "--access-log", "FILE",
                   "write one JSON line per request; \"-\" is standard output"),
    OPTION_IS_TEXT(serve_settings, audit_log, false, "--audit", "FILE",
                   "write one JSON line per request that changes or copies data; \"-\" is standard output"),
    OPTION_IS_INTEGER(serve_settings, queue_limit, false, "--queue-limit", "N", 1, 1000000,
                      "requests that may wait for one collection or model, others get 429; default: 1024"),
    OPTION_IS_INTEGER(serve_settings, body_mib, false, "--body-limit", "MIB", 1, 256,
                      "largest body of a request, in MiB; default: 32"),
    OPTION_IS_TEXT(serve_settings, snapshots, false, "--snapshots", "DIR", "the folder of snapshots; default: STORE.snapshots"),
    OPTION_IS_INTEGER(serve_settings, upload_mib, false, "--upload-limit", "MIB", 1, 1 << 30,
                      "largest snapshot that a client may send, in MiB; default: 65536"),
    OPTION_IS_INTEGER(serve_settings, body_memory_mib, false, "--body-memory", "MIB", 1, 1048576,
                      "memory for the bodies of all requests together, others get 503; default: 512"),
    OPTION_IS_INTEGER(
        serve_settings, memory_mib, false, "--memory", "MIB", 0, 1048576,
        "memory for the vectors of all collections: for one that is searched, those not searched for longest leave it; "
        "default: 0, no limit"),
    OPTION_IS_INTEGER(serve_settings, disk_reserve_mib, false, "--disk-reserve", "MIB", 0, 1048576,
                      "free room on the disk below which /readyz answers 503; default: 16"),
    OPTION_IS_INTEGER(serve_settings, connections, false, "--connections", "N", 1, 1000000,
                      "maximum number of connections; default: 10240"),
    OPTION_IS_INTEGER(serve_settings, timeout, false, "--timeout", "SECONDS", 1, 86400,
                      "time that a request may wait and run; default: 60"),
    OPTION_IS_INTEGER(serve_settings, drain, false, "--drain", "SECONDS", 0, 86400,
                      "time for running requests to finish after SIGTERM; default: 10"),
    OPTION_IS_INTEGER(serve_settings, http_threads, false, "--http-threads", "N", 2, 64, "threads for HTTP; default: 2"),
    OPTION_IS_INTEGER(serve_settings, workers, false, "--workers", "N", 1, 64,
                      "jobs that compute at the same time, half of them reads of one collection at most; default: 16"),
};

/* Splits "127.0.0.1:6333" and "[::1]:6333". */
static ww_status read_listen(const char *text, char address[ADDRESS_BYTES], server_config *config)
{
    const char *colon = strrchr(text, ':');
    const bool brackets = text[0] == '[' && colon && colon > text + 2 && colon[-1] == ']';
    const char *first = text + brackets, *last = colon ? colon - brackets : NULL;
    char *end = NULL;
    const long port = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || last <= first || last - first >= ADDRESS_BYTES || colon[1] == '\0' || *end != '\0' || port < 0 ||
        port > 65535)
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT, "--listen: '%s' is not an address with a port, as in 127.0.0.1:6333 or [::1]:6333", text));
    memcpy(address, first, (size_t)(last - first));
    address[last - first] = '\0';
    config->address = address;
    config->port = (int32_t)port;
    return WW_OK;
}

/* Splits NAME=FILE. Without a name, takes the file's name without folders and .gguf. */
static ww_status read_model(const char *text, char name[NAME_BYTES], server_config *config)
{
    const char *equals = strchr(text, '='), *path = equals ? equals + 1 : text;
    const char *slash = strrchr(path, '/'), *start = equals ? text : slash ? slash + 1 : path;
    size_t length = equals ? (size_t)(equals - text) : strlen(start);
    if (!equals && length > 5 && strcmp(start + length - 5, ".gguf") == 0)
        length -= 5;
    if (length == 0 || length >= NAME_BYTES || *path == '\0')
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--model: '%s' is neither FILE nor NAME=FILE", text));
    memcpy(name, start, length);
    name[length] = '\0';
    for (size_t i = 0; i < config->model_count; i++)
        if (strcmp(config->model_names[i], name) == 0)
            return command_line_wrong(
                ww_fail(WW_INVALID_ARGUMENT, "--model: two models are called '%s'; give NAME=FILE", name));
    config->model_names[config->model_count] = name;
    config->model_paths[config->model_count++] = path;
    return WW_OK;
}

static ww_status read_models(const serve_settings *s, char (*names)[NAME_BYTES], char (*paths)[PATH_MAX], server_config *config)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < s->models.count; i++) {
        status = read_model(s->models.texts[i], names[i], config);
        if (status == WW_OK)
            status = model_replace(&config->model_paths[i], s->yes, paths[i]);
    }
    return status;
}

static void read_lists(const serve_settings *s, server_config *config)
{
    for (int64_t i = 0; i < s->hosts.count; i++)
        config->hosts[config->host_count++] = s->hosts.texts[i];
    for (int64_t i = 0; i < s->origins.count; i++)
        config->origins[config->origin_count++] = s->origins.texts[i];
}

/* The text for table number `i`: the only one, or the one at the same place. */
static const char *text_for(const text_list *list, int64_t i)
{
    return list->count == 0 ? NULL : list->count == 1 ? list->texts[0] : list->texts[i];
}

static ww_status check_count(const text_list *list, const char *name, int64_t tables)
{
    if (list->count <= 1 || list->count == tables)
        return WW_OK;
    return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                      "%s: give it once for all tables, or once for each; it was given %lld times "
                                      "for %lld tables",
                                      name, (long long)list->count, (long long)tables));
}

/* Splits NAME=TABLE. */
static ww_status read_table(const char *text, char name[NAME_BYTES], table_config *table)
{
    const char *equals = strchr(text, '=');
    table->collection = NULL;
    table->table = equals ? equals + 1 : text;
    if (!equals)
        return WW_OK;
    if (equals == text || equals - text >= NAME_BYTES || equals[1] == '\0')
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--table: '%s' is neither TABLE nor NAME=TABLE", text));
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    table->collection = name;
    return WW_OK;
}

/* Reads "2/4", and checks what nodes need. */
static ww_status read_node(const serve_settings *s, follow_config *follow)
{
    enum { SHARDS_MAX = 64 };
    char *end = NULL;
    const char *text = s->shard && strcmp(s->shard, "all") != 0 ? s->shard : "1/1";
    const long shard = strtol(text, &end, 10), shards = *end == '/' ? strtol(end + 1, &end, 10) : 0;
    if (*end != '\0' || shard < 1 || shards < shard || shards > SHARDS_MAX)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                          "--shard: '%s' is not I/N with 1 <= I <= N <= %d, as in 2/4, and not 'all'", text,
                                          SHARDS_MAX));
    if (shards > 1 && !s->advertise)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--shard needs --advertise: other nodes have the other rows"));
    if (s->advertise && strncmp(s->advertise, "http://", 7) != 0 && strncmp(s->advertise, "https://", 8) != 0)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--advertise: '%s' is not a URL, as in http://10.0.0.7:6333", s->advertise));
    if (s->verify > 0 && !s->advertise)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--verify needs --advertise: another replica computes, too"));
    follow->verify = s->verify;
    follow->shard = (int32_t)shard - 1;
    follow->shards = (int32_t)shards;
    follow->advertise = s->advertise;
    follow->node_key_file = s->node_key_file;
    return WW_OK;
}

static ww_status read_follow(const serve_settings *s, table_config *tables, char (*names)[NAME_BYTES], server_config *config)
{
    if (!s->follow && (s->tables.count > 0 || s->vectors.count > 0 || s->texts.count > 0 || s->payloads.count > 0))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--table, --vector, --text and --payload need --follow"));
    if (!s->follow && !s->cluster && (s->publication || s->shard || s->advertise || s->verify > 0))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--publication, --shard, --advertise and --verify need --follow or --cluster"));
    if (s->follow && s->cluster)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--follow and --cluster: a server can do one of them"));
    if (s->cluster) {
        config->follow = (follow_config){.conninfo = s->cluster, .publication = s->publication, .cluster = true};
        return read_node(s, &config->follow);
    }
    if (!s->follow)
        return WW_OK;
    if (s->tables.count == 0 || s->vectors.count == 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--follow needs --table and --vector"));
    ww_status status = check_count(&s->vectors, "--vector", s->tables.count);
    if (status == WW_OK)
        status = check_count(&s->texts, "--text", s->tables.count);
    if (status == WW_OK)
        status = check_count(&s->payloads, "--payload", s->tables.count);
    for (int64_t i = 0; status == WW_OK && i < s->tables.count; i++) {
        tables[i] = (table_config){.vector = text_for(&s->vectors, i),
                                   .text = text_for(&s->texts, i),
                                   .payload = text_for(&s->payloads, i),
                                   .metric = (ww_metric)s->metric};
        status = read_table(s->tables.texts[i], names[i], &tables[i]);
    }
    config->follow = (follow_config){
        .conninfo = s->follow, .publication = s->publication, .tables = tables, .table_count = (size_t)s->tables.count};
    return status == WW_OK ? read_node(s, &config->follow) : status;
}

/* Waits for signals: SIGHUP reloads keys and certificates, SIGTERM and ctrl-C end the server. */
static void serve(server *s, const sigset_t *signals)
{
    for (bool running = true; running;) {
        int number = 0;
        if (sigwait(signals, &number) != 0)
            continue;
        running = number != SIGTERM && number != SIGINT;
        if (number == SIGHUP && server_reload(s) != WW_OK)
            fprintf(stderr, "warpwave serve: %s; the old ones stay\n", ww_error_message());
    }
}

enum { GRACE_SECONDS = 5 };

/* Ends the process if the server does not stop in time. What was answered is on the disk, and an unfinished transaction leaves
 * no trace. */
static void *end_late(void *seconds)
{
    const time_t wait = (time_t)(intptr_t)seconds;
    nanosleep(&(struct timespec){.tv_sec = wait}, NULL);
    fprintf(stderr, "warpwave serve: a request still runs after %lld s; ending without waiting for it\n", (long long)wait);
    _exit(EXIT_CODE_OTHER);
}

static void stop_in_time(server *s, const server_config *config)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_late, (void *)(intptr_t)(config->drain_seconds + GRACE_SECONDS)) == 0)
        pthread_detach(thread);
    server_stop(s);
}

static ww_status start_and_serve(const serve_settings *given, server_config *config)
{
    sigset_t signals;
    server *s = NULL;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* threads started after this do not receive them */
    ww_status status = command_open_device(given->device, &config->device);
    if (status == WW_OK)
        status = server_start(config, &s);
    if (status == WW_OK) {
        const bool v6 = strchr(config->address, ':') != NULL;
        fprintf(stderr, "warpwave serve: listening at %s://%s%s%s:%d\n", config->certificate ? "https" : "http", v6 ? "[" : "",
                config->address, v6 ? "]" : "", (int)server_port(s));
        serve(s, &signals);
        stop_in_time(s, config);
    }
    ww_device_close(config->device);
    return status;
}

static exit_code run(const char *const *arguments, size_t count)
{
    const action takes = {.operands = "STORE", .options = options, .option_count = sizeof options / sizeof *options};
    server_config config = server_config_default();
    serve_settings s = {.listen = "127.0.0.1:6333",
                        .device = NULL,
                        .metric = WW_COSINE,
                        .queue_limit = config.queue_limit,
                        .body_mib = config.body_bytes >> 20,
                        .upload_mib = config.upload_bytes >> 20,
                        .body_memory_mib = config.all_bodies_bytes >> 20,
                        .disk_reserve_mib = config.disk_reserve_bytes >> 20,
                        .connections = config.connections,
                        .timeout = (int64_t)config.request_seconds,
                        .drain = (int64_t)config.drain_seconds,
                        .http_threads = config.http_threads,
                        .workers = config.workers};
    char address[ADDRESS_BYTES], names[SERVER_LIST_MAX][NAME_BYTES];
    char *chat_template = NULL;
    const char *operands[1] = {NULL};
    const exit_code code = operands_parse(&command_serve, &takes, (argument_list){arguments, count}, operands, &s);
    if (code != EXIT_CODE_OK)
        return code;
    config.store = operands[0];
    config.key_file = s.key_file;
    config.read_only_key_file = s.read_only_key_file;
    config.limited_key_file = s.keys;
    config.no_auth = s.no_auth;
    config.certificate = s.certificate;
    config.private_key = s.private_key;
    config.access_log = s.access_log;
    config.audit_log = s.audit_log;
    config.snapshots = s.snapshots;
    config.upload_bytes = s.upload_mib << 20;
    config.queue_limit = s.queue_limit;
    config.body_bytes = s.body_mib << 20;
    config.all_bodies_bytes = s.body_memory_mib << 20;
    config.disk_reserve_bytes = s.disk_reserve_mib << 20;
    config.memory_bytes = s.memory_mib << 20;
    config.connections = s.connections;
    config.request_seconds = (double)s.timeout;
    config.drain_seconds = (double)s.drain;
    config.http_threads = (int32_t)s.http_threads;
    config.workers = (int32_t)s.workers;
    read_lists(&s, &config);
    table_config tables[FOLLOW_TABLES_MAX];
    char collections[FOLLOW_TABLES_MAX][NAME_BYTES];
    ww_status status = read_listen(s.listen, address, &config);
    if (status == WW_OK)
        status = read_follow(&s, tables, collections, &config);
    char(*paths)[PATH_MAX] = memory_alloc((size_t)(s.models.count + 1) * sizeof *paths);
    if (status == WW_OK)
        status = paths ? read_models(&s, names, paths, &config) : memory_failed("paths of models", sizeof *paths);
    if (status == WW_OK && s.chat_template)
        status = whole_file_read(s.chat_template, &chat_template);
    config.chat_template = chat_template;
    if (status == WW_OK)
        status = start_and_serve(&s, &config);
    memory_free(chat_template);
    memory_free(paths);
    return command_end(&command_serve, status);
}

const command command_serve = {
    .name = "serve",
    .summary = "Serve a store and models over HTTP, for clients of Qdrant and OpenAI",
    .operand = "STORE",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .notes = "Ends after SIGTERM or Ctrl-C: running requests have --drain seconds, new ones get 503. SIGHUP reads keys and "
             "certificates\n"
             "again.\n",
    .run = run,
};
