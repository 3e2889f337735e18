package check

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// inWindow tells whether e came in s.
func inWindow(e *event, s *span) bool {
	return s == nil || e.t >= s.From && (s.To < 0 || e.t <= s.To)
}

// windowText says which window, with a blank before it.
func windowText(s *span) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// notSeen says why a window was not looked at as a whole, or "".
func notSeen(s *span, end *ending) string {
	switch {
	case s != nil && max(s.From, s.To) > end.end:
		return sprintf("the cassette ends at %s, before the window does", seconds(end.end))
	case !end.whole && (s == nil || s.To < 0):
		return "the recording was not finished"
	}
	return ""
}

// A bytesProbe wants exactly some bytes typed, or some in a row.
type bytesProbe struct {
	eventProbe
	want  []byte
	exact bool
	in    *span

	total int64  // bytes that came
	tail  []byte // the end of what came, as long as what is looked for; of an exact one what came around the first difference
	wrong int64  // where the first difference is; below 0 none
	at    moment
	left  []Nearby
}

func newBytesProbe(want []byte, exact bool, in *span) *bytesProbe {
	p := &bytesProbe{want: want, exact: exact, in: in, wrong: -1}
	p.v.wanted = "the input contains " + quote(string(want)) + windowText(in)
	if exact {
		p.v.wanted = "the input is " + quote(string(want)) + windowText(in)
	}
	return p
}

func (p *bytesProbe) event(e *event, x *recent) {
	if e.kind != isInput || !inWindow(e, p.in) {
		return
	}
	if p.exact {
		p.compare(e, x)
	} else {
		p.tail = append(p.tail, e.bytes...)
		if bytes.Contains(p.tail, p.want) {
			p.v.status = Passed
		}
		p.tail = slices.Delete(p.tail, 0, max(0, len(p.tail)-len(p.want)+1))
	}
	p.total += int64(len(e.bytes))
}

func (p *bytesProbe) compare(e *event, x *recent) {
	if p.wrong >= 0 {
		return
	}
	for i, c := range e.bytes {
		at := p.total + int64(i)
		if at >= int64(len(p.want)) || p.want[at] != c {
			p.wrong, p.at, p.left = at, moment{e.seq, e.t}, x.list()
			p.tail = append([]byte(nil), e.bytes[i:min(len(e.bytes), i+maxInputTxt)]...)
			return
		}
	}
}

func (p *bytesProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	switch {
	case p.v.status != "":
	case p.wrong >= 0:
		before := string(p.want[max(0, int(p.wrong)-20):p.wrong])
		after := "the end"
		if rest := p.want[p.wrong:]; len(rest) > 0 {
			after = quote(string(rest[:min(len(rest), maxInputTxt)]))
		}
		p.settle(Failed, sprintf("at byte %d, behind %s, comes %s where %s was expected", p.wrong, quote(before), quote(string(p.tail)), after), nil)
		p.v.evidence = &Evidence{Context: p.left, Frames: []FrameTime{{"at", p.at.seq, ms(p.at.t)}}}
	case p.exact && p.total < int64(len(p.want)):
		p.settle(failedOr(why), sprintf("it ends after %d bytes, %s did not come", p.total, quote(string(p.want[p.total:])))+because(why), end.context)
	case p.exact:
		p.holds(why)
	default:
		p.settle(Failed, sprintf("%d bytes came without it", p.total)+because(why), end.context)
	}
	return p.v
}

// failedOr is Failed, or Unchecked where not everything was seen.
func failedOr(why string) Status {
	if why != "" {
		return Unchecked
	}
	return Failed
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return "; " + why
}

// A keysProbe wants keys in an order, others between them or not.
type keysProbe struct {
	eventProbe
	want []string
	in   *span
	read keyReader
	next int
	last []string // the latest keys that came
}

func newKeysProbe(want []string, in *span) *keysProbe {
	p := &keysProbe{in: in}
	for _, name := range want {
		p.want = append(p.want, keyName(name))
	}
	p.v.wanted = "these keys in this order: " + strings.Join(want, " ") + windowText(in)
	p.read = keyReader{key: p.key, paste: func([]byte, bool) {}}
	return p
}

func (p *keysProbe) key(name string) {
	if p.next < len(p.want) && name == p.want[p.next] {
		p.next++
	}
	if p.last = append(p.last, name); len(p.last) > 8 {
		p.last = p.last[1:]
	}
}

func (p *keysProbe) event(e *event, _ *recent) {
	if e.kind != isInput || !inWindow(e, p.in) {
		return
	}
	before := p.next
	p.read.read(e.bytes)
	if p.next == before && e.key != "" && p.next < len(p.want) && keyName(e.key) == p.want[p.next] {
		p.next++ // the recorder knew it under this name
	}
	if p.next == len(p.want) {
		p.v.status = Passed
	}
}

