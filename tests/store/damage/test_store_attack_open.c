/* Attacks on a store while it is written: processes are killed next to others, files are cut short, removed or replaced under
 * an open store, disks are full for a while. In every case calls return a status that describes it, answers are complete, and
 * acknowledged writes are not lost. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/damage/attack.h"
#include "store/faulty_vfs.h"
#include "support/process.h"

/* ---- processes that are killed ------------------------------------------------------------------------------------------- */

enum { WRITERS = 3, SLOTS = 12 };

typedef struct writing {
    pid_t child;
    int acknowledged;                    /* end of a pipe: the numbers of writes */
    int64_t last[SLOTS], cut_off[SLOTS]; /* writes: acknowledged, and cut off since, which may be there */
    int64_t next;
} writing;

static ww_status write_slot(ww_collection *collection, int writer, int64_t number)
{
    char id[32];
    const char *ids[] = {id};
    float vector[WORK_DIM] = {(float)number, (float)writer};
    ww_rows rows = ww_rows_default();
    snprintf(id, sizeof id, "w%d-%d", writer, (int)(number % SLOTS));
    rows.count = 1, rows.dim = WORK_DIM, rows.vectors = vector, rows.ids = ids;
    if (number % 97 == 96)
        return ww_collection_compact(collection, NULL, NULL);
    return ww_collection_upsert(collection, &rows);
}

static void write_until_killed(int writer, int64_t next, int acknowledge)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    if (ww_device_open("cpu", &device) != WW_OK || work_open(path, device, &store, &collection) != WW_OK) {
        fprintf(stderr, "writer %d: %s\n", writer, ww_error_message());
        _exit(1);
    }
    for (;; next++)
        if (write_slot(collection, writer, next) != WW_OK || write(acknowledge, &next, sizeof next) != sizeof next) {
            fprintf(stderr, "writer %d, write %lld: %s\n", writer, (long long)next, ww_error_message());
            _exit(2);
        }
}

static void writer_start(writing *w, int number)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    w->child = fork_when_idle();
    if (w->child == 0)
        write_until_killed(number, w->next, pipes[1]);
    close(pipes[1]);
    w->acknowledged = pipes[0];
}

static void note_acknowledged(writing *w, int64_t number)
{
    if (number % 97 != 96) {
        w->last[number % SLOTS] = number;
        w->cut_off[number % SLOTS] = -1;
    }
    w->next = number + 1;
}

static void writer_kill(writing *w)
{
    int ended = 0;
    int64_t number;
    kill(w->child, SIGKILL);
    waitpid(w->child, &ended, 0);
    if (!WIFSIGNALED(ended))
        fail_msg("a writer ended by itself with %d", WEXITSTATUS(ended));
    while (read(w->acknowledged, &number, sizeof number) == sizeof number)
        note_acknowledged(w, number);
    close(w->acknowledged);
    w->cut_off[w->next % SLOTS] = w->next;
    w->next++;
}

/* Every slot has its last acknowledged value, or the one of a write that was cut off after it. */
static void check_slots(const writing *writers)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    for (int w = 0; w < WRITERS; w++)
        for (int slot = 0; slot < SLOTS; slot++) {
            char id[32];
            int64_t row = -1, found = -1;
            float vector[WORK_DIM];
            snprintf(id, sizeof id, "w%d-%d", w, slot);
            if (ww_collection_find(collection, id, &row) == WW_OK) {
                CHECK_OK(ww_collection_vector(collection, row, vector));
                found = (int64_t)vector[0];
            }
            if (found != writers[w].last[slot] && found != writers[w].cut_off[slot])
                fail_msg("%s has write %lld; %lld was acknowledged", id, (long long)found, (long long)writers[w].last[slot]);
        }
    work_close(store, collection);
}

static void writers_that_are_killed_next_to_others_lose_nothing(void **state)
{
    (void)state;
    test_random random = seeded(3);
    writing writers[WRITERS];
    int64_t kills = 0, writes = 0;
    while (kills == 0 || now() < until) {
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        remove_files();
        CHECK_OK(work_open(path, cpu, &store, &collection));
        work_close(store, collection); /* before the forks: see ww_store_open() */
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (writing){0};
            for (int slot = 0; slot < SLOTS; slot++)
                writers[i].last[slot] = writers[i].cut_off[slot] = -1;
            writer_start(&writers[i], i);
        }
        for (int round = 0; round < 6; round++, kills++) {
            const int which = (int)random_below(&random, WRITERS);
            usleep((useconds_t)random_below(&random, 40000));
            writer_kill(&writers[which]);
            writer_start(&writers[which], which);
        }
        for (int i = 0; i < WRITERS; i++, kills++)
            writer_kill(&writers[i]);
        check_slots(writers);
        for (int i = 0; i < WRITERS; i++)
            writes += writers[i].next;
    }
    print_message("%lld kills, %lld writes\n", (long long)kills, (long long)writes);
    assert_true(writes > kills);
}

/* ---- files that are attacked while they are open ------------------------------------------------------------------------- */

