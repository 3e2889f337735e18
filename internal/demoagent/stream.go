package demoagent

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxLine = 4 << 20 // bytes of one line of a stream

// errCutOff means that a stream ended before its message did.
var errCutOff = errors.New("the answer ended in the middle")

// An event is one event of a stream; which fields are set depends on Type.
type event struct {
	Type         string `json:"type"`
	ContentBlock block  `json:"content_block"`
	Delta        struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
	} `json:"delta"`
	errorBody
}

// An answer collects the blocks of a message while they stream.
type answer struct {
	blocks []block
	input  strings.Builder // of the tool_use block that is open
	text   io.Writer
	done   bool
}

// readAnswer reads one streamed message, copies its text to w as it comes, and returns its blocks.
func readAnswer(r io.Reader, w io.Writer) ([]block, error) {
	a := &answer{text: w}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() { // to the end, also after the message: the connection is reused then
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue // the event's name, which the data repeats, or an empty line
		}
		var ev event
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return nil, fmt.Errorf("event of the answer: %w", err)
		}
		if err := a.take(&ev); err != nil {
			return nil, err
		}
	}
	if a.done {
		return a.blocks, nil
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errCutOff, err)
	}
	return nil, errCutOff
}

func (a *answer) take(ev *event) error {
	switch ev.Type {
	case "content_block_start":
		a.blocks = append(a.blocks, ev.ContentBlock)
		a.input.Reset()
	case "content_block_delta":
		return a.delta(ev)
	case "content_block_stop":
		return a.closeBlock()
	case "message_stop":
		a.done = true
	case "error":
		return &apiError{Kind: ev.Error.Type, Message: ev.Error.Message}
	}
	return nil
}

func (a *answer) delta(ev *event) error {
	if len(a.blocks) == 0 {
		return errors.New("a delta before its block")
	}
	a.blocks[len(a.blocks)-1].Text += ev.Delta.Text
	a.input.WriteString(ev.Delta.PartialJSON)
	_, err := io.WriteString(a.text, ev.Delta.Text)
	return err
}

// closeBlock ends a text with a line's end and gives a call its input.
func (a *answer) closeBlock() error {
	if len(a.blocks) == 0 {
		return errors.New("the end of a block before its start")
	}
	last := &a.blocks[len(a.blocks)-1]
	if last.Type != "tool_use" {
		_, err := io.WriteString(a.text, "\n")
		return err
	}
	input := cmp.Or(a.input.String(), "{}")
	if !json.Valid([]byte(input)) {
		return fmt.Errorf("the input of tool %s is not JSON", last.Name)
	}
	last.Input = json.RawMessage(input)
	return nil
}
