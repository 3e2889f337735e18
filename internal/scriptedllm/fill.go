package scriptedllm

import (
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
