package scriptedllm

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A slot is what a property is for, by its name.
type slot uint8

const (
	other   slot = iota
	pathOf       // the file to write
	textOf       // what to write into it
	command      // a shell command
	folder       // where to work
	purpose      // a sentence on what the call is for
	timeout
)

// slots holds the names in lower case, without "_" and "-".
var slots = map[string]slot{
	"path": pathOf, "filepath": pathOf, "absolutepath": pathOf, "filename": pathOf, "file": pathOf, "targetfile": pathOf,
	"content": textOf, "contents": textOf, "text": textOf, "filetext": textOf, "data": textOf, "body": textOf,
	"newstring": textOf, "newtext": textOf,
	"command": command, "cmd": command, "script": command, "commandline": command,
	"cwd": folder, "workdir": folder, "workingdirectory": folder, "directory": folder, "dirpath": folder, "dir": folder,
	"description": purpose, "explanation": purpose, "reason": purpose, "purpose": purpose, "title": purpose,
	"timeout": timeout, "timeoutms": timeout, "yieldtimems": timeout,
}

func slotOf(name string) slot { return slots[plainName(name)] }

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// eitherPath matches descriptions that take a relative path as well as an absolute one.
var eitherPath = lazyregexp.New(`(?i)relative (paths? )?or absolute|absolute (paths? )?or (\w+-)?relative`)

// A filler makes arguments for a tool out of its schema.
type filler struct {
	job job
	cwd string // "": not known
}

// object fills what s requires, and the file and its content even where they are optional.
func (f filler) object(s *schema) object {
	out := object{}
	for name, p := range s.Properties {
		if p == nil {
			continue
		}
		k := slotOf(name)
		if slices.Contains(s.Required, name) || k == pathOf || k == textOf || k == command {
			out[name] = f.value(name, p)
		}
	}
	return out
}

// value is a value for the property name.
func (f filler) value(name string, p *schema) any {
	k, s := slotOf(name), p.resolved()
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return pick(s.Enum)
	case s.is("array"):
		return f.list(k)
	case s.is("object") || len(s.Properties) > 0:
		return f.object(s)
	case s.Default != nil:
		return s.Default
	case p.nullable() && (k == other || k == timeout || k == folder):
		return nil
	case s.is("boolean"):
		return false
	case s.is("integer") || s.is("number"):
		return number(k)
	}
	return f.word(k, name, s)
}

// pick prefers the choice that writes a file, as in an editor tool's command.
func pick(choices []any) any {
	for _, want := range []any{"create", "write"} {
		if slices.Contains(choices, want) {
			return want
		}
	}
	return choices[0]
}

// list is a command as an argument vector, or empty.
func (f filler) list(k slot) any {
	if k == command {
		return []string{"sh", "-c", f.job.shell()}
	}
	return []string{}
}

func number(k slot) int {
	if k == timeout {
		return 10_000 // ms
	}
	return 1
}

func (f filler) word(k slot, name string, s *schema) string {
	switch k {
	case pathOf:
		return f.path(name, s.Description)
	case textOf:
		return f.job.content
	case command:
		return f.job.shell()
	case folder:
		if f.cwd != "" {
			return f.cwd
		}
		return "."
	case purpose:
		return "Write " + f.job.file
	}
	return ""
}

// path is the file to write, absolute where the property asks for that and the working directory is known.
func (f filler) path(name, description string) string {
	absolute := strings.Contains(strings.ToLower(name+" "+description), "absolute") && !eitherPath.MatchString(description)
	if absolute && f.cwd != "" && !path.IsAbs(f.job.file) {
		return path.Join(f.cwd, f.job.file)
	}
	return f.job.file
}

// A schema is the part of JSON Schema that tools are declared with.
type schema struct {
	Type        types              `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Enum        []any              `json:"enum"`
	Const       any                `json:"const"`
	Default     any                `json:"default"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
}

// UnmarshalJSON takes any JSON: true and false are schemas as well, which say nothing.
func (s *schema) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil
	}
	type plain schema // without this method
	return json.Unmarshal(data, (*plain)(s))
}

// types holds the names of types in lower case; Gemini writes them in upper case.
type types []string

// UnmarshalJSON takes a name or a list of names.
func (t *types) UnmarshalJSON(data []byte) error {
	var list []string
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	} else {
		list = make([]string, 1)
		if err := json.Unmarshal(data, &list[0]); err != nil {
			return err
		}
	}
	for _, name := range list {
		*t = append(*t, strings.ToLower(name))
	}
	return nil
}

