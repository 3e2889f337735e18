//go:build linux || darwin

package terminal_test

import (
	"context"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// A program is started on a terminal, used as a person would use it, and looked at.
func Example() {
	ctx := context.Background()
	s, err := terminal.StartSession(ctx, &terminal.SessionOptions{
		Argv: []string{"sh", "-c", `printf 'your name? '; read name; printf '\033[1mhello %s\033[0m\n' "$name"; exit 3`},
		Size: terminal.Size{Rows: 5, Cols: 40},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	if _, _, err := s.WaitFor(ctx, terminal.Text("your name?")); err != nil {
		fmt.Println(err) // shows the screen
		return
	}
	s.Type("ada")
	s.Key("enter")
	_, screen, err := s.WaitFor(ctx, terminal.Exited())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(screen)
	exit, _ := s.Wait(ctx)
	fmt.Println("status", exit.Code)
	// Output:
	// screen of 5 by 40, cursor at row 2, column 0
	//   0 | your name? ada
	//   1 | hello ada
	// status 3
}
