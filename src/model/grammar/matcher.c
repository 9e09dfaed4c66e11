/* Sets of places; each distinct set is made once. */
#include "model/grammar/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"

enum { SLOTS_MIN = 256, STATES_KEPT = 1 << 12, PLACES_KEPT = 1 << 17, MASKS_KEPT = 512, BYTES = 256 };

/* Makes room for one more element of `bytes` bytes in the list that `list` points to. */
static ww_status reserve(void *list, int32_t count, int32_t *capacity, size_t bytes)
{
    void *block;
    if (count < *capacity)
        return WW_OK;
    const int32_t wanted = 2 * *capacity + 64;
    memcpy(&block, list, sizeof block);
    block = memory_resize(block, (size_t)wanted * bytes);
    if (!block)
        return memory_failed("grammar", (size_t)wanted * bytes);
    memcpy(list, &block, sizeof block);
    *capacity = wanted;
    return WW_OK;
}

static ww_status add_number(int32_t **list, int32_t *count, int32_t *capacity, int32_t number)
{
    const ww_status status = reserve(list, *count, capacity, sizeof number);
    if (status == WW_OK)
        (*list)[(*count)++] = number;
    return status;
}

/* ---- tables -------------------------------------------------------------------------------------------------------------- */

typedef uint64_t (*hash_of)(const matcher *m, int32_t entry);

static uint64_t hash_place(const matcher *m, int32_t place)
{
    const grammar_place at = m->places[place];
    return hash_number(hash_process_key(), (uint64_t)(uint32_t)at.step << 32 | (uint32_t)at.back);
}

static uint64_t hash_state(const matcher *m, int32_t state)
{
    const grammar_state *s = &m->states[state];
    const char *members = s->count > 0 ? (const char *)(m->members + s->first) : ""; /* the list may not exist yet */
    return hash_bytes(hash_process_key(), members, (size_t)s->count * sizeof *m->members) ^ s->ends;
}

static void put(int32_t *table, int32_t slots, uint64_t hash, int32_t entry)
{
    uint64_t slot = hash & (uint64_t)(slots - 1);
    while (table[slot] >= 0)
        slot = (slot + 1) & (uint64_t)(slots - 1);
    table[slot] = entry;
}

/* Grows the table for one more than `count` entries, at most half full. */
static ww_status grow_table(const matcher *m, int32_t **table, int32_t *slots, int32_t count, hash_of hash)
{
    if (2 * (count + 1) <= *slots)
        return WW_OK;
    const int32_t wanted = *slots ? 2 * *slots : SLOTS_MIN;
    int32_t *larger = memory_alloc((size_t)wanted * sizeof *larger);
    if (!larger)
        return memory_failed("grammar", (size_t)wanted * sizeof *larger);
    memset(larger, 0xFF, (size_t)wanted * sizeof *larger);
    for (int32_t i = 0; i < count; i++)
        put(larger, wanted, hash(m, i), i);
    memory_free(*table);
    *table = larger;
    *slots = wanted;
    return WW_OK;
}

static ww_status too_many(void)
{
    return ww_fail(WW_OUT_OF_RANGE, "grammar: the grammar is too ambiguous: too many of its rules match the text at once");
}

static ww_status reserve_place(matcher *m)
{
    if (m->place_count == MATCHER_PLACES_MAX)
        return too_many();
    const ww_status status = reserve(&m->places, m->place_count, &m->place_capacity, sizeof *m->places);
    return status == WW_OK ? grow_table(m, &m->place_table, &m->place_slots, m->place_count, hash_place) : status;
}

static ww_status find_place(matcher *m, grammar_place wanted, int32_t *place)
{
    const ww_status status = reserve_place(m);
    if (status != WW_OK)
        return status;
    m->places[m->place_count] = wanted;
    const uint64_t hash = hash_place(m, m->place_count);
    for (uint64_t slot = hash;; slot++) {
        *place = m->place_table[slot & (uint64_t)(m->place_slots - 1)];
        if (*place < 0)
            break;
        if (m->places[*place].step == wanted.step && m->places[*place].back == wanted.back)
            return WW_OK;
    }
    *place = m->place_count++;
    put(m->place_table, m->place_slots, hash, *place);
    return WW_OK;
}

