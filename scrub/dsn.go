package scrub

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// placeSpans returns the secrets of a variable or an argument that only their place tells: of a proxy without a scheme, and of
// a list of settings.
func (s *Scrubber) placeSpans(name, value string) (spans []span) {
	if s.rules >= rulesGenuine {
		spans = proxySpans(name, value)
	}
	return append(spans, s.settingSpans(value)...)
}

// settingSpans returns the secrets of a list of settings, which programs reach a database with: Server=db;User Id=sa;Password=V
// (ADO, Azure) and host=db user=ann password=V (libpq). A text that is not two settings at least, and nothing else, has none.
func (s *Scrubber) settingSpans(v string) []span {
	if s.rules < RulesOfNames || strings.Count(v, "=") < 2 || strings.Contains(v, "://") && !strings.Contains(v, ";") {
		return nil
	}
	if spans, ok := settings(v, ";"); ok {
		return spans
	}
	spans, _ := settings(v, " ")
	return spans
}

// settings returns where the secrets stand among settings that sign separates; ok is false where v is no such list.
func settings(v, sign string) (spans []span, ok bool) {
	for at := 0; at < len(v); {
		end := at + settingEnd(v[at:], sign[0])
		setting := v[at:end]
		name, value, hasValue := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		switch {
		case strings.TrimSpace(setting) == "":
		case !hasValue || !isSettingName(name):
			return nil, false
		default:
			ok = ok || end < len(v)
			if trimmed := trimQuotes(value); trimmed != "" && settingOpens(name) {
				start := end - len(value) + strings.Index(value, trimmed)
				spans = append(spans, span{start: start, end: start + len(trimmed), rule: placeholders.RuleName(name)})
			}
		}
		at = end + 1
	}
	return spans, ok
}

// settingOpens tells whether the name of a setting says that its value is a secret. Pwd is no directory here.
func settingOpens(name string) bool { return NameSaysSecret(name) || strings.EqualFold(name, "pwd") }

// settingEnd returns where the first setting of v ends: before a sign that stands in no quotation marks.
func settingEnd(v string, sign byte) int {
	quote := byte(0)
	for i := range len(v) {
		switch c := v[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && i > 0 && v[i-1] == '=':
			quote = c
		case c == sign:
			return i
		}
	}
	return len(v)
}

// isSettingName tells whether name is letters, digits, blanks and what joins words.
func isSettingName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !chars.IsAlnum(c) && strings.IndexByte(" _.-", c) < 0 {
			return false
		}
	}
	return name != ""
}

// trimQuotes returns v without the blanks and the quotation marks around it.
func trimQuotes(v string) string {
	v = strings.TrimSpace(v)
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		v = strings.TrimSpace(v[1 : n-1])
	}
	return v
}
