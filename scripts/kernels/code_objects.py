"""Reads the kernels out of AMD code objects: their machine code, and a hash of all that an execution depends on."""
import hashlib
import struct

DESCRIPTOR_BYTES, ENTRY_OFFSET = 64, slice(16, 24)  # of NAME.kd; where the code is, which moves with the code of other kernels


class CodeObject:
    """Of the bytes of a file."""

    def __init__(self, data):
        self.data = data
        offset, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, _ = struct.unpack_from("<HHH", self.data, 0x3A)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size) for i in range(count)]
        symbols = next(s for s in self.sections if s[1] == 11)  # SHT_DYNSYM
        texts = self.sections[symbols[6]]
        self.named = {}
        for at in range(symbols[4], symbols[4] + symbols[5], 24):
            name_at, info, _, section, value, length = struct.unpack_from("<IBBHQQ", self.data, at)
            end = self.data.index(b"\0", texts[4] + name_at)
            self.named[self.data[texts[4] + name_at:end].decode()] = (info & 15, section, value, length)
        self.kernels = [name for name, (kind, *_) in self.named.items() if kind == 2 and name + ".kd" in self.named]

    def bytes_of(self, name):
        _, section, value, length = self.named[name]
        begin = self.sections[section][4] + value - self.sections[section][3]
        return self.data[begin:begin + length]

    def constants(self):
        """The read-only data, without the kernels' descriptors."""
        _, section, _, _ = self.named[self.kernels[0] + ".kd"]
        begin, address, length = (self.sections[section][field] for field in (4, 3, 5))
        kept = bytearray(self.data[begin:begin + length])
        for name in self.kernels:
            at = self.named[name + ".kd"][2] - address
            kept[at:at + DESCRIPTOR_BYTES] = bytes(DESCRIPTOR_BYTES)
        return bytes(kept)

    def hash_of(self, name):
        """Of the instructions, the descriptor (registers, shared memory, modes) and the constants. The same source, compiler and options give
        the same hash on every machine."""
        descriptor = bytearray(self.bytes_of(name + ".kd"))
        descriptor[ENTRY_OFFSET] = bytes(8)
        return hashlib.sha256(self.bytes_of(name) + descriptor + self.constants()).hexdigest()[:16]
