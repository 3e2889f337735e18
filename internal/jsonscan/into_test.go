package jsonscan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type intoPart struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

type intoWhole struct {
	Name  string `json:"name"`
	Whole []byte `json:"*"`
}

type intoAll struct {
	Raw []intoWhole `json:"raw"`
	intoPart
	Args  []byte     `json:"arguments|input"`
	Set   bool       `json:"set"`
	One   intoPart   `json:"one"`
	Maybe *intoPart  `json:"maybe"`
	Many  []intoPart `json:"many"`
	Own   intoOwn    `json:"own"`
}

// intoOwn counts the elements of a list.
type intoOwn struct{ n int }

func (o *intoOwn) ReadJSON(s *Scanner) {
	for s.Begin('['); s.More(']'); s.Skip() {
		o.n++
	}
}

func TestInto(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     intoAll
		strict   string // the error of Strictly
	}{
		{"all", `{"many":[{"name":"a"},{}],"x":[{"name":"no"}],"own":[1,2],"input":{"a": 1e3},"one":{"size":-3},"maybe":{"name":"m"},"set":true,"name":"\u00e9","size":9}`,
			intoAll{intoPart: intoPart{"é", 9}, Args: []byte(`{"a": 1e3}`), Set: true, One: intoPart{Size: -3}, Maybe: &intoPart{Name: "m"},
				Many: []intoPart{{Name: "a"}, {}}, Own: intoOwn{2}}, ""},
		{"whole", `{"raw":[ {"name": "a"} ,5,"b"]}`, intoAll{Raw: []intoWhole{{"a", []byte(`{"name": "a"}`)}, {"", []byte("5")}, {"", []byte(`"b"`)}}}, "want an object"},
		{"nulls", `{"many":null,"one":null,"maybe":null,"set":null,"name":null,"size":null}`, intoAll{}, ""},
		{"other kinds", `{"many":{"a":1},"one":[],"set":"yes","name":5,"size":"9"}`, intoAll{}, "want a list"},
		{"a string", `{"name":5}`, intoAll{}, "want a string"},
		{"an integer", `{"size":"9"}`, intoAll{}, "want an integer"},
		{"a truth", `{"set":1}`, intoAll{}, "want true or false"},
		{"an object", `{"one":[]}`, intoAll{}, "want an object"},
		{"no object", `[1]`, intoAll{}, "want an object"},
		{"in another element", `{"many":[1,{"size":2}]}`, intoAll{Many: []intoPart{{}, {Size: 2}}}, "want an object"},
		{"twice", `{"name":"a","other":1,"name":"b"}`, intoAll{intoPart: intoPart{Name: "b"}}, `"name" stands twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, strict intoAll
			var s Scanner
			s.Reset([]byte(c.in))
			if Into(&s, &got); s.End() != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, s.Err(), c.want)
			}
			s.Reset([]byte(c.in))
			Strictly(&s, &strict)
			if err := s.End(); (err != nil) != (c.strict != "") || err != nil && !strings.Contains(err.Error(), c.strict) {
				t.Errorf("%v, want %q", err, c.strict)
			}
		})
	}
}

// FuzzInto: what Strictly takes is JSON, and encoding/json reads the same of it.
func FuzzInto(f *testing.F) {
	f.Add([]byte(`{"name":"a","size":1,"many":[{"name":"b"}],"one":{"size":2},"maybe":{},"set":true}`))
	f.Add([]byte(`{"name":"\ud800","size":99999999999999999999,"set":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		type form struct {
			Name  string     `json:"name"`
			Size  int64      `json:"size"`
			Set   bool       `json:"set"`
			One   intoPart   `json:"one"`
			Maybe *intoPart  `json:"maybe"`
			Many  []intoPart `json:"many"`
		}
		var got, want, loose form
		var s Scanner
		s.Reset(b)
		Into(&s, &loose)
		s.Reset(b)
		if Strictly(&s, &got); s.End() != nil || Valid(b) != nil || strings.ContainsAny(string(b), `\ `) {
			return
		}
		// encoding/json takes keys in any letter case, and a null for a list as none
		if err := json.Unmarshal(b, &want); err != nil || strings.ToLower(string(b)) != string(b) {
			return
		}
		if !reflect.DeepEqual(got, loose) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n%+v\n%+v\n%+v", b, got, loose, want)
		}
	})
}

// TestFirst: what comes behind the last field is not looked at.
func TestFirst(t *testing.T) {
	for in, want := range map[string]intoPart{
		`{"x":1,"size":2,"name":"a",no`: {"a", 2}, `{"name":"a","rest":[]}`: {"a", 0}, `[]`: {},
	} {
		var got intoPart
		var s Scanner
		s.Reset([]byte(in))
		if First(&s, &got); s.Err() != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, s.Err())
		}
	}
}
