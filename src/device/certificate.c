/* A separate file, so that tests can link another answer and see what a search returns without the proof. */
#include "device/certificate.h"

bool certificate_fails(canon_key threshold, canon_key last)
{
    return last > threshold; /* no key comes after CANON_KEY_WORST */
}
