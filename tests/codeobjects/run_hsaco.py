#!/usr/bin/env python3
"""Run AMD GPU code objects (HSACO ELF, code object v4/v5) on the CPU, with numpy buffers.

Needs a tinygrad checkout (path in $TINYGRAD_PATH) for its AMD instruction emulator, clang on PATH
(or $CC), numpy.  Emulated: gfx11xx (wave32, and wave64 through a small override), gfx12xx (wave32),
gfx90a/gfx94x/gfx950 (wave64).

  from run_hsaco import Module
  m = Module("k.gfx1100.hsaco")
  c = np.zeros_like(a)
  st = m.launch("vadd", grid=(n//256,), block=(256,), args=[a, b, c, np.int32(n)])   # grid in BLOCKS
  # numpy arrays are device buffers (copied in, copied back); numpy scalars/int/float/bytes are by-value

Every buffer ends on a guard page: an out-of-bounds access raises GpuFault with the instruction.
"""
from __future__ import annotations
import ctypes, hashlib, mmap, os, platform, re, struct, subprocess, sys, tempfile, time, types
import numpy as np

TG = os.environ.get("TINYGRAD_PATH", "")
if not TG or not os.path.isdir(os.path.join(TG, "tinygrad")): raise SystemExit("set TINYGRAD_PATH to a tinygrad checkout")
sys.path.insert(0, TG)
_HERE = os.path.dirname(os.path.abspath(__file__))
_CACHE = os.environ.get("RUN_HSACO_CACHE", os.path.join(tempfile.gettempdir(), "run_hsaco_cache"))
os.makedirs(_CACHE, exist_ok=True)
os.environ.setdefault("CACHEDB", os.path.join(_CACHE, "tinygrad.db"))
if platform.machine() == "aarch64":  # -mcpu=native picks SVE on a VM that masks it: use a plain ARMv8.2 core
  os.environ.setdefault("DEV", "CPU:CLANG:arm64,neoverse-n1")
else: os.environ.setdefault("DEV", "CPU")
from test.mockgpu.amd import emu  # noqa: E402

class GpuFault(RuntimeError): pass

# ---------------------------------------------------------------- C dispatch loop
class _Entry(ctypes.Structure):
  _fields_ = [("fn", ctypes.c_uint64), ("idx", ctypes.c_uint8 * 6), ("barrier", ctypes.c_uint8), ("nop_bytes", ctypes.c_uint8), ("count", ctypes.c_uint64),
              ("akind", ctypes.c_uint8), ("areg", ctypes.c_uint8), ("aregs", ctypes.c_uint8), ("inst_bytes", ctypes.c_uint8),
              ("off0", ctypes.c_uint32), ("off1", ctypes.c_uint32), ("size", ctypes.c_uint32),
              ("special", ctypes.c_uint8), ("sdst", ctypes.c_uint8), ("ssrc", ctypes.c_uint8), ("pad", ctypes.c_uint8), ("imm", ctypes.c_int32)]
class _Wave(ctypes.Structure):  # as wave_t of emuloop.c; what is behind buf is of count.h
  _fields_ = [("buf", ctypes.c_uint64 * 6), ("counter", ctypes.c_uint64), ("in_flight", ctypes.c_uint32 * 64), ("loading", ctypes.c_uint32), ("pad", ctypes.c_uint32)]

def _loop():
  src = os.path.join(_HERE, "emuloop.c")
  so = os.path.join(_CACHE, f"emuloop_{hashlib.sha256(open(src, 'rb').read() + open(os.path.join(_HERE, 'count.h'), 'rb').read()).hexdigest()[:12]}.so")
  if not os.path.exists(so):
    subprocess.check_call([os.environ.get("CC", "clang"), "-O2", "-shared", "-fPIC", src, "-o", so + f".{os.getpid()}"])
    os.rename(so + f".{os.getpid()}", so)
  f = ctypes.CDLL(so).emu_run
  f.restype, f.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                                        ctypes.c_int, ctypes.c_uint32]
  return f
_emu_run = _loop()

