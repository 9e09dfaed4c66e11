/* GBNF to a program, in one pass: no tree is built. An atom that is repeated is read again for each copy, so the limit on steps
 * also bounds the time.
 */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/grammar/program.h"

enum { RANGES_MAX = 512, REPEATS_MAX = 100000, CHARACTER_MAX = 0x10FFFF };

typedef struct character_range {
    uint32_t low, high;
} character_range;

typedef struct parser {
    const char *text, *at, *end;
    grammar_program *program;
    grammar_rule *rules;
    int32_t rule_count, depth;
    character_range ranges[RANGES_MAX];
    int32_t range_count;
} parser;

static int line_of(const parser *p)
{
    int line = 1;
    for (const char *c = p->text; c < p->at; c++)
        line += *c == '\n';
    return line;
}

static ww_status wrong(const parser *p, const char *what)
{
    return ww_fail(WW_INVALID_ARGUMENT, "grammar, line %d: %s", line_of(p), what);
}

/* ---- steps -----------------------------------------------------------------------------------------------------------------
 */

static ww_status emit(parser *p, grammar_step step)
{
    grammar_program *g = p->program;
    if (g->count == GRAMMAR_STEPS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "grammar, line %d: the grammar has more than %d steps; repeat less", line_of(p),
                       (int)GRAMMAR_STEPS_MAX);
    if (g->count == g->capacity) {
        const int32_t capacity = 2 * g->capacity + 256;
        grammar_step *larger = memory_resize(g->steps, (size_t)capacity * sizeof *larger);
        if (!larger)
            return memory_failed("grammar", (size_t)capacity * sizeof *larger);
        g->steps = larger;
        g->capacity = capacity;
    }
    g->steps[g->count++] = step;
    return WW_OK;
}

/* Begins another alternative behind `*split`, the step that the one before begins with, and ends that one with a jump, which
 * keeps the number of the jump before. -1: there is none before. */
static ww_status emit_alternative(parser *p, int32_t *split, int32_t *jump)
{
    const bool first = *split < 0;
    ww_status status = first ? WW_OK : emit(p, (grammar_step){.op = STEP_JUMP, .to = *jump});
    if (status == WW_OK && !first) {
        *jump = p->program->count - 1;
        p->program->steps[*split].to = p->program->count;
    }
    *split = p->program->count;
    return status == WW_OK ? emit(p, (grammar_step){.op = STEP_SPLIT, .to = -1}) : status;
}

static void end_alternatives(parser *p, int32_t jump)
{
    while (jump >= 0) {
        const int32_t before = p->program->steps[jump].to;
        p->program->steps[jump].to = p->program->count;
        jump = before;
    }
}

/* ---- characters ------------------------------------------------------------------------------------------------------------
 */

static int32_t utf8_write(uint32_t c, uint8_t *bytes)
{
    const int32_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int32_t i = count - 1; i > 0; i--, c >>= 6)
        bytes[i] = (uint8_t)(0x80 | (c & 0x3F));
    bytes[0] = (uint8_t)(first[count] | c);
    return count;
}

static ww_status emit_character(parser *p, uint32_t c)
{
    uint8_t bytes[4];
    const int32_t count = utf8_write(c, bytes);
    ww_status status = WW_OK;
    for (int32_t i = 0; status == WW_OK && i < count; i++)
        status = emit(p, (grammar_step){.op = STEP_BYTE, .low = bytes[i], .high = bytes[i]});
    return status;
}

/* The largest beginning of a range whose characters are all of one length, and whose bytes vary independently. */
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

static ww_status emit_range(parser *p, character_range r, int32_t *split, int32_t *jump)
{
    ww_status status = WW_OK;
    while (status == WW_OK && r.low <= r.high) {
        uint8_t low[4], high[4];
        if (r.low >= 0xD800 && r.low <= 0xDFFF) { /* surrogates are no characters */
            r.low = 0xE000;
            continue;
        }
        const uint32_t last = uniform_end(r.low, r.low < 0xD800 && r.high >= 0xD800 ? 0xD7FF : r.high);
        const int32_t count = utf8_write(r.low, low);
        utf8_write(last, high);
        status = emit_alternative(p, split, jump);
        for (int32_t i = 0; status == WW_OK && i < count; i++)
            status = emit(p, (grammar_step){.op = STEP_BYTE, .low = low[i], .high = high[i]});
        r.low = last + 1;
    }
    return status;
}

