package wstest

import "fmt"

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
		{name: "6.4.3", steps: pieces(text(kosme+tooHigh+"edited"), len(kosme), len(tooHigh)), closes: notText, fast: true},
		{name: "6.4.4", steps: pieces(text(kosme+tooHigh+"edited"), len(kosme), 2), closes: notText, fast: true},
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

// pieces sends a frame in three: the header and n bytes, m more, the rest.
func pieces(f Frame, n, m int) []step {
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
