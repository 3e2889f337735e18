package websock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

func text(s string) Frame { return Frame{Fin: true, Op: Text, Payload: []byte(s)} }
func first(s string) Frame {
	return Frame{Op: Text, Payload: []byte(s)}
}
func more(s string) Frame            { return Frame{Op: Continuation, Payload: []byte(s)} }
func last(s string) Frame            { return Frame{Fin: true, Op: Continuation, Payload: []byte(s)} }
func ping(s string) Frame            { return Frame{Fin: true, Op: Ping, Payload: []byte(s)} }
func pong(s string) Frame            { return Frame{Fin: true, Op: Pong, Payload: []byte(s)} }
func closeWith(payload string) Frame { return Frame{Fin: true, Op: Close, Payload: []byte(payload)} }

func at(chop int, frames ...Frame) []step { return []step{{frames: frames, chop: chop}} }

// each sends every frame in a piece of its own.
func each(frames ...Frame) []step {
	var s []step
	for _, f := range frames {
		s = append(s, step{frames: []Frame{f}})
	}
	return s
}

func said(s string) Event   { return Event{Op: Text, Payload: s} }
func ponged(s string) Event { return Event{Op: Pong, Payload: s} }

var violated = []int{1002}

// Category 1: messages of lengths at which their encoding changes.
func framing() []test {
	var tests []test
	for i, n := range []int{0, 125, 126, 127, 128, 65535, 65536, 65536} {
		chop := 0
		if i == 7 {
			chop = 997
		}
		for kind, op := range map[string]byte{"1.1.": Text, "1.2.": Binary} {
			p := strings.Repeat("*", n)
			if op == Binary {
				p = strings.Repeat("\xfe", n)
			}
			tests = append(tests, test{name: kind + itoa(i+1), steps: at(chop, Frame{Fin: true, Op: op, Payload: []byte(p)}), want: []Event{{Op: op, Payload: p}}})
		}
	}
	return tests
}

// Category 2: pings and pongs.
func pings() []test {
	binary := "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	most := strings.Repeat("\xfe", 125)
	var ten []Frame
	var tenth []Event
	for i := range 10 {
		ten = append(ten, ping("payload-"+itoa(i)))
		tenth = append(tenth, ponged("payload-"+itoa(i)))
	}
	return []test{
		{name: "2.1", steps: at(0, ping("")), want: []Event{ponged("")}},
		{name: "2.2", steps: at(0, ping("Hello, world!")), want: []Event{ponged("Hello, world!")}},
		{name: "2.3", steps: at(0, ping(binary)), want: []Event{ponged(binary)}},
		{name: "2.4", steps: at(0, ping(most)), want: []Event{ponged(most)}},
		{name: "2.5", steps: at(0, ping(most+"\xfe")), closes: violated},
		{name: "2.6", steps: at(1, ping(most)), want: []Event{ponged(most)}},
		{name: "2.7", steps: at(0, pong(""))},
		{name: "2.8", steps: at(0, pong("unsolicited pong payload"))},
		{name: "2.9", steps: at(0, pong("unsolicited pong payload"), ping("ping payload")), want: []Event{ponged("ping payload")}},
		{name: "2.10", steps: at(0, ten...), want: tenth},
		{name: "2.11", steps: at(1, ten...), want: tenth},
	}
}

// Category 3: reserved bits.
func reserved() []test {
	rsv := func(f Frame, bits byte) Frame { f.RSV = bits; return f }
	hello := []Event{said("Hello, world!")}
	after := []Frame{text("Hello, world!"), rsv(text("Hello, world!"), 2), ping("")}
	return []test{
		{name: "3.1", steps: at(0, rsv(text("Hello, world!"), 1)), closes: violated},
		{name: "3.2", steps: at(0, after...), want: hello, closes: violated},
		{name: "3.3", steps: each(text("Hello, world!"), rsv(text("Hello, world!"), 3), ping("")), want: hello, closes: violated},
		{name: "3.4", steps: at(1, text("Hello, world!"), rsv(text("Hello, world!"), 4), ping("")), want: hello, closes: violated},
		{name: "3.5", steps: at(0, rsv(Frame{Fin: true, Op: Binary, Payload: []byte("\x00\xff\xfe")}, 5)), closes: violated},
		{name: "3.6", steps: at(0, rsv(ping("Hello, world!"), 6)), closes: violated},
		{name: "3.7", steps: at(0, rsv(closeWith("\x03\xe8"), 7)), closes: violated},
	}
}

