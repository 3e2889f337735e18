package tty_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// A frame is how a program lays text out: it wraps it at a width and puts something before and behind each row.
type frame struct {
	name  string
	width int
	col   int // where the rows begin
	// left stands before row i of line n, right behind it, padded to the width.
	left  func(n, i int) string
	right func(n, i int) string
}

func says(s string) func(n, i int) string { return func(int, int) string { return s } }

func numbered(first, next string) func(n, i int) string {
	return func(n, i int) string {
		if i == 0 {
			return fmt.Sprintf(first, n)
		}
		if strings.Contains(next, "%") {
			return fmt.Sprintf(next, n)
		}
		return next
	}
}

var frames = []frame{
	{"cut", cols, 0, says(""), says("")},
	{"indent", cols - 4, 0, says("    "), says("")},
	{"margins", cols - 6, 0, says("    "), says("  ")},
	{"numbers", cols - 4, 0, numbered("%3d ", "    "), says("")},
	{"numbers again", cols - 8, 0, numbered("%7d ", "%7d "), says("")},
	{"numbers with a sign", cols - 6, 0, numbered("%3d   ", "    ↪ "), says("")},
	{"numbers with signs", cols - 7, 0, numbered("%3d    ", "    >> "), says("")},
	{"numbers with a line", cols - 7, 0, numbered("%4d │ ", "     │ "), says("")},
	{"quoted", cols - 2, 0, says("> "), says("")},
	{"bar at the left", cols - 4, 0, says("┃ "), says("  ")},
	{"box", 50, 7, says("│ "), says(" │")},
	{"heavy box", 71, 0, says("┃ "), says(" ┃")},
	{"ASCII box", 40, 20, says("| "), says(" |")},
	{"box without padding", 33, 2, says("║"), says("║")},
	{"numbers in a box", 44, 3, numbered("│%3d ", "│    "), says("│")},
	{"scroll bar", cols - 2, 0, says(""), func(n, i int) string { return []string{" ░", " █"}[(n+i)%2] }},
	{"thumb", cols - 1, 0, says(""), func(n, i int) string { return []string{" ", "▐"}[min(n/3, 1)] }},
	{"scroll bar at the left", cols - 2, 0, func(n, i int) string { return []string{"▒ ", "▓ "}[(n+i)%2] }, says("")},
	{"ASCII scroll bar", cols - 1, 0, says(""), func(n, i int) string { return []string{"|", "#"}[(n+i)%2] }},
	{"the left pane", 38, 0, says(""), func(n, i int) string { return "│ " + words[(n+i)%len(words)] }},
	{"the right pane", 38, 0, func(n, i int) string { return fmt.Sprintf("%-40s│ ", words[(n+i)%len(words)]) }, says("")},
	{"numbers in the left pane", 36, 0, numbered("%3d ", "    "), func(n, i int) string { return "| " + words[(n+i)%len(words)] }},
	{"a sign at the end", cols - 1, 0, says(""), says("\\")},
	{"background", 46, 12, says("\x1b[44m  "), says("  \x1b[m")},
}

// words are lines that have no secret in them.
var words = []string{"the first ordinary line", "nextlineWithoutBlanks and more of it", "drwxr-xr-x root", "PATH_TO_FILES=/usr/share", "another",
	"func main() {", "- an item of a list", "it ended with status 0", ""}

// keysMade are secrets, and what stands before them.
var keysMade = []func(rng *rand.Rand) (before, value string){
	func(rng *rand.Rand) (string, string) { return "", "sk-ant-api03-" + randomText(rng, 95, alnum+"-_") },
	func(rng *rand.Rand) (string, string) {
		return "", "sk-proj-" + randomText(rng, 40+rng.IntN(100), alnum)
	},
	func(rng *rand.Rand) (string, string) { return "", "ghp_" + randomText(rng, 36, alnum) },
	func(rng *rand.Rand) (string, string) {
		return "aws_secret_access_key = ", randomText(rng, 40, alnum+"/+")
	},
	func(rng *rand.Rand) (string, string) {
		return "Authorization: Bearer ", randomText(rng, 24+rng.IntN(60), alnum)
	},
	func(*rand.Rand) (string, string) { return "", knownValue },
}

const alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func randomText(rng *rand.Rand, n int, of string) string {
	for {
		b := make([]byte, n)
		for i := range b {
			b[i] = of[rng.IntN(len(of))]
		}
		if isAlnum(b[0]) && isAlnum(b[n-1]) && bytes.ContainsAny(b, "0123456789") {
			return string(b)
		}
	}
}

func isAlnum(c byte) bool { return strings.IndexByte(alnum, c) >= 0 }

