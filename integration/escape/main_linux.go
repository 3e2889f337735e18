package main

import (
	"flag"
	"fmt"
	"os"
)

// asked are the parts of this program that are not its own command: run by it, outside or inside.
var asked = map[string]func(args []string) error{
	"launch":   launch,
	"inside":   func(args []string) error { return runInside(len(args) > 0) },
	"try":      func(args []string) error { return runTry(args[0]) },
	"stunt":    runStunt,
	"victim":   func([]string) error { return runVictim() },
	"relative": func([]string) error { return bindRelative() },
}

func main() {
	var err error
	if len(os.Args) > 1 && asked[os.Args[1]] != nil {
		err = asked[os.Args[1]](os.Args[2:])
	} else {
		err = command()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "escape:", err)
		os.Exit(1)
	}
}

func command() error {
	docs := flag.String("docs", "", "write the table of tries into this `file`, between its marks, and try nothing")
	only := flag.String("run", "", "only rows whose name holds this `text`")
	long := flag.Bool("long", false, "also record --isolated, and try what is bounded by a count, as processes are, to its bound")
	verbose := flag.Bool("v", false, "print what each run saw of each row")
	flag.Parse()
	if *docs != "" {
		return writeDocs(*docs)
	}
	found, err := tryAll(*only, *long)
	if err != nil {
		return err
	}
	if bad := report(os.Stdout, found, *verbose); bad > 0 {
		os.Exit(2)
	}
	return nil
}

// tryAll tries everything as each user.
func tryAll(only string, long bool) ([]finding, error) {
	tapedeck, remove, err := build()
	if err != nil {
		return nil, err
	}
	defer remove()
	var found []finding
	for _, uid := range users() {
		f, err := tryEverything(uid, tapedeck, only, long)
		if err != nil {
			return nil, err
		}
		found = append(found, f...)
	}
	return found, nil
}
