/* In place of what needs src/model where the library was built without PCRE2 or utf8proc: says so. */
#include "base/status.h"
#include "cli/command.h"
#include "cli/gguf/gguf.h"
#include "cli/text/text_model.h"

static ww_status say_missing(void)
{
    return ww_fail(WW_UNSUPPORTED, "this command was built without models, since PCRE2 or utf8proc was missing; install "
                                   "libpcre2-dev and libutf8proc-dev and build it again");
}

ww_status gguf_from_safetensors(const gguf_folder *job)
{
    (void)job;
    return say_missing();
}

ww_status gguf_from_safetensors_check(const char *type)
{
    (void)type;
    return WW_OK;
}

ww_status text_model_open(const char *path, ww_device *device, text_model **model)
{
    (void)path;
    (void)device;
    (void)model;
    return say_missing();
}

void text_model_close(text_model *model)
{
    (void)model;
}

const char *text_model_name(const text_model *model)
{
    (void)model;
    return "";
}

const char *text_model_fingerprint(const text_model *model)
{
    (void)model;
    return "";
}

int32_t text_model_width(const text_model *model)
{
    (void)model;
    return 0;
}

/* as the other one has it: NOLINTNEXTLINE(readability-non-const-parameter) */
ww_status text_model_embed(text_model *model, const char *const *texts, size_t count, float *vectors, progress *bar)
{
    (void)model;
    (void)texts;
    (void)count;
    (void)vectors;
    (void)bar;
    return say_missing();
}

static exit_code run(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return command_end(&command_model, say_missing());
}

const command command_model = {
    .name = "model",
    .summary = "Embed texts and generate text with a model from a GGUF file (not in this build)",
    .operand = "ACTION MODEL",
    .run = run,
};
