package policy

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
)

// Limits of all rules of one check together.
const (
	maxSpent = 1 << 20 // what expressions look at in loops and in functions: elements, and 16 bytes of text each
	maxWork  = 1 << 26 // of patterns: their steps times the bytes of the texts; half a second at the very worst
)

var (
	errSpent = errors.New("it looks at more than it may: shorten its loops, or what it looks at")
	errWork  = errors.New("the patterns of all policies have more to look at than they may: name a target and a key in them")
)

// A budget is what one check has used. The methods that expressions call panic, which the machine makes the error of the
// evaluation.
type budget struct{ spent, work int }

// match matches a text for all rules' account.
func (b *budget) match(re *boundedregexp.Regexp, text string) (bool, error) {
	const least = 16 // bytes that a match costs where there are fewer
	if b.work += (len(text) + least) * re.Steps(); b.work > maxWork {
		b.work = maxWork
		return false, errWork
	}
	return re.Match(text)
}

// charge charges for a value, and returns it.
func (b *budget) charge(args ...any) any {
	b.spend(args[0])
	return args[0]
}

// chars charges for each byte of a text that is about to become a list.
func (b *budget) chars(args ...any) any {
	if text, ok := args[0].(string); ok {
		b.take(len(text))
	}
	return args[0]
}

func (b *budget) spend(v any) {
	switch v := v.(type) {
	case string:
		b.take(1 + len(v)/16)
	case []any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case map[string]any:
		b.take(1)
		for _, e := range v {
			b.spend(e)
		}
	case []string:
		b.take(1 + len(v))
	default:
		b.take(1)
	}
}

func (b *budget) take(n int) {
	if b.spent += n; b.spent > maxSpent {
		b.spent = maxSpent
		panic(errSpent)
	}
}

// matches is the operator of that name. What is not there matches nothing, as it contains nothing.
func (b *budget) matches(v any, re *boundedregexp.Regexp) bool {
	if v == nil {
		return false
	}
	text, ok := v.(string)
	if !ok {
		panic(fmt.Errorf("matches: expected a text, got %T", v))
	}
	yes, err := b.match(re, text)
	if err != nil {
		panic(err)
	}
	return yes
}
