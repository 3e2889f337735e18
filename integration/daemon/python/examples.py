"""What the clients in the public protocol's documents send, step by step: each awaits the reply to every step."""
import asyncio
import json

import websockets

from cases import case, main, refused, same
from peer import Peer


async def talk(socket, steps, tools):
    """Sends the steps one after the other and answers callbacks as those clients do; the replies by step."""
    replies = {}
    for number, (method, params) in enumerate(steps, 1):
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        while number not in replies:
            message = json.loads(await asyncio.wait_for(socket.recv(), 20))
            if message.get("method") == "tools.execute":
                output = tools(message["params"])
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": output}))
            elif "id" in message:
                replies[message["id"]] = message
    return [replies[number] for number in range(1, len(steps) + 1)]


@case
async def cookbook_client_without_a_token(scene):
    """Initializes a session, tries what this daemon does not have, submits; its tools read params.params."""
    if scene.token:
        return
    def tool(params):
        if params["tool"] != "shell":
            return {"error": f"unknown tool: {params['tool']}"}
        return {"stdout": params["params"]["command"], "code": 0}
    async with websockets.connect(scene.url) as socket:
        init, fact, context, result, unknown = await talk(socket, [
            ("session.init", {"tools": [{"name": "shell", "description": "run a shell command"}, {"name": "other"}], "policies": [
                {"name": "no_rm", "rule": "deny_tool_param", "target": "shell", "key": "command", "pattern": "rm -rf"}]}),
            ("memory.add_fact", {"subject": "user", "body": "x", "kind": "pattern"}),
            ("memory.build_context", {"query": "x"}),
            ("proposal.submit", {"proposal": {"actions": [
                {"id": "a1", "type": "tool_call", "tool": "shell", "parameters": {"command": "echo hi"}}]}}),
            ("proposal.submit", {"proposal": {"actions": [{"id": "a1", "type": "tool_call", "tool": "other", "parameters": {}}]}}),
        ], tool)
        same((init["result"]["tools_registered"], init["result"]["policies_registered"]), (2, 1))
        same([reply["error"]["code"] for reply in (fact, context)], [-32601, -32601])
        assert fact["error"]["message"] == "unknown method: memory.add_fact", fact
        same(result["result"]["results"][0]["output"], {"stdout": "echo hi", "code": 0})
        same(result["result"]["cost"]["tool_calls"], 1)
        same((unknown["result"]["results"][0]["status"], unknown["result"]["results"][0]["output"]),
             ("succeeded", {"error": "unknown tool: other"}))  # on the wire that is a success


@case
async def cookbook_client_with_a_token(scene):
    """Authenticates and submits without registering: the action is rejected, and nothing is called back."""
    if not scene.token:
        return
    async with websockets.connect(scene.url) as socket:
        auth, result = await talk(socket, [
            ("session.auth", {"token": scene.token}),
            ("proposal.submit", {"proposal": {"id": "p1", "source": "agent", "actions": [
                {"id": "a1", "type": "tool_call", "tool": "search", "parameters": {"q": "x"}, "dependencies": []}], "context": {}}}),
        ], lambda params: {"error": "called back"})
        same(auth["result"], {"ok": True, "auth_enabled": True})
        result = result["result"]
        same((result["proposal_id"], result["results"][0]["status"], result["results"][0]["output"]), ("p1", "rejected", None))
        assert "not registered" in result["results"][0]["error"], result
        same({key: result["cost"][key] for key in ("tool_calls", "actions_executed", "actions_rejected", "actions_skipped", "retries")},
             {"tool_calls": 0, "actions_executed": 0, "actions_rejected": 1, "actions_skipped": 0, "retries": 0})


