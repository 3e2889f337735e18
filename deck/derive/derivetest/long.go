package derivetest

import (
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Long records 100,000 records of about 174 MB: turns, files, calls of tools, bodies of a few kB that stand in the tape and some longer ones
// beside it.
func Long(tt *Tape) {
	history := []string{User("look at everything")}
	for n := range 100_000 {
		switch {
		case n%50 == 0:
			tt.Call(fmt.Sprint("llm:", n/5000), Asks("be kind", ReadTool, history...), Says(Text(n, 300)))
			if history = append(history, Model(fmt.Sprint("answer ", n)), User(Text(n, 1500))); len(history) > 40 {
				history = history[:1]
			}
		case n%5 == 1:
			w := &tape.FileWrite{}
			w.Path, w.Content, w.Mode = fmt.Sprintf("src/dir%d/file%d.go", n%97, n), tt.Payload(Text(n, 900)), "100644"
			w.ContentHash, w.LenBytes = w.Content.Hash, w.Content.Len
			tt.Record(w)
		case n%5 == 2:
			tt.Record(&tape.ProcessSpawn{Program: "/usr/bin/go", Args: []string{"test", fmt.Sprintf("./pkg%d", n%331)}, SpawnID: uint64(n + 2), Stdout: tt.Payload(Text(n, 1500)), DurationMS: 30})
		default:
			x := &tape.HTTPExchange{}
			x.Method, x.URL, x.Status = "GET", fmt.Sprintf("https://api.example.com/items/%d", n), 200
			x.Response = tt.Payload(Text(n, 1500))
			tt.Record(x)
		}
	}
	tt.Record(&tape.ProcessSpawn{Program: "agent", SpawnID: 1, DurationMS: 1000})
}

// Text is so many bytes of words that differ by n.
func Text(n, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "line %d of file %d says %x\n", i, n, cas.Sum([]byte(fmt.Sprint(n, i))).String()[:8])
	}
	return b.String()
}
