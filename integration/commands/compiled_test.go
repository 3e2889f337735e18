//go:build commands

package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A compiled program is one that the test makes: %s of a row's command is its path.
type compiled struct {
	file, source string
	compiler     []string // then "-o", the binary and the source
}

var (
	inGo = &compiled{"main.go", `package main

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"time"
)

func main() {
	m := map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}
	for k := range m {
		fmt.Print(k, " ")
	}
	fmt.Println(mrand.Int(), rand.Text(), os.Getpid(), time.Now().Format(time.RFC3339Nano))
}
`, []string{"go", "build"}}
	inRust = &compiled{"main.rs", `use std::collections::HashMap;
fn main() {
    let m: HashMap<i32, i32> = (0..9).map(|i| (i, i)).collect();
    println!("{:?} {:p} {:?} {}", m, &m, std::time::SystemTime::now(), std::process::id());
}
`, []string{"rustc"}}
	inC = &compiled{"main.c", `#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(void) {
	int local;
	srand(time(NULL));
	printf("%p %p %p %p %d %ld %d\n", (void *)&local, malloc(9), (void *)main, (void *)printf, rand(), (long)time(NULL), getpid());
}
`, []string{"gcc"}}
	ofProcessor = &compiled{"processor.c", `#include <stdio.h>
int main(void) {
#ifdef __x86_64__
	unsigned low, high;
	unsigned long drawn;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	__asm__ volatile("rdrand %0" : "=r"(drawn) : : "cc");
	printf("%u %u %lu\n", low, high, drawn);
#endif
}
`, []string{"gcc"}}
)

// build compiles it to a place that everybody can execute from.
func (c *compiled) build(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath(c.compiler[0])
	if err != nil {
		t.Skipf("no %s here", c.compiler[0])
	}
	dir, err := os.MkdirTemp("", "tapedeck-commands-") // t.TempDir is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source, binary := filepath.Join(dir, c.file), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(c.source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler, append(c.compiler[1:len(c.compiler):len(c.compiler)], "-o", binary, source)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return binary
}
