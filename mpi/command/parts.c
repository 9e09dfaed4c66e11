/* Files written by many ranks, block by block. */
#include "mpi/command/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tables/hash.h"
#include "base/text.h"
#include "files/matrix.h"
#include "mpi/command/mpi.h"

/* ---- fingerprints ---------------------------------------------------------------------------------------------------------
 */

void fingerprint_number(uint64_t *fingerprint, int64_t number)
{
    for (int i = 0; i < 8; i++)
        *fingerprint = fnv_word(*fingerprint, (uint64_t)number >> 8 * i & 0xff);
}

void fingerprint_text(uint64_t *fingerprint, const char *text)
{
    fingerprint_number(fingerprint, text ? (int64_t)strlen(text) : -1);
    for (; text && *text; text++)
        fingerprint_number(fingerprint, *text);
}

ww_status fingerprint_file(uint64_t *fingerprint, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot stat the file", path);
    fingerprint_number(fingerprint, facts.st_size);
    fingerprint_number(fingerprint, facts.st_mtim.tv_sec);
    fingerprint_number(fingerprint, facts.st_mtim.tv_nsec);
    return WW_OK;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

ww_status part_file_rows(part_file *f, const char *what, const char *target, int64_t row_count)
{
    const bool npy = path_ends_in(target, ".npy");
    f->target = target;
    f->element = row_count - 1 > INT32_MAX ? WW_ELEMENT_I64 : WW_ELEMENT_I32;
    if (!npy && !path_ends_in(target, ".ibin"))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "%s '%s': the file name must end in .ibin or .npy", what, target));
    if (!npy && f->element == WW_ELEMENT_I64)
        return command_line_wrong(ww_fail(WW_OUT_OF_RANGE,
                                          "%s '%s': row numbers past %d do not fit it; write a .npy, which takes "
                                          "64-bit numbers",
                                          what, target, INT32_MAX));
    return WW_OK;
}

static int64_t row_bytes(const part_file *f)
{
    return f->dim * ww_element_bytes(f->element);
}

static ww_status part_failed(const part_file *f, const char *what)
{
    return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot %s", f->part, what);
}

static ww_status write_at(const part_file *f, const void *from, size_t bytes, int64_t offset)
{
    const char *next = from;
    while (bytes > 0) {
        const ssize_t put = pwrite(f->descriptor, next, bytes, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return part_failed(f, "write");
        next += put;
        offset += put;
        bytes -= (size_t)put;
    }
    return WW_OK;
}

static ww_status header_of(part_file *f, char *header)
{
    const matrix_write m = {NULL, f->rows, f->dim, f->element, path_ends_in(f->target, ".npy")};
    return matrix_header_make(f->target, &m, header, &f->header_bytes);
}

static ww_status make_file(part_file *f)
{
    char header[MATRIX_HEADER_BYTES_MAX];
    ww_status status = header_of(f, header);
    if (status != WW_OK)
        return status;
    f->descriptor = open(f->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->descriptor < 0)
        return part_failed(f, "create it");
    if (ftruncate(f->descriptor, (int64_t)f->header_bytes + f->rows * row_bytes(f)) != 0)
        return part_failed(f, "give it its size");
    return write_at(f, header, f->header_bytes, 0);
}

static ww_status open_file(part_file *f)
{
    char header[MATRIX_HEADER_BYTES_MAX];
    const ww_status status = header_of(f, header);
    if (status != WW_OK)
        return status;
    f->descriptor = open(f->part, O_RDWR | O_CLOEXEC);
    return f->descriptor >= 0 ? WW_OK : part_failed(f, "open it");
}

ww_status part_write(const part_file *f, int64_t first, int64_t count, const void *data)
{
    if (!f->target || count == 0)
        return WW_OK;
    return write_at(f, data, (size_t)(count * row_bytes(f)), (int64_t)f->header_bytes + first * row_bytes(f));
}

ww_status parts_flush(const parts *p)
{
    for (int i = 0; i < PARTS_MAX; i++)
        if (p->files[i].target && p->files[i].descriptor >= 0 && fdatasync(p->files[i].descriptor) != 0)
            return part_failed(&p->files[i], "flush it to the disk");
    return WW_OK;
}

/* ---- progress -------------------------------------------------------------------------------------------------------------
 */

/* Writes a new file and renames it over the old one, so the progress is never half written. */
static ww_status write_progress(const parts *p)
{
    char fresh[PATH_MAX + 8], text[128];
    snprintf(fresh, sizeof fresh, "%s.new", p->progress);
    const int length = snprintf(text, sizeof text, "warpwave-mpi 1 %016" PRIx64 " %" PRId64 " %" PRId64 "\n", p->fingerprint,
                                p->blocks_done, p->bytes_done);
    const int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot create it", fresh);
    const bool written = write(file, text, (size_t)length) == length && fsync(file) == 0;
    const int error = errno;
    close(file);
    if (!written || rename(fresh, p->progress) != 0)
        return ww_fail_errno(WW_IO_ERROR, written ? errno : error, "%s: cannot write it", p->progress);
    return WW_OK;
}

/* Refuses to continue a run of another command, with other data or other options. */
static ww_status read_progress(parts *p)
{
    uint64_t fingerprint;
    char text[128] = "";
    const int file = open(p->progress, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? WW_NOT_FOUND : ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot open it", p->progress);
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0 ||
        sscanf(text, "warpwave-mpi 1 %" SCNx64 " %" SCNd64 " %" SCNd64, &fingerprint, &p->blocks_done, &p->bytes_done) != 3)
        return ww_fail(WW_CORRUPT_FILE, "%s: this is not a progress file of warpwave-mpi; remove it to start over",
                       p->progress);
    if (fingerprint != p->fingerprint)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT,
                    "--resume: %s is of a run with other files or options; give those, or leave out --resume", p->progress));
    if (p->blocks_done < 0 || p->blocks_done > p->blocks_total || p->bytes_done < 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: it counts %" PRId64 " blocks of %" PRId64, p->progress, p->blocks_done,
                       p->blocks_total);
    return WW_OK;
}

