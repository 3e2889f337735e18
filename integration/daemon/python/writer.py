"""Writes turns to a run until the connection is lost, and prints each acknowledgement; with --read prints a run's records."""
import argparse
import asyncio
import json

from cases import call
from peer import Peer, Refused


async def write(peer, run, task):
    """Batches of turns and tool calls in turn; each turn says whose it is and the how manieth."""
    n = 0
    while True:
        if n % 5 == 4:
            parameters = {"task": task, "n": n}
            result = await peer.submit(call("echo", **parameters), timeout=60)
            assert result["results"][0]["output"] == parameters, result
            print(json.dumps({"task": task, "n": n, "count": 1}), flush=True)
            n += 1
            continue
        turns = [{"tool": "w", "parameters": {"task": task, "n": n + i}} for i in range(1 + task)]
        reply = await peer.call("runs.record_turns", {"run_id": run, "turns": turns}, timeout=60)
        if not reply["ok"]:
            assert reply["dropped"] == "run_turn_limit", reply
            return
        print(json.dumps({"task": task, "n": n, "count": reply["count"], "base": reply["base_index"]}), flush=True)
        n += reply["count"]


async def until_it_stops(writing):
    """Lets a daemon that is stopping refuse what is new: it ends the connection."""
    try:
        await writing
    except Refused as refusal:
        if refusal.code != -32000:
            raise


async def main():
    flags = argparse.ArgumentParser()
    for name in ("--url", "--token", "--agent", "--run"):
        flags.add_argument(name)
    flags.add_argument("--read", action="store_true")
    flags = flags.parse_args()
    peer = await Peer.dial(flags.url, token=flags.token or "x", agent=flags.agent)
    if flags.read:
        print(json.dumps(await peer.call("runs.get_trace", {"run_id": flags.run})))
        await peer.close()
        return

    async def echo(parameters, _request):
        return parameters
    await peer.register(echo=echo)
    await peer.call("runs.start", {"intent": "write on", "idempotency_key": flags.run})
    try:
        await asyncio.gather(*(until_it_stops(write(peer, flags.run, task)) for task in range(4)))
        await peer.closed()
    except ConnectionError:
        print(json.dumps({"lost": True}), flush=True)


asyncio.run(main())
