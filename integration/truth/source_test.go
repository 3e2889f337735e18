package truth

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
)

// What a program is made of. A value of a field is a string, an int, a bool, nil, or one of the types here.
type (
	// A fact is one small thing that a program says: a constant, which a change may put another in the place of, or an
	// expression whose value differs in every run.
	fact struct {
		value  string // of a constant
		origin string // where the program has a constant from: its source, or another of origins
		slot   int    // which argument, variable or setting that is
		call   string // a function of the prelude, for what differs in every run
	}

	text   []any // strings, facts and variables, put together
	list   []any
	object []field
	field  struct {
		key   string
		value any
	}
	variable string // what an earlier act came to

	// An act is one call of a function of the prelude.
	act struct {
		name string
		in   object
		bind variable // what the program calls its result, or ""
	}
	acts []*act // started side by side
)

// The ways by which a constant reaches a program.
const (
	inSource      = "source"
	inArguments   = "argument"
	inEnvironment = "environment"
	inSettings    = "settings file in HOME"
)

// A language is one that programs are written in.
type language struct {
	name, prelude, suffix string
	interpreter           string
	await, thunk          string
}

//go:embed programs
var programs embed.FS

var (
	python = &language{name: "Python", prelude: "programs/prelude.py", suffix: ".py", interpreter: "/usr/bin/python3", thunk: "lambda: "}
	node   = &language{name: "Node", prelude: "programs/prelude.mjs", suffix: ".mjs", interpreter: "/usr/bin/node", await: "await ", thunk: "() => "}
)

// source is the whole text of p.
func (p *program) source() string {
	var b strings.Builder
	prelude, err := programs.ReadFile(p.language.prelude)
	if err != nil {
		panic(err) // it is embedded
	}
	b.Write(prelude)
	if p.language == python {
		fmt.Fprintf(&b, "\n\nTOLERANT = %s\n\n", map[bool]string{true: "True", false: "False"}[p.tolerant])
	} else {
		fmt.Fprintf(&b, "\nconst TOLERANT = %v;\n\n", p.tolerant)
	}
	b.WriteString(p.body())
	return b.String()
}

// body is what p does, an act a line.
func (p *program) body() string {
	var b strings.Builder
	for _, a := range p.acts {
		switch {
		case a.bind == "":
		case p.language == node:
			b.WriteString("const " + string(a.bind) + " = ")
		default:
			b.WriteString(string(a.bind) + " = ")
		}
		b.WriteString(p.language.await + p.language.render(a) + "\n")
	}
	if p.comment != "" {
		b.WriteString(map[bool]string{true: "# ", false: "// "}[p.language == python] + p.comment + "\n")
	}
	return b.String()
}

// render is v as an expression, which looks the same in both languages but for what is in them.
func (l *language) render(v any) string {
	switch v := v.(type) {
	case *act:
		return v.name + "(" + l.render(v.in) + ")"
	case acts:
		return join("[", "]", len(v), func(i int) string { return l.thunk + l.render(v[i]) })
	case *fact:
		return v.expression()
	case variable:
		return string(v)
	case text:
		return l.renderText(v)
	case list:
		return join("[", "]", len(v), func(i int) string { return l.render(v[i]) })
	case object:
		return join("{", "}", len(v), func(i int) string { return quote(v[i].key) + ": " + l.render(v[i].value) })
	}
	return quote(v)
}

// renderText puts the parts of t together, constants of the source into the strings around them.
func (l *language) renderText(t text) string {
	var parts []string
	written := ""
	flush := func() {
		if written != "" || len(parts) == 0 {
			parts = append(parts, quote(written))
		}
		written = ""
	}
	for _, part := range t {
		switch part := part.(type) {
		case string:
			written += part
		case *fact:
			if part.call == "" && part.origin == inSource {
				written += part.value
				continue
			}
			flush()
			parts = append(parts, part.expression())
		default:
			flush()
			parts = append(parts, l.render(part))
		}
	}
	if written != "" || len(parts) == 0 {
		flush()
	}
	return strings.Join(parts, " + ")
}

func (f *fact) expression() string {
	switch {
	case f.call != "":
		return f.call + "()"
	case f.origin == inArguments:
		return fmt.Sprintf("argument(%d)", f.slot+1)
	case f.origin == inEnvironment:
		return "variable(" + quote(f.name()) + ")"
	case f.origin == inSettings:
		return "setting(" + quote(f.name()) + ")"
	}
	return quote(f.value)
}

// name is that of f among the variables or the settings.
func (f *fact) name() string { return fmt.Sprintf("TASK_%d", f.slot+1) }

func join(before, after string, n int, part func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return before + strings.Join(parts, ", ") + after
}

// quote is v in JSON, which both languages read.
func quote(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // v is a string, a number, a bool or nil
	}
	return strings.TrimSpace(b.String())
}

// set puts value in the place of the field called key, or behind the others.
func (o *object) set(key string, value any) {
	for i := range *o {
		if (*o)[i].key == key {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, field{key, value})
}

// without is o without the field called key.
func (o object) without(key string) object {
	var rest object
	for _, f := range o {
		if f.key != key {
			rest = append(rest, f)
		}
	}
	return rest
}
