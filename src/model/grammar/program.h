/* A grammar as a program over bytes. A rule is a list of steps that ends with STEP_RETURN; character classes are compiled to
 * bytes of UTF-8, so a text may stop anywhere, even inside a character.
 */
#ifndef WW_MODEL_GRAMMAR_PROGRAM_H
#define WW_MODEL_GRAMMAR_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef enum grammar_op {
    STEP_BYTE,  /* reads a byte from low to high */
    STEP_SPLIT, /* continues with the next step, and also with `to` unless it is -1 */
    STEP_JUMP,  /* continues with `to` */
    STEP_CALL,  /* calls the rule that begins at `to` */
    STEP_RETURN
} grammar_op;

typedef struct grammar_step {
    uint8_t op, low, high;
    int32_t to;
} grammar_step;

typedef struct grammar_program {
    grammar_step *steps;
    int32_t count, capacity;
    int32_t root; /* the first step of the rule "root" */
} grammar_program;

/* Limits of a grammar: bytes of its text, steps of its program, rules, and nested groups. */
enum { GRAMMAR_BYTES_MAX = 4 << 20, GRAMMAR_STEPS_MAX = 1 << 18, GRAMMAR_RULES_MAX = 4096, GRAMMAR_DEPTH_MAX = 100 };

/* Compiles a GBNF text into `program`, which must be zeroed. Refuses, with the line: text that is not GBNF, a rule that is
 * missing or defined twice, left recursion, a rule that never ends, and anything beyond the limits. On failure `program` is
 * empty. */
ww_status gbnf_parse(const char *text, size_t bytes, grammar_program *program);

void grammar_program_free(grammar_program *program);

/* A rule, for grammar_check(). */
typedef struct grammar_rule {
    const char *name;
    size_t bytes;
    int32_t start; /* -1: used but not defined */
    uint8_t facts;
} grammar_rule;

/* Refuses left recursion and rules that never end. Calls in `program` are numbers of rules. */
ww_status grammar_check(const grammar_program *program, grammar_rule *rules, int32_t count);

#endif
