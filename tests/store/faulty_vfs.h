/* SQLite's interface to files, with faults: the n-th call fails, or the power fails at the n-th call.
 *
 * Installed as the default VFS in front of the real one. A power failure makes all later calls fail; vfs_power_back() then
 * restores every file to its last synced state, the minimum that a disk keeps.
 */
#ifndef TESTS_FAULTY_VFS_H
#define TESTS_FAULTY_VFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum vfs_fault {
    VFS_IO_ERROR,
    VFS_FULL,        /* writes say that the disk is full; other calls fail as above */
    VFS_FULL_ONCE,   /* the n-th write says that the disk is full; other calls work, so that readers beside it do not take the
                        fault */
    VFS_STAYS_FULL,  /* from the n-th write on, every write fails; other calls work */
    VFS_SHORT_WRITE, /* half of it is written, then it fails */
    VFS_POWER        /* at a sync: nothing works from then on */
} vfs_fault;

typedef struct vfs_image {
    struct vfs_image *next;
    char *name;
    char *bytes;
    long size;
} vfs_image;

static struct {
    sqlite3_vfs shim;
    sqlite3_vfs *real;
    bool armed;
    vfs_fault fault;
    int64_t calls, fail_at; /* only syncs, if the fault is a power failure */
    bool tripped, dead;
    vfs_image *images; /* of files as they were last synced */
} vfs;

typedef struct vfs_file {
    sqlite3_file base;
    char *name;
    sqlite3_file *real;
} vfs_file;

/* Does this call fail? */
static inline bool vfs_fails(bool is_sync)
{
    if (vfs.dead)
        return true;
    if (!vfs.armed || vfs.fault == VFS_STAYS_FULL || vfs.fault == VFS_FULL_ONCE || (vfs.fault == VFS_POWER && !is_sync) ||
        ++vfs.calls != vfs.fail_at)
        return false;
    vfs.tripped = true;
    vfs.dead = vfs.fault == VFS_POWER;
    return true;
}

static inline sqlite3_file *vfs_real(sqlite3_file *file)
{
    return ((vfs_file *)file)->real;
}

static inline int vfs_close(sqlite3_file *file)
{
    vfs_file *f = (vfs_file *)file;
    const int code = f->real->pMethods ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
    free(f->name);
    return code;
}

static inline int vfs_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    return vfs_fails(false) ? SQLITE_IOERR_READ : vfs_real(file)->pMethods->xRead(vfs_real(file), to, bytes, at);
}

static inline int vfs_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    const bool was_dead = vfs.dead;
    const bool only_writes = vfs.armed && (vfs.fault == VFS_STAYS_FULL || vfs.fault == VFS_FULL_ONCE);
    if (only_writes && (++vfs.calls == vfs.fail_at || (vfs.fault == VFS_STAYS_FULL && vfs.calls > vfs.fail_at))) {
        vfs.tripped = true;
        return SQLITE_FULL;
    }
    if (!vfs_fails(false))
        return vfs_real(file)->pMethods->xWrite(vfs_real(file), from, bytes, at);
    if (vfs.fault == VFS_SHORT_WRITE && !was_dead)
        (void)vfs_real(file)->pMethods->xWrite(vfs_real(file), from, bytes / 2, at);
    return vfs.fault == VFS_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static inline int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return vfs_fails(false) ? SQLITE_IOERR_TRUNCATE : vfs_real(file)->pMethods->xTruncate(vfs_real(file), size);
}

/* Records the file's current contents. */
static inline void vfs_note(const char *name)
{
    vfs_image *image = vfs.images;
    while (image && strcmp(image->name, name) != 0)
        image = image->next;
    if (!image) {
        image = calloc(1, sizeof *image);
        image->name = strdup(name);
        image->next = vfs.images;
        vfs.images = image;
    }
    FILE *file = fopen(name, "rb");
    free(image->bytes);
    image->bytes = NULL;
    image->size = 0;
    if (!file)
        return;
    fseek(file, 0, SEEK_END);
    image->size = ftell(file);
    image->bytes = malloc((size_t)image->size + 1);
    rewind(file);
    image->size = (long)fread(image->bytes, 1, (size_t)image->size, file);
    fclose(file);
}

static inline int vfs_sync(sqlite3_file *file, int flags)
{
    if (vfs_fails(true))
        return SQLITE_IOERR_FSYNC;
    (void)flags; /* the real disk need not sync: this file keeps what survives a power failure */
    const char *name = ((vfs_file *)file)->name;
    if (name && vfs.armed && vfs.fault == VFS_POWER)
        vfs_note(name);
    return SQLITE_OK;
}

static inline int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return vfs_fails(false) ? SQLITE_IOERR_FSTAT : vfs_real(file)->pMethods->xFileSize(vfs_real(file), size);
}

static inline int vfs_lock(sqlite3_file *file, int lock)
{
    return vfs_fails(false) ? SQLITE_IOERR_LOCK : vfs_real(file)->pMethods->xLock(vfs_real(file), lock);
}

