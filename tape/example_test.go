package tape_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Records may come from any number of goroutines. A run that is not recorded has a nil recorder, and hooks that cost
// nothing.
func ExampleNewRecorder() {
	var file bytes.Buffer
	w, err := tape.NewWriter(&file, &tape.Header{Producer: "example 1.0"})
	if err != nil {
		log.Fatal(err)
	}
	now := func() (wallMS, monotonicMS int64) { return 1767225600000, 7 } // for the example; leave it nil
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: cas.NewMemory(), Now: now})

	out, err := rec.Payload([]byte("hello\n"))
	if err != nil {
		log.Fatal(err)
	}
	if err := rec.Record(&tape.ProcessSpawn{Program: "echo", Args: []string{"hello"}, Stdout: out}); err != nil {
		log.Fatal(err)
	}
	if err := rec.Flush(); err != nil {
		log.Fatal(err)
	}
	fmt.Print(file.String())
	// Output:
	// {"type":"header","version":1,"harn_version":"example 1.0","started_at_unix_ms":null,"script_path":null,"argv":[]}
	// {"type":"record","seq":0,"phase":"user_script","virtual_time_ms":1767225600000,"monotonic_ms":7,"kind":{"kind":"process_spawn","program":"echo","args":["hello"],"cwd":null,"exit_code":0,"duration_ms":0,"stdout_payload":{"content_hash":"8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99","text":"hello\n"},"stderr_payload":{"content_hash":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","text":""}},"g":1}
}

// The records come one by one; the tape is never held.
func ExampleReader_Records() {
	file := strings.NewReader(`{"type":"header","version":1,"harn_version":"example 1.0"}
{"type":"record","seq":0,"virtual_time_ms":0,"monotonic_ms":0,"kind":{"kind":"clock_sleep","duration_ms":10}}
{"type":"record","seq":1,"virtual_time_ms":10,"monotonic_ms":10,"kind":{"kind":"env_rea`)
	r, err := tape.NewReaderOptions(file, "run.tape", &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		log.Fatal(err)
	}
	for rec, err := range r.Records() {
		if err != nil {
			log.Fatal(err)
		}
		if sleep, ok := rec.Kind.(*tape.ClockSleep); ok {
			fmt.Printf("record %d, line %d: %d ms\n", rec.Seq, r.Line(), sleep.DurationMS)
		}
	}
	fmt.Println("torn:", r.Torn())
	// Output:
	// record 0, line 2: 10 ms
	// torn: true
}
