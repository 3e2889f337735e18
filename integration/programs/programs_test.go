//go:build programs

package programs

import (
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// A program is one program's run against web.
type program struct {
	name   string
	tool   string
	files  map[string]string // below the work directory
	args   []string
	status int
	stdout string
	refuse []string // arguments with which a replay asks for what is not on the tape
}

const base = "https://" + host

var programList = []program{
	{
		name: "curl", tool: "curl", args: []string{"-sS", base + "/item/one", base + "/item/two", base + "/item/one"},
		stdout: "item one\nitem two\nitem one\n", refuse: []string{"-sS", "--fail", base + "/item/three"},
	},
	{
		name: "curl compressed stream", tool: "curl", args: []string{"-sS", "--compressed", base + "/stream"},
		stdout: streamed(), refuse: []string{"-sS", "--fail", base + "/stream/other"},
	},
	{
		name: "curl post over HTTP/1.1", tool: "curl", args: []string{"-sS", "--http1.1", "-d", `{"n":1}`, base + "/echo"},
		stdout: `{"n":1}`, refuse: []string{"-sS", "--fail", "--http1.1", "-d", `{"n":2}`, base + "/echo"},
	},
	{
		name: "curl cut off", tool: "curl", args: []string{"-sS", "--http1.1", base + "/cut"},
		status: 18, stdout: "the first half", // 18: CURLE_PARTIAL_FILE
	},
	{
		name: "python", tool: "python3", files: map[string]string{"main.py": pythonProgram}, args: []string{"main.py", "one"},
		stdout: "item one\n{\"n\": 1}\n300 events\n", refuse: []string{"main.py", "three"},
	},
	{
		name: "node", tool: "node", files: map[string]string{"main.js": nodeProgram}, args: []string{"main.js", "8"},
		stdout: "item 0, item 1, item 2, item 3, item 4, item 5, item 6, item 7\n{\"n\":1}\n300 events\n",
		refuse: []string{"main.js", "9"},
	},
}

// pythonProgram asks for an item, posts and reads the stream, with the standard library alone.
const pythonProgram = `import json, sys, urllib.request
base = "` + base + `"
print(urllib.request.urlopen(base + "/item/" + sys.argv[1]).read().decode(), end="")
post = urllib.request.Request(base + "/echo", json.dumps({"n": 1}).encode(), {"Content-Type": "application/json"})
print(json.dumps(json.load(urllib.request.urlopen(post))))
print(sum(line.startswith(b"data: ") for line in urllib.request.urlopen(base + "/stream")), "events")
`

// nodeProgram asks for items side by side with fetch, posts with https, and reads the stream, compressed.
const nodeProgram = `const https = require("node:https");
const base = "` + base + `";
const item = async (i) => {
  const answer = await fetch(base + "/item/" + i);
  if (!answer.ok) throw new Error("status " + answer.status);
  return (await answer.text()).trim();
};
const post = (body) => new Promise((resolve, reject) => {
  const request = https.request(base + "/echo", { method: "POST" }, async (answer) => {
    let text = "";
    for await (const chunk of answer) text += chunk;
    resolve(text);
  });
  request.on("error", reject).end(body);
});
const main = async () => {
  const count = Number(process.argv[2]);
  console.log((await Promise.all(Array.from({ length: count }, (_, i) => item(i)))).join(", "));
  console.log(await post(JSON.stringify({ n: 1 })));
  const events = await (await fetch(base + "/stream")).text();
  console.log(events.split("data: ").length - 1, "events");
};
main().catch((err) => { console.error(err); process.exit(1); });
`

func TestPrograms(t *testing.T) {
	for _, p := range programList {
		t.Run(p.name, func(t *testing.T) {
			tool := run.Tool(t, p.tool)
			run.Each(t, func(t *testing.T, b *run.Box) { recordAndReplay(t, b, tool, &p) })
		})
	}
}

func recordAndReplay(t *testing.T, b *run.Box, tool string, p *program) {
	for name, content := range p.files {
		b.WriteFile(filepath.Join(b.Work, name), content)
	}
	res := record(t, b, web(), append([]string{tool}, p.args...)...)
	if res.Status != p.status || res.Stdout != p.stdout {
		t.Fatalf("record: %v\nwant status %d, stdout %q", res, p.status, p.stdout)
	}
	wantGreen(t, b)
	if p.refuse == nil {
		return
	}
	report, res := b.Replay(append([]string{tool}, p.refuse...)...)
	if res.Status != 2 || report == nil || len(report.Refused) == 0 {
		t.Errorf("replay of a request that is not on the tape: %v", res)
	}
}

func TestASecretInTheArguments(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	curl := run.Tool(t, "curl")
	run.Each(t, func(t *testing.T, b *run.Box) {
		res := record(t, b, web(), curl, "-sS", "-H", "Authorization: Bearer "+token, "-d", "token="+token, base+"/echo")
		if res.Status != 0 || res.Stdout != "token="+token {
			t.Fatalf("record: %v", res)
		}
		if found := b.Holds(token); found != nil {
			t.Errorf("the token stands in %v", found)
		}
		wantGreen(t, b)
	})
}
