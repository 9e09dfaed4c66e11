/* `warpwave model chat` through pipes and on a terminal: history, /reset, Ctrl-C, and failures. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/command.h"
#include "support/models/tiny.h"

enum { PATIENCE_SECONDS = 60, LONG_CONTEXT = 1 << 17 };

#define CHATML                                                                                                                 \
    "{% for message in messages %}{% if message['content'] == 'refuse' %}{{ raise_exception('not that') }}{% endif %}"         \
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"                                   \
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

/* Runs the chat with these lines as its standard input. */
static command_result talk(const char *lines, const char *model, const char *options)
{
    char command[2048];
    scratch_write("lines", lines, strlen(lines));
    snprintf(command, sizeof command, "%s model chat '%s' --device cpu %s < '%s'", COMMAND_PATH, scratch_path(model), options,
             scratch_path("lines"));
    return program_run("/bin/sh", (const char *[]){"sh", "-c", command, NULL});
}

static void the_first_answer_equals_that_of_generate(void **state)
{
    (void)state;
    command_result chat = talk("hello", "model.gguf", "-n 9 --system sys");
    command_result once = COMMAND_RUN("model", "generate", scratch_path("model.gguf"), "--device", "cpu", "--chat", "--plain",
                                      "--system", "sys", "--prompt", "hello", "-n", "9");
    assert_int_equal(chat.code, 0);
    assert_string_equal(chat.out, once.out);
    assert_non_null(strstr(chat.err, "9 written"));
    assert_non_null(strstr(chat.err, "tokens/s"));
    command_free(&once);
    command_free(&chat);
}

/* The session keeps its tokens: the second answer only reads the new ones. */
static void a_conversation_is_remembered_and_forgotten(void **state)
{
    (void)state;
    int read[2] = {0}, all[2] = {0};
    command_result one = talk("hello\n", "model.gguf", "-n 7");
    command_result two = talk("hello\nhello\n", "model.gguf", "-n 7");
    command_result reset = talk("hello\n/reset\nhello\n/quit\nnothing more\n", "model.gguf", "-n 7 --quiet");
    assert_int_equal(two.code, 0);
    assert_int_equal(strncmp(two.out, one.out, strlen(one.out)), 0);
    const char *second = strstr(two.err, "]\n");
    assert_non_null(second);
    assert_int_equal(sscanf(two.err, "[%d tokens read, %*f tokens/s; 7 written, %*f tokens/s; %d of", &read[0], &all[0]), 2);
    assert_int_equal(sscanf(second + 2, "[%d tokens read, %*f tokens/s; 7 written, %*f tokens/s; %d of", &read[1], &all[1]), 2);
    assert_int_equal(all[0], read[0] + 7);
    assert_true(all[1] > all[0] + read[1] - 1 && read[1] < all[1] - 7); /* not all was read again */
    char twice[4096];
    snprintf(twice, sizeof twice, "%s%s", one.out, one.out);
    assert_string_equal(reset.out, twice);
    assert_string_equal(reset.err, "");
    command_free(&reset);
    command_free(&two);
    command_free(&one);
}

static void lines_continue_after_a_backslash_and_answers_follow_a_grammar(void **state)
{
    (void)state;
    scratch_write("yes.gbnf", "root ::= \"yes\"\n", 15);
    char options[1200];
    snprintf(options, sizeof options, "--quiet --grammar '%s'", scratch_path("yes.gbnf"));
    command_result r = talk("a\\\nb\n\nc\n", "model.gguf", options);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "yes\nyes\n");
    command_free(&r);
}

static void a_failure_ends_a_conversation_in_a_pipe(void **state)
{
    (void)state;
    command_result r = talk("refuse\nhello\n", "model.gguf", "-n 3");
    assert_int_equal(r.code != 0, 1);
    assert_non_null(strstr(r.err, "not that"));
    command_free(&r);
    r = talk("/nonsense\n/help\n", "model.gguf", "-n 3");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "/nonsense is not a command; the commands are /reset, /help and /quit"));
    assert_non_null(strstr(r.err, "forget the conversation"));
    command_free(&r);
    r = talk("hello\n", "bare.gguf", "");
    assert_int_equal(r.code != 0, 1);
    assert_non_null(strstr(r.err, "no chat template"));
    command_free(&r);
    r = talk("hello\n", "bare.gguf", "--grammar - ");
    assert_int_equal(r.code, 2);
    command_free(&r);
}

