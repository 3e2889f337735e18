package llm_test

import (
	"bytes"
	"cmp"
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// take asks book for the answer to a request, as a replay does.
func take(t *testing.T, c *llm.Classifier, book *exchange.Book, r *exchange.Request) (*exchange.Recorded, bool) {
	t.Helper()
	tap := exchange.NewTap(nil, c, scrub.New(scrub.Key{1}, nil), &exchange.TapOptions{Replay: true})
	o, err := tap.Begin(r)
	if err != nil {
		t.Error(err)
		return nil, false
	}
	return o.Take(book)
}

func TestAttempt(t *testing.T) {
	c := llm.NewClassifier(nil)
	for name, tt := range map[string]struct {
		header http.Header
		want   string
	}{
		"stainless": {http.Header{"X-Stainless-Retry-Count": {"2"}}, "2"},
		"aws":       {http.Header{"Amz-Sdk-Request": {"attempt=1; max=3"}}, "attempt=1"},
	} {
		if got := c.Traits(&exchange.Request{Header: tt.header}).Attempt; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

const (
	first  = "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"
	second = "9c1d2e3f-1111-4f7e-9d55-abcdef012345"
	third  = "77777777-2222-4f7e-9d55-abcdef012345"
	fourth = "88888888-3333-4f7e-9d55-abcdef012345"
)

// asks is one request, by what may differ.
type asks struct {
	path, body string
	header     http.Header
}

func (a asks) request() *exchange.Request {
	return &exchange.Request{Method: http.MethodPost, URL: "https://api.example.com" + a.path, Header: a.header, Body: []byte(a.body)}
}

// TestTraits records requests whose keys are equal and asks for them in another order: each must get the answer of its own.
func TestTraits(t *testing.T) {
	for name, tt := range map[string]struct {
		recorded, asked []asks
		want            []uint64 // by request asked, the seq of the record that answers it
		sideBySide      bool     // while recording
	}{
		"ids in the path": {
			recorded: []asks{{path: "/item/" + first}, {path: "/item/" + second}},
			asked:    []asks{{path: "/item/" + second}, {path: "/item/" + first}},
			want:     []uint64{1, 0},
		},
		"ids in the body": {
			recorded: []asks{{body: `{"id":"` + first + `"}`}, {body: `{"id":"` + second + `"}`}},
			asked:    []asks{{body: `{"id":"` + second + `"}`}, {body: `{"id":"` + first + `"}`}},
			want:     []uint64{1, 0},
		},
		"a tenant in a header": {
			recorded: []asks{{header: http.Header{"X-Tenant": {"acme"}}}, {header: http.Header{"X-Tenant": {"other"}}}},
			asked:    []asks{{header: http.Header{"X-Tenant": {"other"}}}, {header: http.Header{"X-Tenant": {"acme"}}}},
			want:     []uint64{1, 0}, sideBySide: true,
		},
		"a flag drawn for each of one caller's requests": {
			recorded: []asks{{header: http.Header{"X-Sampled": {"0"}}}, {header: http.Header{"X-Sampled": {"1"}}}},
			asked:    []asks{{header: http.Header{"X-Sampled": {"1"}}}, {header: http.Header{"X-Sampled": {"0"}}}},
			want:     []uint64{0, 1},
		},
		"two ids in other places": {
			recorded: []asks{{body: `{"from":"` + first + `","to":"` + second + `"}`}, {body: `{"from":"` + second + `","to":"` + first + `"}`}},
			asked:    []asks{{body: `{"from":"` + second + `","to":"` + first + `"}`}, {body: `{"from":"` + first + `","to":"` + second + `"}`}},
			want:     []uint64{1, 0},
		},
		"days that are asked for side by side": {
			recorded: []asks{{path: "/day/2026-11-21"}, {path: "/day/2026-11-22"}},
			asked:    []asks{{path: "/day/2026-11-22"}, {path: "/day/2026-11-21"}},
			want:     []uint64{1, 0}, sideBySide: true,
		},
		"days that one caller counts from today": { // the replay is of the next day
			recorded: []asks{{path: "/day/2026-11-21"}, {path: "/day/2026-11-22"}},
			asked:    []asks{{path: "/day/2026-11-22"}, {path: "/day/2026-11-23"}},
			want:     []uint64{0, 1},
		},
		"whose key it is": {
			recorded: []asks{
				{header: http.Header{"X-Api-Key": {"one-secret-of-many-bytes"}}},
				{header: http.Header{"X-Api-Key": {"two-secrets-of-many-bytes"}}},
			},
			asked: []asks{
				{header: http.Header{"X-Api-Key": {"two-secrets-of-many-bytes"}}},
				{header: http.Header{"X-Api-Key": {"one-secret-of-many-bytes"}}},
			},
			want: []uint64{1, 0},
		},
		"ids that the program makes up anew": { // what was asked with them before says which is which
			recorded: []asks{
				{path: "/job/" + first, body: "build"}, {path: "/job/" + second, body: "test"},
				{path: "/job/" + first}, {path: "/job/" + second},
			},
			asked: []asks{
				{path: "/job/" + third, body: "test"}, {path: "/job/" + fourth, body: "build"},
				{path: "/job/" + third}, {path: "/job/" + fourth},
			},
			want: []uint64{1, 0, 3, 2},
		},
		"an id that is new": { // so it is not the one that is spoken of already
			recorded: []asks{{path: "/open/" + first}, {path: "/poll/" + first}, {path: "/poll/" + second}},
			asked:    []asks{{path: "/open/" + third}, {path: "/poll/" + fourth}, {path: "/poll/" + third}},
			want:     []uint64{0, 2, 1},
		},
		"an id that is another's counts more than a header": {
			recorded: []asks{
				{path: "/open/" + first}, {path: "/poll/" + first, header: http.Header{"X-Mode": {"a"}}},
				{path: "/poll/" + second, header: http.Header{"X-Mode": {"b"}}},
			},
			asked: []asks{{path: "/open/" + third}, {path: "/poll/" + fourth, header: http.Header{"X-Mode": {"a"}}}},
			want:  []uint64{0, 2},
		},
		"times tell nothing": {
			recorded: []asks{
				{body: `{"id":"` + first + `","took":"3 ms"}`}, {body: `{"id":"` + first + `","took":"5 ms"}`},
			},
			asked: []asks{
				{body: `{"id":"` + third + `","took":"5 ms"}`}, {body: `{"id":"` + third + `","took":"3 ms"}`},
			},
			want: []uint64{0, 1},
		},
		"tool calls of two equal conversations": {
			recorded: []asks{toolTurn("toolu_01A09q90qw90lq91"), toolTurn("toolu_02B18r81rx81mr82")},
			asked:    []asks{toolTurn("toolu_02B18r81rx81mr82"), toolTurn("toolu_01A09q90qw90lq91")},
			want:     []uint64{1, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := llm.NewClassifier(masks.New(nil))
			book := recordAll(t, c, tt.recorded, tt.sideBySide)
			for i, a := range tt.asked {
				rec, ok := take(t, c, book, a.request())
				if !ok || rec.Seq != tt.want[i] {
					t.Errorf("request %d got record %+v, want %d", i, rec, tt.want[i])
				}
			}
		})
	}
}

func toolTurn(tool string) asks {
	return asks{path: "/v1/messages", body: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go on"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"` + tool + `","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + tool + `","content":"done"}]}]}`}
}

// recordAll is the book of a tape with these requests in this order, each answered before the next or all at once.
func recordAll(t *testing.T, c *llm.Classifier, all []asks, sideBySide bool) *exchange.Book {
	t.Helper()
	var lines bytes.Buffer
	w, err := tape.NewWriter(&lines, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	store := cas.NewMemory()
	tap := exchange.NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), c, scrub.New(scrub.Key{1}, nil), nil)
	var open []*exchange.Open
	for _, a := range all {
		o, err := tap.Begin(a.request())
		if err := cmp.Or(err, o.Response(http.StatusOK, nil), o.Chunk([]byte("ok"))); err != nil {
			t.Fatal(err)
		}
		if open = append(open, o); !sideBySide {
			endAll(t, open)
			open = nil
		}
	}
	endAll(t, open)
	r, err := tape.NewReader(&lines, "tape")
	if err != nil {
		t.Fatal(err)
	}
	book, err := exchange.NewBook(r.Records(), c, store)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func endAll(t *testing.T, all []*exchange.Open) {
	t.Helper()
	for _, o := range all {
		if err := o.End(""); err != nil {
			t.Fatal(err)
		}
	}
}
