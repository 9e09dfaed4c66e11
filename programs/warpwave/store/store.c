/* `warpwave store`: collections in a SQLite file. */
#include "warpwave/store/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warpwave/ivf.h>
#include <warpwave/map.h>

#include "base/text.h"
#include "snapshot/snapshot.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"

/* ---- what is open ---------------------------------------------------------------------------------------------------------
 */

/* A store's file always has bytes. One that has none may have had collections, until something emptied it. */
static void say_if_empty(const char *path)
{
    struct stat facts;
    if (terminal_notes() && stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0)
        fprintf(stderr, "warpwave: note: %s has 0 bytes and is opened as a new store; if it had collections, they are lost\n",
                path);
}

ww_status store_call_open(store_call *call, const ww_store_config *config, const char *device, const char *name)
{
    call->info = ww_collection_info_default();
    ww_status status = command_open_device(device, &call->device);
    say_if_empty(call->operands[0]);
    if (status == WW_OK)
        status = ww_store_open(call->operands[0], call->device, config, &call->store);
    if (status == WW_OK && name)
        status = ww_store_collection(call->store, name, &call->collection);
    if (status == WW_OK && name)
        status = ww_collection_describe(call->collection, &call->info);
    return status;
}

void store_call_close(store_call *call)
{
    ww_collection_destroy(call->collection);
    ww_store_close(call->store);
    ww_device_close(call->device);
}

/* ---- small actions --------------------------------------------------------------------------------------------------------
 */

static ww_status create_run(store_call *call)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = call->operands[1];
    config.dim = (int32_t)call->settings.dim;
    config.metric = (ww_metric)call->settings.metric;
    config.type = (ww_vector_type)call->settings.type;
    return ww_store_create(call->store, &config, NULL);
}

static ww_status drop_run(store_call *call)
{
    return ww_store_drop(call->store, call->operands[1]);
}

static ww_status rename_run(store_call *call)
{
    return ww_store_rename(call->store, call->operands[1], call->operands[2]);
}

static ww_status index_run(store_call *call)
{
    return ww_store_index(call->store, call->operands[1], call->operands[2]);
}

/* Between two steps others read and write. */
static ww_status compact_steps(const store_call *call)
{
    enum { STEP_BYTES = 16 << 20 };
    progress bar;
    int64_t left = 0, total = 0;
    ww_status status = WW_OK;
    do {
        status = ww_store_shrink(call->store, call->operands[1], STEP_BYTES, &left);
        if (total == 0)
            progress_begin(&bar, "giving space back", total = left + 1);
        if (status == WW_OK && progress_report(total - left, total, &bar) != 0)
            status = interrupt_check();
    } while (status == WW_OK && left > 0);
    progress_end(&bar);
    return status;
}

static ww_status compact_run(store_call *call)
{
    progress bar;
    if (call->settings.step)
        return compact_steps(call);
    progress_begin(&bar, "compacting", call->info.rows_live);
    const ww_status status = ww_collection_compact(call->collection, progress_report, &bar);
    progress_end(&bar);
    return status;
}

static ww_status backup_run(store_call *call)
{
    progress bar;
    if (!call->settings.force && access(call->operands[1], F_OK) == 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "%s exists already; --force replaces it", call->operands[1]));
    progress_begin(&bar, "copying pages", 0);
    const ww_status status = ww_store_backup(call->store, call->operands[1], progress_report, &bar);
    progress_end(&bar);
    return status;
}

static ww_status restore_run(store_call *call)
{
    progress bar;
    const snapshot_call snapshot = {call->store, call->device, call->operands[1], progress_report, &bar};
    progress_begin(&bar, "restoring collections", 0);
    const ww_status status = call->settings.restored
                                 ? snapshot_restore(&snapshot, call->settings.restored, call->settings.restored)
                                 : snapshot_restore_all(&snapshot);
    progress_end(&bar);
    return status;
}

static ww_status check_run(store_call *call)
{
    progress bar;
    progress_begin(&bar, "checking rows", 0);
    const ww_status status = ww_store_check(call->store, progress_report, &bar);
    progress_end(&bar);
    if (status == WW_OK && !call->settings.json && terminal_notes())
        printf("sound\n");
    if (status == WW_OK && call->settings.json)
        printf("{\"sound\": true}\n");
    return status;
}

