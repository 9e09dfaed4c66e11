/* The command of the wheel: everything it does is in the library beside it, which has the kernels as well. */
int ww_command_main(int argc, char **argv);

int main(int argc, char **argv)
{
    return ww_command_main(argc, argv);
}
