package scriptedllm

import "testing"

// TestSteps follows a prompt that says what is answered: two calls beside each other, a text, and then what the script says
// anyway.
func TestSteps(t *testing.T) {
	e := New(&Options{Steps: true})
	prompt := "go\nstep: [\"First.\",[\"bash\",{\"command\":\"ls\"}],[\"read\",{\"path\":\"a\"}]]\nstep: [\"Second.\"]\nno step"
	turn := &turn{messages: []message{{texts: []string{prompt}}}, tools: []tool{{name: "bash", schema: &schema{}}}}
	a := e.plan(turn)
	if a.text != "First." || len(a.calls) != 2 || a.calls[0].name != "bash" || a.calls[1].json() != `{"path":"a"}` {
		t.Errorf("first: %+v", a)
	}
	turn.messages = append(turn.messages, message{model: true}, message{model: true}, message{results: []result{{text: "x"}}})
	if a := e.plan(turn); a.text != "Second." || a.calls != nil {
		t.Errorf("second: %+v", a)
	}
	turn.messages = append(turn.messages, message{model: true}, message{results: []result{{text: "x"}}})
	if a := e.plan(turn); a.text == "" || a.text == "Second." {
		t.Errorf("third: %+v", a)
	}
	if a := New(nil).plan(turn); a.text == "First." {
		t.Error("the steps are followed without Options.Steps")
	}
}
