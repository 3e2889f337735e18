package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// filterFlags choose records as they were typed; a filter is what they mean.
type filterFlags struct {
	seq          string
	kinds        []string
	lane, grep   string
	since, until string
	errors       bool
	tail         int
}

func (f *filterFlags) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.seq, "seq", "", "only the record with this number, or those of a range: `N`, N-M or N-")
	fs.StringSliceVar(&f.kinds, "kind", nil, "only records of this `kind`, as in llm_call (repeatable, or with commas)")
	fs.StringVar(&f.lane, "lane", "", "only records whose `lane` begins so, or fits a pattern with * and ?")
	fs.StringVar(&f.grep, "grep", "", "only records in whose fields or payloads this regular `expression` (RE2) is found")
	fs.StringVar(&f.since, "since", "", "only records from this `time` after the start on: 1500 (ms), 1.5s or 2m")
	fs.StringVar(&f.until, "until", "", "only records up to this `time` after the start")
	fs.BoolVar(&f.errors, "errors", false, "only what was refused, exchanges that failed and programs that did not exit with 0")
	fs.IntVar(&f.tail, "tail", 0, "only the last `N` of what the other flags choose")
}

// A filter chooses records. All that it asks for must be true of one.
type filter struct {
	first, last  uint64 // seq
	single       bool   // --seq N
	kinds        []string
	lane         func(string) bool // nil for any
	grep         *regexp.Regexp    // nil for any
	since, until int64             // ms
	errors       bool
	tail         int // 0 for all
	buf          []byte
	strict       bool            // something was named that may be a typing error: nothing found is an error
	seen         map[string]bool // kinds of the records that were looked at, those of kinds and maxSeen more
}

// maxSeen bounds how many kinds are told apart: those of tapedeck are fewer than half of it.
const maxSeen = 64

func (f *filterFlags) parse() (*filter, error) {
	out := &filter{
		last: math.MaxUint64, until: math.MaxInt64, kinds: f.kinds, errors: f.errors, tail: f.tail,
		strict: (f.seq != "" || len(f.kinds) > 0 || f.lane != "" || f.grep != "") && !f.errors,
	}
	err := errors.Join(out.parseSeq(f.seq), parseOffset("since", f.since, &out.since), parseOffset("until", f.until, &out.until))
	if f.tail < 0 {
		err = errors.Join(err, fmt.Errorf("--tail %d: want how many of the last records to show", f.tail))
	}
	if f.lane != "" {
		out.lane = laneMatcher(f.lane)
	}
	if f.grep != "" {
		re, errGrep := regexp.Compile(f.grep)
		if errGrep != nil {
			errGrep = fmt.Errorf(`--grep: %w: put plain text between \Q and \E`, errGrep)
		}
		out.grep, err = re, errors.Join(err, errGrep)
	}
	return out, err
}

func (f *filter) parseSeq(s string) error {
	if s == "" {
		return nil
	}
	from, to, ranged := strings.Cut(s, "-")
	var err1, err2 error
	f.first, err1 = strconv.ParseUint(from, 10, 64)
	switch {
	case !ranged:
		f.last, f.single = f.first, true
	case to != "":
		f.last, err2 = strconv.ParseUint(to, 10, 64)
	}
	if err1 != nil || err2 != nil || f.first > f.last {
		return fmt.Errorf("--seq %q: want the number of a record, or a range as in 10-20 or 10-", s)
	}
	return nil
}

// parseOffset reads ms or a duration into at.
func parseOffset(flag, s string, at *int64) error {
	if s == "" {
		return nil
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(s)
		ms = d.Milliseconds()
	}
	if err != nil || ms < 0 {
		return fmt.Errorf("--%s %q: want a time after the start of the recording: 1500 (ms), 1.5s or 2m", flag, s)
	}
	*at = ms
	return nil
}

// laneMatcher fits lanes that begin with s or, where it has a * or ?, that it describes from end to end; * stands for
// slashes too, which a lane has as part of paths.
func laneMatcher(s string) func(string) bool {
	if !strings.ContainsAny(s, "*?") {
		return func(lane string) bool { return strings.HasPrefix(lane, s) }
	}
	expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(s))
	return regexp.MustCompile("(?s)^" + expr + "$").MatchString // what was quoted always compiles
}

// wants reports whether the filter chooses rec, whose payloads are in store.
func (f *filter) wants(rec *tape.Record, store cas.Store) (bool, error) {
	f.see(rec.Kind.Name())
	switch {
	case rec.Seq < f.first || rec.Seq > f.last,
		rec.MonotonicMS < f.since || rec.MonotonicMS > f.until,
		len(f.kinds) > 0 && !slices.Contains(f.kinds, rec.Kind.Name()),
		f.lane != nil && !f.lane(fidelity.LaneOf(rec.Kind)),
		f.errors && !failed(rec.Kind):
		return false, nil
	case f.grep == nil:
		return true, nil
	}
	return f.found(rec, store)
}

