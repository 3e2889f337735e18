"""The eight behaviours of the run trace, and what else the public protocol's clients do, over a real socket."""
import asyncio
import os
import random

from cases import call, case, main, refused, same
from peer import Peer


def answering(*outputs):
    """A tool that gives these outputs, one after the other."""
    outputs = list(outputs)

    async def tool(_parameters, _request):
        return outputs.pop(0)
    return tool


@case
async def drive_cli_turn(scene):
    prompt = "fix the build: „naïve“ 日本 \\ \" \u2028 and a tab\t"
    output = {"stdout": "built\n", "stderr": "", "exit_code": 0, "timed_out": False}
    async with await scene.dial() as peer:
        await peer.register(drive_cli=answering(output))
        run = await scene.start(peer)
        result = await peer.submit(call("drive_cli", cli="agent", prompt=prompt))
        same(result["results"][0]["status"], "succeeded")
        same(result["results"][0]["output"], output)
        turn, = await scene.turns(peer, run)
        same((turn["index"], turn["prompt"], turn["tool"]), (0, prompt, "drive_cli"))
        same(turn["output"], output)
        same(turn["cli_outcome"], {"outcome": "exited", "code": 0})
        same(turn["verifier_verdict"], "not_run")
        assert turn.get("policy_rejected") is None


@case
async def drive_cli_exit_code(scene):
    async with await scene.dial() as peer:
        await peer.register(drive_cli=answering({"stdout": "", "exit_code": 7, "timed_out": False}))
        run = await scene.start(peer)
        await peer.submit(call("drive_cli", prompt="fail"))
        turn, = await scene.turns(peer, run)
        same(turn["cli_outcome"], {"outcome": "exited", "code": 7})


@case
async def check_outcome_pass_then_fail(scene):
    async with await scene.dial() as peer:
        await peer.register(check_outcome=answering({"passed": True}, {"passed": False, "detail": "2 tests fail"}))
        run = await scene.start(peer)
        for _ in range(2):
            await peer.submit(call("check_outcome", command="make test"))
        turns = await scene.turns(peer, run)
        same([turn["verifier_verdict"] for turn in turns], ["pass", "fail"])
        same([turn["index"] for turn in turns], [0, 1])
        assert all(turn.get("cli_outcome") is None for turn in turns)


@case
async def rejected_turn_never_ran(scene):
    async with await scene.dial() as peer:
        await peer.register(shell=answering("ran"), drive_cli=answering("ran"))
        policy = {"name": "no_rm", "rule": "deny_tool_param", "target": "shell", "key": "command", "pattern": "rm -rf"}
        registered = await peer.call("policy.register", policy)
        same((registered["name"], registered["scope"]), ("no_rm", "global"))
        run = await scene.start(peer)
        result = await peer.submit(call("shell", command="rm -rf /"))
        same(result["results"][0]["status"], "rejected")
        same(result["cost"]["actions_rejected"], 1)
        same(peer.ran, [])
        turn, = await scene.turns(peer, run)
        rejected = turn["policy_rejected"]
        assert "no_rm" in rejected["rule"], rejected
        same(rejected["param"], "command")
        assert rejected["reason"]
        assert turn.get("output") is None and turn.get("cli_outcome") is None
        same((turn["verifier_verdict"], turn["tool"], turn["parameters"]), ("not_run", "shell", {"command": "rm -rf /"}))
        result = await peer.submit(call("shell", command="ls"))  # the rule is about one parameter
        same((result["results"][0]["status"], peer.ran), ("succeeded", ["shell"]))


@case
async def timed_out_turn(scene):
    async with await scene.dial() as peer:
        output = {"stdout": "half of", "timed_out": True}
        await peer.register(drive_cli=answering(output))
        run = await scene.start(peer)
        await peer.submit(call("drive_cli", prompt="take long"))
        turn, = await scene.turns(peer, run)
        same(turn["cli_outcome"], {"outcome": "timeout"})
        same(turn["output"], output)
        same(turn["verifier_verdict"], "not_run")


