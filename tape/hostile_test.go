package tape_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// between returns head, then piece as often as n bytes have room for it, then tail.
func between(head, piece, tail string, n int) string {
	return head + strings.Repeat(piece, n/len(piece)) + tail
}

// lines is a tape of one record.
func lines(record string) string { return header + record + "\n" }

// hostile are tapes of about n bytes each, which a reader without a bound on its time per byte would sit over for long.
var hostile = map[string]func(n int) string{
	"keys of a header": func(n int) string { return between(strings.TrimSuffix(header, "}\n"), `,"a":0`, "}\n", n) },
	"strings of argv": func(n int) string {
		return between(`{"type":"header","version":1,"harn_version":"x","argv":["a"`, `,"\n"`, "]}\n", n)
	},
	"keys of a record": func(n int) string {
		return header + between(strings.TrimSuffix(line(`{"kind":"env_read"}`), "}"), `,"a":0`, "}\n", n)
	},
	"keys of a kind":           func(n int) string { return lines(line(between(`{"kind":"env_read"`, `,"a":0`, `}`, n))) },
	"escaped keys":             func(n int) string { return lines(line(between(`{"kind":"env_read"`, `,"\u0061":0`, `}`, n))) },
	"a key before its place":   func(n int) string { return lines(line(between(`{`, `"a":0,`, `"kind":"file_delete","path":"p"}`, n))) },
	"a known key that repeats": func(n int) string { return lines(line(between(`{"kind":"env_read"`, `,"name":""`, `}`, n))) },
	"keys of an unknown kind":  func(n int) string { return lines(line(between(`{`, `"a":0,`, `"kind":"x"}`, n))) },
	"keys of a payload": func(n int) string {
		return lines(line(between(`{"kind":"random_read","payload":{"content_hash":"`+goodHash+`","len_bytes":1`, `,"a":0`, `}}`, n)))
	},
	"keys of a chunk": func(n int) string {
		return lines(line(between(`{"kind":"http_exchange","stream":[{"offset":0,"length":1,"t_ms":1`, `,"a":0`, `,"g":null}]}`, n)))
	},
	"chunks": func(n int) string {
		return lines(line(between(`{"kind":"http_exchange","stream":[{"offset":0,"length":1,"t_ms":1}`,
			`,{"offset":0,"length":1,"t_ms":1,"g":0,"a":1}`, `]}`, n)))
	},
	"chunks in a wrong list": func(n int) string {
		return lines(line(between(`{"kind":"http_exchange","stream":[]`, `,"stream":[{}]`, `}`, n)))
	},
	"header fields": func(n int) string {
		return lines(line(between(`{"kind":"http_exchange","request_headers":[["a","b"]`, `,["a","b"]`, `]}`, n)))
	},
	"raw": func(n int) string {
		return header + between(strings.TrimSuffix(line(`{"kind":"env_read"}`), "}")+`,"raw":{"a":""`, `,"a":"/w=="`, "}}\n", n)
	},
	"nested": func(n int) string {
		return lines(line(between(`{"kind":"x","a":[0`, ","+strings.Repeat("[", 900)+strings.Repeat("]", 900), `]}`, n)))
	},
	"nested too deep":  func(n int) string { return lines(line(between(`{"kind":"x","a":`, "[", "", n))) },
	"objects too deep": func(n int) string { return lines(line(between(`{"kind":"x","a":`, `{"a":`, "", n))) },
	"short escapes":    func(n int) string { return lines(line(between(`{"kind":"env_read","name":"`, `\"`, `"}`, n))) },
	"long escapes":     func(n int) string { return lines(line(between(`{"kind":"env_read","name":"`, `\u0001`, `"}`, n))) },
	"halves of pairs":  func(n int) string { return lines(line(between(`{"kind":"env_read","name":"`, `\ud83d`, `"}`, n))) },
	"a string without end": func(n int) string {
		return lines(between(`{"type":"record","seq":0,"kind":{"kind":"env_read","name":"`, `\u0041`, "", n))
	},
	"no UTF-8":         func(n int) string { return lines(line(between(`{"kind":"env_read","name":"`, "\xff", `"}`, n))) },
	"a number":         func(n int) string { return lines(line(between(`{"kind":"env_read","a":1`, "1", `}`, n))) },
	"a number of ours": func(n int) string { return lines(line(between(`{"kind":"clock_sleep","duration_ms":1`, "1", `}`, n))) },
	"a digest": func(n int) string {
		return lines(line(between(`{"kind":"dir_list","names_digest":"`, "\\u0001", `"}`, n)))
	},
	"a type":            func(n int) string { return between(header+`{"type":"`, "x", "\"}\n", n) },
	"white space":       func(n int) string { return lines(line(between(`{"kind":"env_read"`, " ", `}`, n))) },
	"line ends in JSON": func(n int) string { return lines(line(between(`{"kind":"env_read","a":[0`, ",\r0", `]}`, n))) },
	"blank lines":       func(n int) string { return between(header, "\n", "", n) },
	"spaces":            func(n int) string { return between(header, " ", "", n) },
	"tiny records": func(n int) string {
		return between(header, `{"type":"record","seq":0,"virtual_time_ms":0,"monotonic_ms":0,"kind":{"kind":""}}`+"\n", "", n)
	},
	"a torn line": func(n int) string { return between(header+`{"type":"record","a":[0`, ",0", "", n) },
}

// The time that a byte takes has a bound: a tape of four times the bytes takes about four times as long to read and to
// save, whatever stands on it. What grew with the square would take sixteen times. 4 MiB in the long form, else 256 KiB.
// A tape that takes less than enough a byte is not looked at further: a square of so many bytes takes seconds.
func TestTimePerByteIsBounded(t *testing.T) {
	if race {
		t.Skip("the race detector's own time is measured here")
	}
	const factor, most, enough = 4, 12, 200 * time.Nanosecond
	short := 64 << 10
	if long() {
		short = 1 << 20
	}
	for name, build := range hostile {
		t.Run(name, func(t *testing.T) {
			a, b := build(short), build(factor*short)
			if len(b) < (factor-1)*short {
				t.Fatalf("%d bytes", len(b))
			}
			// A pause of the collector or of the machine lengthens one round, a square all of them.
			fastA, fastB := time.Hour, time.Hour
			for range 8 {
				fastA, fastB = min(fastA, timeLoad(t, a)), min(fastB, timeLoad(t, b))
				if fastB < most*fastA || fastB < time.Duration(len(b))*enough {
					t.Logf("%d bytes take %v, %d bytes %v", len(a), fastA, len(b), fastB)
					return
				}
			}
			t.Errorf("%d bytes take %v, %d bytes %v", len(a), fastA, len(b), fastB)
		})
	}
}

// timeLoad returns how long a tape takes to be read in both ways, and what loads to be saved.
func timeLoad(t *testing.T, in string) time.Duration {
	t.Helper()
	begun := cputime.Spent()
	loadBytes([]byte(in), &tape.ReaderOptions{Tolerant: true})
	l := loadBytes([]byte(in), nil)
	if l.reader != nil {
		var out bytes.Buffer
		w, err := tape.NewWriter(&out, l.reader.Header())
		for i := 0; err == nil && i < len(l.records); i++ {
			err = w.Append(l.records[i])
		}
		if err != nil {
			t.Fatal(fmt.Errorf("what was loaded is not saved: %w", err))
		}
	}
	return cputime.Spent() - begun
}
