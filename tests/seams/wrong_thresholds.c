/* Replaces functions of the library at link time (wrong_thresholds.h). */
#include "seams/wrong_thresholds.h"

#include "cpu/search/range.h"
#include "cpu/search/screen_state.h"
#include "device/certificate.h"

uint32_t thresholds_lowered;
bool keep_unproven;

bool __real_certificate_fails(canon_key threshold, canon_key last);
bool __wrap_certificate_fails(canon_key threshold, canon_key last);
bool __wrap_certificate_fails(canon_key threshold, canon_key last)
{
    return __real_certificate_fails(threshold, last) && !keep_unproven;
}

void __real_screen_learn(const scan *s, int32_t worker, int32_t query, canon_key key);
void __wrap_screen_learn(const scan *s, int32_t worker, int32_t query, canon_key key);
void __wrap_screen_learn(const scan *s, int32_t worker, int32_t query, canon_key key)
{
    __real_screen_learn(s, worker, query, lowered_key(key));
}

void __real_set_range_limits(const scan *s, int32_t begin, int32_t end);
void __wrap_set_range_limits(const scan *s, int32_t begin, int32_t end);
void __wrap_set_range_limits(const scan *s, int32_t begin, int32_t end)
{
    scan lowered = *s;
    range_scan range = *s->range;
    range.last = lowered_key(range.last);
    lowered.range = &range;
    __real_set_range_limits(&lowered, begin, end);
}
