// Package scene is what the client programs share: their flags, the order of their scenes, the one tool that they give a
// model, and how they print.
//
// A scene is one way of using an SDK. All that the SDK gives back goes to stdout, ids and counts included, so that two
// runs which print the same were answered the same.
package scene

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A Scene is one way of using an SDK.
type Scene struct {
	Name string
	Run  func(ctx context.Context, prompt string) error
}

// batch is how many calls Batch makes side by side.
const batch = 8

// Main plays the scenes that -scenes names, all by default, and ends the program.
func Main(scenes ...Scene) {
	prompt := flag.String("prompt", "write hello.txt with the text marigold", "what the model is `asked`")
	wanted := flag.String("scenes", "", "`names` of the scenes to play, with commas; all by default")
	flag.Parse()
	for _, s := range scenes {
		if *wanted != "" && !strings.Contains(","+*wanted+",", ","+s.Name+",") {
			continue
		}
		fmt.Printf("== %s\n", s.Name)
		if err := s.Run(context.Background(), *prompt); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
			os.Exit(1)
		}
	}
}

// Say prints one fact of an answer as JSON, which shows every byte.
func Say(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Printf("%s: %s\n", name, text)
}

// Batch makes eight calls side by side, each with a prompt of its own, and prints what came in the order of the prompts.
func Batch(prompt string, call func(prompt string) (string, error)) error {
	answers, errs := make([]string, batch), make([]error, batch)
	var all sync.WaitGroup
	for i := range batch {
		all.Go(func() { answers[i], errs[i] = call(fmt.Sprintf("%s, part %d", prompt, i+1)) })
	}
	all.Wait()
	for i := range batch {
		if errs[i] != nil {
			return fmt.Errorf("call %d of %d: %w", i+1, batch, errs[i])
		}
		Say(fmt.Sprintf("answer %d", i+1), answers[i])
	}
	return nil
}

// The one tool: it writes a file below the working directory.
const (
	ToolName = "write_file"
	ToolDoc  = "Writes a text into a file below the working directory."
)

// Properties are the arguments of the tool, as JSON Schema.
func Properties() map[string]any {
	return map[string]any{
		"path":    map[string]any{"type": "string", "description": "Where the file goes, relative."},
		"content": map[string]any{"type": "string"},
	}
}

// Required are the arguments that the tool cannot do without.
func Required() []string { return []string{"path", "content"} }

// Schema is the whole of the tool's arguments, as JSON Schema.
func Schema() map[string]any {
	return map[string]any{"type": "object", "properties": Properties(), "required": Required()}
}

// Tool runs the tool with the arguments that a model gave, and returns what the model is told.
func Tool(name string, arguments []byte) (string, error) {
	Say("tool "+name, json.RawMessage(arguments))
	var in struct{ Path, Content string }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", name, err)
	}
	if name != ToolName || !filepath.IsLocal(in.Path) {
		return "", fmt.Errorf("the model called %s for %q, want %s for a local path", name, in.Path, ToolName)
	}
	if err := os.WriteFile(in.Path, []byte(in.Content), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes", len(in.Content)), nil
}

// Turns bounds a conversation: a model that calls tools for ever is stopped.
const Turns = 6