// A row of a layout, and which of its bytes are of the secret.
type row struct {
	text   string
	secret []bool
}

// lay lays lines out; that of the secret is number at. It says whether the pieces of the secret can be told from words.
func (f frame) lay(lines []string, at, begin, end int) (rows []row, fit bool) {
	fit = true
	for n, line := range lines {
		for i := 0; i == 0 || i*f.width < len(line); i++ {
			from, to := i*f.width, min((i+1)*f.width, len(line))
			left := f.left(n+1, i)
			r := row{text: left + line[from:to] + strings.Repeat(" ", f.width-(to-from)) + f.right(n+1, i)}
			r.secret = make([]bool, len(r.text))
			for x := max(from, begin); n == at && x < min(to, end); x++ {
				r.secret[len(left)+x-from] = true
			}
			if from := max(from, begin); n == at && from > begin && from < end && names.Ordinary(line[from:min(to, end)]) {
				fit = false
			}
			rows = append(rows, r)
		}
	}
	return rows, fit
}

// A screenful writes rows to a terminal, and tells which bytes are of the secret.
type screenful struct {
	bytes  []byte
	secret []bool
}

func (s *screenful) plain(text string) {
	s.bytes = append(s.bytes, text...)
	s.secret = append(s.secret, make([]bool, len(text))...)
}

func (s *screenful) row(rng *rand.Rand, r row, coloured bool) {
	for i := range len(r.text) {
		if coloured && r.text[i] < 0x80 && (i == 0 || r.text[i-1] != 0x1b && r.text[i-1] != '[' && r.text[i] != 'm') && rng.IntN(5) == 0 && !strings.Contains(r.text, "\x1b") {
			s.plain(fmt.Sprintf("\x1b[%dm", 31+rng.IntN(7)))
		}
		s.bytes = append(s.bytes, r.text[i])
		s.secret = append(s.secret, r.secret[i])
	}
}

// ways are those in which rows come to a screen.
var ways = map[string]func(s *screenful, rng *rand.Rand, col int, rows []row){
	"drawn": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		s.plain("\x1b[2J")
		for y, r := range rows {
			s.plain(fmt.Sprintf("\x1b[%d;%dH", y+2, col+1))
			s.row(rng, r, false)
		}
	},
	"drawn in any order, coloured": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		s.plain("\x1b[?1049h\x1b[2J")
		for _, y := range rng.Perm(len(rows)) {
			s.plain(fmt.Sprintf("\x1b[%d;%dH", y+2, col+1))
			s.row(rng, rows[y], true)
		}
	},
	"drawn twice": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		s.plain("\x1b[H\x1b[2J")
		for range 2 {
			for y, r := range rows {
				s.plain(fmt.Sprintf("\x1b[%d;%dH", y+3, col+1))
				s.row(rng, r, false)
			}
		}
	},
	"printed": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		for _, r := range rows {
			s.plain(strings.Repeat(" ", col))
			s.row(rng, r, false)
			s.plain("\r\n")
		}
	},
	"scrolled upwards": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		s.plain("\x1b[2J")
		for _, r := range rows {
			s.plain(fmt.Sprintf("\x1b[20;1H\x1b[S\x1b[20;%dH", col+1))
			s.row(rng, r, false)
		}
	},
	"scrolled downwards": func(s *screenful, rng *rand.Rand, col int, rows []row) {
		s.plain("\x1b[2J")
		for y := range rows {
			s.plain(fmt.Sprintf("\x1b[H\x1bM\x1b[1;%dH", col+1))
			s.row(rng, rows[len(rows)-1-y], false)
		}
	},
}

// TestSeams lays secrets out in frames, at any column, and writes them in many ways: what is masked is the secret and nothing else.
func TestSeams(t *testing.T) {
	t.Parallel()
	seeds := pick(1, 100)
	o := *fixed
	o.KeepEmail = true
	for _, f := range frames {
		for way, write := range ways {
			if f.name == "background" && way == "printed" {
				continue // plain text is not drawn, and has no edge
			}
			t.Run(f.name+", "+way, func(t *testing.T) {
				for seed := range uint64(seeds * len(keysMade)) {
					rng := rand.New(rand.NewPCG(seed, uint64(len(f.name)*100+len(way))))
					stream, ok := framed(rng, f, write, int(seed)%len(keysMade))
					if !ok {
						continue
					}
					if at := wrong(stream, &o, rng); at != "" {
						t.Fatalf("seed %d: %s", seed, at)
					}
				}
			})
		}
	}
}

