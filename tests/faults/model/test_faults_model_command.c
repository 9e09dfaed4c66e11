/* `warpwave model chat`, `fetch`, `rerank` and `generate` with failures at each of their reads, writes, syncs, renames, threads
 * and allocations in turn, with addresses that answer wrongly, and with ctrl-C. An exit code of 0 means that everything is as
 * it is without a failure. Otherwise there is a reason on stderr, a file that was there is as it was, and none is left behind.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/inject.h"
#include "support/command.h"
#include "support/data/vocabulary.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/models/tiny.h"

#define TEMPLATE "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"

static const char *const commands[] = {
    "model fetch source.gguf --out OUT.gguf --quiet",
    "model chat model.gguf --device cpu -n 3 --quiet < lines",
    "model generate model.gguf --device cpu -n 3 --quiet --prompt ab",
    "model rerank ranker.gguf --device cpu --query 'a dog' --in texts --quiet",
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void write_decoder(const char *path)
{
    test_vocabulary bytes = vocabulary_empty("gpt2");
    tiny_model m;
    tiny_shape shape = tiny_default("llama");
    bytes.pre = "gpt-2";
    vocabulary_add_alphabet(&bytes);
    bytes.merge_count = 0;
    bytes.eos = vocabulary_add(&bytes, "<end>", 3, 0);
    shape.layers = 1;
    shape.vocabulary = bytes.count;
    shape.tokens = &bytes;
    shape.chat_template = TEMPLATE;
    tiny_make(&m, &shape);
    tiny_write(&m, path);
    tiny_free(&m);
}

static int make_files(void **state)
{
    static char source[400000];
    if (scratch_setup(state) != 0)
        return -1;
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (char)(i * i >> 7);
    scratch_write("source.gguf", source, sizeof source);
    scratch_write("lines", "hello\nagain\n", 12);
    scratch_write("texts", "a fox\na dog\ndogs\n", 17);
    write_decoder(scratch_path("model.gguf"));
    tiny_write_ranker(1, scratch_path("ranker.gguf"));
    return mkdir(scratch_path("bin"), 0755);
}

/* Runs `cd SCRATCH; SETTING warpwave COMMAND`; OUT.gguf exists already. */
static command_result run_in_scratch(const char *setting, const char *command)
{
    char line[4096];
    scratch_write("OUT.gguf", "old", 3);
    snprintf(line, sizeof line,
             "cd '%s' || exit 99; export WARPWAVE_CUDA_LIBRARY=/none/libcuda.so WARPWAVE_HIP_LIBRARY=/none/libamdhip64.so; "
             "%s %s %s",
             scratch_path(""), setting, COMMAND_PATH, command);
    return program_run("/bin/sh", (const char *[]){"sh", "-c", line, NULL});
}

static bool out_is_old(void)
{
    size_t size;
    char *content = scratch_content(scratch_path("OUT.gguf"), &size);
    const bool old = size == 3 && memcmp(content, "old", 3) == 0;
    free(content);
    return old;
}

/* True if the fault came to pass. */
static bool run_with_fault(const char *command, inject_kind kind, long n, const char *good)
{
    char setting[2048];
    const int entries = scratch_entries();
    snprintf(setting, sizeof setting, "LD_PRELOAD='%s/tests/faults_inject.so' WARPWAVE_INJECT=%s:%ld WARPWAVE_INJECT_MARK='%s'",
             BUILD_DIR, inject_name(kind), n, scratch_path("mark"));
    command_result result = run_in_scratch(setting, command);
    const bool fired = access(scratch_path("mark"), F_OK) == 0;
    const bool harmless =
        kind == INJECT_WRITE_SHORT || kind == INJECT_READ_SHORT || kind == INJECT_INTERRUPT || kind == INJECT_MAP;
    unlink(scratch_path("mark"));
    if (result.code > 5)
        fail_msg("%s:%ld: '%s' ended with %d\n%s", inject_name(kind), n, command, result.code, result.err);
    if (result.code == 0 && strcmp(result.out, good) != 0)
        fail_msg("%s:%ld: '%s' says it is done, and prints something else:\n%s\n%s", inject_name(kind), n, command, result.out,
                 good);
    if (result.code != 0 && (!fired || harmless || !*result.err))
        fail_msg("%s:%ld: '%s' ended with %d without a fault or a reason: %s", inject_name(kind), n, command, result.code,
                 result.err);
    if (result.code != 0 && (!out_is_old() || scratch_entries() != entries))
        fail_msg("%s:%ld: '%s' has changed a file, or left one behind", inject_name(kind), n, command);
    command_free(&result);
    return fired;
}