static ww_status upgrade_run(store_call *call)
{
    progress bar;
    progress_begin(&bar, "upgrading rows", 0);
    const ww_status status = ww_store_upgrade(call->store, progress_report, &bar);
    progress_end(&bar);
    if (status == WW_OK && !call->settings.json)
        printf("upgraded\n");
    if (status == WW_OK && call->settings.json)
        printf("{\"done\": \"upgrade\"}\n");
    return status;
}

/* ---- the command ----------------------------------------------------------------------------------------------------------
 */

#define FLAG(...)    OPTION_IS_FLAG(store_settings, __VA_ARGS__)
#define TEXT(...)    OPTION_IS_TEXT(store_settings, __VA_ARGS__)
#define INTEGER(...) OPTION_IS_INTEGER(store_settings, __VA_ARGS__)
#define CHOICE(...)  OPTION_IS_CHOICE(store_settings, __VA_ARGS__)
#define LIST(...)    OPTION_IS_LIST(store_settings, __VA_ARGS__)
#define JSON         FLAG(json, "--json", "print JSON")
#define QUIET        FLAG(quiet, "--quiet", "show no progress bar and no notes")
#define DIM          INTEGER(dim, true, "--dim", "N", 1, WW_DIM_MAX, "numbers per vector")
#define METRIC       CHOICE(metric, false, "--metric", "cosine|l2|dot", "what to rank by; default: cosine")
#define TYPE         CHOICE(type, false, "--type", "f32|f16|bf16|i8|u8", "type of the stored vectors; default: f32")
#define SYNC         CHOICE(synchronous, false, "--synchronous", "full|normal|off", "when a write is done; default: full")
#define FORMAT       TEXT(format, false, "--format", "F", "format of a file whose name does not show it: npy, fbin, csv, jsonl, ...")
#define IDS          TEXT(ids, false, "--ids", "FILE", "ids of the rows to add, get or remove, one per line; export writes them")
#define ID_COLUMN                                                                                                              \
    TEXT(id_column, false, "--id-column", "C", "the column of a CSV file that holds the ids: its name, or its number from 1")
#define PAYLOADS                                                                                                               \
    TEXT(payloads, false, "--payloads", "FILE",                                                                                \
         "payloads: one JSON text per line, an empty line for none, or a CSV file (.csv) with the names of its fields in the " \
         "first line; export writes lines")
#define RESUME FLAG(resume, "--resume", "with a file: go on after the last batch that an interrupted run has added")
#define UPSERT FLAG(upsert, "--upsert", "replace rows that have the same id")
#define ID     LIST(id, false, "--id", "ID", "the id of a row to add, get or remove; may be repeated for get and remove")
#define VECTOR TEXT(vector, false, "--vector", "JSON", "one vector, as in '[0.1, 2]'")
#define MODEL                                                                                                                  \
    TEXT(model, false, "--model", "M", "with --text: the model, a file or a name; search needs it only if the file has moved")
#define YES     FLAG(yes, "--yes", "fetch a model that is given by its name without asking")
#define DEVICE  TEXT(device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto")
#define VECTORS FLAG(vectors, "--vectors", "also print the vectors")
#define MODE    CHOICE(mode, false, "--mode", "vector|text|hybrid", "with --text: by vectors, words or both; default: vector")
#define FUSION                                                                                                                 \
    CHOICE(fusion, false, "--fusion", "ranks|scores",                                                                          \
           "with --mode hybrid, and beside --sparse: how the lists become one; default: ranks")
#define SPARSE TEXT(sparse, false, "--sparse", "JSON", "a sparse vector: '{\"indices\": [3, 7], \"values\": [0.5, 1]}'")
#define FORCE  FLAG(force, "--force", "replace an existing store")

#define SEED_OF(what) INTEGER(seed, false, "--seed", "N", 0, INT64_MAX, what)

