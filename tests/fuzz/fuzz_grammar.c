/* Any bytes as a GBNF grammar and as a JSON schema, followed by a NUL and a text: refused with a message, or the text is
 * matched byte by byte with the same result each time, even if states are dropped in between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/grammar/matcher.h"
#include "model/grammar/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fuzz_walk(const grammar_program *program, const uint8_t *text, size_t bytes)
{
    matcher m = {0};
    int32_t state = 0, again = 0;
    ww_status status = matcher_begin(&m, program);
    state = again = m.start;
    for (size_t i = 0; status == WW_OK && i < bytes && state != STATE_DEAD; i++) {
        status = matcher_step(&m, state, text[i], &state);
        if (status == WW_OK && (matcher_step(&m, again, text[i], &again) != WW_OK || again != state))
            abort();
        if (status == WW_OK && m.states[state].count == 0 && !m.states[state].ends && state != STATE_DEAD)
            abort();
        if (status == WW_OK && (status = matcher_trim(&m, &state)) == WW_OK)
            again = state;
    }
    if (status != WW_OK && status != WW_OUT_OF_RANGE)
        abort();
    matcher_free(&m);
}

static void fuzz_program(const char *text, size_t length, const uint8_t *walked, size_t bytes)
{
    grammar_program program = {0};
    if (gbnf_parse(text, length, &program) == WW_OK)
        fuzz_walk(&program, walked, bytes);
    else if (program.steps || strncmp(ww_error_message(), "grammar", 7) != 0)
        abort();
    grammar_program_free(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *stop = size > 0 ? memchr(bytes, 0, size) : NULL;
    const size_t length = stop ? (size_t)(stop - bytes) : size, rest = stop ? size - length - 1 : 0;
    text_buffer gbnf = {0};
    fuzz_program((const char *)bytes, length, bytes + size - rest, rest);
    if (schema_to_gbnf((const char *)bytes, length, &gbnf) == WW_OK)
        fuzz_program(gbnf.text, gbnf.bytes, bytes + size - rest, rest);
    else if (strncmp(ww_error_message(), "JSON schema", 11) != 0)
        abort();
    text_buffer_free(&gbnf);
    if (memory_blocks_held() != 0)
        abort();
    return 0;
}
