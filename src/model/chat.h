/* Conversations as models were taught to read them: by the template of the model's file, or another one (template/). */
#ifndef WW_MODEL_CHAT_H
#define WW_MODEL_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/template/template.h"

typedef struct chat_message {
    const char *role; /* "system", "user", "assistant", or another one that the template knows */
    const char *text;
} chat_message;

/* What a conversation is written by. All of it is the caller's. */
typedef struct chat_format {
    const template_program *program;
    const char *bos, *eos;   /* names of these tokens; "" where there is none */
    template_quotes *quotes; /* gets where in the buffer the messages' own texts are; NULL: nobody asks */
} chat_format;

/* Appends the conversation, up to where the assistant begins to speak if `add_generation`. Tokenize the text with special
 * tokens and add nothing. Refuses a conversation without messages, text that is no UTF-8, and what the template refuses: roles
 * and orders of turns are its business. On failure the buffer is as before. */
ww_status chat_render(const chat_format *format, const chat_message *messages, size_t count, bool add_generation,
                      text_buffer *out);

#endif
