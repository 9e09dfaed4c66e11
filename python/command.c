/* The command of the wheel: all its code is in the library in the same folder, which also has the kernels. */
int ww_command_main(int argc, char **argv);

int main(int argc, char **argv)
{
    return ww_command_main(argc, argv);
}
