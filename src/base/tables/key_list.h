/* A list that keeps the smallest of any number of keys: it grows, and is cut back to a limit if there is one.
 *
 * A key is an unsigned integer, smaller is better, and no key comes twice (arithmetic/canon.h makes them of scores and rows).
 * It keeps the keys that may be among the `limit` smallest, so it never holds more than four times the limit, or 64.
 */
#ifndef WW_BASE_KEY_LIST_H
#define WW_BASE_KEY_LIST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct key_list {
    uint64_t *keys; /* in any order until key_list_finish() */
    int64_t count, capacity;
    int64_t total; /* all keys, kept or not: the caller that adds them counts them */
    uint64_t most; /* if `cut`, `limit` keys are at or before it: others need not be added */
    bool cut;
} key_list;

/* Makes room for `count` keys in all: adding them needs no more memory. False without memory. */
bool key_list_reserve(key_list *list, int64_t count);

/* Adds a key to a list that begins as zeros. False if there is no memory for it: then the list is as before. `limit` is not
 * negative, and the same each time. */
bool key_list_add(key_list *list, int64_t limit, uint64_t key);

/* Adds what another list of the same limit has kept, and its total. */
bool key_list_add_all(key_list *list, int64_t limit, const key_list *other);

/* Cuts the list to the limit; keys behind what this returns need not be added: UINT64_MAX if all may be wanted, 0 if none. */
uint64_t key_list_cut(key_list *list, int64_t limit);

/* Leaves the `limit` least in order, and gives back memory that is not needed. */
void key_list_finish(key_list *list, int64_t limit);

/* Frees the keys; the list is empty then. */
void key_list_free(key_list *list);

/* Puts `count` keys in order. Takes memory for a moment if there is any, and is slower without. */
void keys_sort(uint64_t *keys, int64_t count);

/* Moves the `least` least of `count` keys to the front, in any order, 1 <= least <= count; returns the greatest of them. */
uint64_t keys_select(uint64_t *keys, int64_t count, int64_t least);

#endif
