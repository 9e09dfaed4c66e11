/* A file of its own: tests link another answer in its place, to see what a search would have answered without a proof. */
#include "device/certificate.h"

bool certificate_fails(canon_key threshold, canon_key last)
{
    return last > threshold; /* no key is behind CANON_KEY_WORST */
}
