package policy

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
)

// A denyRegex denies what a pattern matches.
type denyRegex struct {
	target, key string
	pattern     *boundedregexp.Regexp
	reason      string
}

func compileRegex(r *Rule) (judge, *RuleError) {
	if err := need(r, "pattern"); err != nil {
		return nil, err
	}
	m, err := boundedregexp.Compile(r.Pattern)
	if err != nil {
		return nil, wrong(r, "pattern", "%v", err)
	}
	what := "a param"
	if r.Key != "" {
		what = fmt.Sprintf("param '%s'", shorten(r.Key))
	}
	return &denyRegex{r.Target, r.Key, m, fmt.Sprintf("%s matches '%s'", what, shorten(r.Pattern))}, nil
}

func (d *denyRegex) against(s *subject) string {
	if s.action.Tool == "" || d.target != "" && s.action.Tool != d.target || s.action.Parameters == nil {
		return ""
	}
	v := &s.action.Parameters.tree
	if d.key != "" {
		var ok bool
		if v, ok = s.action.Parameters.get(d.key); !ok {
			return ""
		}
	}
	for text := range s.texts(v) {
		yes, err := s.scratch().match(d.pattern, text)
		if err != nil {
			return "it cannot be judged, which denies: " + err.Error()
		}
		if yes {
			return d.reason
		}
	}
	return ""
}
