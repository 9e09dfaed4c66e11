/* The command with failures at each of its writes, reads, syncs, threads and allocations in turn: a library that is loaded
 * before all others makes the n-th call fail. Whatever happens, an exit code of 0 means that everything is as it is without a
 * failure: what is printed and what is written. Otherwise there is a reason on stderr, and a file that was there is as it was.
 *
 * Reports go through stdio, whose writes are inside the C library: those fail by a full device, by a limit on the size of files
 * at every few bytes, by a pipe that nobody reads, and by a standard output that is closed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/inject.h"
#include "support/command.h"
#include "support/data/bytes.h"
#include "support/data/random.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"

enum { ROWS = 200, DIM = 32 };

#define RADIUS_SEARCH                                                                                                          \
    "search --base rows.csv --id-column name --queries rows.csv --query-id-column name --metric l2 --radius 3 --device cpu"

/* All commands that read, write or report; OUT stands for a file that exists already. */
static const char *const commands[] = {
    "search --base base.fbin --queries queries.npy -k 3 --device cpu --out-neighbors OUT.ibin --out-distances other.fbin",
    "search --base base.fbin --queries queries.npy -k 3 --device cpu --json",
    RADIUS_SEARCH,
    RADIUS_SEARCH " --json", /* NOLINT(bugprone-suspicious-missing-comma): one text */
    "gguf info model.gguf",
    "gguf info model.gguf --json",
    "gguf verify model.gguf --json",
    "gguf quantize model.gguf OUT.gguf --type q4_0 --device cpu --json",
    "gguf diff model.gguf other.gguf --json",
    "safetensors info tensors.safetensors",
    "safetensors info tensors.safetensors --json",
    "quant encode raw.f32 OUT.q8 --type q8_0 --cols 32 --device cpu",
    "devices --json",
    "bench --rows 500 --dim 8 --queries 3 --repeat 1 --device cpu --json",
    "demo --device cpu",
    "help",
    "version",
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char *const outputs[] = {"OUT.ibin", "OUT.gguf", "OUT.q8"};

static const char *write_model(const char *name, float first)
{
    static test_bytes b;
    static float x[4 * 64];
    test_random random = {3};
    random_normals(&random, x, 4 * 64);
    x[0] = first;
    b.size = 0;
    put_start(&b, 3, 2, 2);
    put_key(&b, "general.architecture", WW_GGUF_STRING);
    put_text(&b, "test");
    put_key(&b, "list", WW_GGUF_ARRAY);
    put_u32(&b, WW_GGUF_U32);
    put_u64(&b, 3000);
    for (uint32_t i = 0; i < 3000; i++)
        put_u32(&b, i);
    put_tensor(&b, "one", 64, 2, 0, 0);
    put_tensor(&b, "two", 64, 2, 0, 512);
    put_padding(&b, 32);
    put_bytes(&b, x, sizeof x);
    return scratch_write(name, b.data, b.size);
}

static int make_files(void **state)
{
    static float rows[ROWS * DIM];
    char csv[8192] = "name,x,y\n";
    test_random random = {9};
    if (scratch_setup(state) != 0)
        return -1;
    random_normals(&random, rows, ROWS * DIM);
    CHECK_OK(ww_matrix_write_f32(scratch_path("base.fbin"), rows, ROWS, DIM));
    CHECK_OK(ww_matrix_write_f32(scratch_path("queries.npy"), rows, 20, DIM));
    for (int i = 0; i < 100; i++)
        snprintf(csv + strlen(csv), sizeof csv - strlen(csv), "row %d,%d,%d\n", i, i, i % 7);
    scratch_write("rows.csv", csv, strlen(csv));
    scratch_write("raw.f32", rows, sizeof rows);
    write_model("model.gguf", 1.0f);
    write_model("other.gguf", 2.0f);
    ww_array array = ww_array_default();
    array.name = "weights";
    array.rank = 2;
    array.shape[0] = ROWS;
    array.shape[1] = DIM;
    array.data = rows;
    CHECK_OK(ww_safetensors_write(scratch_path("tensors.safetensors"), &array, 1, (const char *const[]){"a", "b", NULL}));
    return 0;
}

/* No vendor's runtime is loaded: this tests our code, and AMD's runtime aborts the process if it runs out of memory. */
static const char no_runtimes[] = "export WARPWAVE_CUDA_LIBRARY=/none/libcuda.so WARPWAVE_HIP_LIBRARY=/none/libamdhip64.so";

/* Runs `cd SCRATCH; SETTING warpwave COMMAND REDIRECTION` and takes its outputs. */
static command_result run_in_scratch(const char *setting, const char *command, const char *redirection)
{
    char line[2048];
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        scratch_write(outputs[i], "old", 3);
    snprintf(line, sizeof line, "cd '%s' || exit 99; %s; %s %s %s %s", scratch_path(""), no_runtimes, setting, COMMAND_PATH,
             command, redirection);
    const char *const arguments[] = {"sh", "-c", line, NULL};
    return program_run("/bin/sh", arguments);
}

/* Checks that the files that a command may have written are unchanged. */
static void check_old_files(const char *what, const char *command)
{
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        size_t size;
        char *content = scratch_content(scratch_path(outputs[i]), &size);
        if (size != 3 || memcmp(content, "old", 3) != 0)
            fail_msg("%s: '%s' has changed %s", what, command, outputs[i]);
        free(content);
    }
}

