/* `warpwave key`: makes, lists and revokes the keys of a file for `warpwave serve --keys`. The file has one line of JSON for
 * each key, with the SHA-256 digest of the key instead of the key itself: that is printed once, and 256 random bits cannot be
 * found by trying. The file is replaced as a whole, and running servers notice within a second. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/files/output.h"
#include "base/json/json.h"
#include "base/json/json_value.h"
#include "server/keys/keys.h"
#include "server/out.h"
#include "warpwave/command.h"
#include "warpwave/operands.h"

enum { SECRET_BYTES = 32, DAYS_MAX = 36500 };

typedef struct key_settings {
    text_list collections;
    const char *payload;
    bool write, json;
    int64_t days, requests, rows, bytes;
} key_settings;

static const option add_options[] = {
    OPTION_IS_LIST(key_settings, collections, false, "--collection", "NAME",
                   "a collection that the key is for; may be repeated. Without it the key is for everything"),
    OPTION_IS_TEXT(key_settings, payload, false, "--payload", "JSON",
                   "see and write only points with these values, as in '{\"tenant\": \"a\"}'; needs --collection"),
    OPTION_IS_FLAG(key_settings, write, "--write", "the key may also write; without it, it may only read"),
    OPTION_IS_INTEGER(key_settings, days, false, "--days", "N", 1, DAYS_MAX, "the number of days after which the key ends"),
    OPTION_IS_INTEGER(key_settings, requests, false, "--requests", "N", 1, 1000000000, "requests that it may send in a second"),
    OPTION_IS_INTEGER(key_settings, rows, false, "--rows", "N", 1, 1000000000000,
                      "points that it may get and send in a second"),
    OPTION_IS_INTEGER(key_settings, bytes, false, "--bytes", "N", 1, 1000000000000000,
                      "bytes that it may get and send in a second")};
static const option list_options[] = {OPTION_IS_FLAG(key_settings, json, "--json", "print one JSON object")};

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

/* Reads the file, which may be missing. */
static ww_status read_file(const char *path, out *all)
{
    char piece[4096];
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return WW_OK;
    if (!file)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    while (fgets(piece, sizeof piece, file))
        out_text(all, piece);
    const bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || all->failed)
        return ww_fail(WW_IO_ERROR, "%s: cannot be read", path);
    key_table table = {0};
    const ww_status status = key_table_read(path, &table); /* what it does not understand, it does not change */
    key_table_free(&table);
    return status;
}

static ww_status write_file(const char *path, const out *all)
{
    output file;
    if (all->failed)
        return ww_fail(WW_OUT_OF_MEMORY, "no memory for the keys");
    ww_status status = output_open(&file, path);
    if (status == WW_OK)
        status = output_write(&file, all->bytes, all->length);
    if (status == WW_OK)
        status = output_finish(&file);
    output_discard(&file);
    return status;
}

/* Two commands that change the same file wait for each other. Returns a descriptor to close. */
static int lock_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    const int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        (void)flock(folder, LOCK_EX);
    return folder;
}

/* The next line of the file: its length, and the key in it. False: there is none. */
typedef struct key_line {
    const char *text;
    size_t bytes;
    char name[KEY_NAME_BYTES];
} key_line;

static bool next_line(const char **at, key_line *line)
{
    access_key *key = NULL;
    for (line->bytes = 0; **at != '\0'; *at += line->bytes) {
        line->text = *at;
        line->bytes = strcspn(*at, "\n") + ((*at)[strcspn(*at, "\n")] == '\n');
        if (key_read(line->text, line->bytes, "name", &key) == WW_OK) {
            snprintf(line->name, sizeof line->name, "%s", key->name);
            key_release(key);
            *at += line->bytes;
            return true;
        }
    }
    return false;
}

/* ---- add ----------------------------------------------------------------------------------------------------------------- */

static void put_access(out *o, const key_settings *s)
{
    out_text(o, ",\"access\":");
    if (s->collections.count == 0)
        out_text(o, s->write ? "\"m\"" : "\"r\"");
    for (int64_t i = 0; i < s->collections.count; i++) {
        out_text(o, i == 0 ? "[{\"collection\":" : ",{\"collection\":");
        out_quoted(o, s->collections.texts[i], strlen(s->collections.texts[i]));
        out_format(o, ",\"access\":\"%s\"%s%s}", s->write ? "rw" : "r", s->payload ? ",\"payload\":" : "",
                   s->payload ? s->payload : "");
    }
    out_text(o, s->collections.count > 0 ? "]" : "");
}

static void put_line(out *o, const char *name, const unsigned char digest[SHA256_BYTES], const key_settings *s)
{
    const struct {
        const char *name;
        int64_t value;
    } NUMBERS[] = {{"exp", s->days > 0 ? (int64_t)time(NULL) + s->days * 86400 : 0},
                   {"requests_per_second", s->requests},
                   {"rows_per_second", s->rows},
                   {"bytes_per_second", s->bytes}};
    out_text(o, "{\"name\":");
    out_quoted(o, name, strlen(name));
    put_access(o, s);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (NUMBERS[i].value > 0)
            out_format(o, ",\"%s\":%lld", NUMBERS[i].name, (long long)NUMBERS[i].value);
    out_text(o, ",\"sha256\":\"");
    for (size_t i = 0; i < SHA256_BYTES; i++)
        out_format(o, "%02x", digest[i]);
    out_text(o, "\"}\n");
}