@case
async def generic_tool_turn(scene):
    outputs = [{"hits": [1, 2]}, "text", 3, None, True, [{}]]
    parameters = {"query": "x", "deep": {"list": [1, None, "é"]}, "big": 9007199254740993}
    async with await scene.dial() as peer:
        await peer.register(search=answering(*outputs))
        run = await scene.start(peer)
        for output in outputs:
            result = await peer.submit(call("search", **parameters))
            same(result["results"][0]["output"], output)
        turns = await scene.turns(peer, run)
        for index, (turn, output) in enumerate(zip(turns, outputs, strict=True)):
            same((turn["index"], turn["tool"], turn["parameters"]), (index, "search", parameters))
            same(turn.get("output"), output)
            same(turn["verifier_verdict"], "not_run")
            assert turn.get("cli_outcome") is None and turn.get("prompt") is None


@case
async def two_batches_of_wrong_indices(scene):
    async with await scene.dial() as peer, await scene.dial() as other:
        run = await scene.start(peer)

        def batch(name):
            wrong = [0, 7, -1, "3", 1.5, None, {}, 2**70]
            return [{"index": random.choice(wrong), "tool": name, "parameters": {"n": n}} for n in range(25)]

        one, two = await asyncio.gather(
            peer.call("runs.record_turns", {"run_id": run, "turns": batch("one")}),
            other.call("runs.record_turns", {"run_id": run, "turns": batch("two")}))
        same(sorted([one["base_index"], two["base_index"]]), [0, 25])
        same([one["count"], two["count"], one["ok"], two["ok"]], [25, 25, True, True])
        turns = await scene.turns(peer, run)
        same([turn["index"] for turn in turns], list(range(50)))
        for reply, name in ((one, "one"), (two, "two")):
            mine = turns[reply["base_index"]:reply["base_index"] + 25]
            same([(turn["tool"], turn["parameters"]["n"]) for turn in mine], [(name, n) for n in range(25)])
        same((await peer.call("runs.subscribe", {"run_id": run}))["turns_so_far"], turns)


@case
async def completing_twice_is_an_error(scene):
    outcome = {"status": "success", "summary": "done", "evidence": [{"kind": "stop_reason", "description": "x", "data": {}}],
               "metrics": {"turns": 0}, "timestamp": "2026-01-01T00:00:00Z"}
    async with await scene.dial() as peer:
        run = await scene.start(peer, intent="end")
        same(await peer.call("runs.complete", {"run_id": run, "outcome": outcome}), {"run_id": run, "ok": True})
        await refused(peer.call("runs.complete", {"run_id": run, "outcome": outcome}), -32603)
        await refused(peer.call("runs.complete", {"run_id": "no-such-run", "outcome": outcome}), -32603)
        dropped = await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "late"}]})
        same(dropped, {"run_id": run, "base_index": 0, "count": 0, "ok": False, "dropped": "run_terminal"})
        records = scene.lines(run)
        same([record["record"] for record in records], ["started", "ended"])
        same(records[1]["outcome"], outcome)
        listed, = (await peer.call("runs.list", {"agent_id": scene.agent}))["runs"]
        same((listed["run_id"], listed["status"], listed["turn_count"], listed["intent"]), (run, "completed", 0, "end"))
        assert listed["ended_at"] >= listed["started_at"]


@case
async def no_run_no_turns(scene):
    async with await scene.dial() as peer:
        await peer.register(search=answering(1, 2))
        result = await peer.submit(call("search"))
        same(result["results"][0]["status"], "succeeded")
        same((await peer.call("runs.list", {"agent_id": scene.agent}))["runs"], [])
        dropped = await peer.call("runs.record_turns", {"run_id": "never", "turns": [{"tool": "x"}]})
        same((dropped["ok"], dropped["dropped"]), (False, "run_not_found"))
        assert not os.path.exists(os.path.join(scene.data, "runs", scene.agent))
        run = await scene.start(peer)
        await peer.call("runs.complete", {"run_id": run, "outcome": {"status": "done"}})
        await peer.submit(call("search"))  # after the run
        same(await scene.turns(peer, run), [])