static const option none_options[] = {JSON};
static const option create_options[] = {DIM, METRIC, TYPE, QUIET, SYNC, JSON};
static const option write_options[] = {QUIET, SYNC, JSON};
static const option compact_options[] = {
    FLAG(step, "--step", "give space back in small steps, while others read and write; rows keep their numbers"), QUIET, SYNC,
    JSON};
static const option backup_options[] = {FORCE, QUIET, SYNC, JSON};
static const option restore_options[] = {TEXT(restored, false, "--collection", "NAME", "only this collection; default: all"),
                                         QUIET, SYNC, JSON};
static const option add_options[] = {
    TEXT(queries, false, "--in", "FILE", "the vectors"),
    FORMAT,
    IDS,
    ID_COLUMN,
    PAYLOADS,
    VECTOR,
    SPARSE,
    ID,
    TEXT(payload, false, "--payload", "JSON", "the payload of the one row"),
    TEXT(text, false, "--text", "FILE",
         "texts to embed, one per line, or JSON lines; or a folder of documents (.txt, .md, ...)"),
    MODEL,
    YES,
    INTEGER(chunk, false, "--chunk", "N", 1, 1000000,
            "with --text: cut documents into chunks of N tokens; default for a folder: 256"),
    INTEGER(overlap, false, "--overlap", "N", 0, 1000000,
            "with --chunk: tokens that a chunk shares with the one before; default: 32"),
    TEXT(query_prefix, false, "--query-prefix", "P",
         "with --text: put before texts that are searched for; kept with the collection"),
    TEXT(document_prefix, false, "--document-prefix", "P",
         "with --text: put before texts that are added; kept with the collection"),
    DEVICE,
    UPSERT,
    RESUME,
    SYNC,
    QUIET,
    JSON};
static const option import_options[] = {FORMAT, IDS, ID_COLUMN, PAYLOADS, METRIC, TYPE, UPSERT, RESUME, SYNC, QUIET, JSON};
static const option export_options[] = {FORMAT, IDS, PAYLOADS, QUIET, JSON};
#define CONDITIONS                                                                                                             \
    TEXT(where, false, "--where", "SQL", "only rows that meet this condition, as in \"payload->>'$.year' > 2000\""),           \
        TEXT(filter, false, "--filter", "JSON", "only rows whose payload meets it, as in '{\"year\": {\"$gt\": 2000}}'"),      \
        LIST(params, false, "--param", "N=V",                                                                                  \
             "the value of a parameter :N of --where, or a list for IN, [1, 2]; may be repeated")
#define LIMIT(help) INTEGER(limit, false, "--limit", "N", 0, WW_ROWS_MAX, help)
#define AFTER                                                                                                                  \
    INTEGER(after, false, "--after", "H", 0, INT64_MAX - 1, "only rows after this handle, the last one of the previous page")
static const option get_options[] = {ID,    IDS,     CONDITIONS, LIMIT("a page of N rows, in order of handles; default: all"),
                                     AFTER, VECTORS, JSON};
static const option count_options[] = {CONDITIONS, JSON};
static const option remove_options[] = {
    ID, IDS, CONDITIONS, FLAG(missing_ok, "--missing-ok", "ignore ids that do not exist"), QUIET, SYNC, JSON};
#define SEARCH_OPTIONS                                                                                                         \
    TEXT(queries, false, "--queries", "FILE", "the vectors to search for; - is standard input"),                               \
        INTEGER(k, false, "-k", "N", 1, WW_K_MAX, "neighbours per query, 1 to 16384; default: 10"), CONDITIONS,                \
        TEXT(radius, false, "--radius", "R", "all rows within this distance (l2) instead of the nearest k"),                   \
        TEXT(min_score, false, "--min-score", "S", "all rows with at least this score (cosine, dot)"),                         \
        LIMIT("with --radius or --min-score: the best N; default: 1000"), DEVICE