static void each_call_of_each_command_fails_in_turn(void **state)
{
    (void)state;
    if (TEST_INSTRUMENTED) {
        print_message("SKIP: the address sanitizer must be the first library, so that none can be put before it\n");
        skip();
    }
    static const inject_kind kinds[] = {INJECT_OPEN,       INJECT_WRITE,     INJECT_WRITE_SHORT, INJECT_READ,
                                        INJECT_READ_SHORT, INJECT_INTERRUPT, INJECT_SYNC,        INJECT_RENAME,
                                        INJECT_THREAD,     INJECT_MAP,       INJECT_POPULATE,    INJECT_ALLOCATION};
    long all = 0;
    for (int c = 0; c < COMMANDS; c++) {
        command_result good = run_in_scratch("", commands[c]);
        if (good.code != 0)
            fail_msg("'%s': %s", commands[c], good.err);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            long faults = 0;
            for (long n = 1; run_with_fault(commands[c], kinds[k], n, good.out); n = fault_next(n))
                faults++;
            fault_count(inject_name(kinds[k]), faults);
            all += faults;
        }
        command_free(&good);
    }
    assert_true(all > (test_is_short() ? 15L : 40L) * COMMANDS);
}

/* ---- addresses ----------------------------------------------------------------------------------------------------------- */

static void write_curl(const char *script)
{
    scratch_write("bin/curl", script, strlen(script));
    assert_int_equal(chmod(scratch_path("bin/curl"), 0755), 0);
}

/* The command reports curl's message, keeps the partial download for the next try, and leaves OUT.gguf unchanged. */
static void an_address_that_fails_changes_nothing(void **state)
{
    (void)state;
    static const int codes[] = {6,  7,  22, 23,
                                28, 35, 56, 60}; /* no host, refused, 404, full disk, too slow, TLS, cut, certificate */
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char script[128], word[64];
        snprintf(script, sizeof script, "#!/bin/sh\nexit %d\n", codes[i]);
        snprintf(word, sizeof word, "curl failed with code %d", codes[i]);
        write_curl(script);
        command_result r = run_in_scratch("PATH=$PWD/bin:$PATH", "model fetch https://a.invalid/m.gguf --out OUT.gguf --quiet");
        assert_int_equal(r.code, 3);
        assert_non_null(strstr(r.err, word));
        assert_true(out_is_old());
        command_free(&r);
    }
    write_curl("#!/bin/sh\nexit 0\n"); /* says that it has fetched, and has written nothing */
    command_result r = run_in_scratch("PATH=$PWD/bin:$PATH", "model fetch https://a.invalid/m.gguf --out OUT.gguf --quiet");
    assert_int_not_equal(r.code, 0);
    assert_true(*r.err && out_is_old());
    command_free(&r);
    write_curl("#!/bin/sh\nkill -9 $$\n");
    r = run_in_scratch("PATH=$PWD/bin:$PATH", "model fetch https://a.invalid/m.gguf --out OUT.gguf --quiet");
    assert_int_equal(r.code, 3);
    assert_true(*r.err && out_is_old());
    command_free(&r);
    fault_count("download", 10);
}

/* Ctrl-C while curl waits: the command exits with its own code, and OUT.gguf is unchanged. */
static void ctrl_c_ends_a_fetch(void **state)
{
    (void)state;
    write_curl("#!/bin/sh\nkill -2 $PPID\nsleep 0.2\nexit 28\n");
    command_result r = run_in_scratch("PATH=$PWD/bin:$PATH", "model fetch https://a.invalid/m.gguf --out OUT.gguf --quiet");
    if (r.code == 0 || !strstr(r.err, "interrupted"))
        fail_msg("ended with %d: %s", r.code, r.err);
    assert_true(out_is_old());
    command_free(&r);
    fault_count("interruption of the command", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_each_command_fails_in_turn),
        cmocka_unit_test(an_address_that_fails_changes_nothing),
        cmocka_unit_test(ctrl_c_ends_a_fetch),
    };
    return cmocka_run_group_tests(tests, make_files, scratch_teardown);
}
