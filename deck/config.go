package deck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Bounds of tapedeck.yaml. The YAML parser takes memory by the square of how deep a text is nested, and time without end
// for aliases of aliases: 400 KB of brackets, or 350 bytes of anchors, end the recorder.
const (
	maxConfig = 64 << 10 // bytes
	// maxOpeners is how many brackets, braces and dashes of lists may stand in it: no text is nested deeper than it has of
	// these, whatever is quoted, but by its indentation, which costs bytes by the square.
	maxOpeners = 4096
)

// errAlias says that a configuration has an anchor or an alias.
var errAlias = errors.New("anchors (&a) and aliases (*a) are not read here: write the text out")

// decodeConfig reads YAML into c and refuses fields that c does not have. An empty text leaves c as it is.
func decodeConfig(b []byte, c any) error {
	if n := openers(b); n > maxOpeners {
		return fmt.Errorf("%d brackets and dashes, more than %d: shorten it", n, maxOpeners)
	}
	if hasAlias(b) {
		return errAlias
	}
	err := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(c)
	if errors.Is(err, io.EOF) { // which a file of comments gives
		return nil
	}
	return err
}

// openers counts what a deeper level of a text can begin with.
func openers(b []byte) int {
	n := 0
	for i, c := range b {
		blank := i+1 == len(b) || bytes.IndexByte([]byte(" \t\r\n"), b[i+1]) >= 0
		if c == '[' || c == '{' || c == '-' && blank {
			n++
		}
	}
	return n
}

// hasAlias reports whether b has an anchor or an alias.
func hasAlias(b []byte) bool {
	return slices.ContainsFunc(lexer.Tokenize(string(b)), func(t *token.Token) bool {
		return t.Type == token.AnchorType || t.Type == token.AliasType
	})
}
