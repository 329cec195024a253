"""The programs against kernel headers that lack what newer kernels tell (Debian 12's are those of Linux 6.1)."""

from pathlib import Path

from support.checkout import make_apps

HEADERS = {
    "version.h": "#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))\n"
    "#define LINUX_VERSION_CODE KERNEL_VERSION(6, 1, 0)\n",
    "mptcp.h": "#include_next <linux/mptcp.h>\n#undef MPTCP_FULL_INFO\n",
}


def test_they_compile_without_what_linux_6_1_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "headers" / "linux"
    folder.mkdir(parents=True)
    for name, text in HEADERS.items():
        (folder / name).write_text(text)
    wanted = [f"{tmp_path}/obj/traffic/{name}.o" for name in ("tcp", "tcp_info", "sctp", "sctp_options", "flow")]
    make_apps(f"BUILD={tmp_path}", f"KERNEL_HEADERS={folder.parent}", *wanted)
    assert all(Path(name).is_file() for name in wanted)