/* Sorts the ranges, and emits them or, where negated, what is between them. */
static ww_status emit_class(parser *p, bool negated)
{
    int32_t split = -1, jump = -1;
    uint32_t next = 0; /* above all ranges before */
    ww_status status = WW_OK;
    for (int32_t i = 1; i < p->range_count; i++) {
        const character_range moved = p->ranges[i];
        int32_t at = i;
        for (; at > 0 && p->ranges[at - 1].low > moved.low; at--)
            p->ranges[at] = p->ranges[at - 1];
        p->ranges[at] = moved;
    }
    for (int32_t i = 0; status == WW_OK && i < p->range_count; i++) {
        const character_range r = p->ranges[i];
        if (negated && r.low > next)
            status = emit_range(p, (character_range){next, r.low - 1}, &split, &jump);
        else if (!negated && r.high >= next)
            status = emit_range(p, (character_range){r.low > next ? r.low : next, r.high}, &split, &jump);
        next = r.high >= next ? r.high + 1 : next;
    }
    if (status == WW_OK && negated && next <= CHARACTER_MAX)
        status = emit_range(p, (character_range){next, CHARACTER_MAX}, &split, &jump);
    if (status == WW_OK && split < 0)
        status = wrong(p, "the character class is empty");
    if (status == WW_OK)
        end_alternatives(p, jump);
    return status;
}

static ww_status read_hexadecimal(parser *p, int digits, uint32_t *c)
{
    for (*c = 0; digits > 0; digits--, p->at++) {
        static const char all[] = "0123456789abcdefABCDEF";
        const char *found = p->at < p->end && *p->at ? strchr(all, *p->at) : NULL;
        if (!found)
            return wrong(p, "\\x needs 2, \\u 4 and \\U 8 hexadecimal digits");
        const uint32_t digit = (uint32_t)(found - all);
        *c = *c << 4 | (digit < 16 ? digit : digit - 6);
    }
    return *c > CHARACTER_MAX || (*c >= 0xD800 && *c <= 0xDFFF) ? wrong(p, "the escape is no character of Unicode") : WW_OK;
}

/* One character of a literal or a class, which may be an escape. */
static ww_status read_character(parser *p, uint32_t *c)
{
    if (p->at == p->end || *p->at == '\n')
        return wrong(p, "a literal or a character class does not end in its line");
    if (*p->at != '\\') {
        p->at += utf8_read(p->at, (size_t)(p->end - p->at), c);
        return WW_OK;
    }
    const char kind = ++p->at < p->end ? *p->at : '\n';
    p->at += kind != '\n';
    *c = kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind == 't' ? '\t' : (uint32_t)(unsigned char)kind;
    if (kind == 'x' || kind == 'u' || kind == 'U')
        return read_hexadecimal(p, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, c);
    if (!strchr("nrt\\\"'[]-^/.$|(){}*+?", kind))
        return wrong(p, "this escape is not known; known are \\n \\r \\t \\x \\u \\U and those of punctuation");
    return WW_OK;
}

static ww_status parse_class(parser *p)
{
    ww_status status = WW_OK;
    const bool negated = ++p->at < p->end && *p->at == '^';
    p->at += negated;
    p->range_count = 0;
    while (status == WW_OK && (p->at == p->end || *p->at != ']')) {
        character_range r;
        status = read_character(p, &r.low);
        r.high = r.low;
        if (status == WW_OK && p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            status = read_character(p, &r.high);
        }
        if (status == WW_OK && r.high < r.low)
            status = wrong(p, "a range of characters ends before it begins");
        if (status == WW_OK && p->range_count == RANGES_MAX)
            status = wrong(p, "a character class has more than 512 ranges");
        if (status == WW_OK)
            p->ranges[p->range_count++] = r;
    }
    p->at += status == WW_OK;
    return status == WW_OK ? emit_class(p, negated) : status;
}