/* ---- a terminal ---------------------------------------------------------------------------------------------------------- */

static char shown[1 << 21];
static size_t used;
static int master = -1;
static pid_t process;

/* Starts the chat on a terminal that controls it. */
static void start(const char *model)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char name[128];
    const char *const arguments[] = {"warpwave", "model", "chat", scratch_path(model), "--device", "cpu", NULL};
    const char *const environment[] = {NO_LEAK_CHECK, "LC_ALL=C.UTF-8", "TERM=dumb", NULL};
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) {
        print_message("SKIP: there are no pseudo-terminals here (/dev/pts is not mounted)\n");
        skip();
    }
    assert_int_equal(grantpt(master) | unlockpt(master) | ptsname_r(master, name, sizeof name), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions) | posix_spawnattr_init(&attributes), 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    assert_int_equal(
        posix_spawn(&process, COMMAND_PATH, &actions, &attributes, (char *const *)arguments, (char *const *)environment), 0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    used = 0;
    memset(shown, 0, sizeof shown);
}

/* Reads more; false when the command has closed the terminal. */
static bool read_more(void)
{
    struct pollfd ready = {.fd = master, .events = POLLIN};
    if (used >= sizeof shown - 1 || poll(&ready, 1, PATIENCE_SECONDS * 1000) != 1) {
        kill(process, SIGKILL);
        fail_msg("the command does not stop, or says nothing; it said:\n%.2000s", shown);
    }
    const ssize_t count = read(master, shown + used, sizeof shown - 1 - used);
    if (count <= 0)
        return false;
    for (ssize_t i = 0; i < count; i++) /* the model says anything */
        shown[used + (size_t)i] = shown[used + (size_t)i] ? shown[used + (size_t)i] : ' ';
    used += (size_t)count;
    return true;
}

/* Waits until `text` is shown after position `from`, and returns the position after it. */
static size_t wait_for(size_t from, const char *text)
{
    const char *found;
    while (!(found = used > from ? strstr(shown + from, text) : NULL))
        if (!read_more())
            fail_msg("no '%s' in:\n%.2000s", text, shown);
    return (size_t)(found - shown) + strlen(text);
}

static void press(const char *keys)
{
    assert_int_equal(write(master, keys, strlen(keys)), strlen(keys));
}

static int end(void)
{
    int status;
    while (read_more())
        continue;
    close(master);
    assert_int_equal(waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void ctrl_c_ends_an_answer_and_not_the_program(void **state)
{
    (void)state;
    start("long.gguf");
    size_t at = wait_for(0, "> ");
    press("hello\n");
    at = wait_for(at, "hello\r\n");
    while (used < at + 2000) /* the answer would be as long as the context */
        assert_true(read_more());
    press("\x03");
    at = wait_for(at, " written");
    at = wait_for(at, "> ");
    press("begun, but not said");
    at = wait_for(at, "but not said");
    press("\x03");
    at = wait_for(at, "> ");
    press("refuse\n");
    at = wait_for(at, "not that");
    at = wait_for(at, "> ");
    press("/quit\n");
    assert_int_equal(end(), 0);
    assert_null(strstr(shown, "the context is full"));
}

static void ctrl_d_ends_the_program(void **state)
{
    (void)state;
    start("model.gguf");
    (void)wait_for(0, "> ");
    press("\x04");
    assert_int_equal(end(), 0);
}

static int setup(void **state)
{
    const int failed = scratch_setup(state);
    if (failed)
        return failed;
    tiny_write_chat(CHATML, 1024, scratch_path("model.gguf"));
    tiny_write_chat(CHATML, LONG_CONTEXT, scratch_path("long.gguf"));
    tiny_write_chat(NULL, 1024, scratch_path("bare.gguf"));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_answer_equals_that_of_generate),
        cmocka_unit_test(a_conversation_is_remembered_and_forgotten),
        cmocka_unit_test(lines_continue_after_a_backslash_and_answers_follow_a_grammar),
        cmocka_unit_test(a_failure_ends_a_conversation_in_a_pipe),
        cmocka_unit_test(ctrl_c_ends_an_answer_and_not_the_program),
        cmocka_unit_test(ctrl_d_ends_the_program),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
