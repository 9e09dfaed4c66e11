#!/usr/bin/env bash
# What compiled kernels use of their chip, as a table: joins the lines that check-kernels (tools/check-kernels.c) left beside the code
# objects, and adds how many waves and blocks fit.
#   scripts/kernels/kernel-resources.sh [--markdown] OUTPUT ROWS...
# --markdown writes a page.
set -euo pipefail

# Adds to each line how many waves of the kernel a SIMD unit can hold, of how many at most, and how many whole blocks a compute
# unit (RDNA: a pair of them, which share a block; NVIDIA: a multiprocessor) can hold. By calculation, from the registers and the
# shared memory; what the compiler itself says is the same (tests/kernels/check-occupancy).
occupancy() {
    awk '
        function least(a, b) { return a < b ? a : b }
        function up(n, unit) { return int((n + unit - 1) / unit) * unit }
        # registers a lane of one SIMD unit, its granule, waves at most, SIMD units that share `lds` bytes of shared memory
        function family(chip) {
            simds = 4; lds = 65536
            if (chip ~ /^gfx9(0a|42|50|-4-generic)$/)     { registers = 512;  granule = 8;  most = 8 }
            else if (chip ~ /^gfx9/)                      { registers = 256;  granule = 4;  most = 10 }
            else                                          { lds = 131072 }
            if (chip == "gfx950")                         { lds = 163840 }
            if (chip ~ /^gfx10(1|-1)/)                    { registers = 1024; granule = 8;  most = 20 }
            else if (chip ~ /^gfx(10|11-generic)/)        { registers = 1024; granule = 16; most = 16 }
            else if (chip == "gfx1250")                   { registers = 1024; granule = 16; most = 16; lds = 327680 }
            else if (chip ~ /^gfx1[12]/)                  { registers = 1536; granule = 24; most = 16 }
            if (chip ~ /^sm_/)                            { registers = 512;  granule = 8;  most = chip ~ /^sm_75/ ? 8 : 16
                                                            lds = chip ~ /^sm_75/ ? 65536 : chip ~ /^sm_80/ ? 167936 : 233472 }
        }
        {
            family($2)
            if ($4 == "-") { print $0, "-", "-"; next }
            waves = least(most, int(registers / up($4 < 1 ? 1 : $4, granule)))
            # GCN and CDNA share 800 scalar registers among the waves of a SIMD unit
            if ($2 ~ /^gfx9/) waves = least(waves, $5 <= 80 ? 10 : $5 <= 88 ? 9 : $5 <= 100 ? 8 : 7)
            block_waves = up($9, $3) / $3
            blocks = int(waves * simds / block_waves)
            if ($6 > 0) {
                by_lds = int(lds / ($2 ~ /^sm_/ ? $6 + 1024 : $6))
                blocks = least(blocks, by_lds)
                waves = least(waves, int(up(by_lds * block_waves, simds) / simds))
            }
            print $0, waves "/" most, blocks
        }'
}

form=text
case $1 in
    --markdown) form=markdown; shift ;;
esac
output=$1
shift
mkdir -p "$(dirname "$output")"
lines=$(sort -k1,1 -k2,2 -- "$@" | occupancy)
case $form in
    markdown)
        cat "$(dirname "$0")/kernels-resources.md.in"
        echo "| kernel | chip | wave | VGPRs | SGPRs | shared bytes | scratch | spilled | scalars aside | threads | waves a SIMD | blocks |"
        echo "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        awk '{ printf "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7, $8, $10, $9, $11, $12 }' <<< "$lines"
        ;;
    *)
        printf '%-28s %-15s %5s %5s %5s %8s %8s %7s %7s %8s %6s %7s\n' kernel chip wave vgpr sgpr shared scratch spills scalars threads waves blocks
        awk '{ printf "%-28s %-15s %5s %5s %5s %8s %8s %7s %7s %8s %6s %7s\n", $1, $2, $3, $4, $5, $6, $7, $8, $10, $9, $11, $12 }' <<< "$lines"
        ;;
esac > "$output.new"
mv "$output.new" "$output"
