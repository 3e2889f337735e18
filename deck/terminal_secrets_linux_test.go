package deck_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["teller"] = playTeller }

// playTeller shows its secret on the terminal in every disguise, in colours, cut by sequences, wrapped and drawn character by
// character from its end, and reads what is typed.
func playTeller([]string) int {
	secret := os.Getenv("CANARY_API_KEY")
	fmt.Print(strings.ReplaceAll(all(secret), "\r\n", "\n"), "\n")
	for i, c := range secret {
		fmt.Printf("\x1b[3%dm%c", i%8, c)
	}
	fmt.Print("\x1b[m\n\x1b]0;", secret, "\x07", strings.Repeat(".", 75), secret, "\nbefore\x1b[2J\x1b[H")
	for i := len(secret) - 1; i >= 0; i-- {
		fmt.Printf("\x1b[5;%dH%c", 10+i, secret[i])
	}
	fmt.Printf("\x1b[11;1H  1 %s%s\x1b[12;1H    %s\x1b[13;1H  2 next", strings.Repeat(".", 64), secret[:12], secret[12:])
	fmt.Print("\x1b[8;1Hready> ")
	bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Print("bye\n")
	return 0
}

// TestSecretsOnATerminal: what a terminal shows and is given reaches the recording without secrets, in no file of it, of a
// recording and of a replay of it.
func TestSecretsOnATerminal(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{"a token": "cnry7Q2x9ZpLm4Vt8KrW3nHd", "a pass phrase": `cn"ry\7Q 2x%9+p/4V&8<W=n#d`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env = append(b.env, "CANARY_API_KEY="+secret)
			argv, env := b.self("teller")
			out := &typed{more: make(chan struct{})}
			res, err := deck.Record(context.Background(), &deck.RecordOptions{
				Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Terminal: terminal.On,
				Streams: deck.Streams{Stdin: out.keys("ready> ", "it is "+secret+"\n"), Stdout: out},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(out.shown, []byte(secret)) {
				t.Fatalf("the terminal did not show it: %q", out.shown)
			}
			b.holds(res.Recording.Dir)
			for _, piece := range []string{secret, secret[:12], secret[12:]} {
				lookFor(t, res.Recording.Dir, piece)
			}
			kept := filepath.Join(t.TempDir(), "replay")
			v, _ := b.replay(res.Recording, &deck.ReplayOptions{Screens: true, Out: kept})
			b.green(v)
			lookFor(t, kept, secret)
		})
	}
}

// TestPasswordOnATerminal: what is typed while the program shows nothing of it is in no file of the recording, though nothing but
// that gives it away. A replay types as much, and what comes behind it when it came.
func TestPasswordOnATerminal(t *testing.T) {
	t.Parallel()
	const password = "correcthorse"
	b := newBench(t)
	out := &typed{more: make(chan struct{})}
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{"sh", "-c", `stty -echo; printf 'word> '; read x; stty echo; printf 'sure> '; read y; echo "$y, it was $x"`}, Env: b.env, Dir: b.dir, Tree: b.dir,
		ConfigDir: b.config, Terminal: terminal.On, Streams: deck.Streams{Stdin: out.keys("word> ", password+"\n", "sure> ", "yes\n"), Stdout: out},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out.shown, []byte("yes, it was "+password)) {
		t.Fatalf("the program did not read it: %q", out.shown)
	}
	b.holds(res.Recording.Dir)
	lookFor(t, res.Recording.Dir, password)
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Screens: true})
	b.green(v)
}

func init() { programs["lateteller"] = playLateTeller }

// playLateTeller shows a value in many colours, and only then names it.
func playLateTeller(args []string) int {
	value := "cnry7Q2x9ZpLm4Vt8KrW3nHd"
	for i, c := range value {
		fmt.Printf("\x1b[3%dm%c", i%8, c)
	}
	fmt.Print("\x1b[m\n")
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	if err != nil {
		return fail(err)
	}
	req.Header.Set("X-Api-Key", value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail(err)
	}
	return res.StatusCode - http.StatusOK
}

// TestLateSecretOnATerminal: what was shown before it was known to be a secret is in no stream of the recording, whatever it was drawn with.
func TestLateSecretOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(http.ResponseWriter, *http.Request) {})
	argv, env := b.self("lateteller", "https://api.example.com/named")
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Terminal: terminal.On, Streams: deck.Streams{Stdout: new(printed)},
	})
	if err != nil || res.Exit.Code != 0 {
		t.Fatal(res, err)
	}
	lookFor(t, res.Recording.Dir, "cnry7Q2x9ZpLm4Vt8KrW3nHd")
	v, _ := b.replay(res.Recording, nil)
	b.green(v)
}