static inline int vfs_unlock(sqlite3_file *file, int lock)
{
    return vfs_real(file)->pMethods->xUnlock(vfs_real(file), lock);
}

static inline int vfs_reserved(sqlite3_file *file, int *out)
{
    return vfs_fails(false) ? SQLITE_IOERR_CHECKRESERVEDLOCK
                            : vfs_real(file)->pMethods->xCheckReservedLock(vfs_real(file), out);
}

static inline int vfs_control(sqlite3_file *file, int what, void *argument)
{
    return vfs_real(file)->pMethods->xFileControl(vfs_real(file), what, argument);
}

static inline int vfs_sector(sqlite3_file *file)
{
    return vfs_real(file)->pMethods->xSectorSize(vfs_real(file));
}

static inline int vfs_characteristics(sqlite3_file *file)
{
    return vfs_real(file)->pMethods->xDeviceCharacteristics(vfs_real(file));
}

static inline int vfs_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return vfs_fails(false) ? SQLITE_IOERR_SHMMAP : vfs_real(file)->pMethods->xShmMap(vfs_real(file), page, size, extend, out);
}

static inline int vfs_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    if (!(flags & SQLITE_SHM_UNLOCK) && vfs_fails(false))
        return SQLITE_IOERR_SHMLOCK;
    return vfs_real(file)->pMethods->xShmLock(vfs_real(file), offset, n, flags);
}

static inline void vfs_shm_barrier(sqlite3_file *file)
{
    vfs_real(file)->pMethods->xShmBarrier(vfs_real(file));
}

static inline int vfs_shm_unmap(sqlite3_file *file, int delete_it)
{
    return vfs_real(file)->pMethods->xShmUnmap(vfs_real(file), delete_it);
}

static const sqlite3_io_methods VFS_METHODS = {
    .iVersion = 2, /* no mapped files */
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector,
    .xDeviceCharacteristics = vfs_characteristics,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

static inline int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)self;
    vfs_file *f = (vfs_file *)file;
    *f = (vfs_file){.real = (sqlite3_file *)(f + 1)};
    if (vfs_fails(false))
        return SQLITE_CANTOPEN;
    const int code = vfs.real->xOpen(vfs.real, name, f->real, flags, out);
    if (f->real->pMethods)
        f->base.pMethods = &VFS_METHODS;
    f->name = name ? strdup(name) : NULL;
    if (!f->base.pMethods)
        free(f->name);
    return code;
}

static inline int vfs_delete(sqlite3_vfs *self, const char *name, int sync)
{
    (void)self;
    if (vfs_fails(false))
        return SQLITE_IOERR_DELETE;
    const int code = vfs.real->xDelete(vfs.real, name, 0);
    /* The folder is synced with it: every removal from it lasts. */
    for (const vfs_image *i = vfs.images; sync && vfs.armed && vfs.fault == VFS_POWER && i; i = i->next)
        if (access(i->name, F_OK) != 0)
            vfs_note(i->name);
    return code;
}

static inline int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *out)
{
    (void)self;
    return vfs_fails(false) ? SQLITE_IOERR_ACCESS : vfs.real->xAccess(vfs.real, name, flags, out);
}

/* Once, before SQLite is used. */
static inline void vfs_install(void)
{
    vfs.real = sqlite3_vfs_find(NULL);
    vfs.shim = *vfs.real;
    vfs.shim.zName = "faulty";
    vfs.shim.szOsFile = (int)sizeof(vfs_file) + vfs.real->szOsFile;
    vfs.shim.xOpen = vfs_open;
    vfs.shim.xDelete = vfs_delete;
    vfs.shim.xAccess = vfs_access;
    sqlite3_vfs_register(&vfs.shim, 1);
}

static inline void vfs_arm(vfs_fault fault, int64_t fail_at)
{
    vfs.armed = true;
    vfs.fault = fault;
    vfs.fail_at = fail_at;
    vfs.calls = 0;
    vfs.tripped = vfs.dead = false;
}

/* Returns whether the fault happened. */
static inline bool vfs_disarm(void)
{
    vfs.armed = false;
    return vfs.tripped;
}

/* After a power failure, when nothing is open any more. */
static inline void vfs_power_back(const char *store_path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s", store_path, suffixes[i]);
        const vfs_image *image = vfs.images;
        while (image && strcmp(image->name, name) != 0)
            image = image->next;
        unlink(name);
        FILE *file = image && image->bytes && i != 2 ? fopen(name, "wb") : NULL;
        if (file) {
            fwrite(image->bytes, 1, (size_t)image->size, file);
            fclose(file);
        }
    }
    vfs.dead = false;
}

static inline void vfs_forget(void)
{
    while (vfs.images) {
        vfs_image *next = vfs.images->next;
        free(vfs.images->bytes);
        free(vfs.images->name);
        free(vfs.images);
        vfs.images = next;
    }
}

#endif
