package foreign

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// plainLines reads a scalar without quotes, of which lines that are indented by more than parent are a part.
func (p *yamlParser) plainLines(parent int) []byte {
	out := p.plainLine(nil)
	for {
		at := p.i
		var breaks []byte
		for first := true; p.i < len(p.b) && (first || blankLine(p.b[p.i:])); first = false {
			breaks = p.takeBreak(breaks)
		}
		n := 0
		for p.i+n < len(p.b) && p.b[p.i+n] == ' ' {
			n++
		}
		if p.i+n >= len(p.b) || n <= parent || p.b[p.i+n] == '#' {
			p.i = at
			return out
		}
		p.i += n
		for p.i < len(p.b) && p.b[p.i] == '\t' {
			p.i++
		}
		out = p.plainLine(fold(out, breaks))
	}
}

// takeBreak steps behind the end of the line, and adds the break there.
func (p *yamlParser) takeBreak(breaks []byte) []byte {
	n, width := p.eol(p.b[p.i:])
	breaks = append(breaks, p.b[p.i+n:p.i+n+width]...)
	p.i += n + width
	return breaks
}

// plainLine adds the rest of the line, without a comment and the white space at its end.
func (p *yamlParser) plainLine(out []byte) []byte {
	end, _ := p.eol(p.b[p.i:])
	line := p.b[p.i : p.i+end]
	if n := bytes.Index(line, []byte(" #")); n >= 0 {
		line = line[:n]
	}
	p.i += end
	return append(out, bytes.TrimRight(line, " \t\r")...)
}

// fold adds what so many line breaks are in a text that is folded: one is a space, of several the first is nothing.
func fold(out, breaks []byte) []byte {
	switch {
	case len(breaks) == 0 || breaks[0] != '\n':
		return append(out, breaks...)
	case len(breaks) == 1:
		return append(out, ' ')
	}
	return append(out, breaks[1:]...)
}

// quoted reads a scalar in quotes of either sort.
func (p *yamlParser) quoted() ([]byte, error) {
	at, quote := p.i, p.b[p.i]
	p.i++
	out := []byte{}
	stays := 0 // of out: what no break takes away
	for p.i < len(p.b) {
		n := p.special(quote)
		if n < 0 {
			break
		}
		out = append(out, p.b[p.i:p.i+n]...)
		p.i += n
		switch c := p.b[p.i]; {
		case breakLen(p.b[p.i:]) > 0:
			out = p.foldQuoted(out, stays)
		case c == quote && quote == '\'' && p.i+1 < len(p.b) && p.b[p.i+1] == '\'':
			out = append(out, '\'')
			p.i += 2
		case c == quote:
			p.i++
			return out, nil
		default:
			var ok bool
			if out, ok = p.escape(out); !ok {
				return nil, p.wrong("bad escape in a quoted text")
			}
			stays = len(out)
		}
	}
	p.i = at
	return nil, p.wrong("the quoted text does not end")
}

// special is how far it is to the next byte that says something in quotes of a sort: the quote, a backslash, a line break.
func (p *yamlParser) special(quote byte) int {
	b := p.b[p.i:]
	if quote == '\'' {
		return nearest(bytes.IndexByte(b, '\''), p.eolIn(b))
	}
	for n, c := range b {
		if c == '"' || c == '\\' || c == '\n' || p.rare && c == lineSeparator[0] && breakLen(b[n:]) > 0 {
			return n
		}
	}
	return -1
}

// eolIn is where the first line of b ends, -1 where all does.
func (p *yamlParser) eolIn(b []byte) int {
	if n, width := p.eol(b); width > 0 {
		return n
	}
	return -1
}

