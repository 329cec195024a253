"""An assembler for eBPF: instructions with labels -> the bytes that bpf(2) takes.

So no eBPF compiler has to be installed: programs are short, and written from linux/bpf.h. Only what netwarp's packet
programs use is here. Registers: r0 result, r1-r5 arguments (lost in a call), r6-r9 kept, r10 the frame pointer
(read only).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

_INSN = struct.Struct("=BBhi")
"""struct bpf_insn: code, registers (destination low, source high), offset, immediate."""
_SIZES = {8: 0x18, 4: 0x00, 2: 0x08, 1: 0x10}
_ARITHMETIC = {
    "add": 0x00, "sub": 0x10, "mul": 0x20, "or": 0x40, "and": 0x50, "lsh": 0x60, "rsh": 0x70, "xor": 0xA0, "mov": 0xB0,
}  # fmt: skip
_JUMPS = {"eq": 0x10, "gt": 0x20, "ge": 0x30, "set": 0x40, "ne": 0x50, "lt": 0xA0, "le": 0xB0}
# class and mode of linux/bpf.h, for example _LDX = BPF_LDX | BPF_MEM; sizes are or-ed in
_ALU64, _JMP, _LDX, _STX, _ST = 0x07, 0x05, 0x61, 0x63, 0x62
_LD_IMM64, _MAP_VALUE, _CALL, _EXIT, _JA, _TO_BIG_ENDIAN = 0x18, 2, 0x85, 0x95, 0x05, 0xDC
FRAME = 10


@dataclass(slots=True)
class Assembler:
    """Collects instructions in order; `encode` fills in the jumps."""

    _code: list[tuple[int, int, int, int]] = field(default_factory=list)
    _targets: dict[int, str] = field(default_factory=dict)
    """Number of a jump -> the label it goes to."""
    _labels: dict[str, int] = field(default_factory=dict)

    def op(self, name: str, to: int, value: int) -> None:
        """64-bit arithmetic with a constant of 32 bits, sign-extended."""
        self._code.append((_ALU64 | _ARITHMETIC[name], to, 0, value))

    def op_reg(self, name: str, to: int, source: int) -> None:
        """64-bit arithmetic with a register."""
        self._code.append((_ALU64 | 0x08 | _ARITHMETIC[name], to | source << 4, 0, 0))

    def constant(self, to: int, value: int) -> None:
        """A constant of 64 bits."""
        self._code.append((_LD_IMM64, to, 0, value & 0xFFFFFFFF))
        self._code.append((0, 0, 0, value >> 32 & 0xFFFFFFFF))

    def map_value(self, to: int, number: int) -> None:
        """The address of a map's value; cell-init puts the descriptor of map `number` in its place."""
        self._code.append((_LD_IMM64, to | _MAP_VALUE << 4, 0, number))
        self._code.append((0, 0, 0, 0))

    def load(self, size: int, to: int, base: int, offset: int) -> None:
        """to = *(base + offset), in the machine's byte order."""
        self._code.append((_LDX | _SIZES[size], to | base << 4, offset, 0))

    def store(self, size: int, base: int, offset: int, source: int) -> None:
        """*(base + offset) = register."""
        self._code.append((_STX | _SIZES[size], base | source << 4, offset, 0))

    def store_constant(self, size: int, base: int, offset: int, value: int) -> None:
        """*(base + offset) = constant."""
        self._code.append((_ST | _SIZES[size], base, offset, value))

    def swap16(self, to: int) -> None:
        """Network byte order of 16 bits <-> the machine's."""
        self._code.append((_TO_BIG_ENDIAN, to, 0, 16))

    def jump(self, label: str) -> None:
        """An unconditional jump."""
        self._targets[len(self._code)] = label
        self._code.append((_JA, 0, 0, 0))

    def jump_if(self, condition: str, left: int, value: int, label: str) -> None:
        """Compare a register with a constant of 32 bits (unsigned)."""
        self._targets[len(self._code)] = label
        self._code.append((_JMP | _JUMPS[condition], left, 0, value))

    def jump_if_reg(self, condition: str, left: int, right: int, label: str) -> None:
        """Compare two registers (unsigned)."""
        self._targets[len(self._code)] = label
        self._code.append((_JMP | 0x08 | _JUMPS[condition], left | right << 4, 0, 0))

    def label(self, name: str) -> None:
        """Name the next instruction. Raises ValueError if the name is taken."""
        if name in self._labels:
            raise ValueError(f"label {name!r} stands twice")
        self._labels[name] = len(self._code)

    def call(self, helper: int) -> None:
        """A helper of linux/bpf.h by its number."""
        self._code.append((_CALL, 0, 0, helper))

    def leave(self, value: int | None = None) -> None:
        """Return r0, or a constant."""
        if value is not None:
            self.op("mov", 0, value)
        self._code.append((_EXIT, 0, 0, 0))

    def encode(self) -> bytes:
        """The bytes of the program. Raises ValueError if a label is missing or too far away."""
        lines = []
        for number, (code, registers, offset, value) in enumerate(self._code):
            if number in self._targets:
                name = self._targets[number]
                if name not in self._labels:
                    raise ValueError(f"no label {name!r}")
                offset = self._labels[name] - number - 1
                if not -(1 << 15) <= offset < 1 << 15:
                    raise ValueError(f"label {name!r} is {offset} instructions away")
            lines.append(_INSN.pack(code, registers, offset, (value + (1 << 31)) % (1 << 32) - (1 << 31)))
        return b"".join(lines)


def program_tag(program: bytes) -> str:
    """The kernel's name for a program (kernel/bpf/core.c: bpf_prog_calc_tag): its SHA-1, maps left out, 8 bytes."""
    code = bytearray(program)
    for at in range(0, len(code), _INSN.size):
        if code[at] == _LD_IMM64 and code[at + 1] >> 4 == _MAP_VALUE:
            code[at + 4 : at + 8] = code[at + 12 : at + 16] = bytes(4)
    return hashlib.sha1(bytes(code), usedforsecurity=False).hexdigest()[:16]
