/* Where ROCm's libraries are looked for, besides the folders that the loader knows: AMD's pip packages in made folders.
 *
 * A process keeps the libraries that it has opened, so each test is a separate process.
 */
#include "support/process.h"
#include "support/scratch.h"
#include "support/standin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gpu/driver/rocm_library.h"

enum { SECONDS = 60 };

/* Makes a library FOLDER/lib/NAME in the scratch folder, and hides everything else that a search depends on. */
static void make_library(const char *folder, const char *name)
{
    char path[512];
    static const char *const unset[] = {"WARPWAVE_HIP_LIBRARY", "ROCM_PATH",    "ROCM_HOME",
                                        "VIRTUAL_ENV",          "CONDA_PREFIX", "PYTHONUSERBASE"};
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
        unsetenv(unset[i]);
    EXPECT(scratch_setup(NULL) == 0);
    setenv("HOME", scratch_path("nobody"), 1);
    snprintf(path, sizeof path, "%s/lib/%s", scratch_path(folder), name);
    for (char *slash = path + strlen(scratch_path("")); (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        EXPECT(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    EXPECT(symlink(BUILD_DIR "/standin/libamdhip64.so.7", path) == 0);
}

#define ONLY_HERE "libonly_in_this_test.so" /* no installation of ROCm has it */

static void expect_found_and_remove(void)
{
    EXPECT(rocm_library_open(ONLY_HERE) != NULL);
    EXPECT(scratch_teardown(NULL) == 0);
}

/* AMD's pip packages put them into site-packages. */
static void in_a_python_environment(void)
{
    make_library("lib/python3.11/site-packages/_rocm_sdk_core", ONLY_HERE);
    setenv("VIRTUAL_ENV", scratch_path(""), 1);
    expect_found_and_remove();
}

static void in_an_environment_of_conda(void)
{
    make_library("lib/python3.12/site-packages/_rocm_sdk_core", ONLY_HERE);
    setenv("CONDA_PREFIX", scratch_path(""), 1);
    expect_found_and_remove();
}

static void in_the_users_packages(void)
{
    make_library("home/.local/lib/python3.11/site-packages/_rocm_sdk_core", ONLY_HERE);
    setenv("HOME", scratch_path("home"), 1);
    expect_found_and_remove();
}

static void in_the_users_packages_elsewhere(void)
{
    make_library("base/lib64/python3.13/site-packages/_rocm_sdk_core", ONLY_HERE);
    setenv("PYTHONUSERBASE", scratch_path("base"), 1);
    expect_found_and_remove();
}

/* What `rocm-sdk path --root` prints is the folder of _rocm_sdk_devel. The libraries are its neighbours, too. */
static void next_to_rocm_path(void)
{
    make_library("site-packages/_rocm_sdk_libraries_gfx94X_dcgpu", ONLY_HERE);
    EXPECT(mkdir(scratch_path("site-packages/_rocm_sdk_devel"), 0700) == 0);
    setenv("ROCM_PATH", scratch_path("site-packages/_rocm_sdk_devel"), 1);
    expect_found_and_remove();
}

/* The wheel's own library in a process that no variable tells about an environment. */
static void next_to_the_wheel(void)
{
    char here[512];
    make_library("site-packages/_rocm_sdk_core", "libamdhip64.so.7");
    EXPECT(mkdir(scratch_path("site-packages/warpwave"), 0700) == 0 &&
           mkdir(scratch_path("site-packages/warpwave/lib"), 0700) == 0);
    snprintf(here, sizeof here, "%s", scratch_path("site-packages/warpwave/lib/libwarpwave.so"));
    EXPECT(symlink(BUILD_DIR "/libwarpwave.so", here) == 0);
    void *wheel = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    EXPECT(wheel != NULL);
    if (wheel != NULL) {
        const char *(*absence)(const char *);
        *(void **)&absence = dlsym(wheel, "ww_backend_absence");
        EXPECT(strstr(absence("rocm"), "no ROCm runtime") == NULL);
    }
    EXPECT(scratch_teardown(NULL) == 0);
}

/* Version 3.12 is newer than 3.9, though its name sorts before it. */
static void of_the_newest_version(void)
{
    Dl_info found;
    make_library("lib/python3.12/site-packages/_rocm_sdk_core", ONLY_HERE);
    EXPECT(mkdir(scratch_path("lib/python3.9"), 0700) == 0 && mkdir(scratch_path("lib/python3.9/site-packages"), 0700) == 0 &&
           mkdir(scratch_path("lib/python3.9/site-packages/_rocm_sdk_core"), 0700) == 0 &&
           mkdir(scratch_path("lib/python3.9/site-packages/_rocm_sdk_core/lib"), 0700) == 0);
    EXPECT(symlink(BUILD_DIR "/standin/libamdhip64.so.7",
                   scratch_path("lib/python3.9/site-packages/_rocm_sdk_core/lib/" ONLY_HERE)) == 0);
    setenv("VIRTUAL_ENV", scratch_path(""), 1);
    void *library = rocm_library_open(ONLY_HERE);
    EXPECT(library != NULL && dladdr(dlsym(library, "hipInit"), &found) != 0 && strstr(found.dli_fname, "python3.12") != NULL);
    EXPECT(scratch_teardown(NULL) == 0);
}

/* AMD's packages say the release in a file beside the folder lib; Debian's have none. */
static void look_at_releases(void)
{
    static const char *const said[][2] = {{"10.0.0-4217\n", "10.0.0"}, {"6.4.3", "6.4.3"}, {"unknown\n", ""}, {"", ""}};
    char text[16];
    size_t bytes = 0;
    EXPECT(scratch_setup(NULL) == 0);
    EXPECT(mkdir(scratch_path("lib"), 0700) == 0 && mkdir(scratch_path(".info"), 0700) == 0);
    char *library = scratch_content(BUILD_DIR "/standin/libamdhip64.so.6", &bytes);
    void *copy = dlopen(scratch_write("lib/libamdhip64.so.6", library, bytes), RTLD_NOW | RTLD_LOCAL);
    free(library);
    EXPECT(copy != NULL);
    rocm_release(dlsym(copy, "hipInit"), text, sizeof text);
    EXPECT(text[0] == '\0');
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        scratch_write(".info/version", said[i][0], strlen(said[i][0]));
        rocm_release(dlsym(copy, "hipInit"), text, sizeof text);
        EXPECT(strcmp(text, said[i][1]) == 0);
    }
    EXPECT(scratch_teardown(NULL) == 0);
}

#define TEST(name, work)                                                                                                       \
    static void name(void **state)                                                                                             \
    {                                                                                                                          \
        (void)state;                                                                                                           \
        in_a_process(work, SECONDS);                                                                                           \
    }
TEST(pip_packages_of_rocm_are_found_in_the_python_environment, in_a_python_environment)
TEST(pip_packages_of_rocm_are_found_in_condas_environment, in_an_environment_of_conda)
TEST(pip_packages_of_rocm_are_found_in_the_users_folder, in_the_users_packages)
TEST(pip_packages_of_rocm_are_found_in_the_users_chosen_folder, in_the_users_packages_elsewhere)
TEST(pip_packages_of_rocm_are_found_next_to_rocm_path, next_to_rocm_path)
TEST(pip_packages_of_rocm_are_found_next_to_the_wheel, next_to_the_wheel)
TEST(the_newest_python_has_the_pip_packages_that_are_taken, of_the_newest_version)
TEST(the_release_of_rocm_is_that_of_the_librarys_folder, look_at_releases)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pip_packages_of_rocm_are_found_in_the_python_environment),
        cmocka_unit_test(pip_packages_of_rocm_are_found_in_condas_environment),
        cmocka_unit_test(pip_packages_of_rocm_are_found_in_the_users_folder),
        cmocka_unit_test(pip_packages_of_rocm_are_found_in_the_users_chosen_folder),
        cmocka_unit_test(pip_packages_of_rocm_are_found_next_to_rocm_path),
        cmocka_unit_test(pip_packages_of_rocm_are_found_next_to_the_wheel),
        cmocka_unit_test(the_newest_python_has_the_pip_packages_that_are_taken),
        cmocka_unit_test(the_release_of_rocm_is_that_of_the_librarys_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
