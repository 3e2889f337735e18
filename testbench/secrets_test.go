package testbench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// shaped is a key by its shape alone: nobody named it.
const shaped = "sk-ant-api03-" + "Abcdefghijklmnopqrstuvwxyz0123456789Abcdefghijklmnopqrstuvwxyz0123456789Abcdefghijklmnopq-abcdefgAA"

// leaks passes secrets through every axis that takes a text, long and short, and returns its tape.
func leaks(t *testing.T, b *testbench.Bench, of func(name string) string) {
	t.Helper()
	ctx := context.Background()
	key, short := of("SERVICE_API_KEY"), of("PASSWORD")
	if key == "" || short == "" {
		t.Fatal("a variable is not set")
	}
	for _, f := range []func() error{
		func() error {
			_, err := b.Model().Complete(ctx, &fixture.Request{System: "the key is " + key, Messages: shaped})
			return err
		},
		func() error {
			_, err := b.Processes().Run(ctx, &process.Command{Program: "login", Args: []string{"--key=" + key}, Stdin: []byte(key)})
			return err
		},
		func() error {
			_, err := b.Input("stdin", func() ([]byte, error) { return []byte(strings.Repeat("x", 5000) + key), nil })
			return err
		},
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
}

func leaksConf(key, short, path string) *testbench.Config {
	return &testbench.Config{
		Name: "leaks", Args: []string{"--key", key}, Emit: path,
		Env: map[string]string{"SERVICE_API_KEY": key, "PASSWORD": short, "NAME": "visible-value"},
		LLM: testbench.LLM{Rules: []fixture.Rule{{Match: fixture.Match{Any: true}, Response: &fixture.Response{Text: "you said " + shaped + key}}}},
		Processes: testbench.Processes{Calls: []process.Call{
			{Program: "login", Args: []string{"--key=" + key}, Stdout: "logged in with " + key + "\n"},
		}},
	}
}

// TestSecretsStayOffTheTape has two runs with different secrets write the same bytes, none of them a secret, and the tape replay.
func TestSecretsStayOffTheTape(t *testing.T) {
	var tapes [2]string
	var path string
	for i, key := range []string{"correct-horse-battery-1", "other-secret-of-mine-22"} {
		path = filepath.Join(t.TempDir(), "run.tape")
		short := "s3cr" + string(rune('0'+i))
		b := testbench.New(t, leaksConf(key, short, path))
		leaks(t, b, func(name string) string { v, _ := b.Getenv(name); return v })
		if v, _ := b.Getenv("NAME"); v != "visible-value" {
			t.Errorf("NAME is %q", v)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		tapes[i] = everything(t, path)
		for _, secret := range []string{key, short, shaped} {
			if strings.Contains(tapes[i], secret) {
				t.Errorf("%q is on the tape", secret)
			}
		}
		if !strings.Contains(tapes[i], "visible-value") {
			t.Error("what is no secret is not on the tape")
		}
	}
	if tapes[0] != tapes[1] {
		t.Errorf("two developers with different secrets write different tapes:\n%s\n%s", tapes[0], tapes[1])
	}

	b := testbench.NewReplay(t, path, nil)
	leaks(t, b, func(name string) string { v, _ := b.Getenv(name); return v })
	b.Getenv("NAME")
	report, err := b.Verdict(fidelity.ByteIdentical)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Faithful() {
		t.Errorf("replayed: %s\n%+v", report, report.Divergences)
	}
}

// TestSecretsThatWereNamed takes out what Config.Secrets holds, of which no name or shape would say so.
func TestSecretsThatWereNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{Emit: path, Env: map[string]string{"A": "the word is swordfish-and-more"},
		Secrets: map[string]string{"word": "swordfish-and-more"}})
	if v, _ := b.Getenv("A"); v != "the word is swordfish-and-more" {
		t.Errorf("the program got %q", v)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if text := everything(t, path); strings.Contains(text, "swordfish") || !strings.Contains(text, "td_word_000000000001") {
		t.Errorf("the tape is %s", text)
	}
}

// everything is a tape and its blobs, by name.
func everything(t *testing.T, path string) string {
	t.Helper()
	out := readAll(t, path)
	blobs, err := os.ReadDir(path + ".cas")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, b := range blobs {
		out += b.Name() + "\n" + readAll(t, filepath.Join(path+".cas", b.Name()))
	}
	return out
}

// TestSecretsStayOffProcessTapes has a recorded process tape hold no secret, and answer a run whose secret is another.
func TestSecretsStayOffProcessTapes(t *testing.T) {
	const key, other = "correct-horse-battery-1", "other-secret-of-mine-22"
	path := filepath.Join(t.TempDir(), "run.process-tape.json")
	login := func(p testbench.Processes, key string) string {
		b := testbench.New(t, &testbench.Config{Env: map[string]string{"SERVICE_API_KEY": key}, Processes: p})
		cmd := b.Processes().Command(context.Background(), "login", "--key="+key)
		cmd.Env = []string{"PASSWORD=s3cr3t"}
		out, err := cmd.Output()
		if err = errors.Join(err, b.Close()); err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	call := process.Call{Program: "login", Args: []string{"--key=" + key}, Stdout: "as " + key,
		Changes: []process.Change{{Path: "session", Content: []byte(key), Perm: 0o644}}}
	if got := login(testbench.Processes{Runner: process.NewPlayer([]process.Call{call}, nil), Record: path}, key); got != "as "+key {
		t.Errorf("the program got %q", got)
	}
	if text := readAll(t, path); strings.Contains(text, key) || strings.Contains(text, "s3cr3t") || !strings.Contains(text, "td_service_api_key_000000000001") {
		t.Errorf("the process tape is %s", text)
	}
	if got := login(testbench.Processes{Tape: path}, other); got != "as td_service_api_key_000000000001" {
		t.Errorf("with another secret the program got %q", got)
	}
}

// TestShortestSecretIsTakenOut passes the shortest text that holds a secret through a payload and a string of the tape.
func TestShortestSecretIsTakenOut(t *testing.T) {
	const shortest = "a://:b@"
	var out strings.Builder
	b, err := testbench.Open(&testbench.Config{
		Env: map[string]string{"PROXY": shortest}, EmitTo: &out,
		Processes: testbench.Processes{Calls: []process.Call{{Program: "visit", Args: []string{shortest}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Getenv("PROXY"); got != shortest {
		t.Errorf("the program got %q", got)
	}
	if err := b.Processes().Command(context.Background(), "visit", shortest).Run(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), shortest) || strings.Count(out.String(), "td_url_password_") != 2 {
		t.Errorf("the secret is on the tape: %s", out.String())
	}
}
