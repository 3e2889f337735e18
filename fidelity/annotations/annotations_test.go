package annotations_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// newTape writes a tape of n readings of a clock.
func newTape(t testing.TB, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.tape")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test 1"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Append(&tape.Record{Seq: uint64(i), Kind: &tape.ClockRead{Source: "wall", ValueMS: int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

func digestOf(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return cas.Sum(b).String()
}

// header is the first line of a sidecar that another producer wrote.
func header(digest string) string {
	return `{"type":"header","schema_version":1,"tape_path":"run.tape","tape_content_hash":"` + digest + `","harn_version":"0.8.26"}` + "\n"
}

// ada says most things here.
var ada = annotations.Author{ID: "ada", Kind: "human", Surface: "cli"}

const author = `"author":{"id":"ada","kind":"human","surface":"cli"},"timestamp":"2026-01-02T03:04:05Z"`

func TestAppend(t *testing.T) {
	path := newTape(t, 5)
	first := &annotations.Annotation{EventID: 3, Kind: annotations.Hypothesis, Evidence: "read <twice> & more", HypothesisStatus: "active",
		Author: ada, Timestamp: "2026-01-02T03:04:05Z",
		Span: &annotations.Span{StartEventID: 3, EndEventID: 4}, Links: []annotations.Link{{Label: "issue", URL: "https://example.com/7"}},
		SuggestedFix: json.RawMessage(`{"ms":1}`)}
	second := &annotations.Annotation{EventID: 0, Kind: annotations.Friction, FrictionKind: "slow", Evidence: "e", Author: first.Author}
	for _, a := range []*annotations.Annotation{first, second} {
		if err := annotations.Append(path, "tapedeck test", a); err != nil {
			t.Fatal(err)
		}
	}
	if first.ID != "ann_001" || second.ID != "ann_002" || second.Timestamp == "" {
		t.Errorf("filled in %q, %q at %q", first.ID, second.ID, second.Timestamp)
	}
	b, err := os.ReadFile(path + annotations.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(header(digestOf(t, path)), "0.8.26", "tapedeck test", 1) +
		`{"type":"annotation","id":"ann_001","event_id":3,"kind":"hypothesis","evidence":"read <twice> & more",` + author +
		`,"suggested_fix":{"ms":1},"span":{"start_event_id":3,"end_event_id":4},"hypothesis_status":"active","links":[{"label":"issue","url":"https://example.com/7"}]}` + "\n"
	if !strings.HasPrefix(string(b), want) {
		t.Error(cmp.Diff(want, string(b)))
	}
	s, err := annotations.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := annotations.Validate(s, path); err != nil || len(problems) > 0 {
		t.Errorf("what was written does not hold: %v, %v", problems, err)
	}
	if got := s.About(4); len(got) != 1 || got[0].String() != `hypothesis ann_001 (active, by ada, events 3 to 4): read <twice> & more; suggested: {"ms":1}; issue https://example.com/7` {
		t.Errorf("about event 4: %v", got)
	}
}

func TestAppendRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		a    annotations.Annotation
		want string
	}{
		"no such event":            {annotations.Annotation{EventID: 5, Kind: annotations.Note}, "the tape has no event 5"},
		"an id that is there":      {annotations.Annotation{ID: "mine", Kind: annotations.Note}, `the id "mine" stands in line 2 already`},
		"a hypothesis of what":     {annotations.Annotation{Kind: annotations.Hypothesis}, "it lacks hypothesis_status"},
		"a status that is none":    {annotations.Annotation{Kind: annotations.Hypothesis, HypothesisStatus: "maybe"}, `hypothesis_status "maybe": want one of active`},
		"friction of what":         {annotations.Annotation{Kind: annotations.Friction}, "it lacks friction_kind"},
		"a span that ends early":   {annotations.Annotation{EventID: 3, Kind: annotations.Note, Span: &annotations.Span{StartEventID: 3, EndEventID: 1}}, "ends at event 1"},
		"a span from elsewhere":    {annotations.Annotation{EventID: 3, Kind: annotations.Note, Span: &annotations.Span{StartEventID: 2, EndEventID: 4}}, "starts at event 2"},
		"more than a line holds":   {annotations.Annotation{Kind: annotations.Note, Evidence: strings.Repeat("x", annotations.MaxLine)}, "longer than"},
		"nobody":                   {annotations.Annotation{Kind: annotations.Note}, "it lacks author.id, author.kind"},
		"a time that nobody reads": {annotations.Annotation{Kind: annotations.Note, Timestamp: "yesterday"}, "no time in RFC 3339"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newTape(t, 5)
			if err := annotations.Append(path, "p", &annotations.Annotation{ID: "mine", Kind: annotations.Note, Author: ada}); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path + annotations.Suffix)
			if name != "nobody" {
				tt.a.Author = ada
			}
			err := annotations.Append(path, "p", &tt.a)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if after, _ := os.ReadFile(path + annotations.Suffix); string(after) != string(before) {
				t.Errorf("the sidecar changed to %s", after)
			}
		})
	}
}

// TestValidate holds every problem of the spec in one sidecar of another producer.
func TestValidate(t *testing.T) {
	path := newTape(t, 5)
	sidecar := header(digestOf(t, path)) + "\n# a comment\n" +
		`{"type":"annotation","id":"a","event_id":1,"kind":"correct","evidence":"e",` + author + "}\n" +
		`{"type":"annotation","id":"a","event_id":9,"kind":"note","evidence":"e",` + author + "}\n" +
		`{"type":"annotation","id":"b","event_id":1,"kind":"hypothesis","evidence":"e",` + author + "}\n" +
		`{"type":"annotation","id":"c","event_id":1,"kind":"friction","evidence":"e",` + author + "}\n" +
		`{"type":"annotation","id":"d","event_id":2,"kind":"note","evidence":"e",` + author + `,"span":{"start_event_id":1,"end_event_id":3}}` + "\n" +
		`{"type":"annotation","id":"e","event_id":2,"kind":"note","evidence":"e",` + author + `,"span":{"start_event_id":2,"end_event_id":1}}` + "\n" +
		`{"type":"annotation","id":"f","event_id":2,"kind":"note","evidence":"e",` + author + `,"span":{"start_event_id":2,"end_event_id":7}}` + "\n" +
		`{"type":"annotation","event_id":2,"kind":"note","author":{"id":"ada"}}` + "\n" +
		`{"type":"annotation","id":"g","event_id":2,"kind":"praise","evidence":"e",` + author + `,"ours":[1,2]}` + "\n" +
		`{"type":"annotation","id":"h","event_id":2,"kind":"hypothesis","hypothesis_status":"wild","evidence":"e",` + author + "}\n" +
		`{"type":"annotation","id":"torn","event`
	if err := os.WriteFile(path+annotations.Suffix, []byte(sidecar), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := annotations.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := annotations.Validate(s, path)
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		Code annotations.Code
		Line int
	}
	var got []found
	for _, p := range problems {
		got = append(got, found{p.Code, p.Line})
	}
	want := []found{
		{annotations.DuplicateID, 5}, {annotations.UnknownEvent, 5}, {annotations.MissingField, 6}, {annotations.MissingField, 7},
		{annotations.BadSpan, 8}, {annotations.BadSpan, 9}, {annotations.UnknownEvent, 10}, {annotations.MissingField, 11},
		{annotations.BadValue, 13}, {annotations.TornLine, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, problems)
	}
	if a := s.Annotations[8]; a.Known() != annotations.KindUnknown || a.Kind != "praise" {
		t.Errorf("a kind that nobody knows reads as %q, and stays %q", a.Known(), a.Kind)
	}
	if !strings.Contains(problems[7].Message, "evidence, id, author.kind, author.surface, timestamp") {
		t.Errorf("missing: %s", problems[7].Message)
	}
}

// TestMissingDeepDown: what is missing within a span and the header is told as missing, not as the zero that it would be.
func TestMissingDeepDown(t *testing.T) {
	path := newTape(t, 5)
	sidecar := `{"type":"header","schema_version":1,"tape_path":"t","harn_version":"x"}` + "\n" +
		`{"type":"annotation","id":"a","event_id":2,"kind":"note","evidence":"e",` + author + `,"span":{"start_event_id":2}}` + "\n"
	s, err := annotations.Read(strings.NewReader(sidecar), "x")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := annotations.Validate(s, path)
	if err != nil || len(problems) != 2 || problems[0].Code != annotations.MissingField || problems[1].Code != annotations.MissingField ||
		!strings.Contains(problems[0].Message, "tape_content_hash") || !strings.HasSuffix(problems[1].Message, "lacks span.end_event_id") {
		t.Errorf("%+v, %v", problems, err)
	}
}

// TestDigestOfZeros: 64 zeros are a digest like another, of another tape.
func TestDigestOfZeros(t *testing.T) {
	path := newTape(t, 5)
	s, err := annotations.Read(strings.NewReader(header(strings.Repeat("0", 64))), "x")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := annotations.Validate(s, path)
	if err != nil || len(problems) != 1 || problems[0].Code != annotations.TapeDigest {
		t.Errorf("%+v, %v", problems, err)
	}
}

// TestTapeChanged: the digest of a tape that was edited since no longer matches, and nothing more is said of it.
func TestTapeChanged(t *testing.T) {
	path := newTape(t, 5)
	if err := annotations.Append(path, "p", &annotations.Annotation{Kind: annotations.Note, Author: ada}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), `"value_ms":4`, `"value_ms":5`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := annotations.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := annotations.Validate(s, path)
	if err != nil || len(problems) != 1 || problems[0].Code != annotations.TapeDigest {
		t.Errorf("problems %v, %v", problems, err)
	}
	if err := annotations.Append(path, "p", &annotations.Annotation{Kind: annotations.Note, Author: ada}); err == nil {
		t.Error("an annotation was added to what was said about another tape")
	}
}

// TestUnread: what is no sidecar, each with its line.
func TestUnread(t *testing.T) {
	head := header(strings.Repeat("a", 64))
	for name, tt := range map[string]struct {
		text string
		line int
		want error
	}{
		"empty":              {"", 1, annotations.ErrNoHeader},
		"comments alone":     {"# a\n\n", 3, annotations.ErrNoHeader},
		"no header":          {`{"type":"annotation","id":"a"}` + "\n", 1, annotations.ErrNoHeader},
		"two headers":        {head + head, 2, annotations.ErrMalformed},
		"a version to come":  {strings.Replace(head, ":1,", ":2,", 1), 1, annotations.ErrVersion},
		"no version":         {strings.Replace(head, ":1,", ":0,", 1), 1, annotations.ErrMalformed},
		"no digest":          {strings.Replace(head, strings.Repeat("a", 64), "short", 1), 1, annotations.ErrMalformed},
		"not JSON":           {head + "nonsense\n", 2, annotations.ErrMalformed},
		"another type":       {head + `{"type":"record"}` + "\n", 2, annotations.ErrMalformed},
		"a number as its id": {head + `{"type":"annotation","id":7}` + "\n", 2, annotations.ErrMalformed},
		"an event below 0":   {head + `{"type":"annotation","event_id":-1}` + "\n", 2, annotations.ErrMalformed},
		"a line without end": {head + strings.Repeat(" ", annotations.MaxLine+1), 2, annotations.ErrLineTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := annotations.Read(strings.NewReader(tt.text), "x")
			var at *annotations.LoadError
			if !errors.As(err, &at) || at.Line != tt.line || !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v in line %d", err, tt.want, tt.line)
			}
		})
	}
}

