package truth

import (
	"fmt"
	"slices"
	"strings"
)

// A wire is how a provider is spoken to.
type wire struct {
	name, path string
	model, to  string // a model, and another
	turns      string // where turns stand in a body
	system     string
	limit      string
}

var wires = []wire{
	{"anthropic", "/v1/messages", "claude-sonnet-4-5", "claude-opus-4-1", "messages[", "system", "max_tokens"},
	{"chat", "/v1/chat/completions", "gpt-4o", "gpt-4o-mini", "messages[", "messages[0]", "max_completion_tokens"},
	{"responses", "/v1/responses", "gpt-5", "gpt-5-mini", "input[", "instructions", "max_output_tokens"},
	{"mistral", "/v1/chat/completions", "mistral-large-latest", "mistral-small-latest", "messages[", "messages[0]", "max_tokens"},
	{"ollama", "/api/chat", "llama3.2", "qwen3", "messages[", "messages[0]", "num_predict"},
	{"gemini", "/v1beta/models/", "gemini-2.5-flash", "gemini-2.5-pro", "contents[", "systemInstruction", "maxOutputTokens"},
}

func (g *generator) ask() {
	in, w := g.question()
	a := g.add("ask", in)
	if g.r.IntN(2) == 0 {
		g.bind(a)
	} else {
		g.dropped(a, "model call", "model call", caught, w.path)
	}
	g.twice(a, "model call", "model call", caught, w.path)
	g.structural("model", "model call", caught, func() { a.in.set("model", w.to) }, w.to)
	g.structural("limit of tokens", "model call", caught, func() { a.in.set("limit", 301) }, w.limit, "301")
	g.structural("temperature", "model call", caught, func() { a.in.set("temperature", 0.3) }, "temperature", "0.3")
	if tool, ok := value(a.in, "tool").(object); ok {
		g.structural("parameter of a tool", "description of a tool", caught, func() { a.in.set("tool", append(tool.without("property"), field{"property", "subject"})) }, "subject")
		g.structural("name of a tool", "description of a tool", caught, func() { a.in.set("tool", append(object{{"name", "search"}}, tool.without("name")...)) }, "search")
	}
	g.structural("streaming", "model call", caught, func() { a.in.set("stream", !value(a.in, "stream").(bool)) }, "stream")
}

// question is what a model is asked, with the changes of it.
func (g *generator) question() (object, wire) {
	w, stream := pick(g.r, wires), g.r.IntN(2) == 0
	in := object{{"wire", w.name}, {"stream", stream}, {"model", w.model}, {"limit", 300}, {"temperature", 0.2},
		{"system", g.sentence("system text", w.system)}, {"prompt", g.sentence("prompt", w.turns)}}
	if g.r.IntN(2) == 0 {
		in.set("headers", object{{"X-Task", g.sentence("header of a model call", "x-task")}})
	}
	if w.name != "ollama" && g.r.IntN(2) == 0 {
		tool := object{{"name", "find"}, {"property", "what"}, {"description", g.sentence("description of a tool", "tools[")}, {"result", g.sentence("tool result", w.turns)}}
		if g.vary != nil && g.vary.kind == "order of finished tools" {
			tool.set("race", true)
			g.varies = append(g.varies, g.vary.kind+" / tool result")
		}
		in.set("tool", tool)
	}
	return in, w
}

var hosts = []string{"api.example.com", "files.example.org", "hooks.example.net"}

func (g *generator) http() {
	host, path := pick(g.r, hosts), g.fresh("/v2/items")
	in := object{{"method", "GET"}, {"host", host}, {"path", path}}
	switch g.r.IntN(3) {
	case 0:
		in.set("path", g.name(path+"/", "URL path", "", path))
	case 1:
		in.set("query", object{{"mark", g.sentence("URL query", "mark")}, {"page", "2"}})
	}
	headers := object{{"X-First", "1"}, {"X-Task", g.sentence("header", "x-task")}}
	var a *act
	if g.r.IntN(2) == 0 {
		headers = g.knownHeader(headers, func(h object) { a.in.set("headers", h) })
	}
	in.set("headers", headers)
	body := g.body(&in)
	a = g.add("http", in)
	if g.r.IntN(2) == 0 {
		g.bind(a)
	} else {
		g.dropped(a, "HTTP call", "HTTP", caught, path)
	}
	g.twice(a, "HTTP call", "HTTP", caught, path)
	g.httpChanges(a, headers)
	if body != nil {
		body(a)
	}
}