// nearest is the smaller of two that are not -1.
func nearest(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// foldQuoted reads the line breaks that come, with the white space around them.
func (p *yamlParser) foldQuoted(out []byte, stays int) []byte {
	for len(out) > stays && (out[len(out)-1] == ' ' || out[len(out)-1] == '\t' || out[len(out)-1] == '\r') {
		out = out[:len(out)-1]
	}
	return fold(out, p.breaks())
}

// breaks steps over line breaks and the white space between and behind them, and returns them.
func (p *yamlParser) breaks() (out []byte) {
	for p.i < len(p.b) {
		if n := breakLen(p.b[p.i:]); n > 0 {
			out = append(out, bytes.TrimPrefix(p.b[p.i:p.i+n], []byte("\r"))...)
			p.i += n
			continue
		}
		switch p.b[p.i] {
		case ' ', '\t':
			p.i++
		default:
			return out
		}
	}
	return out
}

// yamlEscapes are what one byte behind a backslash stands for.
var yamlEscapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': "\"", '/': "/", '\\': "\\", 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escape reads what stands behind a backslash.
func (p *yamlParser) escape(out []byte) ([]byte, bool) {
	if p.i++; p.i >= len(p.b) {
		return out, false
	}
	c := p.b[p.i]
	if isBreak(p.b[p.i:]) { // the line goes on, without a space
		breaks := p.breaks()
		return append(out, breaks[min(1, len(breaks)):]...), true
	}
	p.i++
	if s, ok := yamlEscapes[c]; ok {
		return append(out, s...), true
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	r, ok := p.hex(digits)
	if !ok {
		return out, false
	}
	if utf16.IsSurrogate(r) { // a writer that thinks in UTF-16
		if at := p.i; p.i+1 < len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u' {
			p.i += 2
			low, _ := p.hex(4)
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				p.i = at
			}
		}
	}
	return utf8.AppendRune(out, r), true
}

func (p *yamlParser) hex(digits int) (rune, bool) {
	if digits == 0 || p.i+digits > len(p.b) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(p.b[p.i:p.i+digits]), 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, false
	}
	p.i += digits
	return rune(v), true
}

// blockScalar reads a text behind | or >, whose lines are indented by more than parent.
func (p *yamlParser) blockScalar(parent int) (*node, error) {
	folded := p.b[p.i] == '>'
	var chomp byte
	indent := 0
	for p.i++; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '+' || c == '-':
			chomp = c
			continue
		case c >= '1' && c <= '9':
			indent = max(parent, 0) + int(c-'0')
			continue
		}
		break
	}
	if !p.atEnd() {
		return nil, p.wrong("something follows the mark of a block of text")
	}
	p.lineEnd()
	if indent == 0 {
		indent = p.blockIndent(parent)
	}
	return &node{kind: scalarNode, text: p.blockLines(indent, folded, chomp)}, nil
}

// blockIndent is how far the first line of a block that says something is indented; where none does, further than any line.
func (p *yamlParser) blockIndent(parent int) int {
	for i := p.i; i < len(p.b); {
		n := 0
		for i+n < len(p.b) && p.b[i+n] == ' ' {
			n++
		}
		if i+n < len(p.b) && !isBreak(p.b[i+n:]) {
			return max(n, parent+1)
		}
		end, width := p.eol(p.b[i:])
		if width == 0 {
			break
		}
		i += end + width
	}
	return len(p.b) + 1
}

// blockLines reads the lines of a block.
func (p *yamlParser) blockLines(indent int, folded bool, chomp byte) []byte {
	out, breaks := []byte{}, []byte{} // breaks have come since the last line
	wasMore, any := true, false       // the last line was indented further, or there was none
	for p.i < len(p.b) {
		n := 0
		for n < indent && p.i+n < len(p.b) && p.b[p.i+n] == ' ' {
			n++
		}
		rest := p.b[p.i+n:]
		if len(rest) > 0 && !isBreak(rest) && n < indent {
			break
		}
		end, width := p.eol(rest)
		if line := bytes.TrimSuffix(rest[:end], []byte("\r")); len(line) > 0 {
			more := line[0] == ' ' || line[0] == '\t'
			if folded && any && !more && !wasMore {
				out = fold(out, breaks)
			} else {
				out = append(out, breaks...)
			}
			out, breaks, wasMore, any = append(out, line...), breaks[:0], more, true
		}
		breaks = append(breaks, rest[end:end+width]...)
		p.i += n + end + width
	}
	switch {
	case chomp == '+':
		out = append(out, breaks...)
	case chomp == 0 && any && len(breaks) > 0:
		out = append(out, breaks[:max(breakLen(breaks), 1)]...)
	}
	return out
}
