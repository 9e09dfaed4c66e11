/* What the wheel's library adds to the usual one: the command's main function, under a name that may be exported. */
int command_main(int argc, char **argv); /* main() of src/cli, which is compiled under this name for the wheel */
__attribute__((visibility("default"))) int ww_command_main(int argc, char **argv);

int ww_command_main(int argc, char **argv)
{
    return command_main(argc, argv);
}
