"""The cards that performance.py calculates for: their makers' published numbers, with the source. An unpublished rate is derived from a published
one, and says so."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Card:
    name: str
    chip: str
    units: int              # compute units; RDNA: pairs of them (work-group processors), which share a block
    clock_hz: float         # the highest that is published
    memory_bytes: float     # a second
    second_level_bytes: int  # a clock, all of the last cache before the memory or the Infinity Cache
    latency_s: float        # of a load from memory
    line_bytes: int         # of the vector cache
    first_level_bytes: int  # a clock and cache
    first_levels: int       # vector caches a unit, and LDS arrays
    vector_clocks: int      # a vector instruction of a wave occupies its SIMD unit
    transcendental_clocks: int
    integer_product_clocks: int  # of 32 bits
    issue_clocks: int       # between two instructions of one wave
    scalar_a_clock: float   # scalar instructions, a unit
    fma_a_clock: int        # f32 multiply-adds, a unit, as the vendor counts its peak: packed or paired
    matrix: dict            # multiply-adds a clock and SIMD unit by the matrix instructions, by type
    simds: int = 4
    matrix_min_clocks: dict = dataclasses.field(default_factory=dict)  # of an instruction whose result has this many rows, however narrow
    lds_bytes: int = 65536  # a unit
    lds_banks: int = 32

    def __post_init__(self):
        assert self.units > 0

    def slice(self, units):
        """A part of the card: this many units, with their share of the memory bandwidth and of the last cache."""
        share = units / self.units
        return dataclasses.replace(self, units=units, memory_bytes=self.memory_bytes * share, second_level_bytes=max(1, int(self.second_level_bytes * share)))


CDNA = {"first_level_bytes": 64, "first_levels": 1, "vector_clocks": 4, "transcendental_clocks": 16, "integer_product_clocks": 16, "issue_clocks": 4, "scalar_a_clock": 1.0}
RDNA = {"line_bytes": 128, "first_level_bytes": 128, "first_levels": 2, "vector_clocks": 1, "transcendental_clocks": 4, "integer_product_clocks": 4, "issue_clocks": 1, "scalar_a_clock": 4.0,
        "lds_bytes": 131072}
CARDS = {card.chip: card for card in (
    Card("MI210", "gfx90a", 104, 1.7e9, 1638.4e9, 4096, 500e-9, 64, fma_a_clock=128,
         matrix={"i8": 128, "f16": 128, "bf16": 128, "f32": 32}, **CDNA),
    Card("MI300X", "gfx942", 304, 2.1e9, 5300e9, 16384, 500e-9, 128, fma_a_clock=128,
         matrix={"i8": 512, "f16": 256, "bf16": 256, "f32": 32}, **CDNA),
    Card("MI350X", "gfx950", 256, 2.2e9, 8000e9, 16384, 500e-9, 128, fma_a_clock=128, matrix={"i8": 1024, "f16": 512, "bf16": 512, "f32": 32},
         matrix_min_clocks={16: 16, 32: 32}, lds_bytes=163840, lds_banks=64, **{**CDNA, "transcendental_clocks": 8}),
    Card("RX 7900 XTX", "gfx1100", 48, 2.5e9, 960e9, 3072, 350e-9, fma_a_clock=256,
         matrix={"i8": 128, "f16": 128, "bf16": 128}, **RDNA),
    Card("RX 9070 XT", "gfx1201", 32, 2.97e9, 640e9, 2048, 350e-9, fma_a_clock=256,
         matrix={"i8": 512, "f16": 256, "bf16": 256}, **RDNA),
)}

SOURCES = """\
- Units, clock, memory bandwidth, peak rates: AMD's product pages and data sheets of the Instinct MI210 (104 units, 1.7 GHz, 1.6 TB/s, 181 TFLOP/s
  of f16 and TOP/s of bytes by matrix instructions, 45.3 TFLOP/s of packed f32), the Instinct MI300X (304 units, 2.1 GHz, 5.3 TB/s, 1307 TFLOP/s of f16,
  2615 TOP/s of bytes, 163.4 TFLOP/s of f32), the Instinct MI350X (256 units, 2.2 GHz, 8 TB/s, 2307 TFLOP/s of f16, 4614 TOP/s of bytes, 144.2 TFLOP/s
  of f32; the MI355X is the same chip at 2.4 GHz, a tenth faster where the memory does not bind), the Radeon RX 7900 XTX (96 units, 2.5 GHz, 960 GB/s, 123 TFLOP/s of f16 and TOP/s of bytes, 61.4
  TFLOP/s of f32 by pairs of instructions) and the Radeon RX 9070 XT (64 units, 2.97 GHz, 640 GB/s, 195 TFLOP/s of f16, 389 TOP/s of bytes, 48.7
  TFLOP/s of f32). Multiply-adds a clock are those peaks divided by units and clock.
- Caches and clocks of instructions: AMD's white papers of CDNA 2, 3 and 4 and RDNA, and its instruction set manuals of MI200, MI300, RDNA 3 and
  RDNA 4 (a wave of 64 takes a SIMD of CDNA four clocks, a wave of 32 one of RDNA one; transcendental functions and 32-bit integer products a
  quarter of the rate). Second-level bytes a clock: 32 channels of 128 bytes (MI210), 16 of 128 in each of 8 dies (MI300X, MI350X); RDNA: 24 and 16 channels of 128.
- CDNA 4 alone: 160 KiB of LDS a unit (ROCm's table of GPUs) in 64 banks (Composable Kernel's source), transcendental functions at twice CDNA 3's rate;
  a matrix instruction of half the width takes the clocks of the whole one (four passes for 16 x 16, eight for 32 x 32: LLVM's schedule of gfx950).
- Banks: 32 of 4 bytes, and the lanes that 16-byte reads of CDNA are served by together, from AMD's documentation of Composable Kernel.
- Latency of memory: nobody's data sheet has it. 500 ns (CDNA) and 350 ns (RDNA) are taken, rounded up from published pointer-chasing measurements of
  these families; they matter only where *loads in flight* binds."""
