package check

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

var patterns sync.Map // text → *regexp.Regexp

// pattern compiles one of this package's own expressions, once.
func pattern(s string) *regexp.Regexp {
	if re, ok := patterns.Load(s); ok {
		return re.(*regexp.Regexp)
	}
	re, _ := patterns.LoadOrStore(s, regexp.MustCompile(s))
	return re.(*regexp.Regexp)
}

// maxQuoted is how much of a text a message shows, in bytes.
const maxQuoted = 200

// quote returns s in quotation marks, its control characters as escapes, shortened.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return `"` + strings.ReplaceAll(visible.Line(s), `"`, `\"`) + `"`
}

func quotedList(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = quote(s)
	}
	return strings.Join(out, ", ")
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orTop(path string) string {
	if path == "" {
		return "scenario"
	}
	return path
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}

// unknownHint names what an unknown key may have been meant for.
func unknownHint(key string, names []string) string {
	if hint := didYouMean(key, names); hint != "" {
		return hint
	}
	if len(names) > maxKeys {
		return "; there are " + strings.Join(names[:maxKeys], ", ") + " and more"
	}
	return "; there are " + strings.Join(names, ", ")
}

// didYouMean returns "; did you mean …?" with the name that is nearest to word, or "" where none is near.
func didYouMean(word string, names []string) string {
	if best := meant.By(word, names); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}