@case
async def turns_before_the_reply(scene):
    """A turn is in memory and on disk before the reply that answers its call."""
    async with await scene.dial() as peer:
        async def count(_parameters, _request):
            return 0
        await peer.register(count=count)
        run = await scene.start(peer)
        for n in range(1, 41):
            if n % 2:
                await peer.submit(call("count"))
            else:
                await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "mine"}]})
            same(len(scene.lines(run)), n + 1)


@case
async def callbacks_out_of_order(scene):
    """Sixty proposals at once; their tools answer in another order, and one that waits holds up none of the others."""
    async with await scene.dial() as peer:
        gate, last = asyncio.Event(), asyncio.Event()

        async def echo(parameters, request):
            same(request["attempt"], 1)
            if parameters["n"] == 0:
                await gate.wait()
            elif parameters["n"] == 59:
                last.set()
            else:
                await asyncio.wait_for(last.wait(), 20)  # nobody before the last has begun
                await asyncio.sleep(random.random() / 50)
            return {"n": parameters["n"]}

        await peer.register(echo=echo)
        run = await scene.start(peer)
        submitted = [asyncio.create_task(peer.submit({"id": f"a{n}", **call("echo", n=n)})) for n in range(60)]
        results = await asyncio.gather(*submitted[1:])
        assert not submitted[0].done()
        gate.set()
        for n, result in enumerate([await submitted[0], *results]):
            same((result["results"][0]["action_id"], result["results"][0]["output"]), (f"a{n}", {"n": n}))
        ids = [request["id"] for request in peer.requests]
        same(len(set(ids)), 60)
        for request in peer.requests:
            same((request["params"]["request_id"], isinstance(request["id"], str)), (request["id"], True))
            same(request["params"]["params"], request["params"]["parameters"])
        turns = await scene.turns(peer, run)
        same([turn["index"] for turn in turns], list(range(60)))
        same(sorted(turn["output"]["n"] for turn in turns), list(range(60)))
        assert all(turn["output"] == turn["parameters"] for turn in turns)
        same(turns[-1]["parameters"], {"n": 0})


@case
async def cancelled_at_the_deadline(scene):
    async with await scene.dial() as peer:
        async def slow(_parameters, _request):
            await asyncio.sleep(30)
        await peer.register(slow=slow, drive_cli=slow)
        run = await scene.start(peer)
        result = await peer.submit({**call("slow"), "timeout_ms": 200})
        same(result["results"][0]["status"], "failed")
        assert "timed out" in result["results"][0]["error"], result
        while not peer.cancels:
            await asyncio.sleep(0.01)
        same((peer.cancels[0]["request_id"], bool(peer.cancels[0]["reason"])), (peer.requests[0]["id"], True))
        same(peer.cancels[0]["action_id"], result["results"][0]["action_id"])
        same(peer.requests[0]["params"]["timeout_ms"], 200)
        same(len(await scene.turns(peer, run)), 1)


@case
async def failures_of_tools(scene):
    async with await scene.dial() as peer:
        async def broken(_parameters, _request):
            raise RuntimeError("the disk is full")
        await peer.register(broken=broken, fine=answering(1, 2))
        run = await scene.start(peer)
        result = await peer.submit(call("fine"), {**call("broken"), "id": "b"}, {**call("fine"), "state_dependencies": ["b"]})  # abort is the default
        same([action["status"] for action in result["results"]], ["succeeded", "failed", "skipped"])
        assert "the disk is full" in result["results"][1]["error"], result
        result = await peer.submit({**call("broken"), "failure_behavior": "skip"}, call("fine"))
        same([action["status"] for action in result["results"]], ["failed", "succeeded"])
        result = await peer.submit(call("not_there"))
        same(result["results"][0]["status"], "rejected")
        turns = await scene.turns(peer, run)
        same([turn["tool"] for turn in turns][:4], ["fine", "broken", "broken", "fine"])


