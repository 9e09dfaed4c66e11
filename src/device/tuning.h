/* Knobs of a device that only tests turn: all zero is what users have. They are the device's, so that nothing is global. */
#ifndef WW_DEVICE_TUNING_H
#define WW_DEVICE_TUNING_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a strategy is taken: as the device suits it; wherever there is code for it, the emulator included; not at all. */
typedef enum tuning_choice { TUNING_AUTO = 0, TUNING_ALWAYS = 1, TUNING_NEVER = -1 } tuning_choice;

/* Where the time of screened searches goes on a GPU, for a benchmark: times between marks in the stream, added up by name. */
enum { SEARCH_MARKS_MOST = 24 };

typedef struct search_phase {
    const char *name;
    float milliseconds;
} search_phase;

typedef struct search_marks {
    search_phase phases[SEARCH_MARKS_MOST];
    int32_t count;
    void *events[SEARCH_MARKS_MOST]; /* of a search under way */
    const char *names[SEARCH_MARKS_MOST];
    int32_t pending;
} search_marks;

typedef struct device_tuning {
    float screen_distrust; /* 0 to 1: the screen's bound is made smaller by this share; wrong, to see that it is noticed */
    uint32_t thresholds_lowered;    /* each is made better by so many steps of a float; wrong, for the same reason */
    bool keep_unproven;             /* a query whose certificate fails is not repeated, to see what it would have answered */
    bool screen_always;             /* screen however few rows there are, with the smallest sample */
    tuning_choice screen;           /* screen where there are codes: as the search suits it, always, never */
    int32_t screen_list_capacity;   /* rows that a query's list of kept ones has room for; 0: the usual */
    int32_t range_entries;          /* that a GPU has room for at a time in a range search; 0: the usual */
    bool group_even;                /* the members of a group get the same number of rows, however fast they are */
    bool group_apart;               /* members of a group that are one device search apart, as if they were several */
    search_marks *marks;            /* or NULL */
    tuning_choice screen_wgmma;     /* the screen's kernels for wgmma */
    tuning_choice screen_mfma;      /* the screen's kernel for MFMA, on chips that have it or on the emulator */
    tuning_choice search_stream;    /* search_stream_* instead of search_tile_* */
    tuning_choice quant_wgmma;      /* quantized products by wgmma */
    tuning_choice conv_im2col;      /* fast convolutions written out and multiplied, as on AMD's chips */
    int64_t im2col_bytes;           /* of what outputs see that are written out at a time; 0: the usual */
    bool indices_64;                /* places of elements are calculated as for more than 2^31 of them */
    int32_t attention_heads;        /* query heads of a thread block, in a step: 1, 2, 4; 0: as many as suit it */
    tuning_choice quant_gemv_stays; /* thread blocks of a gemv of one column stay, as with a copy engine; never: a kernel codes
                                       that column before */
    tuning_choice quant_bf16;       /* fast products of quantized matrices in bf16, also where codes are quicker */
    int32_t quant_gemv_splits;      /* thread blocks that share a row of a quantized gemv: 1, 2, 4, 8; 0: as many as pay */
} device_tuning;

/* The factor that screen_limit_for() (arithmetic/screen.h) takes. */
static inline float tuning_screen_trust(const device_tuning *tuning)
{
    return 1.0f - tuning->screen_distrust;
}

/* The upper half of a key, the score, as thresholds_lowered wants it; never 0, which nothing written would be. */
static inline uint32_t tuning_lowered(const device_tuning *tuning, uint32_t score)
{
    if (tuning->thresholds_lowered == 0)
        return score;
    return score > tuning->thresholds_lowered ? score - tuning->thresholds_lowered : 1;
}

#endif
