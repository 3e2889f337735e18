package deck

import (
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func TestNothingIsListedTwice(t *testing.T) {
	got := recording.NoneTwice([]string{"reads", "fifo (special)", "sock (special)", "fifo (special)"})
	if want := []string{"reads", "fifo (special)", "sock (special)"}; !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
}