// framed writes lines of which one has a secret.
func framed(rng *rand.Rand, f frame, write func(*screenful, *rand.Rand, int, []row), shape int) (s screenful, ok bool) {
	var lines []string
	for range 1 + rng.IntN(3) {
		lines = append(lines, words[rng.IntN(len(words))])
	}
	at := len(lines)
	before, value := keysMade[shape](rng)
	before = strings.Repeat("see ", rng.IntN(f.width/4)) + before
	lines = append(lines, before+value+[]string{"", " was set", "", ", and more words"}[rng.IntN(4)])
	lines = append(lines, words[rng.IntN(2)], words[rng.IntN(len(words))])
	if touching := strings.Trim(f.right(1, 0), "|#\\") == "" && f.right(1, 0) != ""; touching && strings.Contains(before, "aws") {
		return s, false // what a name gives away ends at a blank
	}
	rows, ok := f.lay(lines, at, len(before), len(before)+len(value))
	write(&s, rng, f.col, rows)
	return s, ok && len(rows) < 20
}

// wrong tells what of a stream is masked and should not be, or is not and should be, by a Scan and by a Live.
func wrong(s screenful, o *tty.Options, rng *rand.Rand) string {
	want := bytes.Clone(s.bytes)
	for i, secret := range s.secret {
		if secret {
			want[i] = '*'
		}
	}
	file := bytes.Clone(s.bytes)
	if _, err := tty.Clean(memory(file), int64(len(file)), nil, o); err != nil {
		return err.Error()
	}
	if !bytes.Equal(file, want) {
		return differ(file, want)
	}
	if live, _ := record(o, s.bytes, rng, 0); !bytes.Equal(live, want) {
		return "live, " + differ(live, want)
	}
	return ""
}

// differ shows the screens of two streams.
func differ(got, want []byte) string {
	is, should := vt.New(nil), vt.New(nil)
	_, _ = is.Write(got)
	_, _ = should.Write(want)
	text := func(s *vt.Screen) string { return strings.TrimSpace(strings.Join(s.Text(), "\n")) }
	return fmt.Sprintf("is\n%q\n%s\nwant\n%q\n%s", got, text(is), want, text(should))
}

// asPrograms are what programs write; « and » stand around what is of the secret.
var asPrograms = map[string]string{
	"vim": "\x1b[1;1Hfirst line\r\nkey: «sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3Kl1Zx6Cvv»\x1b[3;1H«0Bn4Mq9We2Rt7Yu5»" +
		"\x1b[3;34H\x1b[K\x1b[4;1HnextlineWithoutBlanks and more\r\nanother\r\n\x1b[94m~",
	"vim, over another line": "\x1b[2;1Hthe second line\x1b[3;1Hextline here\x1b[2;1Hkey: " +
		"«sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3Kl1Zx6Cvv»\x1b[3;1H«0Bn4Mq9We2Rt7Yu5»\x1b[K\x1b[4;1Hnext line",
	"vim, set nu": "\x1b[1;1H\x1b[38;5;130m  1 \x1b[mfirst line\r\n\x1b[38;5;130m  2 \x1b[mkey: " +
		"«sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3Kl1ZZ»\x1b[3;1H\x1b[38;5;130m    \x1b[m«x6Cv0Bn4Mq9We2Rt7»" +
		"\x1b[3;42H\x1b[K\x1b[4;1H\x1b[38;5;130m  3 \x1b[mnextlineWithoutBlanks and more\r\n\x1b[38;5;130m  4 \x1b[manother",
	"vim, set nu linebreak showbreak": "\x1b[2;1H\x1b[38;5;130m  2 \x1b[mkey: «sk-ant-api03-»" + strings.Repeat(" ", 58) + "\x1b[3;1H\x1b[38;5;130m    " +
		"\x1b[94m>> \x1b[m«Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3Kl1Zx6Cv0Bn4Mq9We2RR»\x1b[4;1H\x1b[38;5;130m    " +
		"\x1b[94m>> \x1b[m«t7Yu5Io8Pa3Sd-_1Fg6HxZ»\x1b[5;1H\x1b[38;5;130m  3 \x1b[mnextline",
	"vim, set nu, typed": "\x1b[1;1H  1 see " + strings.Repeat("see ", 12) + "«s»\x1b[1;58H«k-ant-api03-Qm4xT9»\x1b[1;75H«vLr2Wp»\x1b[2;1H    «8»\x1b[2;6H«Z»\x1b[2;7H" +
		"«k1Nd5Hs7Gb3Yc6»\x1b[3;1H  2 nextline",
	"less -N": "     12 first\r\n     13 key: «sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3»" +
		" \b     13 «Kl1Zx6Cv0Bn4Mq9We2Rt7Yu5Io8Pa»\r\n     14 nextline\r\n:\x1b[K",
	"less -N, backwards": "\x1b[2J\x1b[H\x1bM     13 «Kl1Zx6Cv0Bn4Mq9We2Rt7Yu5Io8Pa»\x1b[H\x1bM     13 key: " +
		"«sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3»\x1b[24;1H:",
	"less, drawn again in the middle of a line": "\x1b[2J\x1b[H«sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7Sd5Fg8Hj3Kl1Zx6Cv0Bn4M» \b" +
		"«q9We2Rt7Yu5Io8Pa3Sd»\r\nthe next line\r\n:\x1b[2J\x1b[H«q9We2Rt7Yu5Io8Pa3Sd»\r\nthe next line, and sk-ant-api03- is no key\r\n:\x1b[K",
	"a narrow column": "\x1b[2J\x1b[5;1H  ┃ the key\x1b[6;1H  ┃ «sk-ant-api03-Qm4xT9vLr2Wp8Zk1»\x1b[7;1H  ┃ «Nd5Hs7Gb3Yc6Jf0AeUi4Ro9Tp2La7»\x1b[8;1H  ┃ «Sd5Fg8Hj3Kl»\x1b[9;1H" +
		"  ┃ is set",
	"what is known, in a narrow column": "\x1b[2J\x1b[5;3Hthe value «correct-horse_b»\x1b[6;3H«attery9staple» is set\x1b[9;1H$ ",
	"a key and a word below it":         "\x1b[2J\x1b[5;3H«sk-ant-api03-Qm4xT9vLr2Wp8Zk1»\x1b[6;3HGOOGLE2_PROJECT=x\x1b[9;1H$ ",
	"a name, and its value below it": "\x1b[2J\x1b[2;10H│ curl -H Authorization: Bearer │\x1b[3;10H│ «q7Xv0Zt3Lm8Rk2Wp5Nd1Hs6» okay  │" +
		"\x1b[4;10H└",
}

