package mcpsdk_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp/mcpsdk"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A test records its conversation with a tool server once, and from then on needs the tape alone.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tools.tape")

	server := serveWeather()            // or &sdk.CommandTransport{Command: exec.Command("weather-server")}
	fmt.Println(record(path, server))   // asks the server
	fmt.Println(replay(path, "Lisbon")) // asks the tape
	fmt.Println(replay(path, "Reykjavík"))
	// Output:
	// 21 degrees in Lisbon
	// 21 degrees in Lisbon
	// calling "tools/call": not on the tape: tools/call weather; nearest is record 2, which differs in arguments.city: "Lisbon" -> "Reykjavík"; Tapedeck replays offline and answers only what was recorded
}

// record leaves the conversation with a server at path. Its secrets do not get there.
func record(path string, server sdk.Transport) string {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	store, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		panic(err)
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "example"})
	if err != nil {
		panic(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store})
	var key scrub.Key // of the placeholders: no tape needs another's
	rand.Read(key[:])
	secrets := scrub.New(key, &scrub.Options{Env: os.Environ()})
	return ask(&mcpsdk.RecordTransport{Transport: server, Log: mcp.NewLog(rec, secrets, nil, nil)}, "Lisbon")
}

// replay asks the tape at path.
func replay(path, city string) string {
	t, err := tape.Open(path, nil)
	if err != nil {
		panic(err)
	}
	defer t.Close()
	book, err := mcp.NewBook(t.Records(), t.Store, nil)
	if err != nil {
		panic(err)
	}
	return ask(&mcpsdk.AnswerTransport{Served: book.Conversation(1)}, city)
}

// ask is the program that is tested.
func ask(tools sdk.Transport, city string) string {
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Implementation{Name: "example", Version: "1"}, nil)
	cs, err := client.Connect(ctx, tools, nil)
	if err != nil {
		panic(err)
	}
	defer cs.Close()
	res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "weather", Arguments: map[string]any{"city": city}})
	if err != nil {
		return err.Error()
	}
	return res.Content[0].(*sdk.TextContent).Text
}

// serveWeather is a server, and the way to it.
func serveWeather() sdk.Transport {
	type in struct {
		City string `json:"city"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "weather"}, func(_ context.Context, _ *sdk.CallToolRequest, in in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "21 degrees in " + in.City}}}, nil, nil
	})
	there, here := sdk.NewInMemoryTransports()
	if _, err := s.Connect(context.Background(), there, nil); err != nil {
		panic(err)
	}
	return here
}
