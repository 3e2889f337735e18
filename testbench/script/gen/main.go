// Command gen writes what is known about a script's functions for people and for their editors: a part of docs/reference/script.md and the
// type stub tapedeck.pyi. Both come from the table that the engine itself runs.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	docs := flag.String("docs", "", "write the functions between the marks of this page")
	stub := flag.String("stub", "", "write the type stub to this file")
	flag.Parse()
	page, err := os.ReadFile(*docs)
	if err != nil {
		log.Fatal(err)
	}
	if page, err = withReference(page); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*docs, page, 0o644); err != nil {
		log.Fatal(err)
	}
	text, err := typeStub()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*stub, text, 0o644); err != nil {
		log.Fatal(err)
	}
}
