package demoagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A declaration tells the model of a tool.
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

var declarations = []declaration{
	{
		Name: "write_file", Description: "Write a file, creating it and its folders where they are missing.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path relative to the working directory"},` +
			`"content":{"type":"string","description":"The whole content of the file"}},"required":["path","content"]}`),
	},
	{
		Name: "read_file", Description: "Read a file.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path relative to the working directory"}},"required":["path"]}`),
	},
}

// arguments are those of both tools.
type arguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// call runs a tool; root keeps every path below the agent's directory, links included.
func call(root *os.Root, name string, input json.RawMessage) (string, error) {
	var args arguments
	if err := json.Unmarshal(input, &args); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", name, err)
	}
	switch name {
	case "write_file":
		return writeFile(root, &args)
	case "read_file":
		b, err := root.ReadFile(args.Path)
		return string(b), err
	}
	return "", fmt.Errorf("there is no tool %q", name)
}

func writeFile(root *os.Root, args *arguments) (string, error) {
	if err := root.MkdirAll(filepath.Dir(args.Path), 0o755); err != nil {
		return "", err
	}
	if err := root.WriteFile(args.Path, []byte(args.Content), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(args.Content), args.Path), nil
}
