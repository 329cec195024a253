"""refuse.py [CALL...] -- COMMAND...: runs a command whose system calls of these names fail with EPERM, as in a
container with a strict filter.
"""

import ctypes
import os
import struct
import sys

# Numbers on x86-64. clone-user: clone(2) with CLONE_NEWUSER. clone3 fails with ENOSYS: the C library takes clone then.
CALLS = {"ptrace": 101, "personality": 135, "unshare": 272, "clone3": 435, "clone-user": 56}
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
EPERM, ENOSYS, ALLOW = 0x00050001, 0x00050026, 0x7FFF0000
CLONE_NEWUSER, NUMBER, FIRST_ARGUMENT = 0x10000000, 0, 16

end = sys.argv.index("--")
lines = []
for name in sys.argv[1:end]:
    answer = [(RETURN, 0, 0, ENOSYS if name == "clone3" else EPERM)]
    if name == "clone-user":
        answer = [(LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, CLONE_NEWUSER), *answer, (RETURN, 0, 0, ALLOW)]
    lines += [(LOAD, 0, 0, NUMBER), (EQUAL, 0, len(answer), CALLS[name]), *answer]
lines.append((RETURN, 0, 0, ALLOW))
if end > 1:
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(code)))
    # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP with a filter
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
        sys.exit(f"refuse.py: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
