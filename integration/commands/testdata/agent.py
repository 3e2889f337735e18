"""An agent with one tool: it runs the command that the model wants, and posts what that printed."""
import json, subprocess, sys, urllib.request

messages = [{"role": "user", "content": "run: " + sys.argv[1]}]
tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}
while True:
    body = json.dumps({"model": "gpt-5", "messages": messages, "tools": [tool]}).encode()
    asked = urllib.request.Request("https://api.openai.com/v1/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer sk-dummy"})
    answer = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]
    messages.append(answer)
    if not answer.get("tool_calls"):
        print(answer["content"])
        break
    for call in answer["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        ran = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"exit status {ran.returncode}\n" + ran.stdout.decode("utf-8", "replace")})
