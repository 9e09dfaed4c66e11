/* Any bytes as a chat template, and the bytes after the first line that is only "---" as its variables: they are either refused
 * with a message, or the template writes UTF-8, the same each time, with the conversation's parts in order. Nothing stays
 * allocated.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fuzz_check(const text_buffer *out, const template_quotes *quotes)
{
    size_t before = 0;
    if (out->bytes > 0 && !utf8_check(out->text, out->bytes))
        abort();
    for (size_t i = 0; i < quotes->count; i++) {
        if (quotes->spans[i].from < before || quotes->spans[i].to <= quotes->spans[i].from || quotes->spans[i].to > out->bytes)
            abort();
        before = quotes->spans[i].to;
    }
}

static void fuzz_render(const template_program *program, const char *json)
{
    const template_input input = {.json = json, .bos = "<s>", .eos = "</s>", .add_generation = true, .now = 1};
    text_buffer first = {0}, second = {0};
    template_quotes quotes = {0};
    const ww_status status = template_render(program, &input, &first, &quotes);
    if (template_render(program, &input, &second, NULL) != status || first.bytes != second.bytes ||
        (first.bytes > 0 && memcmp(first.text, second.text, first.bytes) != 0))
        abort();
    if (status != WW_OK && (first.bytes > 0 || quotes.count > 0 || !strchr(ww_error_message(), ':')))
        abort();
    fuzz_check(&first, &quotes);
    template_quotes_free(&quotes);
    text_buffer_free(&first);
    text_buffer_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char usual[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a b\"}, {\"role\": \"assistant\", \"content\": \"c\"}]}";
    char *text = malloc(size + 1);
    template_program *program = NULL;
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = 0;
    char *json = strstr(text, "\n---\n");
    const size_t length = json ? (size_t)(json - text) : size;
    if (template_parse(text, length, &program) == WW_OK)
        fuzz_render(program, json ? json + 5 : usual);
    else if (program || !strstr(ww_error_message(), "chat template"))
        abort();
    template_free(program);
    free(text);
    if (memory_blocks_held() != 0)
        abort();
    return 0;
}
