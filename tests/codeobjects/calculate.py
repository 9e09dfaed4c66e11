"""Converts counts to a time: the lower bound from the busiest pipe of the card. Caches are cold, an incomplete last round of blocks counts as
a whole one, and launches take no time. Nothing waits, except where too few loads are in flight to hide the memory's latency."""
import math

from counting import ATOMIC, INTEGER_PRODUCT, LOAD, STORE, TRANSCENDENTAL, matrix_macs

PIPES = ("memory", "loads in flight", "second-level cache", "vector cache", "LDS", "vector", "matrix", "scalar", "one wave's instructions")


def vector_clocks(card, wave, mnemonic):
    """Clocks of the SIMD unit."""
    clocks = (card.transcendental_clocks if TRANSCENDENTAL.match(mnemonic) else card.integer_product_clocks if INTEGER_PRODUCT.match(mnemonic)
              else card.vector_clocks)
    if card.vector_clocks == 1:
        clocks *= wave // 32
        if "_f64" in mnemonic:
            clocks *= 16
    return clocks


def blocks_of_the_busiest(card, grid, resident):
    """Blocks of the busiest unit: rounds are filled in order, so units have all whole rounds and at least one block of the last."""
    whole, rest = divmod(grid, card.units * resident)
    return whole * resident + math.ceil(rest / card.units)


def memory_bytes(counted, grid):
    """The bytes that must be read from memory and written to it: each line once, however many blocks touch it. Lines of a single block count
    for every block of the grid, up to the size of the buffer."""
    scale, line, total = grid / counted["blocks"], counted["line_bytes"], 0.0
    for piece in counted["pieces"]:
        bytes_ = min((piece["alone"] * scale + piece["shared"]) * line, piece["bytes"])
        total += bytes_ * (piece["read"] + piece["written"])
    return total


def second_level_bytes(counted, grid):
    return sum(piece["touches"] for piece in counted["pieces"]) * counted["line_bytes"] * grid / counted["blocks"]


def clocks_of_a_block(card, wave, counted):
    """Clocks that a block takes on average from each pipe of its unit."""
    clocks = dict.fromkeys(PIPES[3:8], 0.0)
    for mnemonic, count in counted["instructions"].items():
        if mnemonic.startswith(("v_mfma", "v_wmma")):
            type_, macs, rows = matrix_macs(mnemonic)
            clocks["matrix"] += count * max(macs / card.matrix[type_], card.matrix_min_clocks.get(rows, 0)) / card.simds
        elif mnemonic.startswith("v_"):
            clocks["vector"] += count * vector_clocks(card, wave, mnemonic) / card.simds
        elif mnemonic.startswith("s_") and not mnemonic.startswith(("s_wait", "s_nop", "s_delay", "s_barrier", "s_clause")):
            clocks["scalar"] += count / card.scalar_a_clock
        elif "permute" in mnemonic or "swizzle" in mnemonic:
            clocks["LDS"] += count * wave / 32 / card.first_levels
    clocks["LDS"] += counted["lds_cycles"] / card.first_levels
    clocks["vector cache"] += counted["first_level_cycles"] / card.first_levels
    return {pipe: value / counted["blocks"] for pipe, value in clocks.items()}


def launch_time(launch):
    """Seconds of each pipe. launch: card, grid, resident (blocks per unit), waves (per block), wave, counted, times."""
    card, counted, grid, resident = launch["card"], launch["counted"], launch["grid"], max(1, launch["resident"])
    busiest = blocks_of_the_busiest(card, grid, resident)
    seconds = {pipe: clocks * busiest / card.clock_hz for pipe, clocks in clocks_of_a_block(card, launch["wave"], counted).items()}
    rounds = math.ceil(grid / (card.units * resident))
    seconds["one wave's instructions"] = rounds * counted["longest_wave"] * card.issue_clocks / card.clock_hz
    bytes_ = memory_bytes(counted, grid)
    waves = min(grid, card.units * resident) * launch["waves"]
    seconds["memory"] = bytes_ / card.memory_bytes
    in_flight = waves * counted["in_flight_bytes"]
    loads = bytes_ * loaded_share(counted)
    seconds["loads in flight"] = loads * card.latency_s / in_flight if in_flight else 0.0
    seconds["second-level cache"] = second_level_bytes(counted, grid) / (card.second_level_bytes * card.clock_hz)
    return {pipe: value * launch["times"] for pipe, value in seconds.items()}


def loaded_share(counted):
    pieces = counted["pieces"]
    read, written = (sum(p[how] * (p["alone"] + p["shared"]) for p in pieces) for how in ("read", "written"))
    return read / (read + written) if read + written else 1.0


def coalescing(counted):
    """The share of the touched lines' bytes that loads and stores use."""
    lines, used = (sum(counted[what][kind] for kind in (LOAD, STORE, ATOMIC)) for what in ("lines", "used"))
    return used / (lines * counted["line_bytes"]) if lines else 1.0


def conflicts(counted):
    """The share of the LDS's clocks that bank conflicts take."""
    return 1.0 - counted["lds_cycles_min"] / counted["lds_cycles"] if counted["lds_cycles"] else 0.0


def summed(launches):
    """A workload: its launches one after the other. The binding pipe and the ratios are those of the longest launch."""
    total, longest = 0.0, None
    for launch in launches:
        pipes = launch_time(launch)
        seconds = max(pipes.values())
        total += seconds
        if longest is None or seconds > longest[0]:
            longest = (seconds, max(pipes, key=pipes.get), launch, pipes)
    seconds, pipe, launch, pipes = longest
    return {"seconds": total, "pipe": pipe, "kernel": launch["kernel"], "kernel_seconds": seconds, "pipes": pipes,
            "coalescing": coalescing(launch["counted"]), "conflicts": conflicts(launch["counted"]), "resident": launch["resident"],
            "waves": launch["resident"] * launch["waves"] / launch["card"].simds, "idle_lanes": launch["counted"]["idle_lanes"],
            "kinds": launch["counted"]["kinds"], "launches": len(launches)}
