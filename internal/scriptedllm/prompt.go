package scriptedllm

import (
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

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
