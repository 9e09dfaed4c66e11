/* Writes conversations in the form that a model was trained on, by the template of its file or another one (template/). */
#ifndef WW_MODEL_CHAT_H
#define WW_MODEL_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/template/template.h"

typedef struct chat_message {
    const char *role; /* "system", "user", "assistant", or another role that the template knows */
    const char *text;
} chat_message;

/* How to write a conversation. The caller owns all of it. */
typedef struct chat_format {
    const template_program *program;
    const char *bos, *eos;   /* names of these tokens; "" if there is none */
    template_quotes *quotes; /* gets the positions of the messages' own texts in the buffer; may be NULL */
} chat_format;

/* Appends the conversation, with `add_generation` up to where the assistant's answer begins. Tokenize the text with special
 * tokens and add nothing. Refuses a conversation without messages, text that is not UTF-8, and what the template refuses: it
 * checks roles and the order of turns. On failure the buffer is unchanged. */
ww_status chat_render(const chat_format *format, const chat_message *messages, size_t count, bool add_generation,
                      text_buffer *out);

#endif
