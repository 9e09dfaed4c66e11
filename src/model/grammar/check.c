/* Facts about rules, found by going through them until no new fact is added. */
#include <stdbool.h>

#include "base/memory.h"
#include "model/grammar/program.h"

typedef enum rule_fact {
    FACT_EMPTY = 1, /* it matches the empty text */
    FACT_ENDS = 2,  /* it matches some finite text */
    FACT_READS = 4  /* it is not left-recursive */
} rule_fact;

enum { WORK_MAX = 1 << 27 }; /* steps to look at, about a second */

typedef struct checker {
    const grammar_program *program;
    grammar_rule *rules;
    int32_t *waiting, *seen; /* steps to continue with; the last walk that visited each step */
    int32_t walk;
    int64_t work;
} checker;

static void wait_for(checker *c, int32_t *count, int32_t step)
{
    if (step >= 0 && c->seen[step] != c->walk) {
        c->seen[step] = c->walk;
        c->waiting[(*count)++] = step;
    }
}

/* Is the fact true of a rule, given what is known about others? `culprit` gets a rule that it begins with and that has no
 * FACT_READS. */
static bool holds(checker *c, int32_t rule, rule_fact fact, int32_t *culprit)
{
    int32_t count = 0;
    c->walk++;
    wait_for(c, &count, c->rules[rule].start);
    for (; count > 0; c->work++) {
        const int32_t at = c->waiting[--count];
        const grammar_step step = c->program->steps[at];
        const uint8_t called = step.op == STEP_CALL ? c->rules[step.to].facts : 0;
        if (step.op == STEP_RETURN && fact != FACT_READS)
            return true;
        if (step.op == STEP_CALL && fact == FACT_READS && !(called & FACT_READS)) {
            *culprit = step.to;
            return false;
        }
        if (step.op == STEP_SPLIT || step.op == STEP_JUMP)
            wait_for(c, &count, step.to);
        if (step.op == STEP_SPLIT || (step.op == STEP_BYTE && fact == FACT_ENDS) ||
            (step.op == STEP_CALL && called & (fact == FACT_ENDS ? FACT_ENDS : FACT_EMPTY)))
            wait_for(c, &count, at + 1);
    }
    return fact == FACT_READS;
}

static void find_all(checker *c, int32_t count, rule_fact fact)
{
    for (bool changed = true; changed && c->work < WORK_MAX;) {
        changed = false;
        for (int32_t i = count - 1; i >= 0 && c->work < WORK_MAX; i--) {
            int32_t culprit;
            if (!(c->rules[i].facts & fact) && holds(c, i, fact, &culprit)) {
                c->rules[i].facts |= (uint8_t)fact;
                changed = true;
            }
        }
    }
}

static ww_status judge(checker *c, int32_t count)
{
    find_all(c, count, FACT_EMPTY);
    find_all(c, count, FACT_ENDS);
    find_all(c, count, FACT_READS);
    if (c->work >= WORK_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "grammar: chains of rules that depend on each other are too long; join some of them");
    for (int32_t i = 0; i < count; i++) {
        int32_t rule = i;
        if (!(c->rules[i].facts & FACT_ENDS))
            return ww_fail(WW_INVALID_ARGUMENT, "grammar: rule '%.*s' never ends", (int)c->rules[i].bytes, c->rules[i].name);
        if (c->rules[i].facts & FACT_READS)
            continue;
        for (int32_t n = 0; n < count; n++) /* after this many steps the rule is part of the cycle */
            (void)holds(c, rule, FACT_READS, &rule);
        return ww_fail(WW_INVALID_ARGUMENT,
                       "grammar: rule '%.*s' calls itself before it reads anything (left recursion); put what it reads first",
                       (int)c->rules[rule].bytes, c->rules[rule].name);
    }
    return WW_OK;
}

ww_status grammar_check(const grammar_program *program, grammar_rule *rules, int32_t count)
{
    checker c = {.program = program, .rules = rules};
    const size_t steps = (size_t)program->count;
    c.waiting = memory_alloc(steps * sizeof *c.waiting);
    c.seen = memory_alloc_zeroed(steps, sizeof *c.seen);
    const ww_status status = c.waiting && c.seen ? judge(&c, count) : memory_failed("grammar", steps * 2 * sizeof *c.waiting);
    memory_free(c.waiting);
    memory_free(c.seen);
    return status;
}