func (s *schema) is(name string) bool { return slices.Contains(s.Type, name) }

// resolved returns the first alternative that has a type other than null, for a schema that is only alternatives.
func (s *schema) resolved() *schema {
	if len(s.Type) > 0 || len(s.Properties) > 0 {
		return s
	}
	for _, alt := range slices.Concat(s.AnyOf, s.OneOf) {
		if alt != nil && (len(alt.Type) != 1 || !alt.is("null")) {
			return alt.resolved()
		}
	}
	return s
}

// nullable tells whether null is a value of s. Strict tools require every property and make the optional ones so.
func (s *schema) nullable() bool {
	isNull := func(alt *schema) bool { return alt != nil && alt.is("null") }
	return s.is("null") || slices.ContainsFunc(s.AnyOf, isNull) || slices.ContainsFunc(s.OneOf, isNull)
}

// has tells whether s has a free property of a given slot.
func (s *schema) has(k slot) bool {
	for name, p := range s.Properties {
		if p != nil && len(p.Enum) == 0 && slotOf(name) == k {
			return true
		}
	}
	return false
}

// A job is what the prompt asks for: a file and what to write into it; or a command, where Options.Shell has one.
type job struct{ file, content, command string }

var (
	fileName = lazyregexp.New(`[\w./-]*\w\.[A-Za-z]\w{0,7}\b`)
	wish     = lazyregexp.New(`(?i)\b(?:write|create|make|save|put|add)\b[^\n]{0,80}?([\w./-]*\w\.[A-Za-z]\w{0,7})\b`)
	wording  = lazyregexp.New(`(?im)\b(?:containing|saying|with(?: the)?(?: text| contents?)?)[: ]+(.+?)[.\s]*$`)
	another  = lazyregexp.New(`^(?:,? and |, )([\w./-]*\w\.[A-Za-z]\w{0,7})\b`)
	// workingDir finds where the agent says that it works: "Current working directory: /x", "working in the directory: /x",
	// "<cwd>/x</cwd>", or a list under "Workspace Directories:".
	workingDir = lazyregexp.New(
		`(?i)(?:working in the directory|working directory|current directory|workspace director(?:y|ies)|<cwd>)` +
			`[^/\n]{0,24}\n?[\s*-]*(/[^\n<>"'` + "`" + `]*)`)
)

// jobOf finds the job in what the user said, given the last first. A prompt that names no file gets note.txt with the
// prompt in it.
func jobOf(texts []string) job {
	for _, text := range texts {
		if m := wish.FindStringSubmatch(text); m != nil {
			return job{file: m[1], content: contentOf(text, m[1])}
		}
	}
	for _, text := range texts {
		if name := fileName.FindString(text); name != "" {
			return job{file: name, content: contentOf(text, name)}
		}
	}
	return job{file: "note.txt", content: short(promptOf(texts)) + "\n"}
}

// jobsOf finds the job and those that are named together with it, as in "write a.txt and b.txt": the same content goes
// into each.
func jobsOf(texts []string) []job {
	first := jobOf(texts)
	jobs := []job{first}
	for _, text := range texts {
		_, rest, found := strings.Cut(text, first.file)
		if !found || !wish.MatchString(text) {
			continue
		}
		for m := another.FindStringSubmatch(rest); m != nil; m = another.FindStringSubmatch(rest) {
			jobs = append(jobs, job{file: m[1], content: first.content})
			rest = rest[len(m[0]):]
		}
		break
	}
	return jobs
}

// contentOf is what the prompt wants in the file, or the file's name without its ending.
func contentOf(text, file string) string {
	_, after, _ := strings.Cut(text, file)
	if m := wording.FindStringSubmatch(after); m != nil {
		return strings.Trim(m[1], `"'`) + "\n"
	}
	return strings.TrimSuffix(path.Base(file), path.Ext(file)) + "\n"
}

// shell is a command that does the job.
func (j job) shell() string {
	if j.command != "" {
		return j.command
	}
	return "printf '%s\\n' " + quote(strings.TrimSuffix(j.content, "\n")) + " > " + quote(j.file)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// promptOf is the last thing that the user said.
func promptOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// cwdOf finds the agent's working directory, "" where it does not say.
func cwdOf(t *turn) string {
	for _, text := range append([]string{t.system}, t.userTexts()...) {
		if m := workingDir.FindStringSubmatch(text); m != nil {
			return path.Clean(strings.TrimRight(m[1], " .,;:)"))
		}
	}
	return ""
}

// short is the first line of a text, at most 80 runes of it.
func short(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return line
}
