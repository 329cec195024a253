"""The kernel's own tests (tools/testing/selftests) in guests on the virtual clock: programs, packages, kernel, runs."""
