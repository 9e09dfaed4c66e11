/* In place of what needs src/model where the library was built without PCRE2 or utf8proc: says so. */
#include "base/status.h"
#include "cli/command.h"
#include "cli/gguf/gguf.h"

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
