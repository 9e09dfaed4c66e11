/* Prompts: texts that a model was trained to see in front of the texts that it embeds, such as "query: ". The model's file has
 * them under names, warpwave.prompt.NAME, and may name the one to use by default, warpwave.prompt_default.
 */
#ifndef WW_MODEL_PROMPTS_H
#define WW_MODEL_PROMPTS_H

#include <warpwave/gguf.h>

enum { PROMPTS_MAX = 64, PROMPT_BYTES_MAX = 4096 };

typedef struct model_prompt {
    char *name, *text;
} model_prompt;

typedef struct model_prompts {
    model_prompt *list; /* in the order of the file */
    size_t count;
    const model_prompt *usual; /* the default; NULL: there is none */
} model_prompts;

/* Reads the file's prompts. Refuses more than PROMPTS_MAX, a text longer than PROMPT_BYTES_MAX or with a NUL, and a default
 * that is not among them. On failure nothing is left. */
ww_status prompts_read(const ww_gguf *gguf, model_prompts *out);
void prompts_free(model_prompts *prompts);

/* The text of a prompt. NULL is the default, "" none. "query" and "document" give "" if the file does not have them:
 * "document" is also found as "passage" and "corpus". Refuses another name, and lists those of the file. */
ww_status prompts_find(const model_prompts *prompts, const char *name, const char **text);

#endif
