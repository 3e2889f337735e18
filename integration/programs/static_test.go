//go:build programs

package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// A static program is one that no preloaded library could see into: what it does must be caught below it.
type staticProgram struct {
	name, file, source string
	compiler           []string // then "-o", the binary and the source
	env                []string
	url                string // what it fetches an item from
}

var staticList = []staticProgram{
	{
		name: "Go", file: "main.go", compiler: []string{"go", "build"}, env: []string{"CGO_ENABLED=0", "GOFLAGS=-mod=mod"}, url: base,
		source: `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	res, err := http.Get(os.Args[1] + "/item/" + os.Args[2])
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		panic(fmt.Sprint(res.Status, err))
	}
	fmt.Printf("%s", body)
}
`,
	},
	{
		name: "Rust", file: "main.rs", compiler: []string{"rustc", "-C", "target-feature=+crt-static"}, url: "http://" + host,
		source: `use std::io::{Read, Write};
use std::net::TcpStream;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let host = args[1].trim_start_matches("http://");
    let mut conn = TcpStream::connect((host, 80)).unwrap();
    write!(conn, "GET /item/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", args[2], host).unwrap();
    let mut answer = String::new();
    conn.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{}", head);
    print!("{}", body);
}
`,
	},
}

// TestStaticPrograms records a binary without a dynamic linker, replays it, and changes one word of what it asks for.
func TestStaticPrograms(t *testing.T) {
	for _, p := range staticList {
		t.Run(p.name, func(t *testing.T) {
			binary := p.build(t)
			run.Each(t, func(t *testing.T, b *run.Box) {
				res := record(t, b, web(), binary, p.url, "one")
				if res.Status != 0 || res.Stdout != "item one\n" {
					t.Fatalf("record: %v", res)
				}
				wantGreen(t, b)
				report, res := b.Replay(binary, p.url, "three")
				if res.Status != 2 || report == nil || len(report.Refused) != 1 {
					t.Errorf("replay with another word: %v", res)
				}
			})
		})
	}
}

// build compiles p to a place that everybody can execute from.
func (p *staticProgram) build(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath(p.compiler[0])
	if err != nil {
		t.Skipf("no %s here: install it to try a static %s program", p.compiler[0], p.name)
	}
	dir, err := os.MkdirTemp("", "tapedeck-static-") // not in t.TempDir, whose path is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source, binary := filepath.Join(dir, p.file), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(p.source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler, append(p.compiler[1:len(p.compiler):len(p.compiler)], "-o", binary, source)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return binary
}
