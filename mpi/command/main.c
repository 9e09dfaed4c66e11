/* `warpwave-mpi`: searches over MPI ranks. Only this program initialises MPI; the library does not. */
#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/integers.h"
#include "mpi/command/mpi.h"
#include "warpwave/terminal.h"

rank_place here; /* of this process; main() sets it once */

static const command *const commands[] = {&mpi_search, &mpi_knn_graph, &mpi_dedup};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static const command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_overview(void)
{
    printf("warpwave-mpi: exact vector search over MPI ranks, with the bits of one\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nStart it with MPI's launcher, one rank per GPU or machine: mpiexec -n 8 warpwave-mpi search ...\n"
           "`warpwave-mpi COMMAND --help` explains one command.\n");
}

exit_code mpi_parse(const command *self, const char *const *arguments, size_t count, void *settings)
{
    if (options_parse(self->options, self->option_count, arguments, count, settings) == WW_OK)
        return EXIT_CODE_OK;
    return here.rank == 0 ? command_misused(self, "%s", ww_error_message()) : EXIT_CODE_USAGE;
}

exit_code mpi_end(const command *self, ww_status status)
{
    if (status == WW_OK)
        return here.rank == 0 ? command_end(self, status) : EXIT_CODE_OK;
    /* A failure that all ranks share should be printed once. The others wait their turn, and are usually aborted before it
     * comes. */
    const int turn = here.rank < 10 ? here.rank : 10;
    nanosleep(&(struct timespec){.tv_sec = turn / 5, .tv_nsec = turn % 5 * 200000000L}, NULL);
    const exit_code code = command_end(self, status);
    fflush(stdout);
    fflush(stderr);
    nanosleep(&(struct timespec){.tv_nsec = 100000000L},
              NULL); /* time for the launcher to forward the message, because it stops at the abort */
    MPI_Abort(MPI_COMM_WORLD, (int)code);
    return code;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static exit_code run(const char *const *arguments, size_t count)
{
    if (count == 0)
        return here.rank == 0 ? command_misused(NULL, "no command given; the commands are search, knn-graph and dedup")
                              : EXIT_CODE_USAGE;
    if (asks_for_help(arguments[0]) || (strcmp(arguments[0], "help") == 0 && count == 1)) {
        if (here.rank == 0)
            print_overview();
        return EXIT_CODE_OK;
    }
    const bool help = strcmp(arguments[0], "help") == 0 || (count > 1 && asks_for_help(arguments[count - 1]));
    const command *wanted = find(strcmp(arguments[0], "help") == 0 ? arguments[1] : arguments[0]);
    if (!wanted)
        return here.rank == 0 ? command_misused(NULL, "unknown command '%s'", arguments[0]) : EXIT_CODE_USAGE;
    if (!help)
        return wanted->run(arguments + 1, count - 1);
    if (here.rank == 0)
        command_help_print(wanted, NULL);
    return EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "help") == 0 &&
        strcmp(argv[2], "--json") == 0) { /* for the build, which starts no ranks */
        command_table_print(commands, COMMAND_COUNT);
        return EXIT_CODE_OK;
    }
    int level;
    MPI_Comm machine;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return EXIT_CODE_OTHER;
    fesetenv(FE_DFL_ENV); /* undo what a library may have set: numbers are read and printed in round-to-nearest */
    MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &here.ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, here.rank, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &here.local_rank);
    MPI_Comm_size(machine, &here.local_ranks);
    MPI_Comm_free(&machine);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    command_program_set("warpwave-mpi");
    if (here.rank == 0)
        command_watch_json((const char *const *)argv + 1, (size_t)max_i32(argc - 1, 0));
    const exit_code code = run((const char *const *)argv + 1, (size_t)max_i32(argc - 1, 0));
    MPI_Finalize();
    return (int)code;
}
