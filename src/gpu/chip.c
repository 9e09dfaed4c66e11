/* Which of the embedded code a chip can run, and which of it is best. */
#include "gpu/chip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* "sm_90a" is 90 with the feature letter 'a'; false for anything else. */
static int sm_number(const char *name, long *number, char *feature)
{
    if (strncmp(name, "sm_", 3) != 0)
        return 0;
    char *end = NULL;
    *number = strtol(name + 3, &end, 10);
    *feature = *end;
    return end != name + 3 && *number > 0 && *number < INT_MAX && (*end == '\0' || end[1] == '\0');
}

int32_t chip_fitness(const char *arch, const char *target)
{
    long have = 0;
    long wants = 0;
    char have_feature = '\0';
    char wants_feature = '\0';
    if (!sm_number(arch, &have, &have_feature))
        return strcmp(arch, target) == 0 ? CHIP_EXACT : 0;
    if (!sm_number(target, &wants, &wants_feature))
        return 0;
    if (wants_feature != '\0') /* code with a feature letter runs on its own chip alone */
        return wants == have ? CHIP_EXACT : 0;
    return wants <= have ? (int32_t)wants : 0;
}
