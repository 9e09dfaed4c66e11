/* A directory for one test. */
#include "support/scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static char directory[256];

int scratch_setup(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/scratch-XXXXXX", BUILD_DIR);
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

int scratch_teardown(void **state)
{
    (void)state;
    return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *name)
{
    static char paths[8][SCRATCH_PATH_BYTES];
    static unsigned turn;
    assert_int_not_equal(directory[0], 0); /* the test has no scratch_setup(): its files would be in the root folder */
    char *path = paths[turn++ % 8];
    snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", directory, name);
    return path;
}

const char *scratch_write(const char *name, const void *bytes, size_t size)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

char *scratch_content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *content = malloc((size_t)length + 1);
    assert_non_null(content);
    *size = fread(content, 1, (size_t)length, file);
    assert_int_equal(*size, length);
    content[*size] = '\0';
    fclose(file);
    return content;
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

int scratch_entries(void)
{
    return count_entries(directory);
}

int scratch_open_files(void)
{
    return count_entries("/proc/self/fd") - 1; /* less the one that looks */
}

int scratch_pipe(const char *path, char name[32])
{
    static char bytes[1 << 16];
    int ends[2];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, count), count);
    close(ends[1]);
    snprintf(name, 32, "/dev/fd/%d", ends[0]);
    return ends[0];
}