static const option search_options[] = {
    SEARCH_OPTIONS,
    INTEGER(nprobe, false, "--nprobe", "N", 1, WW_IVF_LISTS_MAX,
            "read only the N nearest lists of the index: faster, and may miss rows; default: all rows, exactly"),
    TEXT(recall_text, false, "--recall", "R", "read as many lists as this recall needs, such as 0.95, after `calibrate`"),
    TEXT(text, false, "--text", "T", "a text to search for; - reads texts from standard input, one per line"),
    MODEL,
    YES,
    MODE,
    FUSION,
    TEXT(weights, false, "--weights", "W,...",
         "the weights of the lists of vectors, words and --sparse, as far as they are fused; "
         "default: 1 each"),
    TEXT(rerank, false, "--rerank", "MODEL", "with --text: rerank the best hits with this model"),
    INTEGER(candidates, false, "--candidates", "N", 1, WW_K_MAX,
            "with --rerank, --mode hybrid, --mmr or beside --sparse: number of hits to rank again; default with --rerank and "
            "--sparse: 100"),
    TEXT(mmr, false, "--mmr", "L", "prefer hits that differ from each other: 0 to 1; 1 ranks by relevance only"),
    TEXT(group_by, false, "--group-by", "F", "group hits by a field of their payloads"),
    INTEGER(groups, false, "--groups", "N", 1, WW_K_MAX, "with --group-by: at most N groups; default: 10"),
    INTEGER(group_size, false, "--group-size", "N", 1, WW_K_MAX, "with --group-by: at most N hits of each group; default: 1"),
    INTEGER(expand, false, "--expand", "N", 0, WW_EXPAND_MAX,
            "with --text: print N more chunks of the document before and after each hit"),
    VECTOR,
    SPARSE,
    CHOICE(modifier, false, "--modifier", "none|idf",
           "with --sparse: multiply by the inverse document frequency; default: none"),
    FORMAT,
    QUIET,
    JSON};
static const option build_ivf_options[] = {
    INTEGER(nlist, false, "--nlist", "N", 1, WW_IVF_LISTS_MAX, "lists; default: 4 times the square root of the rows"),
    INTEGER(sample_rows, false, "--sample-rows", "N", 1, WW_ROWS_MAX, "rows that k-means learns from; default: 256 per list"),
    INTEGER(iterations, false, "--iterations", "N", 1, 1000, "rounds of k-means; default: 10"),
    SEED_OF("seed for the sample and the first centroids; default: 0"),
    DEVICE,
    SYNC,
    QUIET,
    JSON};
static const option calibrate_options[] = {
    INTEGER(k, false, "-k", "N", 1, 1024, "neighbours per query that the recall counts; default: 10"),
    TEXT(queries, false, "--queries", "FILE", "typical queries, 299 or more; default: rows of the collection"),
    FORMAT,
    INTEGER(query_count, false, "--query-count", "N", 299, 1 << 20, "rows to draw as queries; default: 1000"),
    TEXT(recall_text, false, "--recall", "R",
         "read the fewest lists for this recall, such as 0.95; default: on average over all"),
    SEED_OF("seed for drawing rows; default: 0"),
    DEVICE,
    SYNC,
    QUIET,
    JSON};
static const option map_options[] = {
    TEXT(out, true, "--out", "FILE", "where to write the map: a picture (.svg, .png) or the points (.npy)"),
    TEXT(color, false, "--color", "F", "colour the points by a field of their payloads"),
    TEXT(ids, false, "--ids", "FILE", "write the ids of the points, one per line"),
    INTEGER(seed, false, "--seed", "N", 0, INT64_MAX, "another seed gives another map; default: the kept map's, or 0"),
    INTEGER(neighbours, false, "--neighbours", "N", 2, WW_MAP_NEIGHBOURS_MAX,
            "neighbours of each row; default: as in the kept map, or 15"),
    INTEGER(steps, false, "--steps", "N", 1, WW_MAP_STEPS_MAX, "steps of the layout; default: as in the kept map, or 2000"),
    FLAG(remake, "--remake", "make the map again from all rows"),
    DEVICE,
    SYNC,
    QUIET,
    JSON};
typedef struct store_way {
    ww_status (*run)(store_call *call);
    bool makes;         /* create the file if it does not exist */
    bool reads;         /* writes nothing */
    bool on_collection; /* opens the collection NAME */
    const char *done;   /* what to print at the end, if the action prints nothing */
} store_way;

