// Command gitleaks writes the rules of gitleaks as a file of package scrub.
//
//	go run . -o ../../scrub/gitleaks.go
//
// It is a module of its own: gitleaks brings a configuration library, a logger and some forty more modules, none of which
// belongs into the program of somebody who records an agent. What scrub needs of it is data.
//
// gitleaks scans whole files, line ends and all; scrub scans streams, and JSON in which code is quoted. So a rule is taken
// apart into what scrub can look for as it goes: the literal that its evidence begins with, whether an assignment stands
// between a service's name and the secret, and the expression of the secret alone. A rule that has no such literal is left
// out, with its reason (leftOut), or said anew (said). A rule that cannot be taken apart ends the program: a new version
// of gitleaks does not lose rules silently.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// version is that of gitleaks; go.mod pins it.
const version = "v8.30.0"

// A source is gitleaks.toml, as far as it is read.
type source struct {
	Allowlist allowlist `toml:"allowlist"`
	Rules     []struct {
		ID         string      `toml:"id"`
		Regex      string      `toml:"regex"`
		Entropy    float64     `toml:"entropy"`
		Allowlists []allowlist `toml:"allowlists"`
	} `toml:"rules"`
}

type allowlist struct {
	Target    string   `toml:"regexTarget"`
	Regexes   []string `toml:"regexes"`
	StopWords []string `toml:"stopwords"`
}

func main() {
	out := flag.String("o", "gitleaks.go", "the file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "gitleaks:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	var src source
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &src); err != nil {
		return err
	}
	for re, with := range anchored {
		i := slices.Index(src.Allowlist.Regexes, re)
		if i < 0 {
			return fmt.Errorf("%s is said here and not in gitleaks %s", re, version)
		}
		src.Allowlist.Regexes[i] = with
	}
	shapes, err := shapesOf(&src)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	write(&b, &src, shapes)
	code, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	fmt.Printf("gitleaks %s: %d rules, %d left out, %d shapes\n", version, len(src.Rules), len(leftOut), len(shapes))
	return os.WriteFile(out, code, 0o644)
}

// shapesOf takes every rule apart.
func shapesOf(src *source) ([]*shape, error) {
	var shapes []*shape
	ids := make(map[string]bool)
	for _, r := range src.Rules {
		ids[r.ID] = true
		if leftOut[r.ID] != "" {
			continue
		}
		var allow []string
		for _, a := range r.Allowlists {
			if a.Target == "" {
				allow = append(allow, a.Regexes...)
			}
		}
		parts := said[r.ID]
		if parts == nil {
			var err error
			if parts, err = takeApart(r.Regex); err != nil {
				return nil, fmt.Errorf("rule %s: %w: put it into leftOut or said", r.ID, err)
			}
		}
		for _, p := range parts {
			s := *p
			s.ID, s.Entropy = r.ID, r.Entropy
			if s.Allow == nil && !s.NoAllow {
				s.Allow = allow
			}
			if s.Assigned && ownForm[r.ID] == "" {
				own, err := beginsLikeNoID(s.Re)
				if err != nil {
					return nil, err
				}
				s.Says = !own
			}
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("rule %s: %w", r.ID, err)
			}
			shapes = append(shapes, &s)
		}
	}
	for _, id := range slices.Concat(keys(leftOut), keys(said), keys(ownForm)) {
		if !ids[id] {
			return nil, fmt.Errorf("rule %s is said here and not in gitleaks %s", id, version)
		}
	}
	return shapes, nil
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func write(b *bytes.Buffer, src *source, shapes []*shape) {
	fmt.Fprintf(b, header, version)
	fmt.Fprintf(b, "// leakStopWords make a find none that holds one of them, in lowercase.\nvar leakStopWords = %s\n\n", list(src.Allowlist.StopWords))
	fmt.Fprintf(b, "// leakAllowed are what a find is in full where it is none.\nvar leakAllowed = %s\n\n", list(src.Allowlist.Regexes))
	fmt.Fprintf(b, "var leaks = []leak{\n")
	for _, s := range shapes {
		fmt.Fprintf(b, "{id: %q, names: %s, re: %s", s.ID, list(s.Names), raw(s.Re))
		for _, f := range []struct {
			on   bool
			name string
		}{{s.Fold, "fold"}, {s.Assigned, "assigned"}, {s.Says, "says"}, {s.Word, "word"}, {s.Alone, "alone"}, {s.Closed, "closed"}} {
			if f.on {
				fmt.Fprintf(b, ", %s: true", f.name)
			}
		}
		if s.Behind != "" {
			fmt.Fprintf(b, ", behind: %s", raw(s.Behind))
		}
		if s.Entropy > 0 {
			fmt.Fprintf(b, ", entropy: %g", s.Entropy)
		}
		if len(s.Allow) > 0 {
			fmt.Fprintf(b, ", allow: %s", list(s.Allow))
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
}

func raw(s string) string {
	if strings.Contains(s, "`") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

func list(l []string) string {
	quoted := make([]string, len(l))
	for i, s := range l {
		quoted[i] = raw(s)
	}
	return "[]string{" + strings.Join(quoted, ", ") + "}"
}
