package files

import "strings"

// A rule is one line of a .gitignore file.
type rule struct {
	negated  bool  // "!": what it matches is not ignored
	dirOnly  bool  // a "/" behind: matches directories alone
	baseOnly bool  // no "/" elsewhere: matches the name, at any depth
	glob     *glob // of the name, or of the path below the directory of the file
}

// A ruleSet is one file of rules. Git asks the last rule first.
type ruleSet struct {
	dir   string // the directory whose contents it rules
	rules []rule
}

// maxRulesLen is the longest file of rules that is read, in bytes.
const maxRulesLen = 1 << 20

// parseRules reads the text of a .gitignore file that lies in dir.
func parseRules(dir string, b []byte) *ruleSet {
	set := &ruleSet{dir: dir}
	text := strings.TrimPrefix(string(b), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			set.rules = append(set.rules, r)
		}
	}
	return set
}

// parseRule reads one line; ok is false where it is empty or a comment.
func parseRule(line string) (r rule, ok bool) {
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	p := trimSpaces(line)
	p, r.negated = strings.CutPrefix(p, "!")
	p, r.dirOnly = strings.CutSuffix(p, "/")
	r.baseOnly = !strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return rule{}, false
	}
	r.glob = compileGlob(p)
	return r, true
}

// trimSpaces drops the spaces at the end of a line, but not one behind a "\".
func trimSpaces(s string) string {
	end := len(s)
	for end > 0 && s[end-1] == ' ' {
		end--
	}
	slashes := 0
	for slashes < end && s[end-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 && end < len(s) {
		end++
	}
	return s[:end]
}

// decide says whether a rule of s speaks about path, which lies below s.dir, and whether it is then ignored.
func (s *ruleSet) decide(path string, isDir bool) (ignored, decided bool) {
	rel := path
	if s.dir != "" {
		rel = path[len(s.dir)+1:]
	}
	base := baseOf(rel)
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dirOnly && !isDir {
			continue
		}
		name := rel
		if r.baseOnly {
			name = base
		}
		if r.glob.match(name) {
			return !r.negated, true
		}
	}
	return false, false
}

// ignores asks the rule sets that hold for a directory's contents, the strongest last. Whether a directory above path is
// ignored is the caller's to know: Git never looks into one.
func ignores(sets []*ruleSet, path string, isDir bool) bool {
	for i := len(sets) - 1; i >= 0; i-- {
		if ignored, decided := sets[i].decide(path, isDir); decided {
			return ignored
		}
	}
	return false
}