func (p *keysProbe) finish(end *ending) verdict {
	if p.v.status == "" {
		came := "none came"
		if len(p.last) > 0 {
			came = "the last keys are " + quotedList(p.last)
		}
		p.settle(Failed, sprintf("%q, the %d. of them, did not come; %s", p.want[p.next], p.next+1, came)+because(notSeen(p.in, end)), end.context)
	}
	return p.v
}

// A pasteProbe wants exactly these pastes.
type pasteProbe struct {
	eventProbe
	want  []string
	in    *span
	read  keyReader
	now   []byte // the paste that is open, as much as a wanted one can be long and one byte more
	long  int    // what it is in whole
	n     int    // pastes that ended
	wrong string
	ctx   *recent
	left  []Nearby
}

func newPasteProbe(want []string, in *span) *pasteProbe {
	p := &pasteProbe{want: want, in: in}
	p.v.wanted = countOf(len(want), "paste") + windowText(in) + ": " + quotedList(want)
	p.read = keyReader{key: func(string) {}, paste: p.part}
	return p
}

func (p *pasteProbe) part(b []byte, end bool) {
	most := 64
	if p.n < len(p.want) {
		most = len(p.want[p.n]) + 64
	}
	p.long += len(b)
	p.now = append(p.now, b[:min(len(b), max(0, most-len(p.now)))]...)
	if !end {
		return
	}
	if p.wrong == "" {
		p.judge()
	}
	p.now, p.long = p.now[:0], 0
	p.n++
}

func (p *pasteProbe) judge() {
	switch got := string(p.now); {
	case p.n >= len(p.want):
		p.wrong = sprintf("there is one more, %s", quote(got))
	case got != p.want[p.n] || p.long != len(got):
		p.wrong = sprintf("paste %d is %s (%d bytes)", p.n+1, quote(got), p.long)
	}
	if p.wrong != "" {
		p.left = p.ctx.list()
	}
}

func (p *pasteProbe) event(e *event, x *recent) {
	if e.kind == isInput && inWindow(e, p.in) {
		p.ctx = x
		p.read.read(e.bytes)
	}
}

func (p *pasteProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	switch {
	case p.wrong != "":
		p.settle(Failed, p.wrong, nil)
		p.v.evidence = &Evidence{Context: p.left}
	case p.read.in:
		p.settle(failedOr(why), sprintf("paste %d has no end mark, it begins with %s", p.n+1, quote(string(p.now)))+because(why), end.context)
	case p.n < len(p.want):
		p.settle(failedOr(why), sprintf("there are %d", p.n)+because(why), end.context)
	default:
		p.holds(why)
	}
	return p.v
}

// A listProbe wants exactly these resizes or signals.
type listProbe struct {
	eventProbe
	want []string
	of   eventKind
	in   *span
	got  []string
	more int
	at   []time.Duration
}

// maxListed is how many entries more than wanted a failure shows.
const maxListed = 20

func newListProbe(what string, of eventKind, want []string, in *span) *listProbe {
	p := &listProbe{want: want, of: of, in: in}
	p.v.wanted = "the " + what + windowText(in) + " are " + listed(want)
	return p
}

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func (p *listProbe) event(e *event, _ *recent) {
	if e.kind != p.of || !inWindow(e, p.in) {
		return
	}
	s := e.signal
	if p.of == isResize {
		s = sprintf("%dx%d", e.size.Rows, e.size.Cols)
	}
	if len(p.got) >= len(p.want)+maxListed {
		p.more++
		return
	}
	p.got, p.at = append(p.got, s), append(p.at, e.t)
}

func (p *listProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	same := len(p.got) == len(p.want)
	for i := range p.got {
		same = same && sameSignal(p.got[i], p.want[i])
	}
	switch {
	case same:
		p.holds(why)
	default:
		all := make([]string, len(p.got))
		for i, s := range p.got {
			all[i] = s + " at " + seconds(p.at[i])
		}
		if p.more > 0 {
			all = append(all, sprintf("%d more", p.more))
		}
		p.settle(Failed, "they are "+listed(all), end.context)
	}
	return p.v
}

// maxKeySequence is how long a key's sequence may be, in bytes.
const maxKeySequence = 64

// What terminals send for keys, besides control characters: the final byte of CSI or SS3, and the number of CSI n ~.
var (
	finalKeys = map[byte]string{'A': "up", 'B': "down", 'C': "right", 'D': "left", 'H': "home", 'F': "end", 'P': "f1", 'Q': "f2",
		'R': "f3", 'S': "f4", 'Z': "shift-tab", 'I': "focus-in", 'O': "focus-out"}
	tildeKeys = map[string]string{"1": "home", "2": "insert", "3": "delete", "4": "end", "5": "pageup", "6": "pagedown", "7": "home",
		"8": "end", "11": "f1", "12": "f2", "13": "f3", "14": "f4", "15": "f5", "17": "f6", "18": "f7", "19": "f8", "20": "f9",
		"21": "f10", "23": "f11", "24": "f12", "25": "f13", "26": "f14", "28": "f15", "29": "f16", "31": "f17", "32": "f18",
		"33": "f19", "34": "f20"}
	controlKeys = map[byte]string{'\r': "enter", '\n': "ctrl-j", '\t': "tab", 0x7f: "backspace", 0x1b: "escape", ' ': "space",
		0: "ctrl-@"}
	// As xterm adds them up: 1 and 1 for Shift, 2 for Alt, 4 for Ctrl.
	modifiers = map[string]string{"2": "shift-", "3": "alt-", "4": "alt-shift-", "5": "ctrl-", "6": "ctrl-shift-", "7": "ctrl-alt-",
		"8": "ctrl-alt-shift-"}
	// Other names of keys.
	sameKeys = map[string]string{"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "page-up": "pageup",
		"page-down": "pagedown", "pgup": "pageup", "pgdn": "pagedown", "backtab": "shift-tab", "ctrl-i": "tab", "ctrl-m": "enter",
		"ctrl-[": "escape", "ctrl-space": "ctrl-@"}
)