@case
async def tools_that_do_not_depend_on_each_other(scene):
    """They are called at once: the first one waits for the last. Turns keep the order of the actions."""
    for behaviour in "abort", "skip", "retry":
        async with await scene.dial() as peer:
            last = asyncio.Event()
            async def first(parameters, _request):
                await asyncio.wait_for(last.wait(), 20)
                return parameters["n"]
            async def release(parameters, _request):
                last.set()
                return parameters["n"]
            await peer.register(first=first, release=release)
            run = await scene.start(peer)
            result = await peer.submit(*({**call(tool, n=n), "failure_behavior": behaviour} for n, tool in enumerate(["first", "first", "release"])))
            same([(action["status"], action["output"]) for action in result["results"]], [("succeeded", n) for n in range(3)])
            same([turn["output"] for turn in await scene.turns(peer, run)], [0, 1, 2])


@case
async def tools_with_a_schema(scene):
    async with await scene.dial() as peer:
        peer.tools["add"] = answering(3)
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        same(await peer.call("tools.register", [{"name": "add", "parameters": schema}, {"name": "zz"}]), 2)
        listed = await peer.call("tools.list")
        same(([tool["name"] for tool in listed["tools"]], listed["count"]), (["add", "zz"], 2))
        same((await peer.submit(call("add", a="one")))["results"][0]["status"], "rejected")
        same(peer.ran, [])
        same((await peer.submit(call("add", a=1)))["results"][0]["status"], "succeeded")
        same(await peer.call("tools.unregister", {"name": "zz"}), {"unregistered": "zz", "removed": 1})
        same(await peer.call("tools.unregister", {"name": "zz"}), {"unregistered": "zz", "removed": 0})


@case
async def state(scene):
    async with await scene.dial() as peer, await scene.dial() as other:
        same(await peer.call("state.get", {"key": "k"}), None)
        same(await peer.call("state.set", {"key": "k", "value": {"n": [1, 9007199254740993]}}), "ok")
        same(await peer.call("state.get", {"key": "k"}), {"n": [1, 9007199254740993]})
        same(await peer.call("state.set", {"key": "k", "value": 2, "tenant_id": "t"}), "ok")
        same(await peer.call("state.get", {"key": "k", "tenant_id": "t"}), 2)
        same(await peer.call("state.snapshot"), {"k": {"n": [1, 9007199254740993]}})
        same(await peer.call("state.keys", {"tenant_id": "t"}), ["k"])
        same([await peer.call("state.exists", {"key": key}) for key in ("k", "l")], [True, False])
        same(await other.call("state.keys"), [])  # each connection has its own
        result = await peer.submit(
            {"type": "state_write", "parameters": {"key": "w", "value": "x"}},
            {"type": "state_read", "parameters": {"key": "w"}},
            {"type": "assertion", "parameters": {"key": "w", "expected": "x"},
             "preconditions": [{"key": "w", "operator": "eq", "value": "x"}]})
        same([action["status"] for action in result["results"]], ["succeeded"] * 3)
        same(result["results"][1]["output"], "x")


@case
async def require_state(scene):
    async with await scene.dial() as peer:
        await peer.register(deploy=answering("done"))
        await peer.call("policy.register", {"name": "tested", "rule": "require_state", "key": "tests", "value": "green"})
        same((await peer.submit(call("deploy")))["results"][0]["status"], "rejected")
        await peer.call("state.set", {"key": "tests", "value": "green"})
        same((await peer.submit(call("deploy")))["results"][0]["status"], "succeeded")
        session = (await peer.call("session.policy.open", {}))["session_id"]
        registered = await peer.call("policy.register", {"name": "none", "rule": "deny_tool", "target": "deploy", "session_id": session})
        same(registered["scope"], {"session_id": session})
        proposal = {"proposal": {"actions": [call("deploy")]}, "session_id": session}
        same((await peer.call("proposal.submit", proposal))["results"][0]["status"], "rejected")
        same((await peer.call("policy.list"))["policies"][0]["name"], "tested")
        same(await peer.call("session.policy.close", {"session_id": session}), {"closed": True})
        same(await peer.call("session.policy.close", {"session_id": session}), {"closed": False})


