package scrub

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// What makes secrets known: by the caller, by names, by what they stand for.

// AddSecret makes value known: from now on it is replaced wherever it stands, plain or percent-encoded, JSON-escaped, as
// base64 or hex. The rule names it in placeholders; what is not a letter, a digit or an underscore becomes one. White
// space around the value does not count. A value of fewer than 8 bytes and a word are not searched for: rule is
// then listed by NotCovered. A value that is known already keeps its first rule.
func (s *Scrubber) AddSecret(rule, value string) { s.addNamed(rule, value) }

// MinExact is the length in bytes from which a value can be named to be gone.
const MinExact = 4

// AddExact is AddSecret for a value that a person wants gone: words and short ones are searched for too. It reports false, and does nothing,
// for one of fewer than MinExact bytes.
func (s *Scrubber) AddExact(rule, value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < MinExact || placeholders.Is(value) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(s.newKnown(placeholders.RuleName(rule), value))
	return true
}

// Adopt makes a value that is known read as a placeholder of the recording from now on, and Reveal put it there: the program
// of a replay names another secret in the place of that one. It does nothing where the value, or the placeholder, is another's
// already; a dummy that was made up for the placeholder gives way.
func (s *Scrubber) Adopt(placeholder, value string) {
	if !placeholders.Is(placeholder) {
		return
	}
	placeholder, _ = placeholders.Split(placeholder)
	s.mu.Lock()
	defer s.mu.Unlock()
	k, digits := s.known[strings.TrimSpace(value)], Digits(placeholder)
	if other := s.byHex[digits]; k == nil || k.dummy || k.adopted.Load() != nil || other != nil && !other.dummy {
		return
	}
	k.adopted.Store(&placeholder)
	s.byHex[digits] = k
	s.forget()
}

// AddDummies makes values stand for secrets that were found while recording and that the replay lacks: Reveal gives them, and
// where one stands it reads as its placeholder. A value that cannot be searched for (see AddSecret) reads so in a place of
// its own, as a short cookie was hidden in its header only. The true value, where it becomes known, goes before.
func (s *Scrubber) AddDummies(dummies []Given) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*known
	for _, d := range dummies {
		if !placeholders.Is(d.Placeholder) || d.Value == "" {
			continue
		}
		placeholder, _ := placeholders.Split(d.Placeholder)
		k := &known{rule: placeholders.Rule(placeholder), value: d.Value, placeholder: placeholder, dummy: true}
		if names.Searchable(d.Value) && s.dummies < maxDummies {
			s.dummies++
			all = append(all, k)
			continue
		}
		s.alias(k)
	}
	s.add(all...)
}

// AddPieces is AddSecret for an argument whose name says that it is a secret. Of one that is put together, as the value of a
// variable may be, each secret becomes known, unless one of them could not be searched for: then all of it does.
func (s *Scrubber) AddPieces(name, value string) {
	found := s.pieces(name, value)
	if slices.ContainsFunc(found, func(p piece) bool { return !names.Searchable(p.value) }) {
		s.addNamed(name, value)
		return
	}
	for _, p := range found {
		s.addNamed(name, p.value)
	}
}

// LearnEnv makes the secrets of an environment known, whose variables are NAME=VALUE: what is known already stays as it is. New
// does this for Options.Env.
func (s *Scrubber) LearnEnv(env []string) {
	// Sorted, so that which of two names for one value gives the rule does not depend on the order.
	for _, v := range slices.Sorted(slices.Values(env)) {
		name, value, ok := strings.Cut(v, "=")
		if !ok || !s.NamesSecret(name, value) {
			continue
		}
		for _, p := range s.pieces(name, value) {
			s.addNamed(name, p.value)
			if password, ok := names.BasicPassword(p.value); ok && strings.HasPrefix(strings.ToLower(value), "basic ") {
				s.addNamed(name, password)
			}
		}
	}
	for _, v := range env {
		if name, value, ok := strings.Cut(v, "="); ok {
			s.LearnVar(name, value)
		}
	}
}

// LearnVar makes known what a variable holds in a URL or, where its name says that it is that of a proxy, without a
// scheme, the password in a list of settings (Server=db;Password=V), keys in headers for OpenTelemetry, and the lines of a private key: it may stand in no header that
// would teach it. New does this for Options.Env.
func (s *Scrubber) LearnVar(name, value string) {
	for _, line := range keyLines(value) {
		s.addNamed(name, line)
	}
	for _, key := range headerKeys(name, value) {
		s.addNamed(name, key)
	}
	for _, f := range slices.Concat(settingSpans(value), s.index.Load().urls(value), proxySpans(name, value)) {
		secret := value[f.start:f.end]
		if f.rule == urlPassword {
			secret = names.Unescaped(secret)
		}
		if len(secret) >= names.MinKnown {
			s.addNamed(f.rule, secret)
		}
	}
}

// headerKeys are the keys in the headers that OpenTelemetry's exporters send (OTEL_EXPORTER_OTLP_HEADERS), as they are sent and as they are
// written: NAME=VALUE, percent-encoded, with commas between.
func headerKeys(variable, list string) (keys []string) {
	if !strings.HasPrefix(variable, "OTEL_EXPORTER_OTLP_") || !strings.HasSuffix(variable, "HEADERS") {
		return nil
	}
	for pair := range strings.SplitSeq(list, ",") {
		name, written, _ := strings.Cut(pair, "=")
		sent, err := url.PathUnescape(strings.TrimSpace(written))
		if err != nil || !names.Say(strings.TrimSpace(name), sent) && !names.LooksMade(sent) {
			continue
		}
		key := sent[names.SchemeLen(sent):]
		keys = append(keys, key)
		if password, ok := names.BasicPassword(key); ok {
			keys = append(keys, password)
		}
		if _, after, ok := strings.Cut(written, "%20"); ok && after != key {
			keys = append(keys, after)
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return len(key) < names.MinKnown })
}