// Category 4: opcodes that mean nothing.
func opcodes() []test {
	var tests []test
	for group, from := range map[string]byte{"4.1.": 3, "4.2.": 11} {
		for i := range 5 {
			odd := Frame{Fin: true, Op: from + byte(i)}
			tt := test{name: group + itoa(i+1), closes: violated}
			switch i {
			case 0:
				tt.steps = at(0, odd)
			case 1:
				odd.Payload = []byte("reserved opcode payload")
				tt.steps = at(0, odd)
			case 2:
				tt.steps = at(0, text("Hello, world!"), odd, ping(""))
			case 3:
				odd.Payload = []byte("reserved opcode payload")
				tt.steps = each(text("Hello, world!"), odd, ping(""))
			case 4:
				odd.Payload = []byte("reserved opcode payload")
				tt.steps = at(1, text("Hello, world!"), odd, ping(""))
			}
			if i >= 2 {
				tt.want = []Event{said("Hello, world!")}
			}
			tests = append(tests, tt)
		}
	}
	return tests
}

// Category 5: fragments.
func fragments() []test {
	whole := []Event{said("fragment1fragment2")}
	two := []Frame{first("fragment1"), last("fragment2")}
	pinged := []Frame{first("fragment1"), ping("ping payload"), last("fragment2")}
	pingedWant := []Event{ponged("ping payload"), said("fragment1fragment2")}
	lost := func(fin bool) []Frame {
		return []Frame{{Fin: fin, Payload: []byte("non-continuation payload")}, text("Hello, world!")}
	}
	five := []Frame{first("fragment1"), more("fragment2"), ping("pongme 1!"), more("fragment3"), more("fragment4"), ping("pongme 2!"), last("fragment5")}
	fiveWant := []Event{ponged("pongme 1!"), ponged("pongme 2!"), said("fragment1fragment2fragment3fragment4fragment5")}
	twice := func(fin bool) []Frame {
		b := []Frame{{Fin: fin, Payload: []byte("fragment1")}, first("fragment2"), last("fragment3")}
		return append(b, b...)
	}
	slow := each(five...)
	slow[3].after, slow[6].after = time.Second, time.Second
	return []test{
		{name: "5.1", steps: at(0, Frame{Op: Ping, Payload: []byte("fragment1")}, last("fragment2")), closes: violated},
		{name: "5.2", steps: at(0, Frame{Op: Pong, Payload: []byte("fragment1")}, last("fragment2")), closes: violated},
		{name: "5.3", steps: at(0, two...), want: whole},
		{name: "5.4", steps: each(two...), want: whole},
		{name: "5.5", steps: at(1, two...), want: whole},
		{name: "5.6", steps: at(0, pinged...), want: pingedWant},
		{name: "5.7", steps: each(pinged...), want: pingedWant},
		{name: "5.8", steps: at(1, pinged...), want: pingedWant},
		{name: "5.9", steps: at(0, lost(true)...), closes: violated},
		{name: "5.10", steps: each(lost(true)...), closes: violated},
		{name: "5.11", steps: at(1, lost(true)...), closes: violated},
		{name: "5.12", steps: at(0, lost(false)...), closes: violated},
		{name: "5.13", steps: each(lost(false)...), closes: violated},
		{name: "5.14", steps: at(1, lost(false)...), closes: violated},
		{name: "5.15", steps: at(0, append(two[:2:2], lost(false)...)...), want: whole, closes: violated},
		{name: "5.16", steps: at(0, twice(false)...), closes: violated},
		{name: "5.17", steps: at(0, twice(true)...), closes: violated},
		{name: "5.18", steps: at(0, first("fragment1"), text("fragment2")), closes: violated},
		{name: "5.19", steps: slow, want: fiveWant, slow: true},
		{name: "5.20", steps: each(five...), want: fiveWant},
	}
}

