package wire

import (
	"reflect"
	"testing"
)

type inner struct {
	Path  string
	Mode  uint16
	Below []string
}

type outer struct {
	On     bool
	N      int
	Data   []byte
	Umask  *int
	Inner  *inner
	List   []inner
	Header map[string][]string
	hidden int
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	mask := -7
	for _, v := range []outer{
		{},
		{On: true, N: 1 << 40, Data: []byte{0, 255}, Umask: &mask, Inner: &inner{Path: "\xff/a"}, List: []inner{{}, {"b", 9, []string{"", "c"}}},
			Header: map[string][]string{"A": {"\xff", ""}, "B": nil}},
	} {
		b := Append(nil, &v)
		var got outer
		if err := Decode(b, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%+v became %+v, %v", v, got, err)
		}
		for i := range b {
			if Decode(b[:i], new(outer)) == nil {
				t.Errorf("the first %d of %d bytes are a value", i, len(b))
			}
		}
		if Decode(append(b, 0), new(outer)) == nil {
			t.Error("a byte too many passes")
		}
	}
	if v := (outer{hidden: 1}); len(Append(nil, &v)) != len(Append(nil, new(outer))) {
		t.Error("what is not exported was written")
	}
}

// FuzzDecode reads anything: an error, or a value that is written and read again as itself.
func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, &outer{List: []inner{{Path: "a"}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again outer
		if Decode(b, &v) != nil {
			return
		}
		if err := Decode(Append(nil, &v), &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%+v became %+v, %v", v, again, err)
		}
	})
}