@case
async def subscription_without_gap(scene):
    """A second connection subscribes while turns are written: every turn comes once, then the end."""
    async with await scene.dial() as peer, await scene.dial() as reader:
        run = await scene.start(peer)

        async def write():
            for n in range(100):
                await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": str(n)}] * (1 + n % 3)})
            await peer.call("runs.complete", {"run_id": run, "outcome": {"status": "success"}})

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.02)
        snapshot = await reader.call("runs.subscribe", {"run_id": run})
        same((snapshot["run_id"], snapshot["agent_id"], snapshot["cursor"]), (run, scene.agent, len(snapshot["turns_so_far"])))
        turns, cursor = snapshot["turns_so_far"], snapshot["cursor"]
        while True:
            event = await asyncio.wait_for(reader.events.get(), 20)
            same((event["method"], event["params"]["run_id"]), ("runs.trace.event", run))
            record = event["params"]["record"]
            cursor += 1
            if record["record"] == "ended":
                break
            same((event["params"]["cursor"], event["params"]["status"]), (cursor, "in_progress"))
            turns.append(record)
        same((event["params"]["cursor"], event["params"]["status"]), (cursor, "completed"))
        again = await reader.call("runs.get_trace", {"run_id": run, "cursor": cursor})
        same((again["records"], again["status"]), ([record], "completed"))
        await writing
        same(turns, await scene.turns(peer, run))


@case
async def unsubscribing(scene):
    async with await scene.dial() as peer, await scene.dial() as reader:
        run = await scene.start(peer)
        same((await reader.call("runs.subscribe", {"run_id": run}))["turns_so_far"], [])
        await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "one"}]})
        same((await reader.events.get())["params"]["record"]["tool"], "one")
        same((await reader.call("runs.subscribe", {"run_id": run}))["cursor"], 1)  # anew: in place of the first
        same(await reader.call("runs.unsubscribe", {"run_id": run}), {"run_id": run, "removed": True})
        same(await reader.call("runs.unsubscribe", {"run_id": run}), {"run_id": run, "removed": False})
        await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "two"}]})
        await reader.call("state.keys")
        assert reader.events.empty()


@case
async def limits_of_turns(scene):
    async with await scene.dial() as peer:
        run = await scene.start(peer)
        long = "ä" * (1 << 20)
        await peer.call("runs.record_turns", {"run_id": run, "turns": [
            {"prompt": long, "tool": "t", "parameters": {"a": long, "b": [long]}, "output": long}]})
        turn, = await scene.turns(peer, run)
        for text in (turn["prompt"], turn["parameters"]["a"], turn["parameters"]["b"][0], turn["output"]):
            assert text.endswith("…[truncated]") and len(text.encode()) <= (16 << 10) + 32, len(text.encode())
        for turns in ([], [{}] * 257, {}, "x", None):
            await refused(peer.call("runs.record_turns", {"run_id": run, "turns": turns}), -32602)
        for n in range(7):
            await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}] * 256})
        dropped = await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}] * 256})
        same((dropped["ok"], dropped["dropped"], dropped["count"]), (False, "run_turn_limit", 0))
        reply = await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}] * (2000 - 7 * 256 - 1)})
        same((reply["base_index"], reply["ok"]), (7 * 256 + 1, True))
        same(len(scene.lines(run)), 2001)
        for cursor in (0, 1, 2000, 2001, 10**9):
            trace = await peer.call("runs.get_trace", {"run_id": run, "cursor": cursor})
            same(trace["records"], scene.lines(run)[cursor:])
        await refused(peer.call("runs.get_trace", {"run_id": run, "cursor": -1}), -32602)
        with open(os.path.join(scene.data, "runs", scene.agent, run + ".jsonl"), "rb") as file:
            assert max(map(len, file)) <= 256 << 10


