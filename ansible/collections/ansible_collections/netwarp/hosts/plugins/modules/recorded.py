#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Changes of a machine that are written down, and restored."""

from __future__ import annotations

import json
import os
import shutil
import socket

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: recorded
short_description: Change a machine and write down what was there before
description:
  - Sets sysctls, loads kernel modules that a feature needs, installs packages, stops services.
  - What was there before is in C(/var/lib/netwarp/changes.json) before anything is changed; of packages, which are new.
  - With I(state=restored) exactly that is put back, the latest change first, and the record removed.
author: the netwarp developers
options:
  state:
    description: Whether to make changes or to put back what they replaced.
    type: str
    choices: [present, restored]
    default: present
  sysctls:
    description: Name and value of sysctls.
    type: dict
    default: {}
  at_least:
    description: Sysctls that are numbers, raised to a value if they are lower.
    type: dict
    default: {}
  features:
    description: What the kernel must be able to do. It is tried; only if it cannot its module is loaded.
    type: list
    elements: str
    choices: [sctp, netem, packet_sockets]
    default: []
  packages:
    description: Packages of Debian or Ubuntu.
    type: list
    elements: str
    default: []
  stopped:
    description: Units of systemd that shall not run. One that is not there is left out.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Room for the buffers of long fat paths
  netwarp.hosts.recorded:
    at_least:
      net.core.rmem_max: 16777216
- name: Everything as it was
  netwarp.hosts.recorded:
    state: restored
"""

RETURN = r"""
changes:
  description: What was changed, or would be, one sentence each.
  returned: always
  type: list
  elements: str
"""

DIRECTORY = "/var/lib/netwarp"
RECORD = DIRECTORY + "/changes.json"
MODULES = {"sctp": "sctp", "netem": "sch_netem", "packet_sockets": "af_packet"}
LOADED = "/proc/modules"


def loaded():
    """The names of the kernel's modules; none where it has all built in."""
    try:
        with open(LOADED) as file:
            return {line.split()[0] for line in file}
    except FileNotFoundError:
        return set()