/* Removes the parts of a report that change from run to run: times, figures and free memory, that is, every number, with the
 * spaces that align it. */
static void blank_numbers(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        const bool number = (*at >= '0' && *at <= '9') || *at == '.' || *at == '-' || *at == '+';
        if (*at != ' ' || at[1] != ' ')
            *to++ = number ? '#' : *at;
    }
    *to = '\0';
}

static bool same_report(const char *a, const char *b)
{
    size_t i = 0, j = 0; /* a run of digits is as good as another */
    while (a[i] || b[j]) {
        if (a[i] == '#' && b[j] == '#') {
            i += strspn(a + i, "#e");
            j += strspn(b + j, "#e");
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return true;
}

static const char *inject_setting(inject_kind kind, long n)
{
    static char setting[1024];
    unlink(scratch_path("mark"));
    snprintf(setting, sizeof setting, "LD_PRELOAD='%s/tests/faults_inject.so' WARPWAVE_INJECT=%s:%ld WARPWAVE_INJECT_MARK='%s'",
             BUILD_DIR, inject_name(kind), n, scratch_path("mark"));
    return setting;
}

/* True if the fault came to pass. */
static bool run_with_fault(const char *command, inject_kind kind, long n, const char *good)
{
    const int entries = scratch_entries();
    command_result result = run_in_scratch(inject_setting(kind, n), command, "");
    const bool fired = access(scratch_path("mark"), F_OK) == 0;
    unlink(scratch_path("mark"));
    const bool harmless = kind == INJECT_WRITE_SHORT || kind == INJECT_READ_SHORT || kind == INJECT_INTERRUPT;
    blank_numbers(result.out);
    if (result.code > 5)
        fail_msg("%s:%ld: '%s' ended with %d\n%s", inject_name(kind), n, command, result.code, result.err);
    const bool told = strstr(result.out, "could not: ") != NULL; /* a demo tells which GPU failed, and goes on */
    if (result.code == 0 && strcmp(command, "devices --json") != 0 && !told && !same_report(result.out, good))
        fail_msg("%s:%ld: '%s' says it is done, and prints something else:\n%s\n%s", inject_name(kind), n, command, result.out,
                 good);
    if (result.code != 0 && !strstr(command, "diff")) {
        if (!fired || harmless || !*result.err)
            fail_msg("%s:%ld: '%s' ended with %d without a fault or a reason: %s", inject_name(kind), n, command, result.code,
                     result.err);
        if (kind != INJECT_RENAME || n == 1) /* the second of two files may fail when the first has its place */
            check_old_files(inject_name(kind), command);
        if (scratch_entries() != entries)
            fail_msg("%s:%ld: '%s' has left a file behind", inject_name(kind), n, command);
    }
    if (kind == INJECT_WRITE && fired && result.code == 0)
        fail_msg("write:%ld: '%s' did not notice", n, command);
    command_free(&result);
    return fired;
}

/* The short form tries ever fewer faults of each kind, and very few of the demo, which takes a second. */
static long next_fault(const char *command, inject_kind kind, long n)
{
    if (test_is_short())
        return strncmp(command, "demo", 4) == 0 ? 8 * n : fault_next(n);
    return kind == INJECT_ALLOCATION ? fault_next(n) : n + 1;
}

static void each_call_of_each_command_fails_in_turn(void **state)
{
    (void)state;
    if (TEST_INSTRUMENTED) {
        print_message("SKIP: the address sanitizer must be the first library, so that none can be put before it\n");
        skip();
    }
    static const inject_kind kinds[] = {INJECT_WRITE, INJECT_WRITE_SHORT, INJECT_READ,   INJECT_READ_SHORT, INJECT_INTERRUPT,
                                        INJECT_SYNC,  INJECT_RENAME,      INJECT_THREAD, INJECT_ALLOCATION};
    for (int c = 0; c < COMMANDS; c++) {
        command_result good = run_in_scratch("", commands[c], "");
        blank_numbers(good.out);
        unlink(scratch_path("other.fbin"));
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            long n = 1, faults = 0;
            for (; run_with_fault(commands[c], kinds[k], n, good.out); n = next_fault(commands[c], kinds[k], n))
                faults++;
            fault_count(inject_name(kinds[k]), faults);
            unlink(scratch_path("other.fbin"));
        }
        command_free(&good);
    }
}

/* ---- reports ------------------------------------------------------------------------------------------------------------- */

static void check_failed(const char *what, const char *command, const command_result *result)
{
    if (result->code == 0 || result->code > 5)
        fail_msg("%s: '%s' ended with %d", what, command, result->code);
    if (!strstr(result->err, "cannot write to standard output: "))
        fail_msg("%s: '%s' gives no reason: %s", what, command, result->err);
}

static void reports_to_a_full_device_a_closed_pipe_or_nowhere(void **state)
{
    (void)state;
    static const char *const ways[] = {"> /dev/full", ">&-"};
    for (int c = 0; c < COMMANDS; c++) {
        if (strstr(commands[c], "quant encode")) /* says nothing */
            continue;
        for (int way = 0; way < 2; way++) {
            command_result result = run_in_scratch("", commands[c], ways[way]);
            check_failed(ways[way], commands[c], &result);
            command_free(&result);
        }
        /* The reader has closed its end before the command writes its first byte. */
        command_result result = run_in_scratch("{ sleep 0.05; ", commands[c], "; echo $? > code; } | true");
        size_t size;
        char *code = scratch_content(scratch_path("code"), &size);
        result.code = atoi(code);
        check_failed("a closed pipe", commands[c], &result);
        free(code);
        command_free(&result);
        unlink(scratch_path("code"));
        unlink(scratch_path("other.fbin"));
    }
    fault_count("full device", COMMANDS - 1);
    fault_count("closed standard output", COMMANDS - 1);
    fault_count("closed pipe", COMMANDS - 1);
}

/* Writes a report to a file with a size limit in bytes; a pipe receives the reason for a failure. */
static void reports_to_a_file_that_may_not_grow(void **state)
{
    (void)state;
    long faults = 0;
    for (int c = 0; c < COMMANDS; c++) {
        if (strstr(commands[c], "OUT")) /* that file is limited, too */
            continue;
        for (int blocks = 0; blocks < 64; blocks = blocks * 2 + 1) {
            char limit[64];
            snprintf(limit, sizeof limit, "(ulimit -f %d;", blocks); /* in units of 512 bytes */
            command_result result = run_in_scratch(limit, commands[c], "> report) 2>&1 | cat >&2");
            struct stat facts;
            const bool cut = stat(scratch_path("report"), &facts) == 0 && facts.st_size == (off_t)blocks * 512;
            if (cut && !strstr(result.err, "cannot write to standard output: "))
                fail_msg("%d blocks: '%s' gives no reason: %s", blocks, commands[c], result.err);
            faults += cut;
            command_free(&result);
            if (!cut)
                break;
        }
    }
    assert_true(faults > COMMANDS / 2);
    fault_count("limit of a file's size", faults);
}

/* The next file that is opened would get the number of a closed descriptor, and a report would be written into a model. */
static void a_closed_standard_output_does_not_become_a_file(void **state)
{
    (void)state;
    command_result result = run_in_scratch("", "gguf quantize model.gguf OUT.gguf --type q4_0 --device cpu", ">&- 2>&- <&-");
    assert_int_equal(result.code, 1);
    command_free(&result);
    COMMAND_SAYS(0, "keys and 2 tensors are sound", "gguf", "verify", scratch_path("OUT.gguf"));
}

/* ---- limits -------------------------------------------------------------------------------------------------------------- */

/* With less and less memory, the command either fails with a message or does all of its work. */
static void memory_that_is_limited(void **state)
{
    (void)state;
    if (TEST_INSTRUMENTED) {
        print_message("SKIP: the address sanitizer needs more address space than any limit here\n");
        skip();
    }
    struct stat command;
    assert_int_equal(stat(COMMAND_PATH, &command), 0);
    const int megabytes_min = 25 + (int)(command.st_size >> 20); /* enough to load it, with any number of kernels in it */
    long refused = 0;
    for (int c = 0; c < COMMANDS; c++)
        for (int megabytes = 400; megabytes >= megabytes_min; megabytes /= 2) {
            char limit[64];
            snprintf(limit, sizeof limit, "ulimit -v %d;", megabytes * 1024);
            command_result result = run_in_scratch(limit, commands[c], "");
            if (result.code != 0 && !strstr(commands[c], "diff") && (result.code > 5 || !*result.err))
                fail_msg("%d MB: '%s' ended with %d: %s", megabytes, commands[c], result.code, result.err);
            refused += result.code != 0;
            command_free(&result);
        }
    fault_count("limit of memory", refused);
}

static void environments_that_are_wrong(void **state)
{
    (void)state;
    static const char *const settings[] = {"WARPWAVE_ISA=abacus",
                                           "WARPWAVE_THREADS=none",
                                           "WARPWAVE_THREADS=-1",
                                           "WARPWAVE_DEVICE=teapot:0",
                                           "WARPWAVE_THREADS=0",
                                           "WARPWAVE_ISA=",
                                           "WARPWAVE_HIP_LIBRARY=here.so",
                                           "HOME= XDG_CACHE_HOME=relative",
                                           "LC_ALL=de_DE.UTF-8 LANG=nowhere"};
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (int c = 0; c < COMMANDS; c += 3) {
            command_result result = run_in_scratch(settings[s], commands[c], "");
            if (result.code > 5 || (result.code != 0 && !*result.err && !strstr(commands[c], "diff")))
                fail_msg("%s: '%s' ended with %d: %s", settings[s], commands[c], result.code, result.err);
            command_free(&result);
        }
    fault_count("environment", (long)(sizeof settings / sizeof *settings) * ((COMMANDS + 2) / 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_each_command_fails_in_turn),
        cmocka_unit_test(reports_to_a_full_device_a_closed_pipe_or_nowhere),
        cmocka_unit_test(reports_to_a_file_that_may_not_grow),
        cmocka_unit_test(a_closed_standard_output_does_not_become_a_file),
        cmocka_unit_test(memory_that_is_limited),
        cmocka_unit_test(environments_that_are_wrong),
    };
    return cmocka_run_group_tests(tests, make_files, scratch_teardown);
}
