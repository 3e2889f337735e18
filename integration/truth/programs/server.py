# A tool server over MCP on stdin and stdout, for the generated programs.
import json, sys


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "tools", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("note", "count", "find")]}
    return {"content": [{"type": "text", "text": "%s took %d letters" % (params["name"], len(json.dumps(params["arguments"])))}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params", {}))}), flush=True)
