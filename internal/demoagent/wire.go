package demoagent

import (
	"encoding/json"
	"fmt"
)

// The parts of the messages API that the agent speaks: https://docs.anthropic.com/en/api/messages.

type request struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	System    string        `json:"system"`
	Tools     []declaration `json:"tools"`
	Messages  []message     `json:"messages"`
	Stream    bool          `json:"stream"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`        // text
	ID        string          `json:"id,omitempty"`          // tool_use
	Name      string          `json:"name,omitempty"`        // tool_use
	Input     json.RawMessage `json:"input,omitempty"`       // tool_use
	ToolUseID string          `json:"tool_use_id,omitempty"` // tool_result
	Content   string          `json:"content,omitempty"`     // tool_result
	IsError   bool            `json:"is_error,omitempty"`    // tool_result
}

// An apiError is the provider's refusal.
type apiError struct {
	Status  int // 0: it came in the stream
	Kind    string
	Message string
}

func (e *apiError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("status %d, %s: %s", e.Status, e.Kind, e.Message)
}

// errorBody is the shape of an error in an answer and in a stream.
type errorBody struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}