// TestTornLine: an append takes away what a crash left, whatever its length, and nothing that is whole.
func TestTornLine(t *testing.T) {
	path := newTape(t, 2)
	note := func() *annotations.Annotation {
		return &annotations.Annotation{Kind: annotations.Note, Evidence: "whole", Author: ada, Timestamp: "2026-01-02T03:04:05Z"}
	}
	if err := annotations.Append(path, "p", note()); err != nil {
		t.Fatal(err)
	}
	one, err := os.ReadFile(path + annotations.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	if err := annotations.Append(path, "p", note()); err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(path + annotations.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(one); cut < len(two); cut++ {
		if err := os.WriteFile(path+annotations.Suffix, two[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := annotations.Append(path, "p", note()); err != nil {
			t.Fatalf("after %d bytes: %v", cut, err)
		}
		s, err := annotations.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want := 2
		if cut == len(two)-1 {
			want = 3 // its line was whole but for the newline
		}
		if len(s.Annotations) != want || s.Torn {
			t.Fatalf("after %d bytes: %d annotations, torn %t", cut, len(s.Annotations), s.Torn)
		}
	}
}

// TestManyAtOnce: no annotation of several writers is lost, and no id is given twice.
func TestManyAtOnce(t *testing.T) {
	path := newTape(t, 2)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if err := annotations.Append(path, "p", &annotations.Annotation{Kind: annotations.Note, Author: annotations.Author{ID: "a", Kind: "agent", Surface: "test"}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s, err := annotations.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range s.Annotations {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); len(ids) != 40 || n != 40 {
		t.Errorf("%d annotations with %d ids", len(ids), n)
	}
}

func TestNone(t *testing.T) {
	s, err := annotations.Open(filepath.Join(t.TempDir(), "run.tape"))
	if s != nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
	if got := s.About(1); got != nil {
		t.Errorf("about: %v", got)
	}
}
