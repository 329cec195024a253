"""An assembler for eBPF: a program in the kernel's own notation -> the bytes that bpf(2) takes.

So no eBPF compiler has to be installed: programs are short. The notation is that of bpftool and the verifier
(Documentation/bpf/standardization/instruction-set.rst), one instruction a line; only what netwarp's packet programs use
is here. Registers: r0 result, r1-r5 arguments (lost in a call), r6-r9 kept, r10 the frame pointer (read only).
"""

from __future__ import annotations

import hashlib
import struct

_INSN = struct.Struct("=BBhi")
"""struct bpf_insn: code, registers (destination low, source high), offset, immediate."""
_SIZES = {"u64": 0x18, "u32": 0x00, "u16": 0x08, "u8": 0x10}
_ARITHMETIC = {
    "+=": 0x00, "-=": 0x10, "*=": 0x20, "/=": 0x30, "|=": 0x40, "&=": 0x50, "<<=": 0x60, ">>=": 0x70, "%=": 0x90,
    "^=": 0xA0, "=": 0xB0,
}  # fmt: skip
_JUMPS = {"==": 0x10, ">": 0x20, ">=": 0x30, "&": 0x40, "!=": 0x50, "<": 0xA0, "<=": 0xB0}
# class and mode of linux/bpf.h, for example _LDX = BPF_LDX | BPF_MEM; sizes are or-ed in
_ALU64, _JMP, _LDX, _STX, _ST, _REGISTER = 0x07, 0x05, 0x61, 0x63, 0x62, 0x08
_LD_IMM64, _MAP_VALUE, _CALL, _EXIT, _JA, _TO_BIG_ENDIAN = 0x18, 2, 0x85, 0x95, 0x05, 0xDC


def assemble(text: str) -> bytes:
    """The bytes of a program: lines of instructions and of labels (`name:`), with comments after `;`.

    `rN = map M` is the address of a map's value: cell-init puts the descriptor of map M in its place. Raises ValueError
    for a line that is no instruction, and for a label that is missing, stands twice or is too far away.
    """
    code: list[tuple[int, int, int, int]] = []
    labels: dict[str, int] = {}
    targets: dict[int, str] = {}
    for line in text.splitlines():
        words = line.partition(";")[0].split()
        if len(words) == 1 and words[0].endswith(":"):
            if labels.setdefault(words[0][:-1], len(code)) != len(code):
                raise ValueError(f"label {words[0]!r} stands twice")
        elif words:
            if "goto" in words:
                targets[len(code)] = words[-1]
            code += _instruction(words)
    for number, label in targets.items():
        if label not in labels:
            raise ValueError(f"no label {label!r}")
        operation, registers, _, value = code[number]
        code[number] = (operation, registers, labels[label] - number - 1, value)
    try:
        return b"".join(_INSN.pack(*fields, _signed(value)) for *fields, value in code)
    except struct.error as error:
        raise ValueError(f"a label is too far away: {error}") from error


def _instruction(words: list[str]) -> list[tuple[int, int, int, int]]:
    """One line's instruction; an address or a constant of 64 bits takes two."""
    match words:
        case ["if", left, condition, right, "goto", _]:
            source, register, value = _operand(right)
            return [(_JMP | source | _JUMPS[condition], _register(left) | register << 4, 0, value)]
        case ["goto", _]:
            return [(_JA, 0, 0, 0)]
        case ["call", helper]:
            return [(_CALL, 0, 0, int(helper))]
        case ["exit"]:
            return [(_EXIT, 0, 0, 0)]
        case [to, "=", "map", number]:
            return [(_LD_IMM64, _register(to) | _MAP_VALUE << 4, 0, int(number)), (0, 0, 0, 0)]
        case [to, "=", constant, "ll"]:
            return [(_LD_IMM64, _register(to), 0, int(constant, 0)), (0, 0, 0, int(constant, 0) >> 32)]
        case [to, "=", "be16" | "be32" as swapped, _]:
            return [(_TO_BIG_ENDIAN, _register(to), 0, int(swapped[2:]))]
        case [to, "=", size, base, "+", offset]:  # rN = *(u16 *)(rM + 12)
            return [(_LDX | _SIZES[size[2:]], _register(to) | _register(base[3:]) << 4, int(offset[:-1]), 0)]
        case [size, base, "+", offset, "=", operand]:
            source, register, value = _operand(operand)
            operation = (_STX if source else _ST) | _SIZES[size[2:]]
            return [(operation, _register(base[3:]) | register << 4, int(offset[:-1]), value)]
        case [to, operator, operand]:
            source, register, value = _operand(operand)
            return [(_ALU64 | source | _ARITHMETIC[operator], _register(to) | register << 4, 0, value)]
    raise ValueError(f"no instruction: {' '.join(words)}")


def _register(text: str) -> int:
    return int(text.removeprefix("r"))


def _operand(text: str) -> tuple[int, int, int]:
    """(bit of the operation, register, immediate) of a register, or of a constant of 32 bits with its sign."""
    return (_REGISTER, _register(text), 0) if text.startswith("r") else (0, 0, int(text, 0))


def _signed(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def program_tags(program: bytes) -> tuple[str, str]:
    """The kernel's name for a program (kernel/bpf/core.c: bpf_prog_calc_tag), 8 bytes of a hash over it with its maps
    left out: by SHA-1 as 6.12 has it, and by SHA-256 as 7.3 does.
    """
    code = bytearray(program)
    for at in range(0, len(code), _INSN.size):
        if code[at] == _LD_IMM64 and code[at + 1] >> 4 == _MAP_VALUE:
            code[at + 4 : at + 8] = code[at + 12 : at + 16] = bytes(4)
    sha1 = hashlib.sha1(bytes(code), usedforsecurity=False)
    return sha1.hexdigest()[:16], hashlib.sha256(bytes(code)).hexdigest()[:16]
