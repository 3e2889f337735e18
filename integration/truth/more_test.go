package truth

import "slices"

// The rarer things that programs do: JSON as its writer likes it, packed bodies, credentials, large files, databases, interpreters
// within interpreters, work in the background.

// knownHeader adds one of those of a call that are no invention of its program, with the changes of each.
func (g *generator) knownHeader(headers object, set func(object)) object {
	known := []struct{ name, was, now string }{
		{"User-Agent", "agent/1.4.2", "agent/1.4.3"},
		{"Cookie", "theme=dark; lang=en", "theme=dark; lang=de"},
		{"Accept-Language", "en", "de"},
		{"Authorization", "Bearer 5f1c0b7e9a3d4c2286e0b4d1a7f3928c", "Bearer 91d3aa04c5e84b7fb0c62e7d18f54a3b"},
		{"X-Api-Key", "k-5f1c0b7e9a3d4c2286e0b4d1", "k-91d3aa04c5e84b7fb0c62e7d"},
	}
	h := pick(g.r, known)
	headers = append(headers, field{h.name, h.was})
	g.structural("header "+h.name, "header", caught, func() {
		set(append(slices.Clone(headers.without(h.name)), field{h.name, h.now}))
	}, h.name)
	return headers
}

// rawJSON is a body that its program writes as it likes.
func (g *generator) rawJSON(in *object) func(*act) {
	const text0 = `{"sum":1000,"share":0.5,"big":12345678901234567890,"list":[1,2]}`
	in.set("type", "application/json")
	in.set("raw", text0)
	return func(a *act) {
		set := func(s string) func() { return func() { a.in.set("raw", s) } }
		why := "JSON is compared in its canonical form"
		g.same("form of a number", "JSON body", why, set(`{"sum":1e3,"share":0.50,"big":12345678901234567890,"list":[1.0,2]}`))
		g.same("white space in JSON", "JSON body", why, set("{ \"sum\" : 1000, \"share\":0.5,\n\"big\":12345678901234567890,\"list\":[1, 2]}\n"))
		g.structural("digit of a large number", "JSON body", caught, set(`{"sum":1000,"share":0.5,"big":12345678901234567891,"list":[1,2]}`), "big")
		g.structural("JSON null for a list", "JSON body", caught, set(`{"sum":1000,"share":0.5,"big":12345678901234567890,"list":null}`), "list")
		g.structural("JSON fraction", "JSON body", caught, set(`{"sum":1000.5,"share":0.5,"big":12345678901234567890,"list":[1,2]}`), "sum")
	}
}

// packed is a body with a Content-Encoding.
func (g *generator) packed(in *object) func(*act) {
	in.set("type", "text/plain")
	in.set("gzip", true)
	in.set("raw", g.sentence("gzip body", "line 1", "body"))
	return nil
}

// embed asks for the vectors of some texts.
func (g *generator) embed() {
	in := object{{"method", "POST"}, {"host", "api.openai.com"}, {"path", "/v1/embeddings"},
		{"json", object{{"model", "text-embedding-3-small"}, {"input", list{g.sentence("embedding", "input"), "second"}}}}}
	a := g.add("http", in)
	g.structural("model of an embedding", "embedding", caught, func() {
		a.in.set("json", append(object{{"model", "text-embedding-3-large"}}, value(in, "json").(object).without("model")...))
	}, "text-embedding-3-large")
}

// twoModels asks two models one after the other.
func (g *generator) twoModels() {
	in, _ := g.question()
	other, _ := g.question()
	a, b := g.add("ask", in), g.add("ask", other)
	g.swapped(a, b, "order of model calls", "model call", g.ofAsking(), value(in, "model").(string), value(other, "model").(string))
}

// rareFile does something to a file that takes a program some thought.
func (g *generator) rareFile() {
	name := g.fresh("rare")
	in := object{{"root", "tree"}, {"name", name}}
	place := "file in the work tree"
	switch g.r.IntN(4) {
	case 0:
		g.found = append(g.found, name)
		g.dropped(g.add("append", append(in, field{"text", g.sentence(place, name)})), "appended line", place, caught, name)
	case 1:
		g.found = append(g.found, name)
		a := g.add("cut", append(in, field{"to", 4}))
		g.structural("length of a cut file", place, caught, func() { a.in.set("to", 5) }, name)
	case 2:
		a := g.add("big", append(in, field{"mib", 66}, field{"text", g.sentence("large file", name)}))
		g.structural("length of a large file", "large file", g.inJail(), func() { a.in.set("mib", 67) }, name)
		g.dropped(a, "large file", "large file", g.inJail(), name)
	case 3:
		if g.language == python {
			g.dropped(g.add("row", append(in, field{"text", g.sentence("row of a database", name)})), "row of a database", place, caught, name)
		}
	}
}

// interpreter runs a program that runs a program.
func (g *generator) interpreter() {
	tag := g.fresh("unit-")
	n := g.r.IntN(90) + 10
	code := func(n int) list {
		return list{"/usr/bin/python3", "-c", text{"import sys; sys.exit(len(sys.argv[1]) > " + quote(n) + ")"}, tag}
	}
	pipe := func(last string) list {
		return list{"sh", "-c", "echo " + tag + " | tr a-z A-Z | " + last + " >/dev/null"}
	}
	switch g.r.IntN(3) {
	case 0:
		a := g.add("child", object{{"argv", code(n)}})
		g.structural("code of python -c", "child", caught, func() { a.in.set("argv", code(n+1)) }, "sys.exit", tag)
	case 1:
		a := g.add("child", object{{"argv", pipe("wc -c")}})
		g.structural("end of a pipeline", "child", caught, func() { a.in.set("argv", pipe("wc -l")) }, "wc -l", tag)
	case 2:
		ends := func(how string) list { return list{"sh", "-c", how, tag} }
		a := g.add("child", object{{"argv", ends("kill -TERM $$")}})
		g.structural("signal that ends a child", "child", caught, func() { a.in.set("argv", ends("kill -KILL $$")) }, "kill -KILL", tag)
	}
}

// daemon starts something that is nobody's child, and waits for its file.
func (g *generator) daemon() {
	name := g.fresh("left")
	said := g.sentence("file of a daemon", name)
	g.add("daemon", object{{"name", name}, {"text", said}})
}

// threads has some of them write a file each, and one line when all are done.
func (g *generator) threads() {
	name := g.fresh("part")
	a := g.add("threads", object{{"name", name}, {"texts", list{g.sentence("file of a thread", name), "second", "third"}}})
	g.structural("thread dropped", "file of a thread", caught, func() {
		texts := value(a.in, "texts").(list)
		a.in.set("texts", texts[:2])
	}, name)
}

// twoChildren runs them one after the other.
func (g *generator) twoChildren() {
	one, two := g.fresh("turn-"), g.fresh("turn-")
	a := g.add("child", object{{"argv", list{"sh", "-c", "exit 0", one}}})
	b := g.add("child", object{{"argv", list{"sh", "-c", "exit 0", two}}})
	g.swapped(a, b, "order of children", "child", g.ofStarting(), one, two)
}
