/* Finds out about this machine's CPU. Names come from the processor itself, because reading files needs memory and they may be
 * missing. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cpu/cpu.h"

/* On x86-64 the C library knows the size, on ARM64 only the system does. */
int64_t cpu_cache_bytes(void)
{
    long long kib = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes > 0)
        return bytes;
#endif
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (file) {
        if (fscanf(file, "%lldK", &kib) != 1)
            kib = 0;
        fclose(file);
    }
    return kib > 0 ? kib * 1024 : 0;
}

#if defined(__aarch64__)
#include <sys/auxv.h>

#ifndef HWCAP_CPUID
#define HWCAP_CPUID (1 << 11)
#endif

/* Arm's numbers for manufacturers and cores, as in the architecture's MIDR register. */
static const struct {
    uint32_t implementer, part;
    const char *vendor, *name, *arch;
} arm_cores[] = {
    {0x41, 0xd03, "ARM", "Arm Cortex-A53", "cortex-a53"},   {0x41, 0xd05, "ARM", "Arm Cortex-A55", "cortex-a55"},
    {0x41, 0xd07, "ARM", "Arm Cortex-A57", "cortex-a57"},   {0x41, 0xd08, "ARM", "Arm Cortex-A72", "cortex-a72"},
    {0x41, 0xd0b, "ARM", "Arm Cortex-A76", "cortex-a76"},   {0x41, 0xd0c, "ARM", "Arm Neoverse N1", "neoverse-n1"},
    {0x41, 0xd40, "ARM", "Arm Neoverse V1", "neoverse-v1"}, {0x41, 0xd49, "ARM", "Arm Neoverse N2", "neoverse-n2"},
    {0x41, 0xd4f, "ARM", "Arm Neoverse V2", "neoverse-v2"}, {0xc0, 0xac3, "Ampere", "Ampere-1", "ampere1"},
    {0x61, 0x022, "Apple", "Apple M1", "apple-m1"},
};

/* Returns 0 if the system does not let programs read it. */
static uint64_t main_id(void)
{
    uint64_t id = 0;
    if (getauxval(AT_HWCAP) & HWCAP_CPUID)
        __asm__("mrs %0, MIDR_EL1" : "=r"(id));
    return id;
}

void cpu_describe_machine(ww_device_info *info)
{
    const uint64_t id = main_id(), implementer = id >> 24 & 0xff, part = id >> 4 & 0xfff;
    text_copy(info->name, sizeof info->name, "64-bit Arm processor");
    text_copy(info->vendor, sizeof info->vendor, "ARM");
    text_copy(info->arch, sizeof info->arch, "aarch64");
    for (size_t i = 0; i < sizeof arm_cores / sizeof *arm_cores; i++) {
        if (implementer != arm_cores[i].implementer || part != arm_cores[i].part)
            continue;
        text_copy(info->name, sizeof info->name, arm_cores[i].name);
        text_copy(info->vendor, sizeof info->vendor, arm_cores[i].vendor);
        text_copy(info->arch, sizeof info->arch, arm_cores[i].arch);
    }
}
#elif defined(__x86_64__)
#include <cpuid.h>

/* The processor's own name, at most 48 bytes, padded with blanks on either side. */
static void brand(char *name, size_t capacity)
{
    char bytes[49] = "";
    for (unsigned i = 0; i < 3; i++) {
        unsigned r[4];
        if (!__get_cpuid(0x80000002u + i, &r[0], &r[1], &r[2], &r[3]))
            return;
        memcpy(bytes + (size_t)16 * i, r, 16);
    }
    size_t length = strlen(bytes);
    while (length > 0 && bytes[length - 1] == ' ')
        bytes[--length] = '\0';
    text_copy(name, capacity, bytes + strspn(bytes, " "));
}

void cpu_describe_machine(ww_device_info *info)
{
    unsigned highest;
    struct {
        unsigned begin, middle, end;
        char nothing;
    } letters = {0};
    __get_cpuid(0, &highest, &letters.begin, &letters.end, &letters.middle);
    const char *vendor = (const char *)&letters;
    const bool intel = strcmp(vendor, "GenuineIntel") == 0, amd = strcmp(vendor, "AuthenticAMD") == 0;
    text_copy(info->name, sizeof info->name, "CPU");
    brand(info->name, sizeof info->name);
    text_copy(info->vendor, sizeof info->vendor, intel ? "Intel" : amd ? "AMD" : vendor);
    text_copy(info->arch, sizeof info->arch, "x86-64");
}
#else
void cpu_describe_machine(ww_device_info *info)
{
    text_copy(info->name, sizeof info->name, "CPU");
    text_copy(info->vendor, sizeof info->vendor, "");
    text_copy(info->arch, sizeof info->arch, "generic");
}
#endif
