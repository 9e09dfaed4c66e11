/* Compiles GBNF to a program in one pass, without a tree. A repeated atom is read again for each copy, so the limit on steps
 * also bounds the time. A failure leaves gbnf_parse() by longjmp() from any depth; all memory belongs to the parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/grammar/program.h"

enum { RANGES_MAX = 512, REPEATS_MAX = 100000, CHARACTER_MAX = 0x10FFFF, NONE = -1 };

typedef struct character_range {
    uint32_t low, high;
} character_range;

typedef struct parser {
    jmp_buf failed;
    ww_status status;
    const char *text, *at, *end;
    grammar_program *program;
    grammar_rule *rules;
    int32_t rule_count, depth;
    character_range ranges[RANGES_MAX];
    int32_t range_count;
} parser;

static _Noreturn void leave(parser *p, ww_status status)
{
    p->status = status;
    longjmp(p->failed, 1);
}

/* Fails with "grammar, line L: " before the message. */
__attribute__((format(printf, 3, 4))) static _Noreturn void fail(parser *p, ww_status status, const char *format, ...)
{
    char message[256];
    int line = 1;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(message, sizeof message, format, values);
    va_end(values);
    for (const char *c = p->text; c < p->at; c++)
        line += *c == '\n';
    leave(p, ww_fail(status, "grammar, line %d: %s", line, message));
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static void emit(parser *p, grammar_step step)
{
    grammar_program *g = p->program;
    if (g->count == GRAMMAR_STEPS_MAX)
        fail(p, WW_OUT_OF_RANGE, "the grammar has more than %d steps; repeat less", (int)GRAMMAR_STEPS_MAX);
    if (g->count == g->capacity) {
        const int32_t capacity = 2 * g->capacity + 256;
        grammar_step *larger = memory_resize(g->steps, (size_t)capacity * sizeof *larger);
        if (!larger)
            leave(p, memory_failed("grammar", (size_t)capacity * sizeof *larger));
        g->steps = larger;
        g->capacity = capacity;
    }
    g->steps[g->count++] = step;
}

static void emit_byte(parser *p, uint8_t low, uint8_t high)
{
    emit(p, (grammar_step){.op = STEP_BYTE, .low = low, .high = high});
}

/* Alternatives under construction. */
typedef struct choice {
    int32_t split; /* the first step of the last one */
    int32_t jump;  /* the last step of the previous one, which has the number of the jump before it */
} choice;
#define NO_CHOICE ((choice){NONE, NONE})

/* Ends the previous alternative, if there is one, with a jump, and begins another. */
static void emit_alternative(parser *p, choice *c)
{
    if (c->split != NONE) {
        emit(p, (grammar_step){.op = STEP_JUMP, .to = c->jump});
        c->jump = p->program->count - 1;
        p->program->steps[c->split].to = p->program->count;
    }
    c->split = p->program->count;
    emit(p, (grammar_step){.op = STEP_SPLIT, .to = NONE});
}

static void end_alternatives(parser *p, const choice *c)
{
    for (int32_t jump = c->jump, before; jump != NONE; jump = before) {
        before = p->program->steps[jump].to;
        p->program->steps[jump].to = p->program->count;
    }
}

/* ---- characters ---------------------------------------------------------------------------------------------------------- */

/* The end of the longest prefix of a range whose characters have the same length and whose bytes vary independently. */
static uint32_t uniform_end(uint32_t low, uint32_t high)
{
    static const uint32_t lasts[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++)
        if (low <= lasts[i] && high > lasts[i])
            high = lasts[i];
    for (int shift = 6; low > 0x7F && shift < 24; shift += 6) {
        const uint32_t below = (UINT32_C(1) << shift) - 1;
        if ((low & ~below) == (high & ~below))
            continue;
        if (low & below)
            high = low | below;
        else if ((high & below) != below)
            high = (high & ~below) - 1;
    }
    return high;
}

static void emit_range(parser *p, character_range r, choice *c)
{
    while (r.low <= r.high) {
        utf8proc_uint8_t low[4], high[4];
        if (r.low >= 0xD800 && r.low <= 0xDFFF) { /* surrogates are not characters */
            r.low = 0xE000;
            continue;
        }
        const uint32_t last = uniform_end(r.low, r.low < 0xD800 && r.high >= 0xD800 ? 0xD7FF : r.high);
        const utf8proc_ssize_t count = utf8proc_encode_char((utf8proc_int32_t)r.low, low);
        utf8proc_encode_char((utf8proc_int32_t)last, high);
        emit_alternative(p, c);
        for (utf8proc_ssize_t i = 0; i < count; i++)
            emit_byte(p, low[i], high[i]);
        r.low = last + 1;
    }
}

static void sort_ranges(parser *p)
{
    for (int32_t i = 1; i < p->range_count; i++) {
        const character_range moved = p->ranges[i];
        int32_t at = i;
        for (; at > 0 && p->ranges[at - 1].low > moved.low; at--)
            p->ranges[at] = p->ranges[at - 1];
        p->ranges[at] = moved;
    }
}

/* Emits the ranges or, if negated, the gaps between them. */
static void emit_class(parser *p, bool negated)
{
    choice c = NO_CHOICE;
    uint32_t next = 0; /* above all ranges before */
    sort_ranges(p);
    for (int32_t i = 0; i < p->range_count; i++) {
        const character_range r = p->ranges[i];
        if (negated && r.low > next)
            emit_range(p, (character_range){next, r.low - 1}, &c);
        else if (!negated && r.high >= next)
            emit_range(p, (character_range){r.low > next ? r.low : next, r.high}, &c);
        next = r.high >= next ? r.high + 1 : next;
    }
    if (negated && next <= CHARACTER_MAX)
        emit_range(p, (character_range){next, CHARACTER_MAX}, &c);
    if (c.split == NONE)
        fail(p, WW_INVALID_ARGUMENT, "the character class is empty");
    end_alternatives(p, &c);
}

static uint32_t read_hexadecimal(parser *p, int digits)
{
    uint32_t c = 0;
    for (; digits > 0; digits--, p->at++) {
        static const char all[] = "0123456789abcdefABCDEF";
        const char *found = p->at < p->end && *p->at ? strchr(all, *p->at) : NULL;
        if (!found)
            fail(p, WW_INVALID_ARGUMENT, "\\x needs 2, \\u 4 and \\U 8 hexadecimal digits");
        const uint32_t digit = (uint32_t)(found - all);
        c = c << 4 | (digit < 16 ? digit : digit - 6);
    }
    if (c > CHARACTER_MAX || (c >= 0xD800 && c <= 0xDFFF))
        fail(p, WW_INVALID_ARGUMENT, "the escape is not a Unicode character");
    return c;
}

/* One character of a literal or a class, which may be an escape. */
static uint32_t read_character(parser *p)
{
    uint32_t c = 0;
    if (p->at == p->end || *p->at == '\n')
        fail(p, WW_INVALID_ARGUMENT, "a literal or a character class does not end in its line");
    if (*p->at != '\\') {
        p->at += utf8_read(p->at, (size_t)(p->end - p->at), &c);
        return c;
    }
    const char kind = ++p->at < p->end ? *p->at : '\n';
    p->at += kind != '\n';
    if (kind == 'x' || kind == 'u' || kind == 'U')
        return read_hexadecimal(p, kind == 'x' ? 2 : kind == 'u' ? 4 : 8);
    if (!strchr("nrt\\\"'[]-^/.$|(){}*+?", kind))
        fail(p, WW_INVALID_ARGUMENT, "this escape is not known; known are \\n \\r \\t \\x \\u \\U and those of punctuation");
    return kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind == 't' ? '\t' : (uint32_t)(unsigned char)kind;
}

static void parse_class(parser *p)
{
    const bool negated = ++p->at < p->end && *p->at == '^';
    p->at += negated;
    p->range_count = 0;
    while (p->at == p->end || *p->at != ']') {
        character_range r;
        r.low = r.high = read_character(p);
        if (p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            r.high = read_character(p);
        }
        if (r.high < r.low)
            fail(p, WW_INVALID_ARGUMENT, "a range of characters ends before it begins");
        if (p->range_count == RANGES_MAX)
            fail(p, WW_INVALID_ARGUMENT, "a character class has more than %d ranges", (int)RANGES_MAX);
        p->ranges[p->range_count++] = r;
    }
    p->at++;
    emit_class(p, negated);
}

static void parse_literal(parser *p)
{
    for (p->at++; p->at == p->end || *p->at != '"';) {
        utf8proc_uint8_t bytes[4];
        const utf8proc_ssize_t count = utf8proc_encode_char((utf8proc_int32_t)read_character(p), bytes);
        for (utf8proc_ssize_t i = 0; i < count; i++)
            emit_byte(p, bytes[i], bytes[i]);
    }
    p->at++;
}

/* ---- rules --------------------------------------------------------------------------------------------------------------- */

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r' || *p->at == '#')) {
        const bool comment = *p->at == '#';
        while (comment && p->at < p->end && *p->at != '\n')
            p->at++;
        p->at += !comment;
    }
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t name_bytes(const parser *p)
{
    size_t bytes = 0;
    while (p->at + bytes < p->end && in_name(p->at[bytes]))
        bytes++;
    return bytes;
}