/* Works on the store until something fails; the failure must have a message. */
static void work_until_refused(bool exclusive, int begun)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF, how.exclusive = exclusive, how.busy_ms = 500;
    alarm(60); /* a child that hangs ends by a signal, which fails the test */
    ww_status status = ww_device_open("cpu", &device);
    if (status == WW_OK)
        status = ww_store_open(path, device, &how, &store);
    if (status == WW_OK)
        status = ww_store_collection(store, "work", &collection);
    for (int64_t i = 0; status == WW_OK && i < 400; i++) {
        status = work_do(collection, 9, i);
        if (status == WW_OK)
            status = i % 5 == 0 ? ww_store_check(store, NULL, NULL) : use(collection);
        if (i == 0 && write(begun, "x", 1) != 1)
            _exit(3);
    }
    if (!tells_of_damage(status) && status != WW_BUSY) {
        fprintf(stderr, "%s: %s\n", ww_status_name(status), ww_error_message());
        _exit(4);
    }
    work_close(store, collection);
    _exit(0);
}

static void cut(const char *name, test_random *random)
{
    struct stat file;
    if (stat(name, &file) == 0 && truncate(name, (off_t)random_below(random, (uint64_t)file.st_size + 1)) != 0)
        fail_msg("%s cannot be cut", name);
}

static void scribble(const char *name, test_random *random)
{
    struct stat file;
    char bytes[64];
    const int open_file = open(name, O_WRONLY | O_CLOEXEC);
    if (open_file < 0)
        return;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)random_below(random, 256);
    if (fstat(open_file, &file) == 0 && file.st_size > 0)
        assert_int_equal(pwrite(open_file, bytes, sizeof bytes, (off_t)random_below(random, (uint64_t)file.st_size)),
                         sizeof bytes);
    close(open_file);
}

static void attack_open_file(test_random *random, bool exclusive)
{
    char *other = strdup(scratch_path("other.db"));
    switch (random_below(random, exclusive ? 7 : 6)) {
    case 0:
        unlink(path);
        break;
    case 1:
        write_file(other, "not a database", 14);
        assert_int_equal(rename(other, path), 0);
        break;
    case 2:
        cut(path, random);
        break;
    case 3:
        cut(beside("-wal"), random);
        break;
    case 4:
        scribble(path, random);
        break;
    case 5:
        scribble(beside("-wal"), random);
        break;
    default:
        write_file(beside("-shm"), "x", 1); /* a shared store would map it: SECURITY.md */
    }
    free(other);
}

static void files_attacked_while_open_end_no_process(void **state)
{
    (void)state;
    test_random random = seeded(4);
    int64_t number = 0;
    for (; number < 4 || now() < until; number++) {
        int pipes[2], ended = 0;
        char byte;
        const bool exclusive = random_below(&random, 2) == 0;
        remove_files();
        make_two();
        assert_int_equal(pipe(pipes), 0);
        const pid_t child = fork_when_idle();
        if (child == 0)
            work_until_refused(exclusive, pipes[1]);
        close(pipes[1]);
        assert_int_equal(read(pipes[0], &byte, 1), 1);
        for (uint64_t attacks = 1 + random_below(&random, 3); attacks > 0; attacks--) {
            usleep((useconds_t)random_below(&random, 8000));
            attack_open_file(&random, exclusive);
        }
        waitpid(child, &ended, 0);
        close(pipes[0]);
        if (ended != 0)
            fail_msg("case %lld: the child ended with signal %d, status %d", (long long)number,
                     WIFSIGNALED(ended) ? WTERMSIG(ended) : 0, WEXITSTATUS(ended));
    }
    print_message("%lld processes\n", (long long)number);
}

/* ---- full disks ---------------------------------------------------------------------------------------------------------- */

/* The index of words in the file, by FTS5's own check. */
static void check_words(int64_t number)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "INSERT INTO work_fts(work_fts) VALUES('integrity-check')", NULL, NULL, &message);
    if (message && strstr(message, "malformed"))
        fail_msg("operation %lld: the index of words is damaged", (long long)number);
    sqlite3_free(message);
    sqlite3_close(db);
}

static void a_disk_that_is_full_for_a_while_loses_nothing(void **state)
{
    (void)state;
    test_random random = seeded(5);
    int64_t number = 0, refused = 0, next = 0;
    ww_store *store = NULL;
    ww_collection *collection = NULL, *model = collection_make(cpu, WORK_DIM, WW_L2);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    for (; number < 100 || now() < until; number++) {
        if (random_below(&random, 3) == 0)
            vfs_arm(random_below(&random, 2) == 0 ? VFS_STAYS_FULL : VFS_FULL, 1 + (int64_t)random_below(&random, 30));
        const ww_status status = work_do(collection, 7, next);
        const bool tripped = vfs_disarm();
        if (status != WW_OK && (status != WW_IO_ERROR || !tripped))
            fail_msg("operation %lld: %s: %s", (long long)next, ww_status_name(status), ww_error_message());
        refused += status != WW_OK;
        if (status == WW_OK)
            CHECK_OK(work_do(model, 7, next));
        check_words(next);
        next++; /* a refused one is skipped */
        if (!collections_equal(collection, model))
            fail_msg("operation %lld: %s, but the collection is not as it says", (long long)next - 1, ww_status_name(status));
    }
    CHECK_OK(ww_store_check(store, NULL, NULL));
    work_close(store, collection);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    assert_true(collections_equal(collection, model));
    work_close(store, collection);
    ww_collection_destroy(model);
    print_message("%lld operations, %lld refused\n", (long long)number, (long long)refused);
    assert_true(refused > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writers_that_are_killed_next_to_others_lose_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(files_attacked_while_open_end_no_process, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_is_full_for_a_while_loses_nothing, setup, teardown),
    };
    attack_count = sizeof tests / sizeof *tests;
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: attacks while it is open", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