# ---------------------------------------------------------------- guarded memory
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype, _libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes, _libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PG = mmap.PAGESIZE
_next = [0x10_0000_0000]     # device addresses below 2^47, as on hardware (gfx12 code sign-extends pc[47:32])
class Guarded:
  """nbytes of shared memory whose last byte (rounded up to align) is followed by an inaccessible page, preceded by one too."""
  def __init__(self, nbytes: int, align: int = 16, fixed: int | None = None):
    body = max(-(-max(nbytes, 1) // _PG) * _PG, _PG)
    self.total = body + 2 * _PG
    flags = 0x01 | 0x20 | 0x4000 | 0x100000  # SHARED|ANON|NORESERVE|FIXED_NOREPLACE
    # with `fixed`, the data must START at fixed (LDS aperture), so only the tail rounding is unguarded
    at = fixed - _PG if fixed is not None else _next[0]
    if fixed is None: _next[0] += -(-self.total // 0x10000) * 0x10000
    if _next[0] > 0x3f_0000_0000: _next[0] = 0x50_0000_0000
    self.map = _libc.mmap(at, self.total, 0, flags, -1, 0)
    if self.map in (None, ctypes.c_void_p(-1).value): raise MemoryError("mmap")
    if _libc.mprotect(self.map + _PG, body, 3): raise MemoryError("mprotect")
    size = -(-max(nbytes, 1) // align) * align
    self.addr = self.map + _PG if fixed is not None else self.map + _PG + body - size
    self.nbytes = nbytes
    self.np = np.frombuffer((ctypes.c_uint8 * size).from_address(self.addr), dtype=np.uint8)
  def free(self):
    if self.map: _libc.munmap(self.map, self.total); self.map = 0

LDS_APERTURE = 0x40_0000_0000

# ---------------------------------------------------------------- tiny msgpack reader (code object metadata)
def _unpack(b: bytes, o: int = 0):
  t = b[o]; o += 1
  def seq(n, o):
    r = []
    for _ in range(n): v, o = _unpack(b, o); r.append(v)
    return r, o
  def mp(n, o):
    r = {}
    for _ in range(n): k, o = _unpack(b, o); r[k], o = _unpack(b, o)
    return r, o
  if t <= 0x7f: return t, o
  if t <= 0x8f: return mp(t & 15, o)
  if t <= 0x9f: return seq(t & 15, o)
  if t <= 0xbf: n = t & 31; return b[o:o + n].decode(), o + n
  if t >= 0xe0: return t - 256, o
  if t in (0xc0, 0xc2, 0xc3): return {0xc0: None, 0xc2: False, 0xc3: True}[t], o
  fmt = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}.get(t)
  if fmt: return struct.unpack_from(fmt, b, o)[0], o + struct.calcsize(fmt)
  w = {0xc4: ">B", 0xc5: ">H", 0xc6: ">I", 0xd9: ">B", 0xda: ">H", 0xdb: ">I", 0xdc: ">H", 0xdd: ">I", 0xde: ">H", 0xdf: ">I"}[t]
  n = struct.unpack_from(w, b, o)[0]; o += struct.calcsize(w)
  if t in (0xdc, 0xdd): return seq(n, o)
  if t in (0xde, 0xdf): return mp(n, o)
  return (b[o:o + n] if t in (0xc4, 0xc5, 0xc6) else b[o:o + n].decode()), o + n

_MACH = {0x3f: "gfx90a", 0x40: "gfx940", 0x4b: "gfx941", 0x4c: "gfx942", 0x4f: "gfx950", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102",
         0x44: "gfx1103", 0x43: "gfx1150", 0x4a: "gfx1151", 0x48: "gfx1200", 0x4e: "gfx1201", 0x36: "gfx1030", 0x2f: "gfx906", 0x30: "gfx908", 0x2c: "gfx900"}

# ---------------------------------------------------------------- instruction compilation, one table per (arch, wave size)
class _RdnaWave64(int):
  """64, but never equal to the literal 64: the emulator uses `wave_size == 64` to mean 'CDNA'."""
  def __eq__(self, o): return False
  def __ne__(self, o): return True
  __hash__ = int.__hash__
_W64 = _RdnaWave64(64)
_canon: dict[tuple[str, int], list] = {}
_runners: dict[tuple[str, int, bytes], tuple] = {}

# cache/ordering-only instructions without architectural effect here
def _nop_bytes(pc: int, arch: str) -> int:
  w = ctypes.c_uint32.from_address(pc).value
  if arch == "rdna3" and (w >> 26) == 0x38 and ((w >> 18) & 0xff) in (43, 44): return 8          # buffer_gl0_inv, buffer_gl1_inv
  if arch == "cdna" and (w >> 26) == 0x38 and ((w >> 18) & 0x7f) in (40, 41, 62, 63): return 8      # buffer_wbl2, buffer_inv, wbinvl1(_vol)
  if arch == "rdna4" and (w >> 24) == 0xee and ((w >> 14) & 0xff) in (43, 44, 79): return 12        # global_inv, global_wb, global_wbinv
  return 0

def _decode(pc: int, arch: str, ws: int):
  raw = bytes((ctypes.c_char * 16).from_address(pc).raw)
  inst = emu.decode_inst(raw, arch)
  key = (arch, int(ws), raw[:inst.size() + 4])
  if key not in _runners:
    emu._canonical_runner_cache = _canon.setdefault((arch, int(ws)), [])
    rw64 = int(ws) == 64 and arch != "cdna"
    old, old_dec = emu._wave_size, emu.decode_inst
    def dec64(*a):
      i = old_dec(*a)
      if "CNDMASK_B" in getattr(getattr(i, "op", None), "name", "") and "src2" in i.operands: i.__dict__["canonical_op_bits"] = {**i.canonical_op_bits, "s2": 64}
      return i
    emu._wave_size = lambda a: _W64 if rw64 else int(ws)
    if rw64: emu.decode_inst = dec64
    try: _runners[key] = emu._get_runner.__wrapped__(key[2], arch)
    finally: emu._wave_size, emu.decode_inst = old, old_dec
  return _runners[key], inst

# MFMA on bytes: the emulator stores signed vectors into an unsigned array, which clang does not take
from tinygrad.runtime.support.compiler_cpu import ClangCompiler  # noqa: E402
_compile0 = ClangCompiler.compile
ClangCompiler.compile = lambda self, src: _compile0(self, re.sub(r"(\*\(\(unsigned_int(\d+)\*\).* = )\(int\2\)\{", r"\1(unsigned_int\2){", src))

# MFMA on f32 of which 10 bits of the fraction count (XF32): the emulator takes it for 16 bits. Our kernels round before, so all bits are there.
# Denormals of f16: it takes them for 0, as gfx90a does
_mfma0, _mfma_name0 = emu._compile_mfma, emu._op_name
def _compile_mfma(inst, ctx):
  emu._op_name = lambda i: _mfma_name0(i).replace("XF32", "F32")
  try: return _mfma0(inst, ctx)
  finally: emu._op_name = _mfma_name0
emu._compile_mfma = _compile_mfma

# gfx90a's number of v_mfma_f32_16x16x16bf16_1k is that of a sparse product on gfx942, which no kernel has; the decoder knows gfx942's
_decode0 = emu.decode_inst
def _decode_inst(raw, arch, *rest):
  return _decode0(raw[:2] + b"\xe1\xd3" + raw[4:] if arch == "cdna" and raw[2:4] == b"\xe7\xd3" else raw, arch, *rest)
emu.decode_inst = _decode_inst

# registers from 128 on are the upper halves of others for 16-bit instructions of RDNA alone: on CDNA no register is as large as that
_never = dict(vars(emu), _c=lambda x, *a: emu._c(1 << 20 if x in (128, 384) else x, *a))
for _name in ("_load_vsrc0", "_compile_vop12", "_compile_vopc"):
  _never[_name] = types.FunctionType(getattr(emu, _name).__code__, _never, _name, getattr(emu, _name).__defaults__)
emu._INST_HANDLERS.update({kind: _never[handler.__name__] for kind, handler in emu._INST_HANDLERS.items()
                           if kind.__module__ == emu.irc.VOP1.__module__ and handler in (emu._compile_vop12, emu._compile_vopc)})

# |x| and -x of an operand that SDWA selects: the emulator forgets them. Operands are selected in turn, src0 first
_sdwa0, _select0, _sdwa_now = emu._compile_sdwa, emu._sdwa_select, [None, 0]
def _compile_sdwa(inst, ctx):
  _sdwa_now[:] = inst, 0
  return _sdwa0(inst, ctx)
def _sdwa_select(val, sel, sext):
  (inst, n), c = _sdwa_now, emu._c
  which, out = n % 2 if hasattr(type(inst), "vsrc1") else 0, _select0(val, sel, sext)
  _sdwa_now[1] += 1
  sign = sel.eq(c(6)).where(c(0x80000000), (sel < c(4)).where(c(0x80), c(0x8000)))
  if _raw(inst, f"src{which}_abs"): out = out & (sign ^ c(0xffffffff))
  return out ^ sign if _raw(inst, f"src{which}_neg") else out
emu._sdwa_select = _sdwa_select
emu._INST_HANDLERS.update({kind: _compile_sdwa for kind, handler in emu._INST_HANDLERS.items() if handler is _sdwa0})

# WMMA on a constant, 0 to 64: the emulator takes its number for a register's. What it reads behind the 2 x 256 elements of A and B is C
_wmma0 = emu._compile_wmma
def _compile_wmma(inst, ctx):
  read0, reads, src2 = emu._Ctx.rvgpr_dyn, [0], ctx.inst_field(type(inst).src2)
  def read(self, reg, lane, valid=None):
    reads[0] += 1
    value = read0(self, reg, lane, valid)
    return value if reads[0] <= 512 else (src2 >= emu._c(256)).where(value, (src2 - emu._c(128)).cast(value.dtype))
  emu._Ctx.rvgpr_dyn = read
  try: return _wmma0(inst, ctx)
  finally: emu._Ctx.rvgpr_dyn = read0
emu._compile_wmma = _compile_wmma

# "return the pre-op value" is glc on RDNA3, sc0 on CDNA, th[0] on RDNA4; the emulator only knows glc
_iattr0 = emu._iattr
def _iattr(inst, name, default=0):
  if name == "acc_cd" and not hasattr(type(inst), "acc_cd"): return inst._raw >> 15 & 1  # XF32 is decoded as an instruction without that bit
  if name == "glc" and not hasattr(type(inst), "glc"):
    if hasattr(type(inst), "sc0"): return _raw(inst, "sc0")
    if hasattr(type(inst), "th"): return _raw(inst, "th") & 1
  return _iattr0(inst, name, default)
emu._iattr = _iattr
_optf0 = emu._Ctx.optional_field
emu._Ctx.optional_field = lambda self, inst, name: None if name == "saddr" and isinstance(inst, emu.irc.FLAT) else _optf0(self, inst, name)  # gfx9 FLAT has no saddr
# an offset of gfx9's FLAT has 12 bits and no sign; the emulator takes those from 2048 on for negative
_signed0 = emu._Ctx.inst_field_signed
emu._Ctx.inst_field_signed = lambda self, field: self.inst_field(field).cast(emu.dtypes.int) if field is emu.irc.FLAT.offset else _signed0(self, field)
_pcode0 = emu.get_pcode
def _get_pcode(op):  # RDNA4 FLAT: use the address the emulator already computed
  p = _pcode0(op)
  return re.sub(r"addr = CalcFlatAddr\([^)]*\);\n", "", p).replace("MEM[addr", "MEM[ADDR") if "CalcFlatAddr" in p else p
emu.get_pcode = _get_pcode
_DS, _GL = (emu.ir3.DS, emu.ir4.DS, emu.irc.DS), tuple(getattr(m, n) for m in (emu.ir3, emu.ir4, emu.irc) for n in ("FLAT", "GLOBAL", "VFLAT", "VGLOBAL") if hasattr(m, n))
def _raw(inst, field): # undecoded value of an instruction field
  f = getattr(type(inst), field); return (inst._raw >> f.lo) & ((1 << (f.hi - f.lo + 1)) - 1)
_SPECIAL = {"S_GETPC_B64": 1, "S_SETPC_B64": 2, "S_SWAPPC_B64": 3, "S_CALL_B64": 4, "DS_SWIZZLE_B32": 5}
# gfx90a has instructions that gfx942 dropped, and whose numbers later chips gave away: the decoder, which is of those, knows them not or as others
def _own_gfx90a(pc: int) -> int:
  w = ctypes.c_uint32.from_address(pc).value
  if w >> 25 in (22, 23, 24):                     # v_mac_f32, v_madmk_f32, v_madak_f32
    if w & 511 in (249, 250): raise NotImplementedError("v_mac_f32 of gfx90a with DPP or SDWA")
    return 9
  if w >> 16 == 0xd116: raise NotImplementedError("v_mac_f32 of gfx90a in its long form")
  return {0xd1c1: 7, 0xd3d5: 8}.get(w >> 16, 0)   # v_mad_f32; v_mfma_i32_16x16x16i8
def _own_gfx90a_bytes(pc: int) -> int:
  w = ctypes.c_uint32.from_address(pc).value
  return 4 if w >> 25 == 22 and w & 511 != 255 else 8
_STORES = {"DWORD": 1, "DWORDX2": 2, "DWORDX3": 3, "DWORDX4": 4, "B32": 1, "B64": 2, "B96": 3, "B128": 4}
def _store(inst, e) -> bool: # whole dwords to global memory: emuloop.c does it, for any alignment
  m = re.fullmatch(r"GLOBAL_STORE_(\w+)", getattr(getattr(inst, "op", None), "name", ""))
  if not m or m[1] not in _STORES: return False
  has = lambda field: hasattr(type(inst), field)
  saddr, offset, bits = _raw(inst, "saddr"), *((_raw(inst, "ioffset"), 24) if has("ioffset") else (_raw(inst, "offset"), 13))
  e.areg, e.sdst = _raw(inst, "vaddr" if has("vaddr") else "addr") & 0xff, _raw(inst, "vsrc" if has("vsrc") else "data") & 0xff
  e.aregs, e.ssrc = (1, saddr) if saddr < 124 else (2, 0)
  e.imm = (offset ^ 1 << bits - 1) - (1 << bits - 1)
  e.size, e.pad, e.inst_bytes, e.special = _STORES[m[1]], int(has("acc") and bool(_raw(inst, "acc"))), inst.size(), 10
  return True
def _half(inst, e) -> bool: # loads of one half of a register from LDS: emuloop.c does it
  m = re.fullmatch(r"DS_(?:LOAD|READ)_([UI])(8|16)_D16(_HI)?", getattr(getattr(inst, "op", None), "name", ""))
  if not m: return False
  offset = _raw(inst, "offset0") | _raw(inst, "offset1") << 8
  e.areg, e.sdst, e.off0, e.off1, e.size = _raw(inst, "addr") & 0xff, _raw(inst, "vdst") & 0xff, offset, offset, int(m[2]) // 8
  e.imm, e.pad, e.inst_bytes, e.special = int(m[1] == "I"), int(m[3] is not None), inst.size(), 13
  if getattr(type(inst), "acc", None) is not None and _raw(inst, "acc"): raise NotImplementedError("a half of an accumulator from LDS")
  return True
def _special(pc, arch, e, gfx="") -> bool:
  if gfx == "gfx90a" and (k := _own_gfx90a(pc)):
    e.special, e.inst_bytes = k, _own_gfx90a_bytes(pc)
    return True
  w = ctypes.c_uint32.from_address(pc).value
  if arch == "cdna" and w >> 25 in (25, 26, 27, 28, 29, 30) and w & 511 == 249:   # carries with SDWA
    how = ctypes.c_uint32.from_address(pc + 4).value
    if w >> 25 > 27 or how >> 8 & 7 != 6: raise NotImplementedError("a carry with SDWA that is more than an addition or subtraction")
    e.special, e.inst_bytes = 11, 8
    return True
  try: inst = emu.decode_inst(bytes((ctypes.c_char * 16).from_address(pc).raw), arch)
  except Exception: return False
  k = _SPECIAL.get(getattr(getattr(inst, "op", None), "name", ""), 0)
  if "PERMLANEX16" in getattr(getattr(inst, "op", None), "name", ""): k = 12  # which the emulator does lane by lane, too
  if _store(inst, e) or _half(inst, e): return True
  if getattr(getattr(inst, "op", None), "name", "") == "S_MOV_B64" and _raw(inst, "ssrc0") in (235, 237):
    k, e.sdst, e.imm = 6, _raw(inst, "sdst"), (LDS_APERTURE >> 32) if _raw(inst, "ssrc0") == 235 else 0x7fff
  if not k: return False
  e.inst_bytes = inst.size()
  if k == 5:
    off = _raw(inst, "offset0") | _raw(inst, "offset1") << 8
    if off >= 0xc000: raise NotImplementedError("ds_swizzle FFT/rotate mode")
    e.sdst, e.ssrc, e.imm = _raw(inst, "vdst") & 0xff, _raw(inst, "addr") & 0xff, off
  elif k == 12:
    how = ctypes.c_uint32.from_address(pc + 4).value
    if w >> 11 & 15: raise NotImplementedError("v_permlanex16 that takes from lanes that are gone")
    e.sdst, e.ssrc, e.off0, e.off1 = w & 255, how & 255, how >> 9 & 511, how >> 18 & 511
  elif k != 6:
    if k != 2: e.sdst = _raw(inst, "sdst")
    if k in (2, 3): e.ssrc = _raw(inst, "ssrc0")
    if k == 4: e.imm = (_raw(inst, "simm16") ^ 0x8000) - 0x8000
  e.special = k
  return True
# DPP: a lane's first operand comes from another lane. The emulator takes one lane after the other, so one whose result is in that same register would
# read what it has just written. emuloop.c therefore brings the operands of all lanes, as they were before, to a register that the instruction does not
# name, and the instruction, here, in the loaded image, takes its own lane's from there. Lanes that are gone give 0, as the bound_ctrl that is demanded says.
_DPP, _DPP_SELF = 250, 0xe4
def _dpp(pc, e) -> None:
  words = (ctypes.c_uint32 * 2).from_address(pc)
  if words[0] >> 31 or words[0] & 511 != _DPP: return
  if words[1] >> 19 & 1 != 1 or words[1] >> 24 != 0xff: raise NotImplementedError("DPP with masks, or that leaves lanes as they were")
  control = words[1] >> 8 & 0x1ff
  if control > 0xff and control not in (*range(0x111, 0x120), 0x128, 0x140, 0x141): raise NotImplementedError(f"DPP control {control:#x}")
  named = (words[0] >> 9 & 255, words[0] >> 17 & 255)
  spare = next(r for r in (255, 254, 253) if r not in named)
  e.akind, e.areg, e.aregs, e.off0 = 3, spare, words[1] & 255, control
  words[1] = words[1] & ~0x1ffff | _DPP_SELF << 8 | spare
def _addr_info(inst, e):
  """Fill in the LDS bounds check / inactive-lane protection of a table entry."""
  e.inst_bytes = inst.size()
  if isinstance(inst, _DS):
    op = inst.op.name
    if "PERMUTE" in op: e.akind, e.areg, e.aregs = 2, _raw(inst, "addr") & 0xff, 1   # what inactive lanes hold is no lane's number
    if any(x in op for x in ("PERMUTE", "SWIZZLE", "NOP", "GWS", "APPEND", "CONSUME", "ADDTID", "BVH", "ORDERED")): return
    bits = int(re.findall(r"_[A-Z]*?(8|16|32|64|96|128)(?=_|$)", op.replace("STRIDE64", "").replace("ST64", ""))[-1])
    sz = max(bits // 8, 1)
    o0, o1 = _raw(inst, "offset0"), _raw(inst, "offset1")
    if "2ADDR" in op or "READ2" in op or "WRITE2" in op or "WRXCHG2" in op:
      k = sz * (64 if "64_" in op.replace("_B64", "") or "ST64" in op or "STRIDE64" in op else 1); o0, o1 = o0 * k, o1 * k
    else: o0 = o1 = o0 | o1 << 8
    e.akind, e.areg, e.aregs, e.off0, e.off1, e.size = 1, _raw(inst, "addr") & 0xff, 1, o0, o1, sz
  elif isinstance(inst, _GL) and "ATOMIC" in inst.op.name:
    f = "vaddr" if hasattr(type(inst), "vaddr") else "addr"
    sa = _raw(inst, "saddr") if hasattr(type(inst), "saddr") else 0x7f
    e.akind, e.areg, e.aregs = 2, _raw(inst, f) & 0xff, 1 if sa < 124 and not isinstance(inst, (emu.ir3.FLAT, emu.irc.FLAT)) else 2

# ---------------------------------------------------------------- code object
class Stats:
  def __repr__(self):
    return (f"{self.kernel}: {self.waves} waves, {self.insts} wave-instructions, {self.distinct} distinct pcs compiled in {self.compile_s:.2f}s, "
            f"run {self.run_s:.3f}s = {self.insts / max(self.run_s, 1e-9) / 1e6:.2f} M wave-inst/s")

class Module:
  def __init__(self, path_or_bytes, verbose=False):
    d = path_or_bytes if isinstance(path_or_bytes, (bytes, bytearray)) else open(path_or_bytes, "rb").read()
    if d[:24] == b"__CLANG_OFFLOAD_BUNDLE__":  # take the first amdgcn entry
      n, o = struct.unpack_from("<Q", d, 24)[0], 32
      for _ in range(n):
        off, sz, il = struct.unpack_from("<QQQ", d, o); tid = d[o + 24:o + 24 + il]; o += 24 + il
        if b"amdgcn" in tid: d = d[off:off + sz]; break
    assert d[:4] == b"\x7fELF" and struct.unpack_from("<H", d, 18)[0] == 224, "not an AMDGPU ELF"
    self.abi = d[8]; self.flags = struct.unpack_from("<I", d, 48)[0]
    self.gfx = _MACH.get(self.flags & 0xff, f"mach{self.flags & 0xff:#x}")
    self.arch = "cdna" if self.gfx in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950") else "rdna4" if self.gfx.startswith("gfx12") else \
                "rdna3" if self.gfx.startswith("gfx11") else None
    if self.arch is None: raise NotImplementedError(f"{self.gfx}: ISA not emulated")
    phoff, shoff = struct.unpack_from("<QQ", d, 32)
    phes, phn, shes, shn = struct.unpack_from("<HHHH", d, 54)
    segs = [struct.unpack_from("<IIQQQQQQ", d, phoff + i * phes) for i in range(phn)]
    size = max(s[3] + s[6] for s in segs if s[0] == 1)
    self.img = Guarded(size + 64, align=_PG)   # align: keep the image page aligned
    self.base, self.size = self.img.addr, size
    for t, fl, off, va, pa, fsz, msz, al in segs:
      if t == 1: ctypes.memmove(self.base + va, d[off:off + fsz], fsz)
    secs = [struct.unpack_from("<IIQQQQIIQQ", d, shoff + i * shes) for i in range(shn)]
    self.syms = {}
    tables = {}
    for i, s in enumerate(secs):
      if s[1] in (2, 11):
        st, tab = secs[s[6]][4], []
        for o in range(s[4], s[4] + s[5], 24):
          nm, info, oth, shx, val, sz = struct.unpack_from("<IBBHQQ", d, o)
          name = d[st + nm:d.index(b"\0", st + nm)].decode(); tab.append((name, val, shx))
          if name and shx: self.syms[name] = (val, sz)
        tables[i] = tab
    for s in secs:
      if s[1] == 4:  # SHT_RELA
        for o in range(s[4], s[4] + s[5], 24):
          r_off, r_info, add = struct.unpack_from("<QQq", d, o)
          ty, sy = r_info & 0xffffffff, r_info >> 32
          if ty == 13: v = self.base + add                       # R_AMDGPU_RELATIVE64
          elif ty == 3:                                          # R_AMDGPU_ABS64
            assert tables[s[6]][sy][2], f"undefined symbol {tables[s[6]][sy][0]}"
            v = self.base + tables[s[6]][sy][1] + add
          else: raise NotImplementedError(f"relocation type {ty}")
          ctypes.c_uint64.from_address(self.base + r_off).value = v & (2**64 - 1)
    self.meta = {}
    for t, fl, off, va, pa, fsz, msz, al in segs:
      if t == 4:
        o = off
        while o < off + fsz:
          ns, ds, ty = struct.unpack_from("<III", d, o); o += 12
          name = d[o:o + ns]; o += -(-ns // 4) * 4
          if ty == 32 and name.startswith(b"AMDGPU"): self.meta = _unpack(d[o:o + ds])[0]
          o += -(-ds // 4) * 4
    self.kernels = {k[".name"]: k for k in self.meta.get("amdhsa.kernels", [])}
    self._tab = (_Entry * (size // 4 + 1))
    self.tabs = {}
    if verbose: print(self.gfx, self.arch, "abi", self.abi, list(self.kernels))

  def global_array(self, name: str, dtype) -> np.ndarray:
    """View on a __device__/__constant__ variable."""
    v, sz = self.syms[name]
    return np.frombuffer((ctypes.c_uint8 * sz).from_address(self.base + v), dtype=dtype)

  def instructions(self, name) -> int:
    """How many instructions a kernel has; padding behind its end is not counted."""
    v, sz = self.syms[name]; pc, count = self.base + v, 0
    while pc < self.base + v + sz:
      nb = _nop_bytes(pc, self.arch) or (_own_gfx90a_bytes(pc) if self.gfx == "gfx90a" and _own_gfx90a(pc) else 0)
      if not nb:
        try:
          inst = emu.decode_inst(bytes((ctypes.c_char * 16).from_address(pc).raw), self.arch); nb = inst.size()
          if "S_CODE_END" in getattr(getattr(inst, "op", None), "name", ""): break
        except Exception: nb = 4
      pc += nb; count += 1
    return count

  def check(self, name, ws=None) -> list[str]:
    """Static coverage: try to compile every instruction of a kernel; returns the ones the emulator cannot run."""
    md = self.kernels[name]; v, sz = self.syms[md[".name"]]; ws = ws or md.get(".wavefront_size", 64); bad, pc = [], self.base + v
    while pc < self.base + v + sz:
      e = _Entry(); nb = _nop_bytes(pc, self.arch)
      try:
        if not nb and self.gfx == "gfx90a" and _own_gfx90a(pc): nb = _own_gfx90a_bytes(pc)
        elif not nb:
          inst = emu.decode_inst(bytes((ctypes.c_char * 16).from_address(pc).raw), self.arch); nb = inst.size()
          if "S_CODE_END" in getattr(getattr(inst, "op", None), "name", ""): break
          if not _special(pc, self.arch, e, self.gfx): _decode(pc, self.arch, ws)
      except Exception as ex: bad.append(f"+{pc - self.base - v:#x}: {str(ex)[:160]}"); nb = nb or 4
      pc += nb
    return bad

  def launch(self, name, grid, block, args, lds_dynamic=0, max_insts=2_000_000_000, poison=0xA5, blocks=None, trace=False, ftz=None,
             quantum=0, reverse=False, stack=4096, counter=None) -> Stats:
    """grid: number of blocks per dimension. poison: byte used to fill LDS, scratch and uninitialised VGPRs (None: zero).
    Waves of a block run one after the other up to each barrier; quantum=N switches wave every N instructions and reverse=True
    runs the last wave first: use both to expose missing __syncthreads. Blocks run one after the other, in order (or `blocks`).
    counter: a Counter of performance.py, which is told of each block and counts what the instructions ask of the chip."""
    md = self.kernels[name]
    g, b = [tuple(int(x) for x in t) + (1,) * (3 - len(t)) for t in (grid, block)]
    kd = ctypes.string_at(self.base + self.syms[md[".symbol"]][0], 64)
    lds_fix, priv, ka_size, _, entry_off = struct.unpack_from("<IIIIq", kd, 0)
    rsrc3, rsrc1, rsrc2, props, preload = struct.unpack_from("<IIIHH", kd, 44)
    ws = 32 if (props >> 10) & 1 else 64
    if self.arch == "cdna": ws = 64
    if md.get(".wavefront_size"): assert md[".wavefront_size"] == ws
    threads = b[0] * b[1] * b[2]
    assert threads <= md.get(".max_flat_workgroup_size", 1024), f"block of {threads} > max_flat_workgroup_size"
    if md.get(".uses_dynamic_stack"): priv += stack   # recursion / indirect calls: the fixed size does not include them
    if ftz is None: ftz = ((rsrc1 >> 16) & 3) == 0        # FLOAT_DENORM_MODE_32 == flush
    entry = self.base + self.syms[md[".symbol"]][0] + entry_off
    lds_total = lds_fix + lds_dynamic
    assert lds_total <= 65536 * (1 if self.gfx != "gfx950" else 2), f"LDS {lds_total} too large"

    # --- arguments
    bufs, ka = [], bytearray(max(ka_size, 16))
    user = [a for a in md.get(".args", []) if not a[".value_kind"].startswith("hidden_")]
    assert len(user) == len(args), f"{name} takes {len(user)} arguments, got {len(args)}"
    seen = {}
    for a, v in zip(user, args):
      off, sz, kind = a[".offset"], a[".size"], a[".value_kind"]
      if kind == "global_buffer":
        if v is None: continue
        if isinstance(v, (int, np.integer)): ka[off:off + 8] = struct.pack("<Q", int(v)); continue
        if id(v) not in seen:
          assert v.flags.c_contiguous, "arrays must be C-contiguous"
          gb = Guarded(v.nbytes, align=4); gb.np[:v.nbytes] = v.reshape(-1).view(np.uint8) if v.size else []
          seen[id(v)] = gb; bufs.append((v, gb))
        ka[off:off + 8] = struct.pack("<Q", seen[id(v)].addr)
      elif kind == "by_value":
        if isinstance(v, float): v = np.float32(v) if sz == 4 else np.float64(v)
        by = v if isinstance(v, (bytes, bytearray)) else int(v).to_bytes(sz, "little", signed=int(v) < 0) if isinstance(v, int) else v.tobytes()
        assert len(by) == sz, f"by-value argument at {off}: {sz} bytes expected, got {len(by)}"
        ka[off:off + sz] = by
      else: raise NotImplementedError(kind)
    H = {"hidden_grid_dims": sum(x > 1 for x in g) or 1, "hidden_dynamic_lds_size": lds_dynamic, "hidden_shared_base": LDS_APERTURE >> 32}
    for i, c in enumerate("xyz"):
      H[f"hidden_block_count_{c}"], H[f"hidden_group_size_{c}"] = g[i], b[i]
    for a in md.get(".args", []):
      if a[".value_kind"] in H: ka[a[".offset"]:a[".offset"] + a[".size"]] = int(H[a[".value_kind"]]).to_bytes(a[".size"], "little")
    karg = Guarded(len(ka), align=64); karg.np[:len(ka)] = np.frombuffer(bytes(ka), np.uint8)
    pkt = Guarded(64, align=64)
    pkt.np[:] = np.frombuffer(struct.pack("<HHHHHHIIIIIQQQQ", 2, 3, *b, 0, *[g[i] * b[i] for i in range(3)], priv, lds_total, entry, karg.addr, 0, 0), np.uint8)
    # --- user SGPRs
    us = []
    q = lambda v: us.extend([v & 0xffffffff, v >> 32])
    if props & 1: us += [0, 0, 0, 0]
    if props & 2: q(pkt.addr)
    if props & 4: q(pkt.addr)      # queue ptr (dummy)
    if props & 8: q(karg.addr)
    if props & 16: q(0)
    if props & 32: us += [0, 0]
    if props & 64: us += [priv]
    npre = preload & 0x7f
    if npre and self.arch == "cdna":
      words = np.frombuffer(bytes(ka), np.uint32); po = preload >> 7
      us += [int(x) for x in words[po:po + npre]]; entry += 256
    n_user = (rsrc2 >> 1) & 0x1f
    us = (us + [0] * 32)[:max(n_user, len(us))]
    if priv and (props & 1 or self.gfx == "gfx90a"): raise NotImplementedError("scratch through buffer instructions (gfx90a private segment) is not emulated")

    # --- state
    tmpl = np.zeros(emu.SGPR_COUNT, np.uint32)
    for i in range(65): tmpl[128 + i] = i
    for i in range(16): tmpl[193 + i] = (-(i + 1)) & 0xffffffff
    for k, v in emu.F32_INLINE.items(): tmpl[k] = v
    for i, v in enumerate(us): tmpl[i] = v
    n_waves = -(-threads // ws)
    lds = Guarded(max(lds_total, 4), fixed=LDS_APERTURE)
    class W: pass
    waves = []
    for wi in range(n_waves):
      w = W(); w.sg = np.zeros(emu.SGPR_COUNT, np.uint32); w.vg = np.zeros(256 * ws, np.uint32); w.acc = np.zeros(256 * ws, np.uint32)
      w.scrg = Guarded(max(priv * ws, 4), align=4); w.scr = w.scrg.np
      w.c = _Wave()
      w.c.buf[:] = [w.sg.ctypes.data, w.vg.ctypes.data, 0, lds.addr, w.scrg.addr, w.acc.ctypes.data if self.arch == "cdna" else w.vg.ctypes.data]
      t = np.arange(wi * ws, min((wi + 1) * ws, threads))
      w.n = len(t); w.tid = ((t // (b[0] * b[1])) << 20 | ((t // b[0]) % b[1]) << 10 | (t % b[0])).astype(np.uint32)
      w.ex = (1 << w.n) - 1
      waves.append(w)
    tab = self.tabs.setdefault(ws, self._tab())
    for e in tab: e.count = 0
    st = Stats(); st.kernel, st.compile_s, st.distinct = name, 0.0, 0
    budget, faddr, left = ctypes.c_uint64(max_insts), ctypes.c_uint64(0), max_insts
    pv = 0 if poison is None else poison * 0x01010101
    t0 = time.perf_counter()

    def where(w):
      pc = int(w.sg[256]) | int(w.sg[257]) << 32
      try: s = repr(emu.decode_inst(bytes((ctypes.c_char * 16).from_address(pc).raw), self.arch))
      except Exception as e: s = f"<{e}>"
      return f"kernel {name}+{pc - entry:#x}: {s}"

    if blocks is None: blocks = ((x, y, z) for z in range(g[2]) for y in range(g[1]) for x in range(g[0]))
    nblk = 0
    try:
      for bx, by, bz in blocks:
        nblk += 1
        if counter: counter.begin(bx, by)
        lds.np[:] = poison or 0
        for w in waves:
          w.insts, w.c.counter, w.c.loading = 0, counter.address if counter else 0, 0
          w.sg[:] = tmpl; w.vg[:] = pv; w.acc[:] = pv
          if priv: w.scr[:] = poison or 0
          w.vg[:w.n] = w.tid
          if self.arch == "rdna4":
            w.sg[emu.ttmp[9].offset], w.sg[emu.ttmp[7].offset] = bx, (by & 0xffff) | (bz & 0xffff) << 16
          else:
            k = n_user
            for bit, v in ((7, bx), (8, by), (9, bz)):
              if rsrc2 >> bit & 1: w.sg[k] = v; k += 1
          w.sg[emu.EXEC_LO.offset] = w.ex & 0xffffffff
          if ws == 64: w.sg[emu.EXEC_LO.offset + 1] = w.ex >> 32
          w.sg[emu.SCRATCH_STRIDE_IDX] = priv
          w.sg[256], w.sg[257] = entry & 0xffffffff, entry >> 32
        live = list(reversed(waves)) if reverse else list(waves)
        at_bar = []
        while live or at_bar:
          if not live: live, at_bar = at_bar, []
          nxt = []
          for w in live:
            if quantum: budget.value = min(quantum, left)
            start = budget.value
            while True:
              rc = _emu_run(ctypes.byref(w.c), tab, self.base, len(tab), ctypes.byref(budget), int(ftz), ctypes.byref(faddr), ws, lds_total)
              if rc == 2:
                c0 = time.perf_counter()
                pc = int(w.sg[256]) | int(w.sg[257]) << 32
                e = tab[(pc - self.base) >> 2]
                nb = _nop_bytes(pc, self.arch)
                if nb: e.nop_bytes = nb
                elif _special(pc, self.arch, e, self.gfx): pass
                else:
                  try:
                    _dpp(pc, e)
                    (prg, rt), inst = _decode(pc, self.arch, ws)
                  except Exception as ex: raise NotImplementedError(f"{where(w)}: {type(ex).__name__}: {ex}") from ex
                  gl = list(prg.arg.globals); e.idx[:] = gl + [0] * (6 - len(gl))
                  e.barrier = int(isinstance(inst, (emu.ir3.SOPP, emu.ir4.SOPP, emu.irc.SOPP)) and inst.op in emu._BARRIER_OPS)
                  e.fn = ctypes.cast(rt.fxn, ctypes.c_void_p).value
                  _addr_info(inst, e)
                  if trace: print(f"+{pc - entry:#06x} {inst!r}")
                st.distinct += 1; st.compile_s += time.perf_counter() - c0
                continue
              left -= start - budget.value; w.insts += start - budget.value
              if rc == 0: pass
              elif rc == 1: at_bar.append(w)
              elif rc == 4 and quantum and left: nxt.append(w)
              elif rc == 3: raise GpuFault(f"memory fault at {faddr.value:#x}, block {(bx, by, bz)} wave {waves.index(w)}, {where(w)}")
              elif rc == 6: raise GpuFault(f"LDS access out of bounds ({lds_total} bytes allocated): lane {faddr.value >> 32} address {faddr.value & 0xffffffff:#x}, "
                                           f"block {(bx, by, bz)} wave {waves.index(w)}, {where(w)}")
              elif rc == 4: raise GpuFault(f"instruction budget exhausted, {where(w)}")
              else: raise GpuFault(f"pc outside code object, wave {waves.index(w)}")
              break
          live = nxt
        if counter: counter.end([w.insts for w in waves])
    finally:
      for v, gb in bufs:
        if v.flags.writeable: v.reshape(-1).view(np.uint8)[:] = gb.np[:v.nbytes]
        gb.np = None; gb.free()
      for w in waves: w.scr = w.scrg.np = None; w.scrg.free()
      lds.np = None; lds.free(); karg.np = None; karg.free(); pkt.np = None; pkt.free()
    st.insts, st.waves, st.entry = max_insts - left, nblk * n_waves, entry - self.base
    st.run_s = time.perf_counter() - t0 - st.compile_s
    st.counts = {i * 4 + self.base - entry: e.count for i, e in enumerate(tab) if e.count}
    return st

if __name__ == "__main__":   # run_hsaco.py FILE.hsaco : list kernels and report unsupported instructions
  m = Module(sys.argv[1])
  print(m.gfx, "emulated as", m.arch)
  for k, md in m.kernels.items():
    b = m.check(k)
    print(f"{k}: wave{md.get('.wavefront_size')} vgpr {md.get('.vgpr_count')} sgpr {md.get('.sgpr_count')} lds {md.get('.group_segment_fixed_size')} "
          f"scratch {md.get('.private_segment_fixed_size')} -> {'all instructions supported' if not b else str(len(b)) + ' unsupported'}")
    for x in b[:10]: print("   ", x)