func (g *generator) httpChanges(a *act, headers object) {
	set := func(h object) func() { return func() { a.in.set("headers", h) } }
	g.structural("host", "HTTP", caught, func() { a.in.set("host", "other.example.com") }, "other.example.com")
	g.structural("method", "HTTP", caught, func() { a.in.set("method", map[any]string{"GET": "DELETE", "POST": "PUT"}[value(a.in, "method")]) }, "DELETE", "PUT")
	g.structural("header added", "header", caught, set(append(slices.Clone(headers), field{"X-Extra", "9"})), "x-extra")
	g.structural("header dropped", "header", caught, set(headers.without("X-First")), "x-first")
	g.same("order of headers", "header", "order and letter case of headers are not kept", set(append(object{headers[1], headers[0]}, headers[2:]...)))
	g.same("letter case of a header's name", "header", "order and letter case of headers are not kept", set(append(object{{"x-first", "1"}}, headers[1:]...)))
	g.same("traceparent", "header", "a header that the transport owns", set(append(slices.Clone(headers), field{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})))
}

func value(o object, key string) any {
	for _, f := range o {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// body gives a call one of the bodies, and returns what adds the changes of it.
func (g *generator) body(in *object) func(*act) {
	kind := g.r.IntN(7)
	if kind > 0 {
		in.set("method", "POST")
	}
	switch kind {
	case 1:
		doc := object{{"note", g.sentence("JSON body", "note")}, {"count", 5}, {"list", list{1, 2, "x"}}}
		in.set("json", doc)
		return func(a *act) { g.documentChanges(a, doc) }
	case 2:
		in.set("form", object{{"note", g.sentence("form", "note")}, {"sum", "5"}})
	case 3:
		in.set("type", "text/plain")
		in.set("raw", g.sentence("text body", "line 1", "body"))
	case 4:
		return g.upload(in)
	case 5:
		return g.rawJSON(in)
	case 6:
		return g.packed(in)
	}
	return nil
}

func (g *generator) documentChanges(a *act, doc object) {
	set := func(d object) func() { return func() { a.in.set("json", d) } }
	g.structural("JSON member added", "JSON body", caught, set(append(slices.Clone(doc), field{"extra", true})), "extra")
	g.structural("JSON member dropped", "JSON body", caught, set(doc.without("count")), "count")
	g.structural("JSON type", "JSON body", caught, func() { a.in.set("json", object{doc[0], {"count", "5"}, doc[2]}) }, "count")
	g.structural("order of a JSON list", "JSON body", caught, func() { a.in.set("json", object{doc[0], doc[1], {"list", list{2, 1, "x"}}}) }, "list")
	g.same("order of JSON members", "JSON body", "JSON is compared in its canonical form", set(object{doc[1], doc[2], doc[0]}))
}

func (g *generator) upload(in *object) func(*act) {
	name := g.fresh("report")
	parts := func(file any, content any) list {
		return list{object{{"name", "about"}, {"text", "monthly"}}, object{{"name", "upload"}, {"file", file}, {"text", content}}}
	}
	file, content := g.name(name+"-", "file name of multipart", ".txt", "filename"), g.sentence("content of multipart", "upload", "line")
	in.set("boundary", "form-7d1b04")
	if g.vary != nil && g.vary.kind == "random hex" {
		in.set("boundary", text{"form-", &fact{call: g.vary.call}})
		g.varies = append(g.varies, g.vary.kind+" / boundary of multipart")
	}
	in.set("parts", parts(file, content))
	return func(a *act) {
		g.structural("path before a file name", "file name of multipart", caught, func() {
			a.in.set("parts", parts(append(text{"../../etc/cron.d/"}, file...), content))
		}, "cron.d", "filename")
		g.structural("field's name", "field name of multipart", caught, func() {
			p := parts(file, content)
			p[0].(object)[0].value = "aside"
			a.in.set("parts", p)
		}, "aside")
	}
}

func (g *generator) twoHosts() {
	path, other := g.fresh("/ping"), g.fresh("/ping")
	get := func(host, path string) *act {
		return g.add("http", object{{"method", "GET"}, {"host", host}, {"path", path}})
	}
	a, b := get(hosts[0], path), get(hosts[1+g.r.IntN(2)], other)
	g.swapped(a, b, "order of calls to two hosts", "HTTP", caught, path, other)
	c := get(hosts[0], g.fresh("/ping"))
	g.swapped(a, c, "order of calls to one host", "HTTP", caught, path, value(c.in, "path").(string))
}

func (g *generator) together() {
	var side acts
	for range 2 + g.r.IntN(2) {
		in, _ := g.question()
		side = append(side, &act{name: "ask", in: in})
	}
	in := object{{"method", "POST"}, {"host", pick(g.r, hosts)}, {"path", g.fresh("/side")}, {"json", object{{"note", g.sentence("JSON body", "note")}}}}
	side = append(side, &act{name: "http", in: in})
	g.count++
	v := fmt.Sprintf("v%d", g.count)
	g.acts = append(g.acts, &act{name: "together", bind: variable(v), in: object{{"acts", side}}})
	g.add("say", object{{"text", text{"all: ", variable(v)}}})
}

func (g *generator) say() {
	a := g.add("say", object{{"text", g.sentence("stdout", "stdout")}})
	tag := g.fresh("step ")
	b := g.add("say", object{{"text", tag + " is done"}})
	g.dropped(b, "line", "stdout", caught, tag, "stdout")
	g.twice(b, "line", "stdout", caught, tag, "stdout")
	g.swapped(a, b, "order of lines", "stdout", caught, tag, "stdout")
	g.structural("line on the other stream", "stdout", caught, func() { b.name = "complain" }, tag, "stdout", "stderr")
	g.same("line written in two parts", "stdout", "a stream is compared by its bytes, not by its writes", func() {
		b.name, b.in = "say_in_parts", object{{"parts", list{tag, " is done\n"}}}
	})
}

func (g *generator) complain() {
	a := g.add("complain", object{{"text", g.sentence("stderr", "stderr")}})
	g.dropped(a, "line", "stderr", caught, "stderr")
}

// A root is a place where files are.
type root struct{ name, where, suffix string }

var roots = []root{{"tree", "in the work tree", ".txt"}, {"tree", "in the work tree", ".txt"}, {"home", "in HOME", ".txt"}, {"tmp", "in TMP", ".txt"}, {"tree", "ignored by Git", ".log"}}

func (g *generator) writeFile() {
	at := pick(g.r, roots)
	base := g.fresh("note")
	in := object{{"root", at.name}, {"name", base + at.suffix}}
	if g.r.IntN(3) == 0 {
		in.set("name", g.name(base+"-", "name of a file "+at.where, at.suffix, base))
	}
	in.set("text", g.sentence("file "+at.where, base))
	a := g.add("write", in)
	place := "file " + at.where
	w := g.mode.ofFiles(place)
	g.dropped(a, "file", place, w, base)
	g.structural("file added", place, w, func() {
		g.acts = slices.Insert(g.acts, 0, &act{name: "write", in: object{{"root", at.name}, {"name", "extra" + at.suffix}, {"text", "x"}}})
	}, "extra")
	g.structural("mode: executable", place, w, func() { a.in.set("mode", 0o755) }, base)
	g.structural("mode: group", place, w, func() { a.in.set("mode", 0o640) }, base)
	g.unseen("time of a file", place, "times of files are not kept", func() {
		i := slices.Index(g.acts, a)
		g.acts = slices.Insert(g.acts, i+1, &act{name: "set_time", in: object{in[0], in[1], {"at", 1700000000}}})
	})
	g.structural("trailing newline", place, w, func() { a.in.set("text", append(slices.Clone(value(a.in, "text").(text)), "\n")) }, base)
}

// A spot is a file that an act makes, with what its changes have in common.
type spot struct {
	root, name, place string
	want              want
}

// with is the spot and fields of an act there.
func (s spot) with(fields ...field) object {
	return append(object{{"root", s.root}, {"name", s.name}}, fields...)
}

// treeAct does one of the rarer things to files.
func (g *generator) treeAct() {
	at := roots[[]int{0, 0, 2, 3}[g.r.IntN(4)]]
	s := spot{at.name, g.fresh("thing"), "file " + at.where, g.mode.ofFiles("file " + at.where)}
	switch g.r.IntN(6) {
	case 0:
		a := g.add("symlink", s.with(field{"target", g.name("to-", "target of a link "+at.where, "", s.name)}))
		g.dropped(a, "link", s.place, s.want, s.name)
		g.structural("link becomes a file", s.place, s.want, func() { a.name, a.in = "write", s.with(field{"text", "a"}) }, s.name)
	case 1:
		a, extra := g.add("directory", s.with()), s
		extra.name = "extra"
		g.dropped(a, "empty directory", s.place, s.want, s.name)
		g.structural("empty directory added", s.place, s.want, g.behind(a, &act{name: "directory", in: extra.with()}), "extra")
	case 2:
		g.dropped(g.add("fifo", s.with()), "FIFO", s.place, s.want, s.name)
	case 3:
		a := g.add("passing", s.with(field{"text", g.lasting(s.place, s.name)}))
		g.dropped(a, "file written and removed", s.place, g.inJail(), s.name)
	case 4:
		g.fileAndTwin(s)
	case 5:
		g.changeFound()
	}
}

// fileAndTwin writes two files of one content. What comes behind that is changed.
func (g *generator) fileAndTwin(s spot) {
	twin := s
	twin.name += "-twin"
	a, b := g.add("write", s.with(field{"text", "x"})), g.add("write", twin.with(field{"text", "x"}))
	if g.language == python {
		g.structural("extended attribute", s.place, s.want, g.behind(a, &act{name: "attribute", in: s.with(field{"text", "v"})}), s.name)
	}
	g.structural("removed behind", s.place, s.want, g.behind(a, &act{name: "remove", in: s.with()}), s.name)
	g.structural("renamed behind", s.place, s.want, g.behind(a, &act{name: "rename", in: s.with(field{"to", "moved"})}), "moved", s.name)
	g.unseen("hard link for a copy", s.place, "names of one file are files of their own", func() {
		b.name, b.in = "hard_link", twin.with(field{"target", s.name})
	})
}

// behind is a change that has b done after a.
func (g *generator) behind(a, b *act) func() {
	return func() { g.acts = slices.Insert(g.acts, slices.Index(g.acts, a)+1, b) }
}

// inJail is the label of what only the jail sees.
func (g *generator) inJail() want {
	if g.mode == proxied {
		return unseen
	}
	return caught
}

// lasting is a sentence of a file that is gone in the end: outside the jail nothing sees it.
func (g *generator) lasting(place, name string) text {
	before := len(g.changes)
	t := g.sentence(strings.Replace(place, "file", "passing file", 1), name)
	for i := before; g.mode == proxied && i < len(g.changes); i++ {
		g.changes[i].want, g.changes[i].why = unseen, unwatched
	}
	return t
}

// changeFound does something to a file that the run finds.
func (g *generator) changeFound() {
	place, name := "file in the work tree", g.fresh("found")
	g.found = append(g.found, name)
	in := object{{"root", "tree"}, {"name", name}}
	switch g.r.IntN(3) {
	case 0:
		a := g.add("put_back", append(in, field{"text", g.lasting(place, name)}))
		g.dropped(a, "file written and put back", place, g.inJail(), name)
	case 1:
		a := g.add("set_mode", append(in, field{"mode", 0o700}))
		g.dropped(a, "mode of a found file", place, caught, name)
		g.structural("mode of a found file", place, caught, func() { a.in.set("mode", 0o711) }, name)
	case 2:
		a := g.add("rename", append(in, field{"to", g.name("moved-", "name of a file in the work tree", ".txt", name)}))
		g.dropped(a, "rename of a found file", place, caught, name)
		g.structural("removed, not renamed", place, caught, func() { a.name = "remove" }, name)
	}
}

func (g *generator) child() {
	tag := g.fresh("job-")
	script, argv, in := text{"cat >/dev/null"}, list{"sh", "-c", nil, tag}, object{}
	switch g.r.IntN(4) {
	case 0:
		argv = append(argv, g.sentence("child's argument", tag))
	case 1:
		in.set("stdin", g.sentence("child's stdin", "stdin", tag))
	case 2:
		script = append(append(text{"echo '"}, g.sentence("child's output that is dropped", "stdout", tag)...), "'")
	case 3:
		in.set("env", object{{"CHILD_NOTE", g.sentence("child's environment", "CHILD_NOTE")}})
	}
	argv[2] = append(slices.Clone(script), "; exit 0")
	a := g.add("child", append(object{{"argv", argv}}, in...))
	g.dropped(a, "child", "child", caught, tag)
	g.twice(a, "child", "child", caught, tag)
	with := func(i int, value any) func() {
		return func() {
			changed := slices.Clone(argv)
			changed[i] = value
			a.in.set("argv", changed)
		}
	}
	g.structural("child's program", "child", caught, with(0, "dash"), "dash", tag)
	g.structural("child's directory", "child", caught, func() { a.in.set("cwd", "sub") }, "sub", "cwd", "directory")
	g.structural("child's exit status", "child", caught, with(2, append(slices.Clone(script), "; exit 4")), "exit 4", "exit code", tag)
	g.structural("child's own child", "child", caught, with(2, append(slices.Clone(script), "; expr 1 + 1; exit 0")), "expr")
}

func (g *generator) mcp() {
	tool := pick(g.r, []string{"note", "count", "find"})
	call := func(arguments object) object { return object{{"tool", tool}, {"arguments", arguments}} }
	first := call(object{{"what", g.sentence("MCP argument", "what", tool)}})
	second := call(object{{"what", g.fresh("thing")}})
	args, env := list{g.fresh("--server")}, object{{"SERVER_MODE", "plain"}}
	switch g.r.IntN(3) {
	case 0:
		args = append(args, g.sentence("argument of an MCP server", "server.py"))
	case 1:
		env = object{{"SERVER_NOTE", g.sentence("environment of an MCP server", "SERVER_NOTE")}}
	}
	a := g.add("mcp", object{{"args", args}, {"env", env}, {"calls", list{first, second}}})
	if g.r.IntN(2) == 0 {
		g.bind(a)
	}
	calls := func(l ...any) func() { return func() { a.in.set("calls", list(l)) } }
	g.structural("MCP call dropped", "MCP", caught, calls(first), tool)
	g.structural("MCP call added", "MCP", caught, calls(first, second, second), tool)
	g.structural("order of MCP calls", "MCP", caught, calls(second, first), tool)
	other := map[string]string{"note": "count", "count": "find", "find": "note"}[tool]
	g.structural("MCP tool", "MCP", caught, calls(object{{"tool", other}, first[1]}, second), other)
}

// netAct tries what the jail has no answer for: an attempt is a record.
func (g *generator) netAct() {
	switch g.r.IntN(3) {
	case 0:
		a := g.add("resolve", object{{"name", g.name("db-", "DNS name", ".example.net", ".example.net")}})
		g.dropped(a, "DNS lookup", "DNS", caught, ".example.net")
	case 1:
		path := "/tmp/" + g.fresh("socket")
		a := g.add("knock", object{{"path", g.name(path+"-", "path of a Unix socket", "", path)}})
		g.dropped(a, "attempt at a Unix socket", "Unix socket", caught, path)
	case 2:
		a := g.add("datagram", object{{"to", "192.0.2.7"}, {"text", "x"}})
		g.structural("address of a datagram", "UDP", caught, func() { a.in.set("to", "192.0.2.8") }, "192.0.2.8")
		g.dropped(a, "datagram", "UDP", caught, "192.0.2.7")
		g.unseen("content of a datagram", "UDP", "what a datagram held is not recorded", func() { a.in.set("text", "y") })
	}
}