func (f *filter) see(kind string) {
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	if len(f.kinds) > 0 && (len(f.seen) < maxSeen || slices.Contains(f.kinds, kind)) {
		f.seen[kind] = true
	}
}

// unknown is the error of a kind that was asked for, and that neither tapedeck nor the tape knows.
func (f *filter) unknown() error {
	for _, k := range f.kinds {
		if f.seen[k] || slices.Contains(kindNames, k) {
			continue
		}
		known := append(slices.Collect(maps.Keys(f.seen)), kindNames...)
		slices.Sort(known)
		return fmt.Errorf("--kind %s: want one of %s", k, strings.Join(slices.Compact(known), ", "))
	}
	return nil
}

// nothing is the error of a choice that no record fits: a typing error must not read as an empty tape.
func (f *filter) nothing(found int) error {
	if err := f.unknown(); err != nil || found > 0 || !f.strict {
		return err
	}
	return errors.New("no record fits; `tapedeck show REC` lists their numbers, kinds and lanes")
}

// nothingFailed says that --errors has found nothing, so that no output is not taken for none made.
func (f *filterFlags) nothingFailed(found int, out io.Writer) error {
	if found > 0 || !f.errors {
		return nil
	}
	_, err := visible.Fprintln(out, "nothing was refused and nothing failed")
	return err
}

// all reports whether nothing was asked for: then what is no record is shown too.
func (f *filter) all() bool {
	return f.first == 0 && !f.single && len(f.kinds) == 0 && f.lane == nil && f.grep == nil && !f.errors &&
		f.since == 0 && f.until == math.MaxInt64 && f.last == math.MaxUint64
}

// found looks for the expression in the record's line and in its payloads.
func (f *filter) found(rec *tape.Record, store cas.Store) (bool, error) {
	if f.buf = tape.AppendRecord(f.buf[:0], rec); f.grep.Match(f.buf) {
		return true, nil
	}
	for _, p := range namedPayloads(rec.Kind) {
		ok, err := f.inPayload(rec.Kind, p, store)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// grepWhole is the longest payload, in bytes, that is searched in memory, and grepDecoded the longest that a compressed
// one may become there. What is longer is searched as it streams, as it stands.
const grepWhole, grepDecoded = 16 << 20, 64 << 20

func (f *filter) inPayload(k tape.Kind, p namedPayload, store cas.Store) (bool, error) {
	if p.payload.Len > grepWhole {
		r, err := p.payload.Open(store)
		if err != nil {
			return false, err
		}
		defer r.Close()
		return f.grep.MatchReader(bufio.NewReaderSize(r, 1<<16)), nil
	}
	b, err := p.payload.Bytes(store)
	if err != nil {
		return false, err
	}
	if plain, err := exchange.Decode(encodingOf(k, p.name), b, grepDecoded); err == nil {
		b = plain
	}
	return f.grep.Match(b), nil
}

// encodingOf is the Content-Encoding of the payload name of k.
func encodingOf(k tape.Kind, name string) string {
	x := tape.ExchangeOf(k)
	if x == nil {
		return ""
	}
	headers := x.ResponseHeaders
	if name == "request" {
		headers = x.RequestHeaders
	}
	var all []string
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Content-Encoding") {
			all = append(all, h.Value)
		}
	}
	return strings.Join(all, ", ")
}

// failed reports whether a record says that something went wrong.
func failed(k tape.Kind) bool {
	if x := tape.ExchangeOf(k); x != nil {
		return x.Error != "" || x.Status >= 400 || x.Status == 0 && x.Method != "" // without a method: another producer's
	}
	switch k := k.(type) {
	case *tape.NetRefused, *tape.TLSRefused:
		return true
	case *tape.ProcessSpawn:
		return k.ExitCode != 0 || k.Signal != ""
	case *tape.MCPJSONRPC:
		return mcpFailed(k)
	case *tape.WSClose:
		return k.Code > 1001 && k.Code != 1005 // RFC 6455, 7.4.1: normal, going away, none given
	}
	return false
}

// mcpFailed reports whether the answer is an error of JSON-RPC.
func mcpFailed(k *tape.MCPJSONRPC) bool {
	if k.Response == nil || !k.Response.Inline {
		return false
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	err := json.Unmarshal([]byte(k.Response.Text), &answer)
	return err == nil && len(answer.Error) > 0 && !bytes.Equal(answer.Error, []byte("null"))
}

// A ring keeps the last of the records that it gets: all of them where size is 0 is not what it is for.
type ring struct {
	size int
	recs []*tape.Record
	next int
}

func (r *ring) add(rec *tape.Record) {
	if len(r.recs) < r.size {
		r.recs = append(r.recs, rec)
		return
	}
	r.recs[r.next] = rec
	r.next = (r.next + 1) % r.size
}

// all returns them in the order in which they came.
func (r *ring) all() []*tape.Record {
	return append(r.recs[r.next:len(r.recs):len(r.recs)], r.recs[:r.next]...)
}
