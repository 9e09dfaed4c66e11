/* Settings of a device; all zero means that it chooses. Tests that want a chip's way on the emulator make it pretend to be that
 * chip (tests/support/pretend/pretend.h).
 */
#ifndef WW_DEVICE_TUNING_H
#define WW_DEVICE_TUNING_H

#include <stdbool.h>
#include <stdint.h>

/* When a strategy is used: if it is better on the device; always, if there is code for it; never. */
typedef enum tuning_choice { TUNING_AUTO = 0, TUNING_ALWAYS = 1, TUNING_NEVER = -1 } tuning_choice;

/* Where a GPU spends the time of screened searches, for benchmarks: times between marks in the stream, added up by name. */
enum { SEARCH_MARKS_MAX = 24 };

typedef struct search_phase {
    const char *name;
    float milliseconds;
} search_phase;

typedef struct search_marks {
    search_phase phases[SEARCH_MARKS_MAX];
    int32_t count;
    void *events[SEARCH_MARKS_MAX]; /* of the running search */
    const char *names[SEARCH_MARKS_MAX];
    int32_t pending;
} search_marks;

typedef struct device_tuning {
    tuning_choice screen;         /* screened searches, if there are codes */
    int32_t screen_list_capacity; /* rows that a query's list of kept rows has room for; 0: the device chooses */
    tuning_choice planes;         /* one query reads high planes of codes first */
    tuning_choice exact_lists;    /* exact searches use the lists of an index */
    int32_t range_entries;        /* entries that a GPU has room for at a time in a range search; 0: the device chooses */
    int64_t im2col_bytes;         /* memory for convolutions that are written out; 0: 32 MiB */
    bool group_even;              /* all members of a group get the same number of rows, regardless of their speed */
    bool group_apart;         /* members of a group with the same device search separately, as if they were several devices */
    search_marks *marks;      /* receives the times of searches; or NULL */
    tuning_choice quant_bf16; /* fast products of quantized matrices in bf16, even if integers are faster; or never */
} device_tuning;

#endif