static ww_status parse_literal(parser *p)
{
    ww_status status = WW_OK;
    for (p->at++; status == WW_OK && (p->at == p->end || *p->at != '"');) {
        uint32_t c = 0;
        status = read_character(p, &c);
        if (status == WW_OK)
            status = emit_character(p, c);
    }
    p->at += status == WW_OK;
    return status;
}

/* ---- rules -----------------------------------------------------------------------------------------------------------------
 */

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

/* Does a name with "::=" behind it follow, so that the rule before has ended? */
static bool rule_begins(const parser *p)
{
    parser ahead = {.text = p->text, .at = p->at + name_bytes(p), .end = p->end};
    if (ahead.at == p->at)
        return false;
    skip_space(&ahead);
    return ahead.end - ahead.at >= 3 && memcmp(ahead.at, "::=", 3) == 0;
}

/* Reads a name, and gives the number of its rule. */
static ww_status read_rule(parser *p, int32_t *rule)
{
    const char *name = p->at;
    const size_t bytes = name_bytes(p);
    p->at += bytes;
    for (*rule = 0; *rule < p->rule_count; ++*rule)
        if (p->rules[*rule].bytes == bytes && memcmp(p->rules[*rule].name, name, bytes) == 0)
            return WW_OK;
    if (bytes == 0)
        return wrong(p, "a rule, NAME ::= ..., is expected");
    if (p->rule_count == GRAMMAR_RULES_MAX)
        return wrong(p, "the grammar has more than 4096 rules");
    p->rules[p->rule_count++] = (grammar_rule){.name = name, .bytes = bytes, .start = -1};
    return WW_OK;
}

static ww_status parse_alternatives(parser *p);

static ww_status parse_atom(parser *p)
{
    int32_t rule = 0;
    ww_status status = WW_OK;
    if (*p->at == '"')
        return parse_literal(p);
    if (*p->at == '[')
        return parse_class(p);
    if (*p->at == '.') {
        p->at++;
        p->range_count = 0;
        return emit_class(p, true);
    }
    if (*p->at != '(') {
        status = read_rule(p, &rule);
        return status == WW_OK ? emit(p, (grammar_step){.op = STEP_CALL, .to = rule}) : status;
    }
    if (p->depth == GRAMMAR_DEPTH_MAX)
        return wrong(p, "more than 100 groups are inside each other");
    p->at++;
    p->depth++;
    status = parse_alternatives(p);
    p->depth--;
    if (status == WW_OK && (p->at == p->end || *p->at != ')'))
        status = wrong(p, "a group is not closed");
    p->at += status == WW_OK;
    return status;
}

