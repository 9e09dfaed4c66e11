/* The settings of the stand-in for ROCm, and the chips that it supports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin.h"

standin_settings standin_set;

static const standin_chip chips[] = {
    {"gfx900", 0x2c, 64, "gfx9-generic"},
    {"gfx906", 0x2f, 64, "gfx9-generic"},
    {"gfx908", 0x30, 64, ""},
    {"gfx90a", 0x3f, 64, ""},
    {"gfx942", 0x4c, 64, "gfx9-4-generic"},
    {"gfx950", 0x4f, 64, "gfx9-4-generic"},
    {"gfx1010", 0x33, 32, "gfx10-1-generic"},
    {"gfx1030", 0x36, 32, "gfx10-3-generic"},
    {"gfx1031", 0x37, 32, "gfx10-3-generic"},
    {"gfx1100", 0x41, 32, "gfx11-generic"},
    {"gfx1101", 0x46, 32, "gfx11-generic"},
    {"gfx1151", 0x4a, 32, "gfx11-generic"},
    {"gfx1200", 0x48, 32, "gfx12-generic"},
    {"gfx1201", 0x4e, 32, "gfx12-generic"},
    {"gfx1250", 0x49, 32, ""},
    {"gfx9-generic", 0x51, 64, ""},
    {"gfx9-4-generic", 0x5f, 64, ""},
    {"gfx10-1-generic", 0x52, 32, ""},
    {"gfx10-3-generic", 0x53, 32, ""},
    {"gfx11-generic", 0x54, 32, ""},
    {"gfx12-generic", 0x59, 32, ""},
};

const standin_chip *standin_find_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i].name, name) == 0)
            return &chips[i];
    return NULL;
}

static void read_chips(char *list)
{
    char *rest = NULL;
    standin_set.devices = 0;
    for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        const standin_chip *chip = standin_find_chip(name);
        if (chip != NULL && standin_set.devices < STANDIN_DEVICES_MAX)
            standin_set.chips[standin_set.devices++] = chip;
        else
            fprintf(stderr, "stand-in: there is no chip '%s'\n", name);
    }
}

static size_t read_bytes(const char *text)
{
    char *unit = NULL;
    const size_t number = strtoull(text, &unit, 10);
    return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

static void read_failure(const char *text)
{
    if (sscanf(text, "%63[^:]:%ld:%d", standin_set.fail_call, &standin_set.fail_at, &standin_set.fail_number) != 3)
        fprintf(stderr, "stand-in: fail=FUNCTION:N:NUMBER is meant, not '%s'\n", text);
}

/* Keeps the devices that the variable lists, in its order. A number that does not exist ends the list, as with AMD's
 * runtime. */
static void hide_devices(const char *variable)
{
    const char *list = getenv(variable);
    const standin_settings all = standin_set;
    char *rest = NULL;
    if (list == NULL || list[0] == '\0')
        return;
    standin_set.devices = 0;
    for (const char *at = list; *at != '\0' && standin_set.devices < STANDIN_DEVICES_MAX; at = *rest == ',' ? rest + 1 : rest) {
        const long number = strtol(at, &rest, 10);
        if (rest == at || number < 0 || number >= all.devices)
            break;
        standin_set.chips[standin_set.devices++] = all.chips[number];
    }
}

static void read_setting(const char *key, char *value)
{
    if (strcmp(key, "chips") == 0)
        read_chips(value);
    else if (strcmp(key, "memory") == 0)
        standin_set.memory_bytes = read_bytes(value);
    else if (strcmp(key, "count") == 0) {
        standin_set.count = (int)strtoll(value, NULL, 10);
        standin_set.count_is_said = true;
    } else if (strcmp(key, "init") == 0)
        standin_set.init = atoi(value);
    else if (strcmp(key, "version") == 0)
        standin_set.version = atoi(value);
    else if (strcmp(key, "units") == 0)
        standin_set.units = (int)strtoll(value, NULL, 10);
    else if (strcmp(key, "wave") == 0)
        standin_set.wave = (int)strtoll(value, NULL, 10);
    else if (strcmp(key, "arch") == 0)
        snprintf(standin_set.arch, sizeof standin_set.arch, "%s", value);
    else if (strcmp(key, "pci") == 0)
        snprintf(standin_set.pci, sizeof standin_set.pci, "%s", value);
    else if (strcmp(key, "kernels") == 0)
        snprintf(standin_set.kernels, sizeof standin_set.kernels, "%s", value);
    else if (strcmp(key, "compiled") == 0)
        snprintf(standin_set.compiled, sizeof standin_set.compiled, "%s", value);
    else if (strcmp(key, "fail") == 0)
        read_failure(value);
    else
        fprintf(stderr, "stand-in: there is no setting '%s'\n", key);
}

void standin_read_settings(const char *text, int version)
{
    char default_chips[] = "gfx90a,gfx1100";
    char *copy = strdup(text != NULL ? text : "");
    char *rest = NULL;
    memset(&standin_set, 0, sizeof standin_set);
    read_chips(default_chips);
    standin_set.memory_bytes = (size_t)STANDIN_MEMORY_DEFAULT_GIB << 30;
    standin_set.version = version;
    standin_set.units = 3; /* few, and not a power of two */
    for (char *entry = strtok_r(copy, ";", &rest); entry != NULL; entry = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(entry, '=');
        if (value == NULL)
            fprintf(stderr, "stand-in: '%s' has no value\n", entry);
        else {
            *value = '\0';
            read_setting(entry, value + 1);
        }
    }
    free(copy);
    hide_devices("ROCR_VISIBLE_DEVICES");
    hide_devices("HIP_VISIBLE_DEVICES");
    if (!standin_set.count_is_said)
        standin_set.count = standin_set.devices;
}