/* Does a name with "::=" after it follow? Then the previous rule has ended. */
static bool rule_begins(const parser *p)
{
    parser ahead = {.text = p->text, .at = p->at + name_bytes(p), .end = p->end};
    if (ahead.at == p->at)
        return false;
    skip_space(&ahead);
    return ahead.end - ahead.at >= 3 && memcmp(ahead.at, "::=", 3) == 0;
}

/* Reads a name, and returns the number of its rule. */
static int32_t read_rule(parser *p)
{
    const char *name = p->at;
    const size_t bytes = name_bytes(p);
    p->at += bytes;
    for (int32_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].bytes == bytes && memcmp(p->rules[i].name, name, bytes) == 0)
            return i;
    if (p->rule_count == GRAMMAR_RULES_MAX)
        fail(p, WW_INVALID_ARGUMENT, "the grammar has more than %d rules", (int)GRAMMAR_RULES_MAX);
    p->rules[p->rule_count] = (grammar_rule){.name = name, .bytes = bytes, .start = NONE};
    return p->rule_count++;
}

static void parse_alternatives(parser *p);

static void parse_group(parser *p)
{
    if (p->depth == GRAMMAR_DEPTH_MAX)
        fail(p, WW_INVALID_ARGUMENT, "groups are nested more than %d deep", (int)GRAMMAR_DEPTH_MAX);
    p->at++;
    p->depth++;
    parse_alternatives(p);
    p->depth--;
    if (p->at == p->end || *p->at != ')')
        fail(p, WW_INVALID_ARGUMENT, "a group is not closed");
    p->at++;
}

