/* Pre-tokenizers by name. PCRE2 compiles their expressions, with its just-in-time compiler where that works.
 *
 * White space is written out as in Unicode: PCRE2's \s also has U+180E, which the models' own expressions do not. */
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

#define GPT4O                                                                                                                  \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"                                             \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER "]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?" OTHER                         \
    "+[\\r\\n/]*|" LINE_ENDS SPACES

/* DeepSeek's: letters with two cases, as its files list them; Han, kana and Hangul. */
#define CASED                                                                                                                  \
    "[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}"                           \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}"                     \
    "\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"                            \
    "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"                          \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}"                          \
    "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-"                           \
    "\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}"                           \
    "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}"                          \
    "\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}"                             \
    "\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}"                           \
    "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}"                            \
    "\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}"                          \
    "\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"                          \
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-"                          \
    "\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]"
#define EAST_ASIAN "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define DEEPSEEK_LLM                                                                                                           \
    {"[\\r\\n]",                                                                                                               \
     SPACE "?" CASED "+",                                                                                                      \
     SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",                           \
     SPACE "+$",                                                                                                               \
     EAST_ASIAN,                                                                                                               \
     "\\p{N}"}
#define DEEPSEEK_CODER {"[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+", EAST_ASIAN, "\\p{N}"}
#define DEEPSEEK_V3                                                                                                            \
    {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",                                            \
     "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                       \
     "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINE_ENDS SPACES}

enum { EXPRESSIONS_MAX = 6 };

typedef struct pretokenizer_kind {
    const char *name;
    const char *expressions[EXPRESSIONS_MAX]; /* each splits the pieces of the previous one */
    bool composes, whole_words;
    bool adds_bos, adds_ends;
} pretokenizer_kind;

static const pretokenizer_kind KINDS[] = {
    {.name = "gpt-2", .expressions = {GPT2}},
    {.name = "default", .expressions = {GPT2}},
    {.name = "modern-bert", .expressions = {GPT2}, .composes = true},
    {.name = "roberta-bpe", .expressions = {GPT2}, .adds_ends = true},
    {.name = "jina-v1-en", .expressions = {GPT2}, .adds_ends = true},
    {.name = "jina-v2-code", .expressions = {GPT2}, .adds_ends = true},
    {.name = "jina-v2-de", .expressions = {GPT2}, .adds_ends = true},
    {.name = "jina-v2-es", .expressions = {GPT2}, .adds_ends = true},
    {.name = "smollm", .expressions = {"\\p{N}", GPT2}},
    {.name = "starcoder", .expressions = {"\\p{N}", GPT2}},
    {.name = "refact", .expressions = {"\\p{N}", GPT2}},
    {.name = "command-r", .expressions = {"\\p{N}", GPT2}, .composes = true},
    {.name = "olmo", .expressions = {GPT2}, .composes = true},
    {.name = "llama-bpe", .expressions = {LLAMA3}, .whole_words = true, .adds_bos = true},
    {.name = "falcon3", .expressions = {LLAMA3}, .whole_words = true, .adds_bos = true},
    {.name = "smaug-bpe", .expressions = {LLAMA3}, .whole_words = true}, /* Llama 3's without BOS: SmolLM3 */
    {.name = "dbrx", .expressions = {LLAMA3}},
    {.name = "qwen2", .expressions = {QWEN2}, .composes = true},
    {.name = "deepseek-r1-qwen", .expressions = {QWEN2}, .composes = true},
    {.name = "tekken", .expressions = {TEKKEN}, .whole_words = true, .adds_bos = true},
    {.name = "gpt-4o", .expressions = {GPT4O}},
    {.name = "deepseek-llm", .expressions = DEEPSEEK_LLM},
    {.name = "deepseek-coder", .expressions = DEEPSEEK_CODER},
    {.name = "deepseek-v3", .expressions = DEEPSEEK_V3},
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
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* if it fails, matching is slower */
    p->expressions[p->count++] = compiled;
    return WW_OK;
}

static ww_status refuse_name(const char *name, const char *file)
{
    char known[512] = "";
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
    return p->kind->adds_bos || p->kind->adds_ends;
}

bool pretokenizer_adds_ends(const pretokenizer *p)
{
    return p->kind->adds_ends;
}

void pretokenizer_free_match(void *match)
{
    pcre2_match_data_free(match);
}

/* ---- cutting ------------------------------------------------------------------------------------------------------------- */

typedef struct cutter {
    const pretokenizer *p;
    pcre2_match_data *match;
    pretokenizer_piece piece;
    void *context;
} cutter;

/* Splits by expression number `level`, and the pieces by the following expressions. Matches and the text between them are
 * pieces. */
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