class Machine:
    """The changes of this machine."""

    def __init__(self, module):
        self.module = module
        self.said = []
        try:
            with open(RECORD) as file:
                self.record = json.load(file)
        except FileNotFoundError:
            self.record = []

    def keep(self):
        """Write the record, whole or not at all."""
        os.makedirs(DIRECTORY, mode=0o755, exist_ok=True)
        with open(RECORD + ".new", "w") as file:
            json.dump(self.record, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(RECORD + ".new", RECORD)

    def change(self, sentence, kind, name, before):
        """Whether to make a change: not in check mode. It is recorded first, but not over what was there at first."""
        self.said.append(sentence)
        if self.module.check_mode:
            return False
        if not any(entry["kind"] == kind and entry["name"] == name for entry in self.record):
            self.record.append({"kind": kind, "name": name, "before": before})
            self.keep()
        return True

    def run(self, *words):
        """(status, output) of a program; its PATH has sbin, which an ordinary user's has not."""
        status, out, error = self.module.run_command(list(words))
        return status, out or error

    def must(self, *words):
        """Its output; the task fails where it does."""
        status, out = self.run(*words)
        if status:
            self.module.fail_json(msg=f"{' '.join(words)}: {out.strip()}", changes=self.said)
        return out

    def sysctl(self, name, value):
        """Set one."""
        path = "/proc/sys/" + name.replace(".", "/")
        try:
            with open(path) as file:
                before = file.read().strip()
        except OSError as error:
            self.module.fail_json(msg=f"{name}: {error.strerror}", changes=self.said)
        sentence = f"{name}={value} (was {before})"
        if before.split() != str(value).split() and self.change(sentence, "sysctl", name, before):
            self.write(path, str(value))

    def at_least(self, name, value):
        """Raise one."""
        with open("/proc/sys/" + name.replace(".", "/")) as file:
            before = int(file.read())
        if before < int(value):
            self.sysctl(name, value)

    def write(self, path, value):
        """A sysctl's file."""
        try:
            with open(path, "w") as file:
                file.write(value)
        except OSError as error:
            self.module.fail_json(msg=f"{path}: {error.strerror}", changes=self.said)

    def has(self, feature):
        """Try it."""
        try:
            if feature == "sctp":
                socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).close()
            elif feature == "packet_sockets":
                socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
            else:
                words = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
                return not self.run("unshare", "--net", *words)[0]
            return True
        except OSError:
            return False

    def feature(self, name):
        """Load its module where the kernel cannot yet. Most kernels load it when it is tried: that is a change too."""
        before = loaded()
        has = self.has(name)
        if MODULES[name] in loaded() - before:
            if not self.change("modprobe " + MODULES[name], "module", MODULES[name], None):
                self.run("modprobe", "-r", MODULES[name])
            return
        if has:
            return
        if not self.change("modprobe " + MODULES[name], "module", MODULES[name], None):
            return
        status, out = self.run("modprobe", MODULES[name]) if shutil.which("modprobe") else (1, "there is no modprobe")
        if status or not self.has(name):
            self.record.pop()
            self.keep()
            self.module.fail_json(
                msg=f"this kernel has no {name} ({out.strip()}); on cloud kernels: apt-get install linux-modules-extra-"
                "$(uname -r), or boot the distribution's usual one",
                changes=self.said,
            )

    def installed(self):
        """Every package that is installed."""
        out = self.must("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${binary:Package}\n")
        return {line.split()[1].partition(":")[0] for line in out.splitlines() if line.startswith("ii")}

    def packages(self, names):
        """Install what is missing, and nothing that is recommended with it."""
        before = self.installed()
        missing = [name for name in names if name not in before]
        if not missing or not self.change(f"install {' '.join(missing)}", "packages", " ".join(missing), missing):
            return
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        words = ("apt-get", "install", "--yes", "--no-install-recommends", *missing)
        status, out = self.run(*words)
        if status:  # lists of packages that are old, or were never fetched
            self.run("apt-get", "update")
            status, out = self.run(*words)
        # with what they depend on; of an install that failed as much as there is
        self.record[-1]["before"] = sorted(self.installed() - before)
        self.keep()
        if status:
            self.module.fail_json(msg=f"apt-get install {' '.join(missing)}: {out.strip()}", changes=self.said)

    def stop(self, unit):
        """Stop a unit that runs."""
        if shutil.which("systemctl") is None or not os.path.isdir("/run/systemd/system"):
            return
        runs = not self.run("systemctl", "is-active", "--quiet", unit)[0]
        if runs and self.change("stop " + unit, "unit", unit, "active"):
            self.must("systemctl", "stop", unit)

    def restore(self):
        """Everything, the latest first; each entry goes when it is done, so that a second try goes on."""
        while self.record:
            entry = self.record[-1]
            self.said.append(f"{entry['kind']} {entry['name']} back")
            if self.module.check_mode:
                self.record.pop()
                continue
            if entry["kind"] == "sysctl":
                self.write("/proc/sys/" + entry["name"].replace(".", "/"), entry["before"])
            elif entry["kind"] == "module":
                self.run("modprobe", "-r", entry["name"])  # in use: it stays until the machine boots
            elif entry["kind"] == "unit":
                self.must("systemctl", "start", entry["name"])
            else:
                new = sorted(self.installed() & set(entry["before"]))
                if new:
                    self.must("apt-get", "purge", "--yes", *new)
            self.record.pop()
            self.keep()
        if not self.module.check_mode and os.path.isdir(DIRECTORY):
            if os.path.exists(RECORD):
                os.unlink(RECORD)
            if not os.listdir(DIRECTORY):
                os.rmdir(DIRECTORY)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
            "sysctls": {"type": "dict", "default": {}},
            "at_least": {"type": "dict", "default": {}},
            "features": {"type": "list", "elements": "str", "choices": sorted(MODULES), "default": []},
            "packages": {"type": "list", "elements": "str", "default": []},
            "stopped": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    machine = Machine(module)
    if module.params["state"] == "restored":
        machine.restore()
    else:
        machine.packages(module.params["packages"])
        for feature in module.params["features"]:
            machine.feature(feature)
        for name, value in module.params["sysctls"].items():
            machine.sysctl(name, value)
        for name, value in module.params["at_least"].items():
            machine.at_least(name, value)
        for unit in module.params["stopped"]:
            machine.stop(unit)
    module.exit_json(changed=bool(machine.said), changes=machine.said)


if __name__ == "__main__":
    main()
