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
    int64_t total;    /* all keys, kept or not; the caller that adds them counts them */
    uint64_t key_max; /* if `cut`, at least `limit` keys are not larger, so larger keys need not be added */
    bool cut;
} key_list;

/* Makes room for `count` keys, so that adding them needs no more memory. Returns false if there is not enough memory. */
bool key_list_reserve(key_list *list, int64_t count);

/* Adds a key to a list that was initially all zero. Returns false, and does not change the list, if there is not enough memory.
 * `limit` is not negative, and the same in every call. */
bool key_list_add(key_list *list, int64_t limit, uint64_t key);

/* Adds the keys of another list with the same limit, and its total. */
bool key_list_add_all(key_list *list, int64_t limit, const key_list *other);

/* Cuts the list to the limit. Keys larger than the returned one need not be added: UINT64_MAX if all may be wanted, 0 if
 * none. */
uint64_t key_list_cut(key_list *list, int64_t limit);

/* Keeps the `limit` smallest keys, sorted, and frees unneeded memory. */
void key_list_finish(key_list *list, int64_t limit);

/* Frees the keys; then the list is empty. */
void key_list_free(key_list *list);

/* Sorts `count` keys. Allocates memory temporarily; without memory it is slower. */
void keys_sort(uint64_t *keys, int64_t count);

/* Moves the `wanted` smallest of `count` keys to the front, in any order, and returns the largest of them. 1 <= wanted <=
 * count. */
uint64_t keys_select(uint64_t *keys, int64_t count, int64_t wanted);

#endif