static bool read_count(parser *p, int32_t *count)
{
    const char *from = p->at;
    for (*count = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9' && *count <= REPEATS_MAX; p->at++)
        *count = 10 * *count + (*p->at - '0');
    return p->at > from;
}

/* Reads *, +, ? or {m,n}; -1 is no end, and 1 to 1 where none of them follows. */
static ww_status read_repetition(parser *p, int32_t *least, int32_t *most)
{
    skip_space(p);
    const char sign = p->at < p->end ? *p->at : ' ';
    *least = sign == '*' || sign == '?' ? 0 : 1;
    *most = sign == '*' || sign == '+' ? -1 : 1;
    if (sign == '*' || sign == '+' || sign == '?')
        p->at++;
    if (sign != '{')
        return WW_OK;
    p->at++;
    skip_space(p);
    bool good = read_count(p, least);
    skip_space(p);
    *most = *least;
    if (good && p->at < p->end && *p->at == ',') {
        p->at++;
        skip_space(p);
        if (!read_count(p, most))
            *most = -1;
        skip_space(p);
    }
    good = good && p->at < p->end && *p->at == '}' && *least <= REPEATS_MAX && *most <= REPEATS_MAX;
    p->at += good;
    return good && (*most < 0 || *most >= *least)
               ? WW_OK
               : wrong(p, "a repetition must be {m}, {m,} or {m,n}, with m at most n, and n at most 100000");
}

/* Copies of an atom, of which the first is there already, from step `first` on, behind a split. */
static ww_status repeat_atom(parser *p, const char *atom, int32_t first)
{
    const char *behind;
    int32_t least, most, last = first;
    ww_status status = read_repetition(p, &least, &most);
    behind = p->at;
    const int32_t copies = most < 0 ? (least > 0 ? least : 1) : most;
    for (int32_t i = 1; status == WW_OK && i < copies; i++) {
        last = p->program->count;
        p->at = atom;
        status = emit(p, (grammar_step){.op = STEP_SPLIT, .to = -1});
        if (status == WW_OK && i >= least) { /* may be left out: the end is found through the split before it */
            p->program->steps[last].to = first;
            first = last;
        }
        if (status == WW_OK)
            status = parse_atom(p);
    }
    p->at = behind;
    if (status == WW_OK && most < 0)
        status = emit(p, (grammar_step){.op = STEP_SPLIT, .to = last});
    if (status != WW_OK)
        return status;
    const int32_t end = p->program->count;
    grammar_step *steps = p->program->steps;
    for (int32_t i = copies - 1; i >= least && i >= 1; i--) {
        const int32_t before = steps[first].to;
        steps[first].to = end;
        first = before;
    }
    if (least == 0)
        steps[first] = (grammar_step){.op = most == 0 ? STEP_JUMP : STEP_SPLIT, .to = end};
    return WW_OK;
}

/* Sequences with | between them, up to the end of the rule or of the group. */
static ww_status parse_alternatives(parser *p)
{
    int32_t split = -1, jump = -1;
    ww_status status = emit_alternative(p, &split, &jump);
    for (skip_space(p); status == WW_OK && p->at < p->end && *p->at != ')' && !rule_begins(p); skip_space(p)) {
        if (*p->at == '|') {
            p->at++;
            status = emit_alternative(p, &split, &jump);
            continue;
        }
        const char *atom = p->at;
        const int32_t first = p->program->count;
        if (!in_name(*atom) && !strchr("\"[.(", *atom))
            return wrong(p, "a literal, a character class, a group, a rule or | is expected");
        status = emit(p, (grammar_step){.op = STEP_SPLIT, .to = -1});
        if (status == WW_OK)
            status = parse_atom(p);
        if (status == WW_OK)
            status = repeat_atom(p, atom, first);
    }
    if (status == WW_OK)
        end_alternatives(p, jump);
    return status;
}

static ww_status parse_rule(parser *p)
{
    int32_t rule = 0;
    if (!rule_begins(p))
        return wrong(p, "a rule, NAME ::= ..., is expected");
    ww_status status = read_rule(p, &rule);
    if (status == WW_OK && p->rules[rule].start >= 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "grammar, line %d: rule '%.*s' is defined twice", line_of(p),
                         (int)p->rules[rule].bytes, p->rules[rule].name);
    if (status != WW_OK)
        return status;
    p->rules[rule].start = p->program->count;
    skip_space(p);
    p->at += 3; /* ::= */
    status = parse_alternatives(p);
    if (status == WW_OK && p->at < p->end && *p->at == ')')
        status = wrong(p, ") closes no group");
    return status == WW_OK ? emit(p, (grammar_step){.op = STEP_RETURN}) : status;
}

/* All rules are there: calls get the step where their rule begins. */
static ww_status link_rules(parser *p)
{
    grammar_program *g = p->program;
    g->root = -1;
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
    ww_status status = WW_OK;
    for (skip_space(&p); status == WW_OK && p.at < p.end; skip_space(&p))
        status = parse_rule(&p);
    if (status == WW_OK)
        status = link_rules(&p);
    memory_free(p.rules);
    if (status != WW_OK)
        grammar_program_free(program);
    return status;
}

void grammar_program_free(grammar_program *program)
{
    memory_free(program->steps);
    *program = (grammar_program){0};
}
