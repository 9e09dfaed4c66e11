/* The program of a room's tests: it is the test whose name it is called by. */
#include <stdio.h>
#include <string.h>

#define SUITE(name) int name##_main(void);
#include "suites.def"
#undef SUITE

static const struct {
    const char *name;
    int (*run)(void);
} suites[] = {
#define SUITE(name) {#name, name##_main},
#include "suites.def"
#undef SUITE
};

int main(int count, char **arguments)
{
    const char *called = count > 1 ? arguments[1] : arguments[0];
    const char *slash = strrchr(called, '/');
    const char *name = slash != NULL ? slash + 1 : called;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(name, suites[i].name) == 0)
            return suites[i].run();
    fprintf(stderr, "there is no test '%s' here; there are:", name);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        fprintf(stderr, " %s", suites[i].name);
    fprintf(stderr, "\n");
    return 2;
}
