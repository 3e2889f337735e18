"""The cases' frame: each is an async function that is run by itself and printed as one line."""
import argparse
import asyncio
import json
import os
import stat
import sys
import traceback

from peer import Peer, Refused

CASES = []


def case(function):
    """Makes a function a case of the program."""
    CASES.append(function)
    return function


class Scene:
    """What a case is given: where the daemon is, who to be, and its files."""

    def __init__(self, flags, name):
        self.url, self.data, self.host, self.token = flags.url, flags.data, flags.host_token, flags.token
        self.agent = f"{flags.prefix}-{name.replace('_', '-')}"

    async def dial(self, agent=None, **more):
        """A connection as the case's agent, or another."""
        return await Peer.dial(self.url, token=self.token or "none is needed", agent=agent or self.agent, **more)

    async def start(self, peer, intent="a test", **more):
        """A new run; its id."""
        started = await peer.call("runs.start", {"intent": intent, "agent_id": self.agent, **more})
        same(started["agent_id"], self.agent)
        return started["run_id"]

    def lines(self, run, agent=None):
        """The records of the run's file; fails where one does not parse, or others can read it."""
        agent = agent or self.agent
        path = os.path.join(self.data, "runs", agent, run + ".jsonl")
        for place, mode in ((path, 0o600), (os.path.dirname(path), 0o700), (os.path.join(self.data, "runs"), 0o700)):
            same(oct(stat.S_IMODE(os.stat(place).st_mode)), oct(mode), place)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert text.endswith("\n"), f"the file ends within a line: {text[-80:]!r}"
        return [json.loads(line) for line in text[:-1].split("\n")]

    async def turns(self, peer, run):
        """The turns of the run as get_trace gives them, which must be those of the file."""
        records = (await peer.call("runs.get_trace", {"run_id": run}))["records"]
        same(records, self.lines(run))
        return [record for record in records if record["record"] == "turn"]


def same(got, want, about=""):
    """Fails where two values differ."""
    if got != want:
        raise AssertionError(f"{about}{': ' if about else ''}got {brief(got)}, want {brief(want)}")


def brief(value):
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 2000 else text[:2000] + "…"


async def refused(waiting, *codes):
    """The error of a call that must be refused, with one of the codes where some are given."""
    try:
        result = await waiting
    except Refused as refusal:
        if codes and refusal.code not in codes:
            raise AssertionError(f"refused with {refusal.code} ({refusal.message}), want {codes}") from None
        return refusal
    raise AssertionError(f"accepted with {brief(result)}, want an error")


def call(tool, **parameters):
    """An action that calls a tool."""
    return {"type": "tool_call", "tool": tool, "parameters": parameters}


def main():
    """Runs the cases and prints a line of each: ok NAME, or not ok NAME: why. Exits 1 where one failed."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--url", required=True)
    flags.add_argument("--data", required=True)
    flags.add_argument("--token")
    flags.add_argument("--host-token")
    flags.add_argument("--prefix", default="py")
    flags.add_argument("--only")
    flags = flags.parse_args()
    failed = 0
    for function in CASES:
        name = function.__name__
        if flags.only and name != flags.only:
            continue
        try:
            asyncio.run(asyncio.wait_for(function(Scene(flags, name)), 60))
            print("ok", name, flush=True)
        except Exception as problem:  # whatever a case raises is its failure
            failed += 1
            print(f"not ok {name}: {type(problem).__name__}: {problem}".replace("\n", " "), flush=True)
            traceback.print_exc(file=sys.stderr)
    print("done", flush=True)
    sys.exit(1 if failed else 0)
