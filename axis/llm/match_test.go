package llm_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	talkers = 16
	turns   = 50
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// request is the body that a conversation sends after history.
func request(history []message) []byte {
	b, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 10, "messages": history})
	if err != nil {
		panic(err)
	}
	return b
}

// recordTalks is the tape of conversations with equal openings side by side, in a shuffled order of arrival. From the
// second turn on what the model said makes each its own: reply(i, turn).
func recordTalks(t *testing.T, c *llm.Classifier) []*tape.Record {
	t.Helper()
	var records []*tape.Record
	histories := make([][]message, talkers)
	for i := range histories {
		histories[i] = []message{{"user", "begin"}}
	}
	var lanes exchange.Lanes
	for turn := range turns {
		for _, i := range rand.New(rand.NewPCG(1, uint64(turn))).Perm(talkers) {
			body := request(histories[i])
			id, err := c.Classify(&exchange.Request{Method: http.MethodPost, URL: anthropicURL, Body: body})
			if err != nil {
				t.Fatal(err)
			}
			lane := lanes.Begin(id, anthropicURL)
			lanes.Done(lane, false)
			text := reply(i, turn)
			records = append(records, &tape.Record{Seq: uint64(len(records)), Kind: &tape.LLMCall{
				Provider: id.Key.Provider, Endpoint: id.Key.Endpoint, Model: id.Key.Model, ParamsDigest: id.Key.Params,
				Exchange: tape.Exchange{
					Method: http.MethodPost, URL: anthropicURL, RequestDigest: id.Key.Request, Status: http.StatusOK,
					Response: &tape.Payload{Text: text, Inline: true}, Lane: lane, Arrival: uint64(len(records) + 1),
				},
			}})
			histories[i] = append(histories[i], message{"assistant", text}, message{"user", fmt.Sprint("go on ", turn)})
		}
	}
	// Records stand on a tape in the order of completion.
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(records), func(i, j int) {
		records[i].Kind, records[j].Kind = records[j].Kind, records[i].Kind
	})
	return records
}

func reply(i, turn int) string { return fmt.Sprintf("conversation %d, turn %d", i, turn) }

// TestConcurrentConversations replays conversations with equal openings all at once: each gets one conversation from its
// beginning to its end, none gets another's answer, none goes without.
func TestConcurrentConversations(t *testing.T) {
	c := llm.NewClassifier(nil)
	records := recordTalks(t, c)
	book, err := exchange.NewBook(all(records), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	whose := make([]string, talkers)
	for i := range talkers {
		wg.Go(func() { whose[i] = replayTalk(t, c, book) })
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, w := range whose {
		if seen[w] {
			t.Errorf("%s was handed out twice", w)
		}
		seen[w] = true
	}
	if n := book.Audit(); n != 0 || len(book.Unasked()) != 0 {
		t.Errorf("crossed %d, unasked %d", n, len(book.Unasked()))
	}
}

// replayTalk is one caller. It returns the name of the conversation that it got.
func replayTalk(t *testing.T, c *llm.Classifier, book *exchange.Book) string {
	history, whose := []message{{"user", "begin"}}, ""
	for turn := range turns {
		r := &exchange.Request{Method: http.MethodPost, URL: anthropicURL, Body: request(history)}
		id, err := c.Classify(r)
		if err != nil {
			t.Error(err)
			return ""
		}
		rec, ok := take(t, c, book, r)
		if !ok {
			_, why := book.Nearest(id, r)
			t.Errorf("turn %d: %s", turn, why)
			return ""
		}
		text := rec.Exchange.Response.Text
		name, _, _ := strings.Cut(text, ",")
		if whose == "" {
			whose = name
		}
		if name != whose || text != fmt.Sprintf("%s, turn %d", whose, turn) {
			t.Errorf("turn %d of %s got %q", turn, whose, text)
		}
		history = append(history, message{"assistant", text}, message{"user", fmt.Sprint("go on ", turn)})
	}
	return whose
}

func all(records []*tape.Record) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestRecordedLanes sees each of those conversations keep to a lane of its own.
func TestRecordedLanes(t *testing.T) {
	lanes := make(map[string]map[string]bool)
	for _, r := range recordTalks(t, llm.NewClassifier(nil)) {
		x := r.Kind.(*tape.LLMCall).Exchange
		name, _, _ := strings.Cut(x.Response.Text, ",")
		if strings.HasSuffix(x.Response.Text, "turn 0") || strings.HasSuffix(x.Response.Text, "turn 1") {
			continue // callers with equal histories are interchangeable
		}
		if lanes[x.Lane] == nil {
			lanes[x.Lane] = make(map[string]bool)
		}
		lanes[x.Lane][name] = true
	}
	if len(lanes) != talkers {
		t.Errorf("%d lanes", len(lanes))
	}
	for lane, names := range lanes {
		if len(names) != 1 {
			t.Errorf("%s holds %v", lane, names)
		}
	}
}