// TestProgramsThatWrap masks secrets in what programs write, and nothing else.
func TestProgramsThatWrap(t *testing.T) {
	for name, text := range asPrograms {
		t.Run(name, func(t *testing.T) {
			if at := wrong(marked(text), fixed, rand.New(rand.NewPCG(1, 1))); at != "" {
				t.Error(at)
			}
		})
	}
}

func marked(text string) (s screenful) {
	secret := false
	for _, r := range text {
		switch r {
		case '«', '»':
			secret = r == '«'
			continue
		}
		s.plain(string(r))
		if secret {
			s.secret[len(s.secret)-1] = true
		}
	}
	return s
}

// TestKeyBesideNumbers masks the lines of a private key that stand beside numbers of lines, or in a box.
func TestKeyBesideNumbers(t *testing.T) {
	lines := strings.Split(pem, "\n")
	for name, of := range map[string]func(i int, line string) string{
		"vim, set nu": func(i int, line string) string { return fmt.Sprintf("\x1b[%d;1H\x1b[33m%3d \x1b[m%s", i+2, i+1, line) },
		"a box":       func(i int, line string) string { return fmt.Sprintf("\x1b[%d;5H│ %-66s │ side", i+2, line) },
		"cat -n":      func(i int, line string) string { return fmt.Sprintf("%6d\t%s\r\n", i+1, line) },
	} {
		stream := "$ show\r\n"
		for i, line := range lines {
			stream += of(i, line)
		}
		file, _ := record(fixed, []byte(stream+"\x1b[20;1H$ "), rand.New(rand.NewPCG(1, 1)), 0)
		for _, line := range lines[1 : len(lines)-1] {
			if strings.Contains(string(file), line[8:24]) {
				t.Errorf("%s: %q", name, file)
				break
			}
		}
		if strings.Count(string(file), "side") != strings.Count(stream, "side") || !strings.Contains(string(file), "$ show") {
			t.Errorf("%s: too much is masked: %q", name, file)
		}
	}
}

// TestMaskShown masks what stands in pieces among the bytes, and leaves to others what they find.
func TestMaskShown(t *testing.T) {
	s := marked("$ cat key\r\nsk-proj-a8Fk2Lm9Qx4Tz7Vb1Nc6Rd3We5Hy0Ug\r\n" + asPrograms["vim, set nu"] + "\x1b[9;1HMY_\x1b[1mTOKEN=«q7Xv0Zt3Lm8Rk2Wp»")
	want := bytes.Clone(s.bytes)
	for i, secret := range s.secret {
		if secret {
			want[i] = '*'
		}
	}
	tty.MaskShown(s.bytes, nil, fixed)
	if !bytes.Equal(s.bytes, want) {
		t.Errorf("is\n%q\nwant\n%q", s.bytes, want)
	}
}