// LearnURLs makes the passwords and tokens known that stand in the URLs of a text, which may be one.
func (s *Scrubber) LearnURLs(text string) { s.LearnVar("", text) }

// LearnFile makes the secrets known that names in a file give away which holds credentials by its own name, and returns how
// many of them were not known before: a program prints and sends such files, and what it reads from them. Other files teach
// nothing, for they are read in no order. b is what the file holds, name its path.
func (s *Scrubber) LearnFile(name string, b []byte) (fresh int) {
	if !names.IsCredentialFile(name) {
		return 0
	}
	learn := func(name, value string) {
		s.LearnVar(name, value)
		if names.IsFromOutside(value) || !s.NamesSecret(name, value) {
			return
		}
		for _, p := range s.pieces(name, value) {
			if isFresh, _ := s.learnNamed(name, p.value); isFresh {
				fresh++
			}
		}
	}
	text := string(b)
	for _, m := range settingLine.FindAllStringSubmatch(text, -1) {
		learn(m[1], settingValue(m[2]))
	}
	if path.Ext(name) == ".json" || strings.HasPrefix(strings.TrimSpace(text), "{") {
		for _, m := range jsonMember.FindAllStringSubmatch(text, -1) {
			learn(m[1], unescapedLines(m[2]))
		}
	}
	return fresh
}

// What a file of credentials has its values in: a line of a dotenv file, of INI, YAML or TOML, and members of JSON that share
// one. A value in quotation marks may go over several lines.
var (
	settingLine = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+|-[ \t]+)?["']?([A-Za-z_/][A-Za-z0-9_./:-]*?)["']?[ \t]*(?:=[ \t]*|:[ \t]+)("(?:[^"\\]|\\.)*"|'[^']*'|[^\r\n]*)`)
	jsonMember  = lazyregexp.New(`"([A-Za-z_][A-Za-z0-9_.-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`)
	comment     = lazyregexp.New(`[ \t]+#.*$`)
)

// settingValue returns the value of a line without quotation marks, a comment and the comma of JSON behind it.
func settingValue(v string) string {
	switch {
	case strings.HasPrefix(v, `"`):
		return unescapedLines(trimQuotes(strings.TrimRight(v, ", \t")))
	case !strings.HasPrefix(v, "'"):
		v = strings.TrimRight(comment.ReplaceAllString(v, ""), ", \t")
	}
	return trimQuotes(v)
}

// unescapedLines undoes what keys have in quotation marks.
func unescapedLines(v string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\"`, `"`, `\/`, "/", `\\`, `\`).Replace(v)
}

// LearnFrom makes known what the placeholders of stored stand for in real, of which stored is the scrubbed form: a replay
// that gives the program a file with the secrets of the recording must find these too, beside its own. It learns nothing of
// what does not fit.
func (s *Scrubber) LearnFrom(stored, real []byte) {
	align(string(stored), string(real), func(placeholder, rest, next string, _ bool) int {
		plain, form := placeholders.Split(placeholder)
		if form != "" {
			if n := s.knownIn(Digits(placeholder), form, rest); n > 0 {
				return n
			}
		}
		first, last := 1, min(len(rest), maxLeak)
		if next == "" { // nothing follows
			first, last = len(rest), min(len(rest), maxShape)
		}
		for n := first; n <= last; n++ {
			if !strings.HasPrefix(rest[n:], next) {
				continue
			}
			if value, ok := placeholders.Undisguise(rest[:n], form); ok && s.key.digits([]byte(value)) == Digits(plain) {
				s.AddAlias(plain, value)
				return n
			}
		}
		return -1
	})
}

// knownIn returns how long what is known under the digits of a placeholder is in a form, where rest begins with it; 0 where it does not.
func (s *Scrubber) knownIn(digits, form, rest string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.known {
		if Digits(k.written()) != digits {
			continue
		}
		if in := placeholders.Disguise(k.value, form); strings.HasPrefix(rest, in) {
			return len(in)
		}
	}
	return 0
}

// A Mark is how much a Scrubber knew at one time.
type Mark struct{ known int }

// Mark returns how much s knows now.
func (s *Scrubber) Mark() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{len(s.order)}
}

// Since returns a Scrubber that looks for the values that became known after m, in all their disguises, and for nothing
// else: what was scrubbed before m was looked through for everything else, and is to be looked through for these. Its
// placeholders are those of s. It learns nothing more: neither what becomes known to s later, nor by AddSecret, nor from what it
// scrubs, whose secrets are hidden in their own place alone. It is nil where nothing became known.
func (s *Scrubber) Since(m Mark) *Scrubber {
	s.mu.Lock()
	late := slices.Clone(s.order[m.known:])
	s.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	l := &Scrubber{rules: s.rules, names: s.names}
	l.init(s.key, newIndex([]*rule{placeholderRule}))
	l.add(late...)
	l.fixed = true
	return l
}

// Found lists the first MaxFound of the secrets that were found so far, by their digits: those of Options.Env and of
// AddSecret aside, whose shapes Env and Arg tell. Of a Scrubber that Since returned it lists what that found.
func (s *Scrubber) Found() []Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Secret, 0, len(s.found))
	for _, digits := range slices.Sorted(maps.Keys(s.found)) {
		out = append(out, s.found[digits])
	}
	return out
}