// Category 7: closing.
func closing() []test {
	normal := closeWith("\x03\xe8")
	is := func(code int) []int { return []int{code} }
	tests := []test{
		{name: "7.1.1", steps: at(0, text("Hello World!"), normal), want: []Event{said("Hello World!")}, closes: is(1000)},
		{name: "7.1.2", steps: at(0, normal, normal), closes: is(1000)},
		{name: "7.1.3", steps: at(0, normal, ping("")), closes: is(1000)},
		{name: "7.1.4", steps: at(0, normal, text("Hello World!")), closes: is(1000)},
		{name: "7.1.5", steps: at(0, first("fragment1"), normal, last("fragment2")), closes: is(1000)},
		{name: "7.1.6", steps: at(0, text(strings.Repeat("BAsd7&jh23", 26214)), text("Hello World!"), normal, ping("")),
			want: []Event{said(strings.Repeat("BAsd7&jh23", 26214)), said("Hello World!")}, closes: is(1000)},
		{name: "7.3.1", steps: at(0, closeWith("")), closes: []int{1005, 1000}},
		{name: "7.3.2", steps: at(0, closeWith("a")), closes: violated},
		{name: "7.3.3", steps: at(0, normal), closes: is(1000)},
		{name: "7.3.4", steps: at(0, closeWith("\x03\xe8Hello World!")), closes: is(1000)},
		{name: "7.3.5", steps: at(0, closeWith("\x03\xe8"+strings.Repeat("*", 123))), closes: is(1000)},
		{name: "7.3.6", steps: at(0, closeWith("\x03\xe8"+strings.Repeat("*", 124))), closes: violated},
		{name: "7.5.1", steps: at(0, closeWith("\x03\xe8"+badText)), closes: is(1007)},
	}
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		tests = append(tests, test{name: "7.7." + itoa(i+1), steps: at(0, closeWith(string(ClosePayload(code, "")))), closes: []int{code, 1000}})
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 1015} {
		tests = append(tests, test{name: "7.9." + itoa(i+1), steps: at(0, closeWith(string(ClosePayload(code, "")))), closes: violated})
	}
	for i, code := range []int{5000, 65535} {
		tests = append(tests, test{name: "7.13." + itoa(i+1), steps: at(0, closeWith(string(ClosePayload(code, "")))), closes: violated})
	}
	return tests
}

const (
	goodText = "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!"
	kosme    = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
	badText  = kosme + "\xed\xa0\x80edited" // half a surrogate pair
	tooHigh  = "\xf4\x90\x80\x80"           // beyond U+10FFFF
)

var notText = []int{1007}

// octets sends each byte of s in a fragment of its own.
func octets(s string) []Frame {
	frames := []Frame{first(s[:1])}
	for i := 1; i < len(s); i++ {
		frames = append(frames, more(s[i:i+1]))
	}
	return append(frames, last(""))
}

// Category 6: text that is UTF-8, and text that is not and fails at its first wrong byte.
func utf8Cases() []test {
	tests := []test{
		{name: "6.1.1", steps: at(0, text("")), want: []Event{said("")}},
		{name: "6.1.2", steps: at(0, first(""), more(""), last("")), want: []Event{said("")}},
		{name: "6.1.3", steps: at(0, first(""), more("middle frame payload"), last("")), want: []Event{said("middle frame payload")}},
		{name: "6.2.1", steps: at(0, text(goodText)), want: []Event{said(goodText)}},
		{name: "6.2.2", steps: at(0, first(goodText[:12]), last(goodText[12:])), want: []Event{said(goodText)}},
		{name: "6.2.3", steps: at(0, octets(goodText)...), want: []Event{said(goodText)}},
		{name: "6.2.4", steps: at(0, octets(kosme)...), want: []Event{said(kosme)}},
		{name: "6.3.1", steps: at(0, text(badText)), closes: notText},
		{name: "6.3.2", steps: at(0, octets(badText)...), closes: notText},
		{name: "6.4.1", steps: each(first(kosme), more(tooHigh), last("edited")), closes: notText, fast: true},
		{name: "6.4.2", steps: each(first(kosme), more(tooHigh[:2]), last(tooHigh[2:]+"edited")), closes: notText, fast: true},
		{name: "6.4.3", steps: inThree(text(kosme+tooHigh+"edited"), len(kosme), len(tooHigh)), closes: notText, fast: true},
		{name: "6.4.4", steps: inThree(text(kosme+tooHigh+"edited"), len(kosme), 2), closes: notText, fast: true},
	}
	for _, group := range sequences {
		for i, s := range group.good {
			tests = append(tests, whole(fmt.Sprintf("%s good %d", group.name, i+1), s, nil))
		}
		for i, s := range group.bad {
			tests = append(tests, whole(fmt.Sprintf("%s bad %d", group.name, i+1), s, notText))
		}
	}
	return append(tests, prefixes()...)
}

