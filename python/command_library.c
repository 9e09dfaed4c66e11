/* What the wheel's library has in addition: the command's main function, under a name that can be exported. Its stores use the
 * copy of SQLite in the same library. */
#include <stdio.h>

#include "base/status.h"

int main(int argc, char **argv);            /* in programs/warpwave */
ww_status bundled_sqlite_for_command(void); /* bundled_sqlite.c */
WW_API int ww_command_main(int argc, char **argv);

int ww_command_main(int argc, char **argv)
{
#ifdef WARPWAVE_BUNDLED_SQLITE
    if (bundled_sqlite_for_command() != WW_OK) {
        (void)fprintf(stderr, "warpwave: %s\n", ww_error_message());
        return 1;
    }
#endif
    return main(argc, argv);
}
