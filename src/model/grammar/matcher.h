/* Tracks the places of a grammar where a text can be, byte by byte.
 *
 * A place is a step and the place where its rule returns to. Equal places are stored once, so places are a tree of shared
 * stacks. A state is a set of places that read a byte, and whether the text may end. Equal states are stored once too, and
 * remember their successor for each byte: a step is mostly a table lookup.
 */
#ifndef WW_MODEL_GRAMMAR_MATCHER_H
#define WW_MODEL_GRAMMAR_MATCHER_H

#include <stdbool.h>

#include "model/grammar/program.h"

typedef struct grammar_place {
    int32_t step, back; /* back: a place; -1: the text ends */
    uint32_t stamp;     /* the last closure that saw it */
} grammar_place;

typedef struct grammar_state {
    int32_t first, count; /* its places in `members` */
    bool ends;
    int32_t *next;  /* successor by byte; STATE_UNKNOWN: not computed yet; NULL: none computed yet */
    uint64_t *mask; /* tokens that may follow; NULL: not computed yet */
    bool goes_on;   /* a token of text is among them */
} grammar_state;

enum { STATE_DEAD = 0, STATE_UNKNOWN = -1, MATCHER_STATES_MAX = 1 << 15, MATCHER_PLACES_MAX = 1 << 19 };

typedef struct matcher {
    const grammar_program *program;
    grammar_place *places;
    int32_t place_count, place_capacity;
    int32_t *place_table; /* hash table of places; its size is a power of two; -1: free */
    int32_t place_slots;
    grammar_state *states; /* number 0 has no places: no text continues there */
    int32_t state_count, state_capacity;
    int32_t *state_table;
    int32_t state_slots;
    int32_t *members, *found, *waiting;
    int32_t member_count, member_capacity, found_count, found_capacity, waiting_count, waiting_capacity;
    int32_t masks;       /* number of states with a mask */
    int32_t places_kept; /* matcher_trim() does nothing below this number of places */
    uint32_t stamp;
    bool ends;     /* of the set under construction */
    int32_t start; /* the state of the empty text */
} matcher;

/* Starts with the empty text. `m` must be zeroed; the program must outlive it. Free it even after a failure. */
ww_status matcher_begin(matcher *m, const grammar_program *program);
void matcher_free(matcher *m);

/* The state after one more byte; STATE_DEAD if there is none. Refuses a grammar in which a text is at too many places at once;
 * the matcher stays usable. */
ww_status matcher_step(matcher *m, int32_t state, uint8_t byte, int32_t *next);

/* Forgets all states except one, which gets another number, if there are many. On failure nothing changes. */
ww_status matcher_trim(matcher *m, int32_t *state);

#endif
