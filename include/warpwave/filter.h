/* Filters: conditions on the fields of payloads and on ids, which queries, selections, counts, removals and updates take.
 *
 * A filter is read from a dictionary, or built by calls:
 *
 *     ww_filter_read("{\"year\": {\"$gt\": 2000}, \"$or\": [{\"draft\": false}, {\"owner.name\": \"ann\"}]}", &filter);
 *
 *     ww_filter_create(&filter);
 *     ww_filter_add(filter, "year", WW_FILTER_GREATER, &(ww_filter_value){.type = WW_FILTER_INTEGER, .integer = 2000}, 1);
 *     ww_filter_begin(filter, WW_FILTER_ANY, 0);
 *         ww_filter_add(filter, "draft", WW_FILTER_EQUAL, &(ww_filter_value){.type = WW_FILTER_FALSE}, 1);
 *         ww_filter_add(filter, "owner.name", WW_FILTER_EQUAL, &(ww_filter_value){.type = WW_FILTER_TEXT, .text = "ann"}, 1);
 *     ww_filter_end(filter);
 *
 * A condition holds or does not hold, never "unknown". Collections in memory and in stores admit the same rows. A call that
 * fails leaves the filter as it was. Any number of threads may use a filter at once, as long as none changes it. Nothing here
 * blocks.
 */
#ifndef WARPWAVE_FILTER_H
#define WARPWAVE_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_FILTER_DEPTH_MAX 32      /* levels of nested groups */
#define WW_FILTER_JSON_MAX  1048576 /* bytes of a dictionary */

typedef struct ww_filter ww_filter;

/* Which conditions of a group must hold. */
typedef enum ww_filter_group {
    WW_FILTER_ALL = 0,  /* each one; an empty group holds */
    WW_FILTER_ANY = 1,  /* at least one; an empty group does not hold */
    WW_FILTER_NONE = 2, /* none */
    WW_FILTER_SOME = 3  /* as many as the group says */
} ww_filter_group;

/* The conditions on a field. A field that leads to a list meets a condition if one of the list's elements does, except where
 * the condition is about the list. A missing field meets only those that say so. */
typedef enum ww_filter_test {
    WW_FILTER_EXISTS = 0,   /* the field is there; takes no value */
    WW_FILTER_EQUAL = 1,    /* equal to one of the values; null equals a missing field. 2 equals 2.0, true does not equal 1 */
    WW_FILTER_CONTAINS = 2, /* a text contains the value, or a list has it */
    WW_FILTER_LESS = 3,     /* numbers compare with numbers, texts with texts by their bytes, dates with texts that are dates */
    WW_FILTER_LESS_EQUAL = 4,
    WW_FILTER_GREATER = 5,
    WW_FILTER_GREATER_EQUAL = 6,
    WW_FILTER_SAME = 7,       /* like EQUAL, but 2 does not equal 2.0, nor null a missing field */
    WW_FILTER_OTHER = 8,      /* has a value other than null that is not the same as any of these */
    WW_FILTER_ALL_WORDS = 9,  /* a text with each word of the value, in any order and case */
    WW_FILTER_ANY_WORD = 10,  /* with one of them */
    WW_FILTER_PHRASE = 11,    /* with all of them, adjacent and in order */
    WW_FILTER_PREFIX = 12,    /* a text that starts with the value */
    WW_FILTER_SUBSTRING = 13, /* a text that contains it */
    WW_FILTER_WITHIN = 14,    /* a number or a text for which every value's `bound` holds */
    WW_FILTER_COUNT = 15,     /* the number of values (elements of a list, 0 if missing) is within all bounds */
    WW_FILTER_EMPTY = 16,     /* missing, null or an empty list; takes no value */
    WW_FILTER_HAS_NULL = 17,  /* null, or a list with null in it; takes no value */
    WW_FILTER_CIRCLE = 18,    /* a place {"lat": 52.5, "lon": 13.4} within a circle: the reals lat, lon, metres */
    WW_FILTER_BOX = 19,       /* within a box: top, left, bottom, right; it may cross the 180th meridian */
    WW_FILTER_POLYGON = 20    /* in the first ring and in none of the others: for each ring the number of its corners, and
                               * lat, lon of each. The last corner of a ring is its first, so a ring has at least four */
} ww_filter_test;

typedef enum ww_filter_type {
    WW_FILTER_NULL = 0,
    WW_FILTER_FALSE = 1,
    WW_FILTER_TRUE = 2,
    WW_FILTER_INTEGER = 3,
    WW_FILTER_REAL = 4,
    WW_FILTER_TEXT = 5,
    WW_FILTER_DATE = 6 /* `text` is 2024-01-31 or 2024-01-31T12:00:00Z */
} ww_filter_type;

typedef struct ww_filter_value {
    ww_filter_type type;
    int64_t integer; /* only the field that `type` names is used */
    double real;
    const char *text;     /* UTF-8; copied */
    size_t text_bytes;    /* 0: up to its NUL */
    ww_filter_test bound; /* for WITHIN and COUNT: WW_FILTER_LESS, _LESS_EQUAL, _GREATER or _GREATER_EQUAL */
} ww_filter_value;

/* Makes a filter without a condition, which admits every row. Free it with ww_filter_destroy(). */
WW_API ww_status ww_filter_create(ww_filter **filter);

/* Reads a filter from a dictionary in JSON (docs/guide/filter.md). Refuses unknown operators and values of the wrong kind with
 * a message that names the place: "filter: year.$gtt: ...". */
WW_API ww_status ww_filter_read(const char *json, ww_filter **filter);

/* Accepts NULL. */
WW_API void ww_filter_destroy(ww_filter *filter);

/* Adds a condition on a field to the group that was opened last. `field` is "a", "a.b" for a field of an object, "a[].b" for
 * that of each element of a list, "a[0]" for one element; other keys than letters, digits, _ and - need quotes: "\"a b\"". */
WW_API ww_status ww_filter_add(ww_filter *filter, const char *field, ww_filter_test test, const ww_filter_value *values,
                               int64_t count);

/* Adds the condition that the row's id is one of these texts. */
WW_API ww_status ww_filter_add_ids(ww_filter *filter, const char *const *ids, int64_t count);

/* Adds a copy of another filter as one condition; NULL adds nothing. */
WW_API ww_status ww_filter_add_filter(ww_filter *filter, const ww_filter *other);

/* Opens a group, to which conditions are added until ww_filter_end(). `at_least` is for WW_FILTER_SOME, otherwise 0. */
WW_API ww_status ww_filter_begin(ww_filter *filter, ww_filter_group group, int64_t at_least);

/* Opens a group of conditions that one object of the list in this field must meet together; the names of fields in it are
 * those of the object. */
WW_API ww_status ww_filter_begin_element(ww_filter *filter, const char *field);

/* Closes the group that was opened last. */
WW_API ww_status ww_filter_end(ww_filter *filter);

/* Finds out whether a row with this id (NULL: none) and payload (JSON; NULL: none) meets the filter: 1 or 0. */
WW_API ww_status ww_filter_matches(const ww_filter *filter, const char *id, const char *payload, int32_t *matches);

/* Returns 1 if both have the same conditions in the same order, else 0. */
WW_API int32_t ww_filter_equal(const ww_filter *a, const ww_filter *b);

/* Writes the filter for people to read, as in: year > 2000 and (draft = false or owner.name = "ann"). NUL-terminated, cut off
 * if it does not fit into `capacity` bytes. Returns the length of the whole text. */
WW_API size_t ww_filter_text(const ww_filter *filter, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