static ww_status name_files(parts *p)
{
    for (int i = PARTS_MAX - 1; i >= 0; i--) {
        part_file *f = &p->files[i];
        f->descriptor = -1;
        if (!f->target)
            continue;
        if (strlen(f->target) + sizeof ".progress.new" > PATH_MAX)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: the path is too long", f->target);
        snprintf(f->part, sizeof f->part, "%s.part", f->target);
        snprintf(p->progress, sizeof p->progress, "%s.progress", f->target);
    }
    return WW_OK;
}

ww_status parts_make(parts *p)
{
    ww_status status = name_files(p);
    for (int i = 0; i < PARTS_MAX && status == WW_OK; i++)
        if (p->files[i].target)
            status = make_file(&p->files[i]);
    return status;
}

/* Sets `found` if there is a run to continue. All ranks look before any rank changes a file. */
static ww_status find_run(parts *p, ww_cluster *cluster, bool resume, bool *found)
{
    ww_status status = name_files(p);
    if (status == WW_OK && resume) {
        status = read_progress(p);
        *found = status == WW_OK;
        status = status == WW_NOT_FOUND ? WW_OK : status;
    }
    return status == WW_OK ? mpi_meet(cluster) : status;
}

ww_status parts_resume(parts *p, ww_cluster *cluster, bool resume)
{
    bool found = false;
    ww_status status = find_run(p, cluster, resume, &found);
    if (status == WW_OK && here.rank == 0 && !found)
        status = write_progress(p);
    return status == WW_OK ? mpi_meet(cluster) : status;
}

/* If all blocks are done and a part is missing, it was renamed already. */
ww_status parts_open(parts *p, ww_cluster *cluster, bool resume)
{
    bool found = false;
    ww_status status = find_run(p, cluster, resume, &found);
    if (status == WW_OK && here.rank == 0 && !found) {
        unlink(p->progress); /* from an earlier run; parts_make() empties its files */
        status = parts_make(p);
        if (status == WW_OK)
            status = write_progress(p);
    }
    if (status == WW_OK)
        status = mpi_meet(cluster);
    for (int i = 0; i < PARTS_MAX && status == WW_OK; i++) {
        part_file *f = &p->files[i];
        if (!f->target || f->descriptor >= 0)
            continue;
        const bool placed =
            found && p->blocks_done == p->blocks_total && access(f->part, F_OK) != 0 && access(f->target, F_OK) == 0;
        status = placed ? WW_OK : open_file(f);
    }
    return status;
}

ww_status parts_block_done(parts *p)
{
    p->blocks_done++;
    return here.rank == 0 ? write_progress(p) : WW_OK;
}

ww_status parts_finish(parts *p)
{
    for (int i = 0; i < PARTS_MAX; i++) {
        part_file *f = &p->files[i];
        if (!f->target || f->descriptor < 0)
            continue;
        if (fsync(f->descriptor) != 0)
            return part_failed(f, "flush it to the disk");
        if (rename(f->part, f->target) != 0)
            return part_failed(f, "give it its name");
    }
    unlink(p->progress);
    return WW_OK;
}

void parts_close(parts *p)
{
    for (int i = 0; i < PARTS_MAX; i++)
        if (p->files[i].target && p->files[i].descriptor >= 0)
            close(p->files[i].descriptor);
}