static ww_status check_add(const char *name, const key_settings *s)
{
    json_fault fault;
    if (strlen(name) >= KEY_NAME_BYTES || strspn(name, "\t\n\r ") > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "the name of a key has 1 to %d bytes", KEY_NAME_BYTES - 1);
    if (s->payload && s->collections.count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "--payload needs --collection");
    if (s->payload && (strchr(s->payload, '\n') || !json_check(s->payload, strlen(s->payload), &fault)))
        return ww_fail(WW_INVALID_ARGUMENT, "--payload: '%s' is not JSON in one line", s->payload);
    return WW_OK;
}

static ww_status add_line(const char *path, const char *name, const unsigned char digest[SHA256_BYTES], const key_settings *s)
{
    out all = {0}, line = {0};
    access_key *key = NULL;
    key_line there = {0};
    ww_status status = read_file(path, &all);
    for (const char *at = all.bytes ? all.bytes : ""; status == WW_OK && next_line(&at, &there);)
        if (strcmp(there.name, name) == 0)
            status = ww_fail(WW_DUPLICATE_ID, "%s has a key '%s'; revoke it first", path, name);
    put_line(&line, name, digest, s);
    if (status == WW_OK && !line.failed)
        status = key_read(line.bytes, line.length, "name", &key);
    if (all.bytes && all.length > 0 && all.bytes[all.length - 1] != '\n')
        out_text(&all, "\n");
    out_bytes(&all, line.failed ? "" : line.bytes, line.length);
    all.failed = all.failed || line.failed;
    if (status == WW_OK)
        status = write_file(path, &all);
    key_release(key);
    out_free(&line);
    out_free(&all);
    return status;
}

static ww_status add_run(const char **operands, const key_settings *s)
{
    unsigned char random[SECRET_BYTES], digest[SHA256_BYTES];
    char secret[2 * SECRET_BYTES + 4] = "ww_";
    ww_status status = check_add(operands[1], s);
    if (status != WW_OK)
        return status;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return ww_fail_errno(WW_IO_ERROR, errno, "getrandom");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(secret + 3 + 2 * i, 3, "%02x", random[i]);
    key_digest(secret, digest);
    const int lock = lock_folder(operands[0]);
    status = add_line(operands[0], operands[1], digest, s);
    if (lock >= 0)
        close(lock);
    if (status == WW_OK)
        puts(secret);
    return status;
}

/* ---- list and revoke ----------------------------------------------------------------------------------------------------- */

/* As {"name": "a", "access": "r"}, or as name "a"  access "r". */
static void print_key(const key_line *line, bool json, int64_t number)
{
    bool begun = false;
    if (json)
        fputs(number > 0 ? ",\n {" : "{", stdout);
    for (const char *key = json_first(json_root(line->text)); key; key = json_next(key)) {
        const char *value = json_member(key);
        const int length = (int)(json_end(key) - key), bytes = (int)(json_end(value) - value);
        if (json_text_is(key, "sha256", 6))
            continue;
        if (json)
            printf("%s%.*s: %.*s", begun ? ", " : "", length, key, bytes, value);
        else
            printf("%s%.*s %.*s", begun ? "  " : "", length - 2, key + 1, bytes, value);
        begun = true;
    }
    fputs(json ? "}" : "\n", stdout);
}

static ww_status list_run(const char **operands, const key_settings *s)
{
    out all = {0};
    key_line line = {0};
    int64_t count = 0;
    if (access(operands[0], R_OK) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", operands[0]);
    const ww_status status = read_file(operands[0], &all);
    if (status == WW_OK && s->json)
        fputs("{\"keys\": [", stdout);
    for (const char *at = all.bytes ? all.bytes : ""; status == WW_OK && next_line(&at, &line);)
        print_key(&line, s->json, count++);
    if (status == WW_OK && s->json)
        puts("]}");
    out_free(&all);
    return status;
}

static ww_status revoke_line(const char *path, const char *name)
{
    out all = {0}, rest = {0};
    key_line line = {0};
    bool found = false;
    ww_status status = read_file(path, &all);
    for (const char *at = all.bytes ? all.bytes : ""; status == WW_OK && next_line(&at, &line);) {
        if (strcmp(line.name, name) == 0)
            found = true;
        else
            out_bytes(&rest, line.text, line.bytes);
    }
    if (status == WW_OK && !found)
        status = ww_fail(WW_NOT_FOUND, "%s has no key '%s'", path, name);
    if (status == WW_OK)
        status = write_file(path, &rest);
    out_free(&all);
    out_free(&rest);
    return status;
}

static ww_status revoke_run(const char **operands, const key_settings *s)
{
    (void)s;
    const int lock = lock_folder(operands[0]);
    const ww_status status = revoke_line(operands[0], operands[1]);
    if (lock >= 0)
        close(lock);
    return status;
}

typedef struct key_way {
    ww_status (*run)(const char **operands, const key_settings *s);
} key_way;

#define TAKES(options, count, function)                                                                                        \
    (options), (count), &(const key_way)                                                                                       \
    {                                                                                                                          \
        function                                                                                                               \
    }

static const action actions[] = {
    {"add", "FILE NAME", "make a key, add its digest to the file, and print it",
     TAKES(add_options, sizeof add_options / sizeof *add_options, add_run)},
    {"list", "FILE", "list the keys of a file: what they may do, and until when", TAKES(list_options, 1, list_run)},
    {"revoke", "FILE NAME", "remove a key from the file; running servers notice within a second", TAKES(NULL, 0, revoke_run)},
};

static exit_code run(const char *const *arguments, size_t count)
{
    key_settings settings = {0};
    const char *operands[2] = {NULL, NULL};
    const action *asked = command_action(&command_key, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code = operands_parse(&command_key, asked, (argument_list){arguments + 1, count - 1}, operands, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    const key_way *way = asked->way;
    return command_end(&command_key, way->run(operands, &settings));
}

const command command_key = {
    .name = "key",
    .summary = "Make, list and revoke limited keys of a server",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = run,
};
