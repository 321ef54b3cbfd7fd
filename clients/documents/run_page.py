"""Runs the commands of a page, one after the other, as a reader would, and compares what they print.

    run_page.py PAGE BINARY DIRECTORY [--rewrite]

Blocks marked `sh` run in a shell in DIRECTORY, with the binary on the PATH. `stoa server` is started and left running,
a bare `stoa sql` is passed over; blocks marked `sql` then go to that shell. A block marked `text` that follows is what
must be printed. With --rewrite, what is printed replaces it, or is put behind a block of SQL that has none. Ports are
free ones: their usual numbers in commands are replaced. Prints each difference; exits with 1 if there is any.
"""

import difflib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

PORTS = {"15002": "http_port", "5433": "pg_port", "15003": "flight_port"}
BLOCK = re.compile(r"^```(sh|sql|text)\n(.*?)^```\n", re.M | re.S)


class Page:
    """A page's commands, and the server that one of them starts."""

    def __init__(self, binary, place):
        self.place = place
        self.server = None
        self.ports = {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("STOA_")}
        programs = place / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "stoa").unlink(missing_ok=True)
        (programs / "stoa").symlink_to(pathlib.Path(binary).resolve())
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def run(self, kind, text):
        """What the block prints, errors included."""
        if kind == "sh" and text.strip() == "stoa server":
            self.start()
            return ""
        if kind == "sh" and text.strip() == "stoa sql":
            return ""
        for usual, name in PORTS.items():
            if name in self.ports:
                text = re.sub(rf"\b{usual}\b", str(self.ports[name]), text)
        command = ["bash", "-c", text] if kind == "sh" else ["stoa", "sql"]
        ended = subprocess.run(
            command, cwd=self.place, env=self.environment, text=True, timeout=120, check=False,
            input=text if kind == "sql" else None, stdin=subprocess.DEVNULL if kind == "sh" else None,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        printed = re.sub(r"[ \t]+$", "", ended.stdout, flags=re.M).rstrip("\n") + "\n" if ended.stdout.strip() else ""
        return printed if ended.returncode == 0 else f"{printed}(exit code {ended.returncode})\n"

    def start(self):
        """Starts the server on free ports, which later commands find in the environment."""
        flags = [f"--{name.replace('_', '-')}=0" for name in (*PORTS.values(), "hive_port")]
        self.server = subprocess.Popen(
            ["stoa", "server", *flags], cwd=self.place, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        self.ports = json.loads(self.server.stdout.readline())
        self.environment["STOA_HTTP_PORT"] = str(self.ports["http_port"])

    def stop(self):
        """Stops the server; it must end in order."""
        if self.server:
            self.server.send_signal(signal.SIGTERM)
            return self.server.wait(90)
        return 0


def main(path, binary, directory, *options):
    markdown = pathlib.Path(path).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(markdown))
    page, written, end, differences = Page(binary, pathlib.Path(directory)), [], 0, 0
    # An `sh` block may print what nobody wants to see; SQL always has an answer.
    for block, following in zip(blocks, [*blocks[1:], None]):
        kind, text = block[1], block[2]
        if kind == "text":
            continue
        printed = page.run(kind, text)
        shown = following is not None and following[1] == "text" and not markdown[block.end() : following.start()].strip()
        expected = following[2] if shown else ""
        if "--rewrite" in options:
            written.append(markdown[end : block.end()])
            end = following.end() if shown else block.end()
            if printed and (shown or kind == "sql"):
                written.append(f"\n```text\n{printed}```\n")
        elif re.sub(r"[ \t]+$", "", expected, flags=re.M).strip("\n") != printed.strip("\n") and (shown or kind == "sql"):
            differences += 1
            line = markdown.count("\n", 0, block.start()) + 1
            sys.stdout.writelines(
                difflib.unified_diff(
                    expected.splitlines(True), printed.splitlines(True), f"{path}:{line}", "what was printed"
                )
            )
        elif "(exit code" in printed:
            differences += 1
            print(f"{path}: {text}{printed}")
    if page.stop() != 0:
        differences += 1
        print("the server did not stop in order")
    if "--rewrite" in options:
        pathlib.Path(path).write_text("".join(written) + markdown[end:], encoding="utf-8")
    return differences


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
