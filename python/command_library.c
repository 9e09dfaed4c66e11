/* What the wheel's library has in addition: the command's main function, under a name that can be exported. */
#include "base/status.h"

int main(int argc, char **argv); /* in programs/warpwave */
WW_API int ww_command_main(int argc, char **argv);

int ww_command_main(int argc, char **argv)
{
    return main(argc, argv);
}
