/* What can be asked of a device: all zero is what suits it. Tests that want a chip's way on the emulator have it pretend that
 * chip (tests/support/pretend/pretend.h).
 */
#ifndef WW_DEVICE_TUNING_H
#define WW_DEVICE_TUNING_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a strategy is taken: where it suits the device; wherever there is code for it; not at all. */
typedef enum tuning_choice { TUNING_AUTO = 0, TUNING_ALWAYS = 1, TUNING_NEVER = -1 } tuning_choice;

/* Where the time of screened searches goes on a GPU, for a benchmark: times between marks in the stream, added up by name. */
enum { SEARCH_MARKS_MAX = 24 };

typedef struct search_phase {
    const char *name;
    float milliseconds;
} search_phase;

typedef struct search_marks {
    search_phase phases[SEARCH_MARKS_MAX];
    int32_t count;
    void *events[SEARCH_MARKS_MAX]; /* of a search under way */
    const char *names[SEARCH_MARKS_MAX];
    int32_t pending;
} search_marks;

typedef struct device_tuning {
    tuning_choice screen;         /* searches by the screen, where there are codes: as it suits them, always, never */
    int32_t screen_list_capacity; /* rows that a query's list of kept ones has room for; 0: as many as suit it */
    tuning_choice planes;         /* one query reads high planes of codes first: if that is faster, always, never */
    tuning_choice exact_lists;    /* exact searches by the lists of an index: where that may pay, always, never */
    int32_t range_entries;        /* that a GPU has room for at a time in a range search; 0: as many as suit it */
    int64_t im2col_bytes;         /* of memory for convolutions that are written out; 0: 32 MiB */
    bool group_even;              /* the members of a group get the same number of rows, however fast they are */
    bool group_apart;             /* members of a group that are one device search apart, as if they were several */
    search_marks *marks;          /* where the time of searches goes is written there; or NULL */
    tuning_choice quant_bf16;     /* fast products of quantized matrices in bf16, also where codes are quicker; or never */
} device_tuning;

#endif