#define TAKES(options, ...)                                                                                                    \
    (options), sizeof(options) / sizeof *(options), &(const store_way)                                                         \
    {                                                                                                                          \
        __VA_ARGS__                                                                                                            \
    }

static const action actions[] = {
    {"create", "STORE NAME", "make an empty collection of vectors with --dim numbers, and the file if it does not exist",
     TAKES(create_options, create_run, .makes = true, .done = "created")},
    {"drop", "STORE NAME", "remove a collection with all its rows", TAKES(write_options, drop_run, .done = "dropped")},
    {"rename", "STORE NAME NEW", "give a collection another name", TAKES(write_options, rename_run, .done = "renamed")},
    {"list", "STORE", "list the collections", TAKES(none_options, store_print_list, .reads = true)},
    {"info", "STORE", "list the collections, with the figures of the file",
     TAKES(none_options, store_print_info, .reads = true)},
    {"add", "STORE NAME",
     "add one row (--vector, --sparse, --id, --payload), the rows of a file (--in, --ids, --payloads), or texts (--text, "
     "--model); "
     "for texts it makes the collection if it does not exist",
     TAKES(add_options, store_add, .on_collection = true)},
    {"import", "STORE NAME FILE", "add the rows of a file; make the collection if it does not exist",
     TAKES(import_options, store_import, .makes = true)},
    {"export", "STORE NAME FILE", "write the rows to a file",
     TAKES(export_options, store_export, .reads = true, .on_collection = true)},
    {"get", "STORE NAME",
     "print rows by their ids (--id, --ids) or conditions (--where, --filter), or all of them, page by page (--limit, --after)",
     TAKES(get_options, store_get, .reads = true, .on_collection = true)},
    {"remove", "STORE NAME",
     "remove rows by their ids (--id, --ids), none if one of them does not exist, or by conditions (--where, --filter)",
     TAKES(remove_options, store_remove, .on_collection = true)},
    {"count", "STORE NAME", "count all rows, or those that meet conditions (--where, --filter)",
     TAKES(count_options, store_count, .reads = true, .on_collection = true)},
    {"search", "STORE NAME",
     "find the rows nearest to --vector, to --text, to --sparse, to several of these, or to each row of --queries",
     TAKES(search_options, store_search, .reads = true, .on_collection = true)},
    {"map", "STORE NAME", "draw all rows as points in a plane, similar rows close together; the map is kept in the file",
     TAKES(map_options, store_map, .on_collection = true)},
    {"build-ivf", "STORE NAME", "build the index that searches with --nprobe and --recall read; it is kept in the file",
     TAKES(build_ivf_options, store_build_ivf, .on_collection = true)},
    {"calibrate", "STORE NAME", "measure how many lists of the index each recall needs, for searches with --recall",
     TAKES(calibrate_options, store_calibrate, .on_collection = true)},
    {"drop-ivf", "STORE NAME", "remove that index",
     TAKES(write_options, store_drop_ivf, .on_collection = true, .done = "dropped the index of")},
    {"index", "STORE NAME PATH", "make an index for --where over the values at PATH, such as '$.lang', in payloads",
     TAKES(write_options, index_run, .done = "indexed")},
    {"compact", "STORE NAME", "free the space of removed rows in memory and in the file",
     TAKES(compact_options, compact_run, .on_collection = true, .done = "compacted")},
    {"backup", "STORE FILE", "copy the store, which may be in use, to another file",
     TAKES(backup_options, backup_run, .reads = true, .done = "copied to")},
    {"restore", "SNAPSHOT STORE",
     "copy the collections of a snapshot or a backup into a store, which may be in use: each replaces the one with its name, "
     "in one "
     "step",
     TAKES(restore_options, restore_run, .makes = true, .done = "restored")},
    {"upgrade", "STORE", "add what files of earlier versions lack: checksums of their rows",
     TAKES(write_options, upgrade_run, .makes = false)},
    {"check", "STORE", "read and check everything", TAKES(write_options, check_run, .reads = true)},
};

