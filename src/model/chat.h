/* Conversations as models were taught to read them.
 *
 * A file's chat template is a program in a language of its own. It is not run here: a few families cover the models that people
 * use, a template is recognised as one of them by the marks in it, and one that is none is refused.
 */
#ifndef WW_MODEL_CHAT_H
#define WW_MODEL_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/text_buffer.h"

typedef enum chat_family {
    CHAT_CHATML,
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_MISTRAL,
    CHAT_GEMMA,
    CHAT_PHI3,
    CHAT_ZEPHYR
} chat_family;

typedef struct chat_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *text;
} chat_message;

/* Where the texts of messages are in a conversation, in order. Begins as zeros; free with chat_quotes_free(). */
typedef struct chat_quotes {
    text_span *spans;
    size_t count, capacity;
} chat_quotes;

void chat_quotes_free(chat_quotes *quotes);

/* What a conversation is written by. All of it is the caller's. */
typedef struct chat_format {
    chat_family family;
    const char *template_text; /* the file's, for what differs between models of a family; "" for the family's usual form */
    const char *bos, *eos;     /* names of these tokens; "" where there is none */
    chat_quotes *quotes;       /* gets where in the buffer the messages' own texts are; NULL: nobody asks */
} chat_format;

/* The family that a template is of, or the one that is called so. Refuse what is none; the message lists those that are. */
ww_status chat_find(const char *template_text, chat_family *family);
ww_status chat_find_name(const char *name, chat_family *family);
const char *chat_name(chat_family family);

/* Appends the conversation, with BOS where the family has it, up to where the assistant begins to speak if `add_generation`.
 * Tokenize the text with special tokens and add nothing. Refuses roles that the family has not, turns in
 * an order that it does not allow, and text that is no UTF-8. On failure the buffer is as before. */
ww_status chat_render(const chat_format *format, const chat_message *messages, size_t count, bool add_generation,
                      text_buffer *out);

#endif