// pasteEnd ends a bracketed paste.
const pasteEnd = "\x1b[201~"

// A keyReader takes typed bytes apart into keys. A paste is one key; what it holds goes to paste.
type keyReader struct {
	open  []byte // of a sequence that is not whole
	in    bool   // within a paste
	key   func(name string)
	paste func(part []byte, end bool) // the content, in pieces
}

// read takes the bytes of one event.
func (r *keyReader) read(b []byte) {
	b = append(r.open, b...)
	r.open = nil
	for len(b) > 0 {
		n := r.next(b)
		if n == 0 {
			r.open = append([]byte(nil), b[:min(len(b), maxKeySequence)]...)
			return
		}
		b = b[n:]
	}
}

// next takes one key and returns its bytes, 0 where it is not whole.
func (r *keyReader) next(b []byte) int {
	if r.in {
		return r.pasted(b)
	}
	if b[0] == 0x1b && len(b) > 1 {
		return r.sequence(b)
	}
	if name := controlKeys[b[0]]; name != "" {
		r.key(name)
		return 1
	}
	if b[0] < 0x20 {
		r.key("ctrl-" + strings.ToLower(string(rune(b[0]|0x40))))
		return 1
	}
	if !utf8.FullRune(b) {
		return 0
	}
	_, n := utf8.DecodeRune(b)
	r.key(string(b[:n]))
	return n
}

// pasted passes on what is surely not the end's mark.
func (r *keyReader) pasted(b []byte) int {
	i := strings.Index(string(b), pasteEnd)
	if i >= 0 {
		r.in = false
		r.paste(b[:i], true)
		return i + len(pasteEnd)
	}
	hold := 0
	for n := min(len(b), len(pasteEnd)-1); n > 0; n-- {
		if strings.HasSuffix(string(b), pasteEnd[:n]) {
			hold = n
			break
		}
	}
	r.paste(b[:len(b)-hold], false)
	return len(b) - hold
}

func (r *keyReader) sequence(b []byte) int {
	switch {
	case b[1] == '[':
		return r.csi(b)
	case b[1] == 'O' && len(b) > 2:
		if name := finalKeys[b[2]]; name != "" {
			r.key(name)
			return 3
		}
	case b[1] == 0x1b:
		r.key("escape")
		return 1
	}
	if !utf8.FullRune(b[1:]) {
		return 0
	}
	_, n := utf8.DecodeRune(b[1:])
	r.key("alt-" + string(b[1:1+n]))
	return 1 + n
}

func (r *keyReader) csi(b []byte) int {
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	switch {
	case end == len(b) && end < maxKeySequence:
		return 0
	case end == len(b):
		r.key("escape")
		return 1
	}
	parameters, final := string(b[2:end]), b[end]
	if final == 'M' && parameters == "" { // the old mouse report: three more bytes
		if len(b) < end+4 {
			return 0
		}
		r.key("mouse")
		return end + 4
	}
	r.named(parameters, final)
	return end + 1
}

func (r *keyReader) named(parameters string, final byte) {
	number, modifier, _ := strings.Cut(parameters, ";")
	switch {
	case parameters == "200" && final == '~':
		r.in = true
		r.key("paste")
	case strings.HasPrefix(parameters, "<"):
		r.key("mouse")
	case final == '~' && tildeKeys[number] != "":
		r.key(modifiers[modifier] + tildeKeys[number])
	case finalKeys[final] != "":
		r.key(modifiers[modifier] + finalKeys[final])
	default:
		r.key("\x1b[" + parameters + string(rune(final)))
	}
}

// keyName returns the name that a keyReader has for a key.
func keyName(s string) string {
	if utf8.RuneCountInString(s) == 1 {
		if s == " " {
			return "space"
		}
		return s
	}
	if name, ok := sameKeys[s]; ok {
		return name
	}
	return s
}

// hasKey tells whether the input e has the key, by the recorder's word or by its bytes.
func hasKey(e *event, key string) bool {
	key = keyName(key)
	if keyName(e.key) == key {
		return true
	}
	found := false
	r := keyReader{key: func(name string) { found = found || name == key }, paste: func([]byte, bool) {}}
	r.read(e.bytes)
	return found
}
