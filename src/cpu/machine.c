/* What the machine says about its CPU: names from /proc/cpuinfo, memory from base. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cpu/cpu.h"

/* The value of the first line of /proc/cpuinfo that begins with `key`; false if there is none. */
static bool cpuinfo(const char *key, char *value, size_t capacity)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return false;
    bool found = false;
    char line[512];
    while (!found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        const size_t length = strlen(key);
        if (!colon || strncmp(line, key, length) != 0 || !strchr(" \t:", line[length]))
            continue;
        colon += strspn(colon, ": \t");
        colon[strcspn(colon, "\n")] = '\0';
        text_copy(value, capacity, colon);
        found = *value != '\0';
    }
    fclose(file);
    return found;
}

#if defined(__aarch64__)
/* Arm's numbers for those who make the cores and for the cores, as the architecture's MIDR register gives them. */
static const struct {
    int implementer;
    int part;
    const char *vendor, *name, *arch;
} arm_cores[] = {
    {0x41, 0xd03, "ARM", "Arm Cortex-A53", "cortex-a53"},   {0x41, 0xd05, "ARM", "Arm Cortex-A55", "cortex-a55"},
    {0x41, 0xd07, "ARM", "Arm Cortex-A57", "cortex-a57"},   {0x41, 0xd08, "ARM", "Arm Cortex-A72", "cortex-a72"},
    {0x41, 0xd0b, "ARM", "Arm Cortex-A76", "cortex-a76"},   {0x41, 0xd0c, "ARM", "Arm Neoverse N1", "neoverse-n1"},
    {0x41, 0xd40, "ARM", "Arm Neoverse V1", "neoverse-v1"}, {0x41, 0xd49, "ARM", "Arm Neoverse N2", "neoverse-n2"},
    {0x41, 0xd4f, "ARM", "Arm Neoverse V2", "neoverse-v2"}, {0xc0, 0xac3, "Ampere", "Ampere-1", "ampere1"},
    {0x61, 0x022, "Apple", "Apple M1", "apple-m1"},
};

void cpu_describe_machine(ww_device_info *info)
{
    char implementer[32] = "", part[32] = "";
    cpuinfo("CPU implementer", implementer, sizeof implementer);
    cpuinfo("CPU part", part, sizeof part);
    text_copy(info->name, sizeof info->name, "64-bit Arm processor");
    text_copy(info->vendor, sizeof info->vendor, "ARM");
    text_copy(info->arch, sizeof info->arch, "aarch64");
    for (size_t i = 0; i < sizeof arm_cores / sizeof *arm_cores; i++) {
        if (strtol(implementer, NULL, 0) != arm_cores[i].implementer || strtol(part, NULL, 0) != arm_cores[i].part)
            continue;
        text_copy(info->name, sizeof info->name, arm_cores[i].name);
        text_copy(info->vendor, sizeof info->vendor, arm_cores[i].vendor);
        text_copy(info->arch, sizeof info->arch, arm_cores[i].arch);
    }
}
#else
void cpu_describe_machine(ww_device_info *info)
{
    char vendor[64] = "";
    if (!cpuinfo("model name", info->name, sizeof info->name))
        text_copy(info->name, sizeof info->name, "CPU");
    cpuinfo("vendor_id", vendor, sizeof vendor);
    const bool intel = strcmp(vendor, "GenuineIntel") == 0;
    const bool amd = strcmp(vendor, "AuthenticAMD") == 0;
    text_copy(info->vendor, sizeof info->vendor, intel ? "Intel" : amd ? "AMD" : vendor);
#if defined(__x86_64__)
    text_copy(info->arch, sizeof info->arch, "x86-64");
#else
    text_copy(info->arch, sizeof info->arch, "generic");
#endif
}
#endif
