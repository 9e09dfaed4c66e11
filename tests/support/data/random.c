/* Repeatable random numbers for tests. */
#include "support/data/random.h"

uint64_t random_bits(test_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_below(test_random *random, uint64_t bound)
{
    return random_bits(random) % bound;
}

float random_uniform(test_random *random)
{
    return (float)(int64_t)(random_bits(random) >> 39) / 16777216.0f - 1.0f;
}

/* The sum of twelve uniform numbers: normal enough for data, and only exact operations, so it is the same everywhere. */
float random_normal(test_random *random)
{
    float sum = 0.0f;
    for (int i = 0; i < 12; i++)
        sum += random_uniform(random);
    return sum * 0.5f;
}

void random_normals(test_random *random, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = random_normal(random);
}