@case
async def starting_again(scene):
    key = scene.agent + ":build-42"
    async with await scene.dial() as peer:
        run = await scene.start(peer, idempotency_key=key)
        same(run, key)
        same(await scene.start(peer, idempotency_key=key), key)
        same([record["record"] for record in scene.lines(run)], ["started"])
        await peer.call("runs.complete", {"run_id": run, "outcome": {"status": "done"}})
        same(await scene.start(peer, idempotency_key=key), key)  # ended as it is
        same([record["record"] for record in scene.lines(run)], ["started", "ended"])


@case
async def without_a_name(scene):
    """Who names no agent at session.auth, or does not call it where none is needed, owns what it starts."""
    async with await Peer.dial(scene.url, token=scene.token) as peer:
        await peer.register(search=answering(1))
        started = await peer.call("runs.start", {"intent": "x", "agent_name": "My Agent!"})
        same(started["agent_id"], "name:my-agent")
        run = await scene.start(peer)
        await peer.submit(call("search"))
        same((await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}]}))["base_index"], 1)
        same(len(await scene.turns(peer, run)), 2)
        same((await peer.call("runs.get_trace", {"run_id": started["run_id"]}))["records"][0]["agent_name"], "My Agent!")
        for run in (run, started["run_id"]):
            await peer.call("runs.complete", {"run_id": run, "outcome": {"status": "failure"}})


@case
async def left_open_reads_as_incomplete(scene):
    peer = await scene.dial()
    run = await scene.start(peer)
    await peer.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t"}]})
    await peer.close()
    async with await scene.dial() as peer:
        for _ in range(400):
            listed, = (await peer.call("runs.list", {"agent_id": scene.agent}))["runs"]
            if listed["status"] != "in_progress":
                break
            await asyncio.sleep(0.05)
        same(listed["status"], "incomplete")
        same([record["record"] for record in scene.lines(run)], ["started", "turn", "ended"])


@case
async def a_client_that_knows_less(scene):
    """The step by step of the public examples: methods that are not there answer so, and nothing closes."""
    async with await scene.dial() as peer:
        async def shell(parameters, _request):
            return {"code": 0, "stdout": parameters["command"]}
        peer.tools["shell"] = shell
        init = await peer.call("session.init", {
            "client_id": "example", "tools": [{"name": "shell", "description": "run a shell command"}],
            "policies": [{"name": "no_rm", "rule": "deny_tool_param", "target": "shell", "key": "command", "pattern": "rm -rf"}]})
        same((init["tools_registered"], init["policies_registered"], bool(init["session_id"])), (1, 1, True))
        for method in ("memory.add_fact", "memory.build_context", "agents.register_basics", "runs.record_model_turn", "verify"):
            await refused(peer.call(method, {"subject": "x"}), -32601)
        action = {"id": "a1", "type": "tool_call", "tool": "shell", "parameters": {"command": "echo hi"}, "dependencies": []}
        result = (await peer.call("proposal.submit", {"proposal": {"actions": [action]}}))["results"][0]
        same((result["action_id"], result["status"], result["output"]["stdout"]), ("a1", "succeeded", "echo hi"))
        same((result["error"], result["state_changes"], isinstance(result["duration_ms"], (int, float))), (None, {}, True))
        for number in (1, 2, 3):
            reply = await peer.call("server.handshake", {"protocol_version": number, "client_version": "9"})
            same((reply["protocol_version"], reply["client_protocol_version"], bool(reply["server_version"])), (number, number, True))
        for number in (0, 4, "2", None):
            await refused(peer.call("server.handshake", {"protocol_version": number}), -32006)
        for params in (None, {}):
            assert "tools" in (await peer.ask({"method": "tools.list", "params": params}))["result"]


main()
