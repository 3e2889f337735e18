"""pytest collects recordings and replays them: one test item each, by `tapedeck test`.

Which paths hold recordings says the ini option tapedeck_paths; `tapedeck test --list` says what is there, and pytest collects of that
what it comes by. An item fails with what differs first and its cause.
"""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

MISSING = (
    "tapedeck is not there: put it into PATH with `go install github.com/tapedeck-dev/tapedeck/cmd/tapedeck@latest`, "
    "or name its file in the variable TAPEDECK"
)


def pytest_addoption(parser):
    parser.addini("tapedeck_paths", "recordings, and directories that hold some, from the ini file's directory", type="paths", default=[])
    parser.addini("tapedeck_args", "further arguments of `tapedeck test`, as in --tree now --strict", type="args", default=[])
    group = parser.getgroup("tapedeck")
    group.addoption("--tapedeck-args", type=shlex.split, help="further arguments of `tapedeck test`, in place of tapedeck_args of the ini file")


def pytest_collect_file(file_path, parent):
    case = file_path.parent if file_path.name == "recording.json" else file_path
    if case.resolve() in _cases(parent.config):
        return Recording.from_parent(parent, path=case)
    return None


class Recording(pytest.File):
    """A recording, a packed one, or a file of a script's tests."""

    def collect(self):
        yield Replay.from_parent(self, name="replay")


class Replay(pytest.Item):
    def runtest(self):
        arguments = self.config.getoption("tapedeck_args") or self.config.getini("tapedeck_args")
        lines, why = _tapedeck("test", "--json", *arguments, str(self.path))
        *results, summary = lines or [{"exit": 1}]
        text = "\n\n".join(_text(r) for r in results if r["status"] != "faithful")
        if summary["exit"] != 0 and not _without_jail(results, arguments):
            raise Red(text or why)
        if results and all(r["status"] in ("skipped", "no-jail") for r in results):
            pytest.skip(text)
        if text:
            self.add_report_section("call", "tapedeck", text)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, Red):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, self.path.name


class Red(Exception):
    """What does not hold, for people."""


def _without_jail(results, arguments):
    """Whether nothing was tried because this machine has no jail: that is no failure but with --strict."""
    return "--strict" not in arguments and bool(results) and all(r["status"] == "no-jail" for r in results)


def _text(result):
    parts = ["{}: {}".format(result["status"], result.get("why", "")), result.get("first", ""), result.get("stderr", "")]
    return "\n".join(p for p in parts if p)


def _cases(config):
    """The absolute paths of what can be tried below the configured paths, asked for once."""
    if not hasattr(config, "_tapedeck_cases"):
        paths = [os.fspath(p) for p in config.getini("tapedeck_paths")]
        lines, why = _tapedeck("test", "--list", "--json", *paths) if paths else ([], "")
        if paths and not lines:
            raise pytest.UsageError(why)
        config._tapedeck_cases = {Path(line["path"]).resolve() for line in lines}
    return config._tapedeck_cases


def _tapedeck(*arguments):
    """Run tapedeck: the lines of JSON that it prints, and what it says on stderr."""
    program = os.environ.get("TAPEDECK") or shutil.which("tapedeck")
    if not program:
        raise pytest.UsageError(MISSING)
    try:
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", errors="replace")
    except OSError as e:
        raise pytest.UsageError("{} (TAPEDECK names it): {}".format(program, e)) from e
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.strip()