/* ---- states -------------------------------------------------------------------------------------------------------------- */

static ww_status wait_at(matcher *m, int32_t step, int32_t back)
{
    int32_t place = 0;
    const ww_status status = find_place(m, (grammar_place){.step = step, .back = back}, &place);
    if (status != WW_OK || m->places[place].stamp == m->stamp)
        return status;
    m->places[place].stamp = m->stamp;
    return add_number(&m->waiting, &m->waiting_count, &m->waiting_capacity, place);
}

/* Does the rule end after this step? Then a call need not return there, and recursion at the end of a rule is a loop. */
static bool only_returns(const grammar_program *g, int32_t step)
{
    while (g->steps[step].op == STEP_JUMP || (g->steps[step].op == STEP_SPLIT && g->steps[step].to < 0))
        step = g->steps[step].op == STEP_JUMP ? g->steps[step].to : step + 1;
    return g->steps[step].op == STEP_RETURN;
}

/* Continues from a place to what is read or called next. */
static ww_status go_on(matcher *m, int32_t place)
{
    const grammar_place at = m->places[place];
    const grammar_step step = m->program->steps[at.step];
    int32_t back = at.back;
    ww_status status = WW_OK;
    if (step.op == STEP_BYTE)
        return add_number(&m->found, &m->found_count, &m->found_capacity, place);
    if (step.op == STEP_RETURN && back < 0)
        m->ends = true;
    else if (step.op == STEP_RETURN)
        status = wait_at(m, m->places[back].step, m->places[back].back);
    else if (step.op == STEP_JUMP)
        status = wait_at(m, step.to, back);
    else if (step.op == STEP_CALL) {
        if (!only_returns(m->program, at.step + 1))
            status = find_place(m, (grammar_place){.step = at.step + 1, .back = at.back}, &back);
        if (status == WW_OK)
            status = wait_at(m, step.to, back);
    } else {
        status = step.to >= 0 ? wait_at(m, step.to, back) : WW_OK;
        if (status == WW_OK)
            status = wait_at(m, at.step + 1, back);
    }
    return status;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static ww_status reserve_state(matcher *m)
{
    if (m->state_count == MATCHER_STATES_MAX)
        return too_many();
    while (m->member_capacity - m->member_count < m->found_count) {
        const ww_status status = reserve(&m->members, m->member_capacity, &m->member_capacity, sizeof *m->members);
        if (status != WW_OK)
            return status;
    }
    const ww_status status = reserve(&m->states, m->state_count, &m->state_capacity, sizeof *m->states);
    return status == WW_OK ? grow_table(m, &m->state_table, &m->state_slots, m->state_count, hash_state) : status;
}

/* Finds or makes the state of the collected places. */
static ww_status find_state(matcher *m, int32_t *state)
{
    const size_t bytes = (size_t)m->found_count * sizeof *m->found;
    const ww_status status = reserve_state(m);
    if (status != WW_OK)
        return status;
    if (m->found_count > 0) {
        qsort(m->found, (size_t)m->found_count, sizeof *m->found, ascending);
        memcpy(m->members + m->member_count, m->found, bytes);
    }
    m->states[m->state_count] = (grammar_state){.first = m->member_count, .count = m->found_count, .ends = m->ends};
    const uint64_t hash = hash_state(m, m->state_count);
    for (uint64_t slot = hash;; slot++) {
        *state = m->state_table[slot & (uint64_t)(m->state_slots - 1)];
        if (*state < 0)
            break;
        const grammar_state *s = &m->states[*state];
        if (s->count == m->found_count && s->ends == m->ends &&
            (bytes == 0 || memcmp(m->members + s->first, m->found, bytes) == 0))
            return WW_OK;
    }
    *state = m->state_count++;
    m->member_count += m->found_count;
    put(m->state_table, m->state_slots, hash, *state);
    return WW_OK;
}

static void begin_set(matcher *m)
{
    m->found_count = m->waiting_count = 0;
    m->ends = false;
    m->stamp++;
}

static ww_status finish_set(matcher *m, ww_status status, int32_t *state)
{
    while (status == WW_OK && m->waiting_count > 0)
        status = go_on(m, m->waiting[--m->waiting_count]);
    return status == WW_OK ? find_state(m, state) : status;
}

ww_status matcher_begin(matcher *m, const grammar_program *program)
{
    int32_t dead;
    m->program = program;
    m->places_kept = PLACES_KEPT;
    begin_set(m);
    ww_status status = finish_set(m, WW_OK, &dead); /* the first state has the number 0 */
    begin_set(m);
    return status == WW_OK ? finish_set(m, wait_at(m, program->root, -1), &m->start) : status;
}

ww_status matcher_step(matcher *m, int32_t state, uint8_t byte, int32_t *next)
{
    grammar_state *s = &m->states[state];
    ww_status status = WW_OK;
    if (!s->next) {
        int32_t *made = memory_alloc(BYTES * sizeof *made);
        if (!made)
            return memory_failed("grammar", BYTES * sizeof *made);
        for (int i = 0; i < BYTES; i++)
            made[i] = STATE_UNKNOWN;
        s->next = made;
    }
    *next = s->next[byte];
    if (*next != STATE_UNKNOWN)
        return WW_OK;
    begin_set(m);
    const int32_t first = s->first, count = s->count;
    for (int32_t i = 0; status == WW_OK && i < count; i++) {
        const grammar_place at = m->places[m->members[first + i]];
        const grammar_step step = m->program->steps[at.step];
        if (byte >= step.low && byte <= step.high)
            status = wait_at(m, at.step + 1, at.back);
    }
    status = finish_set(m, status, next);
    if (status == WW_OK)
        m->states[state].next[byte] = *next;
    return status;
}

static void free_states(matcher *m)
{
    for (int32_t i = 0; i < m->state_count; i++) {
        memory_free(m->states[i].next);
        memory_free(m->states[i].mask);
    }
}

void matcher_free(matcher *m)
{
    free_states(m);
    memory_free(m->places);
    memory_free(m->place_table);
    memory_free(m->states);
    memory_free(m->state_table);
    memory_free(m->members);
    memory_free(m->found);
    memory_free(m->waiting);
    *m = (matcher){0};
}

/* Copies a place of another matcher with the places that it returns to. */
static ww_status copy_place(matcher *to, const matcher *from, int32_t place, int32_t *copied)
{
    ww_status status = WW_OK;
    int32_t back = -1;
    to->waiting_count = 0;
    for (; status == WW_OK && place >= 0; place = from->places[place].back)
        status = add_number(&to->waiting, &to->waiting_count, &to->waiting_capacity, from->places[place].step);
    while (status == WW_OK && to->waiting_count > 0) {
        status = find_place(to, (grammar_place){.step = to->waiting[--to->waiting_count], .back = back}, copied);
        back = *copied;
    }
    return status;
}

ww_status matcher_trim(matcher *m, int32_t *state)
{
    matcher fresh = {0};
    const grammar_state *kept = &m->states[*state];
    int32_t made = STATE_DEAD;
    if (m->state_count < STATES_KEPT && m->place_count < m->places_kept && m->masks < MASKS_KEPT)
        return WW_OK;
    ww_status status = matcher_begin(&fresh, m->program);
    if (status == WW_OK)
        begin_set(&fresh);
    fresh.ends = kept->ends;
    for (int32_t i = 0; status == WW_OK && i < kept->count; i++) {
        int32_t place = -1;
        status = copy_place(&fresh, m, m->members[kept->first + i], &place);
        if (status == WW_OK)
            status = add_number(&fresh.found, &fresh.found_count, &fresh.found_capacity, place);
    }
    if (status == WW_OK)
        status = find_state(&fresh, &made);
    matcher_free(status == WW_OK ? m : &fresh);
    if (status == WW_OK) {
        *m = fresh;
        *state = made;
        m->places_kept = max_i32(PLACES_KEPT, 2 * m->place_count); /* so that a deeply nested text is rarely copied */
    }
    return status;
}
