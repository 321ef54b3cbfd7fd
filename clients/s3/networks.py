"""Machines in network namespaces, each on a network of its own, with a router between them that can drop packets.

```text
  here ── 10.77.0.0/24 ─┐
  name ── 10.77.n.0/24 ─┼── router
  …                     ┘
```

A cut drops the packets between two machines in both directions without a word, as a broken switch does.
"""

import os
import shutil
import subprocess
import uuid

HERE = "10.77.0.2"


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more)


def why_not():
    """Why there can be no namespaces; None if there can."""
    if shutil.which("ip") is None:
        return "ip is not installed (package iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"stoa-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode != 0:
        return f"network namespaces cannot be made: {made.stderr.strip()}"
    run("ip", "netns", "delete", name)
    return None


class Network:
    """A router, and machines beside it; `end` removes all of them, and what runs there."""

    def __init__(self):
        self.tag = uuid.uuid4().hex[:5]
        self.router = f"stoa-{self.tag}-router"
        self.machines = {}
        run("ip", "netns", "add", self.router)
        self.in_router("ip", "link", "set", "lo", "up")
        self.in_router("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        near, far = f"s{self.tag}h", f"s{self.tag}r"
        run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.router)
        self.address(["ip"], near, f"{HERE}/24")
        self.address(["ip", "-n", self.router], far, "10.77.0.1/24")
        run("ip", "route", "add", "10.77.0.0/16", "via", "10.77.0.1")
        self.link = near

    def in_router(self, *command):
        return run("ip", "netns", "exec", self.router, *command)

    @staticmethod
    def address(ip, link, address):
        run(*ip, "address", "add", address, "dev", link)
        run(*ip, "link", "set", link, "up")

    def machine(self, name):
        """Adds a machine; its address."""
        number = len(self.machines) + 1
        space, address = f"stoa-{self.tag}-{name}", f"10.77.{number}.2"
        run("ip", "netns", "add", space)
        near, far = f"s{self.tag}n{number}", f"s{self.tag}m{number}"
        run("ip", "-n", space, "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.router)
        run("ip", "-n", space, "link", "set", "lo", "up")
        self.address(["ip", "-n", space], near, f"{address}/24")
        self.address(["ip", "-n", self.router], far, f"10.77.{number}.1/24")
        run("ip", "-n", space, "route", "add", "default", "via", f"10.77.{number}.1")
        self.machines[name] = (space, address)
        return address

    def on(self, name):
        """What to put before a command that runs on a machine."""
        return ["ip", "netns", "exec", self.machines[name][0]]

    def cut(self, one, other):
        self.rules("add", one, other)

    def heal(self, one, other):
        self.rules("delete", one, other)

    def rules(self, what, one, other):
        one, other = self.machines[one][1], self.machines[other][1]
        for source, target in ((one, other), (other, one)):
            self.in_router("ip", "rule", what, "from", source, "to", target, "blackhole")

    def end(self):
        for space in [space for space, _ in self.machines.values()] + [self.router]:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)
        subprocess.run(["ip", "link", "delete", self.link], capture_output=True)
