package matching

import (
	"fmt"
	"testing"
)

const talks = 16

func turns() int { return sized(3, 50) }

// TestConversations runs conversations side by side, some of them with equal openings.
func TestConversations(t *testing.T) {
	tests := []struct {
		name    string
		same    bool                     // equal requests get equal answers
		opening func(i int) string       // of conversation i
		next    func(i, turn int) string // what its user says after a turn
	}{
		{
			name:    "openings of their own",
			opening: func(i int) string { return fmt.Sprintf("task %d", i) },
			next:    func(i, turn int) string { return fmt.Sprintf("conversation %d, turn %d", i, turn) },
		},
		{
			name:    "equal openings",
			opening: func(i int) string { return fmt.Sprintf("task %d", i%4) },
			next:    func(i, turn int) string { return fmt.Sprintf("turn %d", turn) },
		},
		{
			name: "equal histories", same: true,
			opening: func(int) string { return "the task" },
			next:    func(i, turn int) string { return fmt.Sprintf("turn %d", turn) },
		},
		{
			name: "histories that part in the middle", same: true,
			opening: func(int) string { return "the task" },
			next: func(i, turn int) string {
				if turn >= turns()/2 {
					return fmt.Sprintf("conversation %d, turn %d", i, turn)
				}
				return fmt.Sprintf("turn %d", turn)
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scenario{upstream: &upstream{same: tt.same}}
			s.program = func(p *program) {
				p.each(talks, func(i int) {
					c := p.talk(i, tt.opening(i))
					for turn := range turns() {
						if !p.turn(c, tt.next(i, turn)) {
							return
						}
					}
					p.close(c)
				})
			}
			s.prove(t)
		})
	}
}

// TestParallelEqualTools sends equal plain requests at once, turn after turn. Their answers differ, and who gets which does
// not matter to the program.
func TestParallelEqualTools(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		for range turns() {
			p.each(talks, func(int) {
				if text, err := p.tool(t.Context(), "/tool/dice"); err != nil {
					p.run.t.Errorf("tool: %v", err)
				} else {
					p.note("%s", text)
				}
			})
		}
	}
	s.prove(t)
}
