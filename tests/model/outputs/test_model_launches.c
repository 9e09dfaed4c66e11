/* The kernels of a token: those of a small Llama, as the stand-in for ROCm runs them. Products also do neighbouring operations
 *(docs/design/attention.md), so a layer takes five launches, or nine if a separate kernel quantizes columns.
 *
 * The library opens a runtime once for a process, so the test is a process of its own. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_calls.h"
#include "support/pretend/pretend.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/standin.h"

enum { SECONDS = 120, LAUNCHES_MAX = 64, LAYERS = 2 };

static standin rocm;
static bool (*emulate)(const standin_launch *launch);
static char launched[LAUNCHES_MAX][64];
static int count;

static void note_launch(const standin_launch *launch)
{
    EXPECT(count < LAUNCHES_MAX);
    snprintf(launched[count++], sizeof launched[0], "%s", launch->kernel);
    EXPECT(emulate(launch));
}

static bool is_embedded(const char *chip)
{
    for (size_t i = 0; ww_kernel_chip(i) != NULL; i++)
        if (strcmp(ww_kernel_chip(i), chip) == 0)
            return true;
    return false;
}

/* Records the launches of a token after a prompt; the token before it makes room. */
static void run_a_token(ww_device *device)
{
    ww_model *model = NULL;
    ww_session *session = NULL;
    float logits[CALLS_VOCABULARY];
    EXPECT(ww_model_open(scratch_path("llama.gguf"), device, NULL, &model) == WW_OK);
    EXPECT(ww_session_create(model, &session) == WW_OK);
    EXPECT(ww_session_feed(session, calls_prompt, CALLS_PROMPT) == WW_OK);
    for (int token = 0; token < 2; token++) {
        count = 0;
        EXPECT(ww_session_feed(session, calls_prompt, 1) == WW_OK && ww_session_logits(session, logits) == WW_OK);
    }
    ww_session_destroy(session);
    ww_model_close(model);
}

/* The embedding, the layers, and the norm and product of the logits. */
static void check_token(ww_device *device, const char *chip, const char *const *layer, const char *const *logits)
{
    const char *wanted[LAUNCHES_MAX] = {"quant_decode"};
    int number = 1;
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; layer[i]; i++)
            wanted[number++] = layer[i];
    for (int i = 0; logits[i]; i++)
        wanted[number++] = logits[i];
    run_a_token(device);
    for (int i = 0; i < count && i < number; i++)
        EXPECT(strcmp(launched[i], wanted[i]) == 0 ||
               (fprintf(stderr, "%s: launch %d is %s, not %s\n", chip, i, launched[i], wanted[i]), false));
    EXPECT(count == number);
}

/* A column coded by its product, and by a kernel before it. */
static const char *const one_layer[] = {"quant_gemv_one_q8_0", "attention_chunk_f16", "quant_gemv_one_q8_0",
                                        "quant_gemv_one_q8_0", "quant_gemv_one_q8_0", NULL};
static const char *const one_logits[] = {"quant_gemv_one_q8_0", NULL};
static const char *const coded_layer[] = {
    "quant_gemv_activations", "quant_gemv_q8_0", "attention_chunk_f16",    "quant_gemv_activations", "quant_gemv_q8_0",
    "quant_gemv_activations", "quant_gemv_q8_0", "quant_gemv_activations", "quant_gemv_q8_0",        NULL};
static const char *const coded_logits[] = {"quant_gemv_activations", "quant_gemv_q8_0", NULL};

static void count_launches(void)
{
    static const char *const chips[] = {"gfx942", "gfx90a", "gfx1100"};
    if (!standin_open(6, "chips=gfx942,gfx90a,gfx1100", &rocm))
        _exit(PROCESS_SKIPPED);
    void (*execute_with)(standin_executor) = NULL;
    *(void **)&execute_with = dlsym(rocm.library, "standin_execute_with");
    *(void **)&emulate = dlsym(rocm.library, "standin_emulate");
    execute_with(note_launch);
    for (int d = 0; d < 3; d++) {
        char name[32];
        ww_device *device = NULL;
        if (!is_embedded(chips[d]))
            continue;
        snprintf(name, sizeof name, "rocm:%d", d);
        EXPECT(ww_device_open(name, &device) == WW_OK);
        check_token(device, chips[d], one_layer, one_logits);
        pretend_gemv_one(device, false);
        check_token(device, chips[d], coded_layer, coded_logits);
        ww_device_close(device);
    }
    execute_with(NULL);
    EXPECT(rocm.misuse() == NULL && standin_alive(&rocm) == 0);
}

static void a_token_is_five_launches_a_layer_or_nine(void **state)
{
    (void)state;
    write_tiny_model("llama", WW_QUANT_Q8_0, LAYERS, "llama.gguf");
    in_a_process(count_launches, SECONDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_token_is_five_launches_a_layer_or_nine, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
