package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// TestProgramDigest asks again for a program that was written anew in its place, with the same size and the same time.
func TestProgramDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	write := func(text string) string {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		return DigestOf(path).String()
	}
	first := write("#!/bin/sh\necho one\n")
	if again := DigestOf(path).String(); again != first {
		t.Errorf("%s, then %s, of one file", first, again)
	}
	if other := write("#!/bin/sh\necho two\n"); other == first {
		t.Error("the digest of what the file held before")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if d := DigestOf(path); d.String() == first {
		t.Error("the digest of a file that is gone")
	}
}

// TestOpenSSLLosesNothing: what keeps BoringSSL from asking the processor for random bytes leaves OpenSSL all else that the processor can.
func TestOpenSSLLosesNothing(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("no openssl for amd64")
	}
	asked := regexp.MustCompile(`OPENSSL_ia32cap=0x([0-9a-f]+):(\S*)`)
	words := func(env []string) (first uint64, rest string) {
		cmd := exec.Command(openssl, "version", "-c")
		cmd.Env = env
		out, _ := cmd.Output()
		m := asked.FindSubmatch(out)
		if m == nil {
			t.Skipf("openssl does not say what it knows of the processor: %q", out)
		}
		first, err := strconv.ParseUint(string(m[1]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return first, string(m[2])
	}
	was, wasRest := words([]string{"LC_ALL=C"})
	now, nowRest := words(ToRecord([]string{"LC_ALL=C"}))
	if was&^(1<<62) != now || wasRest != nowRest {
		t.Errorf("%#x:%s, want %#x:%s", now, nowRest, was&^(1<<62), wasRest)
	}
}