// whole sends s at once; where it is bad it closes with one of closes.
func whole(name, s string, closes []int) test {
	tt := test{name: name, steps: at(0, text(s)), closes: closes}
	if closes == nil {
		tt.want = []Event{said(s)}
	}
	return tt
}

// inThree sends a frame in three: the header and n bytes, m more, the rest.
func inThree(f Frame, n, m int) []step {
	head := len(f.Append(nil)) - len(f.Payload)
	return []step{{frames: []Frame{f}, cut: [2]int{0, head + n}}, {frames: []Frame{f}, cut: [2]int{head + n, head + n + m}}, {}}
}

// prefixes is 6.5 and 6.6: every beginning of a text, good where no character is cut.
func prefixes() []test {
	var tests []test
	cuts := map[int]bool{2: true, 5: true, 7: true, 9: true, 11: true}
	for n := 1; n <= len(kosme); n++ {
		if cuts[n] {
			tests = append(tests, whole(fmt.Sprintf("6.5 %d bytes", n), kosme[:n], nil))
		} else {
			tests = append(tests, whole(fmt.Sprintf("6.6 %d bytes", n), kosme[:n], notText))
		}
	}
	return tests
}

// sequences are 6.7 to 6.23, after Markus Kuhn's stress test.
var sequences = []struct {
	name      string
	good, bad []string
}{
	{"6.7 first of a length", []string{"\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"}, nil},
	{"6.8 first of five and six", nil, []string{"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"}},
	{"6.9 last of a length", []string{"\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}, nil},
	{"6.10 last of four, five, six", nil, []string{"\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"}},
	{"6.11 boundaries", []string{"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"}, []string{"\xf4\x90\x80\x80"}},
	{"6.12 continuation bytes", nil, []string{
		"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf", "\x80\xbf\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf", run(0x80, 0xbe, ""),
	}},
	{"6.13 lonely start bytes", nil, []string{run(0xc0, 0xdf, " "), run(0xe0, 0xef, " "), run(0xf0, 0xf6, " "), run(0xf8, 0xfb, " "), "\xfc "}},
	{"6.14 last byte missing", nil, missing},
	{"6.15 all of these", nil, []string{concat(missing)}},
	{"6.16 impossible bytes", nil, []string{"\xfe", "\xff", "\xfe\xfe\xff\xff"}},
	{"6.17 overlong slash", nil, []string{"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"}},
	{"6.18 longest overlong", nil, []string{"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf"}},
	{"6.19 overlong NUL", nil, []string{"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80"}},
	{"6.20 one surrogate", nil, []string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"}},
	{"6.21 two surrogates", nil, []string{
		"\xed\xa0\x80\xed\xb0\x80", "\xed\xa0\x80\xed\xbf\xbf", "\xed\xad\xbf\xed\xb0\x80", "\xed\xad\xbf\xed\xbf\xbf",
		"\xed\xae\x80\xed\xb0\x80", "\xed\xae\x80\xed\xbf\xbf", "\xed\xaf\xbf\xed\xb0\x80", "\xed\xaf\xbf\xed\xbf\xbf",
	}},
	{"6.22 no characters, but text", nonCharacters(), nil},
	{"6.23 specials", []string{"\ufff9", "\ufffa", "\ufffb", "\ufffc", "\ufffd", "\uffff", "\ufffe"}, nil},
}

var missing = []string{
	"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80",
	"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf",
}

// run is every byte from a to b, each with sep behind it.
func run(a, b int, sep string) string {
	s := ""
	for ; a <= b; a++ {
		s += string([]byte{byte(a)}) + sep
	}
	return s
}

func concat(list []string) string {
	s := ""
	for _, x := range list {
		s += x
	}
	return s
}

// nonCharacters are U+FFFE and U+FFFF of every plane.
func nonCharacters() []string {
	var s []string
	for plane := rune(0); plane <= 0x10; plane++ {
		s = append(s, string(plane<<16|0xfffe), string(plane<<16|0xffff))
	}
	return s
}
