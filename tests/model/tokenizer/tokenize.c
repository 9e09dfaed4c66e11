/* Tokenizes lines of JSON texts from standard input by a model file's tokenizer and prints the ids, a JSON array a line: what
 * check-tokenizers compares with other programs. `plain` as second argument: special tokens in the text are text. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"

static int fail(const char *what)
{
    fprintf(stderr, "tokenize: %s: %s\n", what, ww_error_message());
    return 1;
}

static int tokenize_line(const tokenizer *t, const char *line, size_t bytes, unsigned flags)
{
    token_list list = {0};
    json_t *text = json_loadb(line, bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    int code = 1;
    if (text && tokenizer_encode(t, json_string_value(text), json_string_length(text), flags, &list) == WW_OK) {
        putchar('[');
        for (int64_t i = 0; i < list.count; i++)
            printf("%s%d", i > 0 ? "," : "", (int)list.ids[i]);
        puts("]");
        code = 0;
    }
    json_decref(text);
    token_list_free(&list);
    return code;
}

int main(int count, char **arguments)
{
    ww_gguf *gguf = NULL;
    tokenizer *t = NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    int code = 0;
    const unsigned flags = count > 2 && strcmp(arguments[2], "plain") == 0 ? TOKENIZE_PLAIN : 0;
    if (count < 2 || ww_gguf_open(arguments[1], &gguf) != WW_OK || tokenizer_create(gguf, &t) != WW_OK)
        code = fail(count < 2 ? "no model" : arguments[1]);
    while (code == 0 && (bytes = getline(&line, &capacity, stdin)) > 0)
        code = tokenize_line(t, line, (size_t)bytes, flags) == 0 ? 0 : fail("a text");
    free(line);
    tokenizer_destroy(t);
    ww_gguf_close(gguf);
    return code;
}
