package masks_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// TestLinksOfListings: how many links a listing says that a file has, which a replay's directories have otherwise, is masked with
// its alignment; nothing else of the line is, nor what only looks like one.
func TestLinksOfListings(t *testing.T) {
	m := masks.New(&maskOptions)
	for in, want := range map[string]string{
		"drwxr-xr-x 5 anna users 40 src":              "drwxr-xr-x <links> anna users 40 src",
		"total 8\ndrwxr-xr-x   12 anna users 40 src":  "total 8\ndrwxr-xr-x <links> anna users 40 src",
		`{"text":"total 8\ndrwxrwsr-t+ 1 anna 40 ."}`: `{"text":"total 8\ndrwxrwsr-t+ <links> anna 40 ."}`,
		"-rw-r--r--.  1 0 0 7 f":                      "-rw-r--r--. <links> 0 0 7 f",
		"lrwxrwxrwx 1 a a 3 l -> f":                   "lrwxrwxrwx <links> a a 3 l -> f",
		"drwxr-xr-x anna":                             "drwxr-xr-x anna",
		"drwxr-xr-x":                                  "drwxr-xr-x",
		"---------- 5 x":                              "---------- <links> x",
		"--------------- 5 x":                         "--------------- 5 x",
		"xdrwxr-xr-x 5 anna":                          "xdrwxr-xr-x 5 anna",
		"drwxr-xr-x 5":                                "drwxr-xr-x 5",
	} {
		if got := string(m.Mask([]byte(in))); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}