@case
async def harness_of_the_bindings(scene):
    """The order of calls of the language bindings' harness."""
    async with await scene.dial() as peer:
        capabilities = {"optional_capabilities": ["infer.model-identity.v1"], "required_capabilities": []}
        hello = await peer.call("server.handshake", {"protocol_version": 3, "client_version": "0.51.0", **capabilities})
        for key in ("protocol_version", "server_version", "client_protocol_version", "client_version", "assistant_name",
                    "assistant_aliases", "assistant_brand", "negotiated_capabilities"):
            assert key in hello, f"the handshake has no {key}: {hello}"
        await refused(peer.call("server.handshake", {"protocol_version": 3, "required_capabilities": ["no.such.v1"]}), -32008)
        await refused(peer.call("agents.register_basics", {}), -32601)
        for name in ("drive_cli", "check_outcome"):
            same(await peer.call("tools.register", [{"name": name}]), 1)
        policy = {"name": "no_rm", "rule": "deny_tool_param", "target": "drive_cli", "key": "prompt", "pattern": "rm -rf"}
        same(await peer.call("policy.register", policy), {"name": "no_rm", "registered": "no_rm", "scope": "global"})
        await refused(peer.call("verify", {"proposal": {"actions": []}}), -32601)
        outputs = {"drive_cli": {"stdout": "ok", "code": 0}, "check_outcome": {"passed": True}}
        for name, output in outputs.items():
            async def tool(_parameters, _request, output=output):
                return output
            peer.tools[name] = tool
        run = await scene.start(peer, intent="build", outcome_description="it builds", agent_name="Bulldozer")
        for action in ({"tool": "drive_cli", "parameters": {"prompt": "build"}}, {"tool": "check_outcome", "parameters": {}},
                       {"tool": "drive_cli", "parameters": {"prompt": "rm -rf /"}}):
            await peer.submit({"type": "tool_call", **action})
        outcome = {"status": "partial_success", "summary": "s", "evidence": [
            {"kind": "external_verification", "description": "d", "data": {"a": 1}}], "metrics": {
                "turns": 3, "tool_calls": 3, "duration_ms": 12.5, "retries": 0, "actions_succeeded": 2, "actions_failed": 1},
                   "timestamp": "2026-04-25T13:00:00Z", "tools_called": ["drive_cli"], "run_id": run}
        same(await peer.call("runs.complete", {"run_id": run, "outcome": outcome}), {"run_id": run, "ok": True})
        records = scene.lines(run)
        same([(turn["cli_outcome"] if "cli_outcome" in turn else None, turn["verifier_verdict"]) for turn in records[1:4]],
             [({"outcome": "exited", "code": 0}, "not_run"), (None, "pass"), (None, "not_run")])
        same(records[4]["outcome"], outcome)  # with the keys that nobody knows
        same((records[0]["intent"], records[0]["outcome_description"], records[0]["agent_name"]), ("build", "it builds", "Bulldozer"))
        same((records[4]["status"], records[4]["run_id"], records[4]["agent_id"]), ("completed", run, scene.agent))


@case
async def dashboard_of_the_host(scene):
    if not scene.host:
        return
    async with await scene.dial() as agent:
        run = await scene.start(agent)
        async with await Peer.dial(scene.url, host=scene.host) as host:
            await host.call("server.handshake", {"protocol_version": 3})
            await refused(host.call("host.subscribe", {}), -32601)
            listed, = (await host.call("runs.list", {"agent_id": scene.agent}))["runs"]
            same((listed["run_id"], listed["agent_id"], listed["intent"], listed["status"], listed["turn_count"]),
                 (run, scene.agent, "a test", "in_progress", 0))
            assert "ended_at" not in listed, listed
            snapshot = await host.call("runs.subscribe", {"run_id": run})
            same((snapshot["turns_so_far"], snapshot["cursor"], snapshot["status"]), ([], 0, "in_progress"))
            await agent.call("runs.record_turns", {"run_id": run, "turns": [{"tool": "t", "prompt": None, "parameters": None}]})
            event = (await host.events.get())["params"]
            same((event["record"]["record"], event["record"]["index"], event["cursor"], event["status"]), ("turn", 0, 1, "in_progress"))
            trace = await host.call("runs.get_trace", {"run_id": run})
            same(trace["records"][1], event["record"])
            same((trace["agent_id"], trace["cursor"]), (scene.agent, 0))
            await agent.call("runs.complete", {"run_id": run, "outcome": {"status": "give_up"}})
            event = (await host.events.get())["params"]
            same((event["record"]["record"], event["cursor"], event["status"]), ("ended", 2, "completed"))


main()
