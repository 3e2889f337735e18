package deck_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["upgrade"] = playUpgrade }

// playUpgrade asks its first argument for a WebSocket as often as the second says, and then without one.
func playUpgrade(args []string) int {
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return fail(err)
	}
	for i := range times + 1 {
		r, err := http.NewRequest(http.MethodGet, args[0], nil)
		if err != nil {
			return fail(err)
		}
		if i < times {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return fail(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		if res.Body.Close(); err != nil {
			return fail(err)
		}
		if want := map[bool]int{true: http.StatusUpgradeRequired, false: http.StatusOK}[i < times]; res.StatusCode != want {
			return fail(fmt.Errorf("status %d, want %d", res.StatusCode, want))
		}
	}
	fmt.Println("ok")
	return 0
}

// TestUpgradesAreRefused: a client that asks for a WebSocket, is told to use HTTP and does so, does so on the replay too, more often or
// never.
func TestUpgradesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "use HTTP", http.StatusUpgradeRequired)
			return
		}
		fmt.Fprint(w, "plain")
	})
	const url = "https://api.example.com/v1/responses"
	res, out := b.record("upgrade", url, "2")
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	for _, times := range []string{"2", "3", "0"} {
		argv, _ := b.self("upgrade", url, times)
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		b.green(v)
	}
}