static void say_done(const action *a, const store_call *call)
{
    const store_way *way = a->way;
    if (!way->done)
        return;
    if (call->settings.json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        json_open(&w, NULL, '{');
        json_put_text(&w, "done", a->name);
        json_put_text(&w, strcmp(a->name, "backup") == 0 || strcmp(a->name, "restore") == 0 ? "file" : "collection",
                      call->operands[1]);
        json_close(&w);
        return;
    }
    if (!terminal_notes())
        return;
    printf("%s ", way->done);
    print_plain(stdout, call->operands[1]);
    putchar('\n');
}

/* Opening a store makes its file; one that failed to fill it must not leave it. */
static void remove_if_empty(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == 0)
        (void)unlink(path);
}

/* Only some actions load vectors or compute; the others run on the CPU, which is always available. */
static ww_status act(const action *a, store_call *call)
{
    const store_way *way = a->way;
    ww_store_config config = ww_store_config_default();
    progress bar;
    if (way->run == restore_run) { /* the store is opened, whichever operand it is */
        const char *snapshot = call->operands[0];
        call->operands[0] = call->operands[1];
        call->operands[1] = snapshot;
    }
    config.synchronous = (ww_synchronous)call->settings.synchronous;
    const bool texts = way->run == store_add && call->settings.text; /* adding texts creates the collection */
    config.must_exist = !way->makes && !texts;
    config.read_only = way->reads;
    config.loading = progress_report;
    config.loading_user = &bar;
    progress_begin(&bar, "loading vectors", 0);
    const bool computes = way->run == store_search || way->run == store_map || way->run == store_build_ivf ||
                          way->run == store_calibrate || texts;
    if (way->run == store_add && call->settings.device && !texts)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--device goes with --text"));
    const bool new_file = access(call->operands[0], F_OK) != 0;
    ww_status status = store_call_open(call, &config, computes ? call->settings.device : "cpu",
                                       way->on_collection && !texts ? call->operands[1] : NULL);
    if (status == WW_OK)
        status = way->run(call);
    progress_end(&bar);
    if (status == WW_OK)
        say_done(a, call);
    store_call_close(call);
    if (new_file && status != WW_OK)
        remove_if_empty(call->operands[0]);
    return status;
}

static exit_code store_run(const char *const *arguments, size_t count)
{
    store_call call = {
        .settings = {.k = 10, .limit = -1, .after = -1, .overlap = -1, .groups = 10, .group_size = 1, .seed = -1}};
    const action *asked = command_action(&command_store, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code =
        operands_parse(&command_store, asked, (argument_list){arguments + 1, count - 1}, call.operands, &call.settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (call.settings.quiet)
        terminal_be_quiet();
    return command_end(&command_store, act(asked, &call));
}

const command command_store = {
    .name = "store",
    .summary = "Keep vectors, ids and payloads in a SQLite file, and search them with filters",
    .notes = "Files to import are .jsonl, with lines {\"id\": ..., \"vector\": [...], \"payload\": ..., \"text\": ...,\n"
             "\"sparse\": {\"indices\": [...], \"values\": [...]}} where only the vector is required, or vectors as\n"
             "`warpwave search` reads them, with --ids or --id-column and --payloads beside them. Files to export are\n"
             ".jsonl, .csv (with ids), or .npy, .fbin, .f16bin, .i8bin and .u8bin with --ids and --payloads beside them.\n"
             "Only .jsonl has texts and sparse vectors. A .npy has the type of the rows, or f32 for bf16. Rows are added in\n"
             "batches, each whole and on disk before the next; after a failure the message says how many rows are in the\n"
             "store.\n"
             "\n"
             "Texts to add are lines, or in .jsonl files lines {\"text\": ..., \"id\": ..., \"payload\": ...} where only the\n"
             "text is required. The texts are kept, and searches find them by their words, too. The model's name,\n"
             "fingerprint, pooling and prefixes are kept with the collection. From then on it finds its model by itself,\n"
             "and refuses another one. Documents of a folder are cut into chunks at the ends of sentences; a chunk's\n"
             "payload has its source, number and place.\n"
             "\n"
             "A --where is an SQL expression over id, handle and payload. A value of --param is a number if it reads as\n"
             "one, null, or otherwise a text; in single quotes it is always a text.\n",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = store_run,
};
