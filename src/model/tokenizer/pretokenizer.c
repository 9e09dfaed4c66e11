/* Pre-tokenizers by name. PCRE2 compiles their expressions, with its just-in-time compiler where that works.
 *
 * White space is written out as Unicode has it: PCRE2's \s has U+180E besides, which the models' own expressions have not. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/tokenizer/pretokenizer.h"

#include <pcre2.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define SPACE     "[\\p{Z}\\x09-\\x0d\\x85]"
#define NO_SPACE  "[^\\p{Z}\\x09-\\x0d\\x85]"
#define OTHER     "[^\\p{Z}\\x09-\\x0d\\x85\\p{L}\\p{N}]" /* neither space nor letter nor digit */
#define SPACES    SPACE "+(?!" NO_SPACE ")|" SPACE "+"
#define LINE_ENDS SPACE "*[\\r\\n]+|"
#define ELISION   "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define UPPER     "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER     "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"

#define GPT2   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?" OTHER "+|" SPACES
#define LLAMA3 ELISION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?" OTHER "+[\\r\\n]*|" LINE_ENDS SPACES
#define QWEN2  ELISION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?" OTHER "+[\\r\\n]*|" LINE_ENDS SPACES
#define TEKKEN                                                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+|[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER "]*|\\p{N}| ?" OTHER            \
    "+[\\r\\n/]*|" LINE_ENDS SPACES

enum { EXPRESSIONS_MAX = 2 };

typedef struct pretokenizer_kind {
    const char *name;
    const char *expressions[EXPRESSIONS_MAX]; /* the second cuts the pieces of the first */
    bool composes, whole_words, adds_bos;
} pretokenizer_kind;

static const pretokenizer_kind KINDS[] = {
    {.name = "gpt-2", .expressions = {GPT2}},
    {.name = "default", .expressions = {GPT2}},
    {.name = "modern-bert", .expressions = {GPT2}, .composes = true},
    {.name = "smollm", .expressions = {"\\p{N}", GPT2}},
    {.name = "starcoder", .expressions = {"\\p{N}", GPT2}},
    {.name = "llama-bpe", .expressions = {LLAMA3}, .whole_words = true, .adds_bos = true},
    {.name = "qwen2", .expressions = {QWEN2}, .composes = true},
    {.name = "tekken", .expressions = {TEKKEN}, .whole_words = true, .adds_bos = true},
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

struct pretokenizer {
    const pretokenizer_kind *kind;
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *expressions[EXPRESSIONS_MAX];
    int count;
};

static void *take(size_t bytes, void *context)
{
    (void)context;
    return memory_alloc(bytes);
}

static void give_back(void *block, void *context)
{
    (void)context;
    memory_free(block);
}

static ww_status compile(pretokenizer *p, const char *expression)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    pcre2_code *compiled =
        context ? pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &offset, context)
                : NULL;
    pcre2_compile_context_free(context);
    if (!compiled && (!context || code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY))
        return memory_failed("pre-tokenizer", strlen(expression));
    if (!compiled)
        return ww_fail(WW_INTERNAL, "pre-tokenizer '%s': PCRE2 error %d at %zu", p->kind->name, code, (size_t)offset);
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* where it fails, matching is slower */
    p->expressions[p->count++] = compiled;
    return WW_OK;
}

static ww_status refuse_name(const char *name, const char *file)
{
    char known[256] = "";
    for (int i = 0; i < KIND_COUNT; i++) {
        text_append(known, sizeof known, i > 0 ? ", " : "");
        text_append(known, sizeof known, KINDS[i].name);
    }
    return ww_fail(WW_UNSUPPORTED, "%s: the pre-tokenizer '%.60s' (tokenizer.ggml.pre) is not known; known are %s", file, name,
                   known);
}

ww_status pretokenizer_create(const char *name, const char *file, pretokenizer **out)
{
    const pretokenizer_kind *kind = NULL;
    for (int i = 0; i < KIND_COUNT && !kind; i++)
        kind = strcmp(KINDS[i].name, name) == 0 ? &KINDS[i] : NULL;
    if (!kind)
        return refuse_name(name, file);
    pretokenizer *p = memory_alloc_zeroed(1, sizeof *p);
    if (!p)
        return memory_failed("pre-tokenizer", sizeof *p);
    p->kind = kind;
    p->memory = pcre2_general_context_create(take, give_back, NULL);
    p->limits = p->memory ? pcre2_match_context_create(p->memory) : NULL;
    ww_status status = p->limits ? WW_OK : memory_failed("pre-tokenizer", 256);
    if (status == WW_OK) {
        pcre2_set_match_limit(p->limits, UINT32_MAX); /* the expressions take n steps; a long run of spaces takes many */
        pcre2_set_depth_limit(p->limits, UINT32_MAX);
    }
    for (int i = 0; status == WW_OK && i < EXPRESSIONS_MAX && kind->expressions[i]; i++)
        status = compile(p, kind->expressions[i]);
    if (status == WW_OK)
        *out = p;
    else
        pretokenizer_destroy(p);
    return status;
}

void pretokenizer_destroy(pretokenizer *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->count; i++)
        pcre2_code_free(p->expressions[i]);
    pcre2_match_context_free(p->limits);
    pcre2_general_context_free(p->memory);
    memory_free(p);
}

const char *pretokenizer_name(const pretokenizer *p)
{
    return p->kind->name;
}

bool pretokenizer_composes(const pretokenizer *p)
{
    return p->kind->composes;
}

bool pretokenizer_whole_words(const pretokenizer *p)
{
    return p->kind->whole_words;
}

bool pretokenizer_adds_bos(const pretokenizer *p)
{
    return p->kind->adds_bos;
}

void pretokenizer_free_match(void *match)
{
    pcre2_match_data_free(match);
}

/* ---- cutting --------------------------------------------------------------------------------------------------------------
 */

typedef struct cutter {
    const pretokenizer *p;
    pcre2_match_data *match;
    pretokenizer_piece piece;
    void *context;
} cutter;

/* Cuts by expression number `level` and the pieces by those behind it. Both matches and what lies between them are pieces. */
static ww_status cut(const cutter *c, int level, const char *text, size_t bytes)
{
    if (level == c->p->count)
        return c->piece(c->context, text, bytes);
    ww_status status = WW_OK;
    size_t at = 0;
    while (status == WW_OK && at < bytes) {
        const int code =
            pcre2_match(c->p->expressions[level], (PCRE2_SPTR)text, bytes, at, PCRE2_NO_UTF_CHECK, c->match, c->p->limits);
        if (code == PCRE2_ERROR_NOMATCH)
            break;
        if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAPLIMIT)
            return memory_failed("cutting a text", bytes);
        if (code < 0)
            return ww_fail(WW_INTERNAL, "pre-tokenizer '%s': PCRE2 error %d", c->p->kind->name, code);
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(c->match);
        const size_t begin = found[0], end = found[1]; /* the next level overwrites them */
        if (begin > at)
            status = cut(c, level + 1, text + at, begin - at);
        if (status == WW_OK)
            status = cut(c, level + 1, text + begin, end - begin);
        at = end;
    }
    return status == WW_OK && at < bytes ? cut(c, level + 1, text + at, bytes - at) : status;
}

ww_status pretokenizer_cut(const pretokenizer *p, const fragment *f, void **match, pretokenizer_piece piece, void *context)
{
    if (!*match)
        *match = pcre2_match_data_create(1, p->memory);
    if (!*match)
        return memory_failed("cutting a text", sizeof(cutter));
    const cutter c = {.p = p, .match = *match, .piece = piece, .context = context};
    return cut(&c, 0, f->text, f->bytes);
}