static void parse_atom(parser *p)
{
    if (*p->at == '"') {
        parse_literal(p);
    } else if (*p->at == '[') {
        parse_class(p);
    } else if (*p->at == '(') {
        parse_group(p);
    } else if (*p->at == '.') {
        p->at++;
        p->range_count = 0;
        emit_class(p, true);
    } else if (in_name(*p->at)) {
        emit(p, (grammar_step){.op = STEP_CALL, .to = read_rule(p)});
    } else {
        fail(p, WW_INVALID_ARGUMENT, "a literal, a character class, a group, a rule or | is expected");
    }
}

static bool read_count(parser *p, int32_t *count)
{
    skip_space(p);
    const char *from = p->at;
    for (*count = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9' && *count <= REPEATS_MAX; p->at++)
        *count = 10 * *count + (*p->at - '0');
    const bool found = p->at > from;
    skip_space(p);
    return found;
}

/* Reads {m}, {m,} or {m,n}; `max` is NONE if there is no upper bound. */
static void read_counts(parser *p, int32_t *min, int32_t *max)
{
    p->at++;
    bool good = read_count(p, min);
    *max = *min;
    if (good && p->at < p->end && *p->at == ',') {
        p->at++;
        if (!read_count(p, max))
            *max = NONE;
    }
    good = good && p->at < p->end && *p->at == '}' && *min <= REPEATS_MAX && *max <= REPEATS_MAX;
    if (!good || (*max != NONE && *max < *min))
        fail(p, WW_INVALID_ARGUMENT, "a repetition must be {m}, {m,} or {m,n}, with m at most n, and n at most %d",
             (int)REPEATS_MAX);
    p->at++;
}

/* Reads *, +, ? or {m,n}; 1 to 1 if none of them follows. */
static void read_repetition(parser *p, int32_t *min, int32_t *max)
{
    skip_space(p);
    const char sign = p->at < p->end ? *p->at : ' ';
    *min = sign == '*' || sign == '?' ? 0 : 1;
    *max = sign == '*' || sign == '+' ? NONE : 1;
    if (sign == '{')
        read_counts(p, min, max);
    else if (sign == '*' || sign == '+' || sign == '?')
        p->at++;
}

/* Writes the copies of an atom. The first copy already exists, from step `first` on, after a split. */
static void repeat_atom(parser *p, const char *atom, int32_t first)
{
    int32_t min, max, last = first;
    read_repetition(p, &min, &max);
    const char *behind = p->at;
    const int32_t copies = max == NONE ? (min > 0 ? min : 1) : max;
    for (int32_t i = 1; i < copies; i++) {
        last = p->program->count;
        p->at = atom;
        emit(p, (grammar_step){.op = STEP_SPLIT, .to = NONE});
        if (i >= min) { /* optional: the split before it leads to the end */
            p->program->steps[last].to = first;
            first = last;
        }
        parse_atom(p);
    }
    p->at = behind;
    if (max == NONE)
        emit(p, (grammar_step){.op = STEP_SPLIT, .to = last});
    const int32_t end = p->program->count;
    grammar_step *steps = p->program->steps;
    for (int32_t i = copies - 1; i >= min && i >= 1; i--) {
        const int32_t before = steps[first].to;
        steps[first].to = end;
        first = before;
    }
    if (min == 0)
        steps[first] = (grammar_step){.op = max == 0 ? STEP_JUMP : STEP_SPLIT, .to = end};
}

/* Parses sequences with | between them, up to the end of the rule or of the group. */
static void parse_alternatives(parser *p)
{
    choice c = NO_CHOICE;
    emit_alternative(p, &c);
    for (skip_space(p); p->at < p->end && *p->at != ')' && !rule_begins(p); skip_space(p)) {
        if (*p->at == '|') {
            p->at++;
            emit_alternative(p, &c);
            continue;
        }
        const char *atom = p->at;
        const int32_t first = p->program->count;
        emit(p, (grammar_step){.op = STEP_SPLIT, .to = NONE});
        parse_atom(p);
        repeat_atom(p, atom, first);
    }
    end_alternatives(p, &c);
}

static void parse_rule(parser *p)
{
    if (!rule_begins(p))
        fail(p, WW_INVALID_ARGUMENT, "a rule, NAME ::= ..., is expected");
    grammar_rule *rule = &p->rules[read_rule(p)];
    if (rule->start != NONE)
        fail(p, WW_INVALID_ARGUMENT, "rule '%.*s' is defined twice", (int)rule->bytes, rule->name);
    rule->start = p->program->count;
    skip_space(p);
    p->at += 3; /* ::= */
    parse_alternatives(p);
    if (p->at < p->end && *p->at == ')')
        fail(p, WW_INVALID_ARGUMENT, ") closes no group");
    emit(p, (grammar_step){.op = STEP_RETURN});
}

/* Links calls to the first step of their rule, once all rules are known. */
static ww_status link_rules(parser *p)
{
    grammar_program *g = p->program;
    g->root = NONE;
    for (int32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].start < 0)
            return ww_fail(WW_INVALID_ARGUMENT, "grammar: rule '%.*s' is used and not defined", (int)p->rules[i].bytes,
                           p->rules[i].name);
        if (p->rules[i].bytes == 4 && memcmp(p->rules[i].name, "root", 4) == 0)
            g->root = p->rules[i].start;
    }
    if (g->root < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "grammar: the rule 'root', with which a text begins, is missing");
    const ww_status status = grammar_check(g, p->rules, p->rule_count);
    for (int32_t i = 0; status == WW_OK && i < g->count; i++)
        if (g->steps[i].op == STEP_CALL)
            g->steps[i].to = p->rules[g->steps[i].to].start;
    return status;
}

static void parse_rules(parser *p)
{
    for (skip_space(p); p->at < p->end; skip_space(p))
        parse_rule(p);
    p->status = link_rules(p);
}

ww_status gbnf_parse(const char *text, size_t bytes, grammar_program *program)
{
    parser p = {.text = text, .at = text, .end = text + bytes, .program = program};
    if (bytes > GRAMMAR_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "grammar: the text has %zu bytes; the maximum is %d", bytes, (int)GRAMMAR_BYTES_MAX);
    if (!utf8_check(text, bytes) || memchr(text, '\0', bytes))
        return ww_fail(WW_INVALID_ARGUMENT, "grammar: the text is not UTF-8, or has a NUL in it");
    p.rules = memory_alloc(GRAMMAR_RULES_MAX * sizeof *p.rules);
    if (!p.rules)
        return memory_failed("grammar", GRAMMAR_RULES_MAX * sizeof *p.rules);
    if (setjmp(p.failed) == 0)
        parse_rules(&p);
    memory_free(p.rules);
    if (p.status != WW_OK)
        grammar_program_free(program);
    return p.status;
}

void grammar_program_free(grammar_program *program)
{
    memory_free(program->steps);
    *program = (grammar_program){0};
}
