// Package page shows recordings as a page: the documents that it reads, one file with all of them, a server on loopback.
//
// The page asks for documents by their path and knows nothing else: model.go has the form of each. In a file they stand compressed beside
// the page; a server makes them when they are asked for. So the page is the same in both, and what it shows is decided here.
//
//	library.json                 Library
//	compare.json                 Comparison
//	run/ID/run.json              Detail
//	run/ID/index.json            Index
//	run/ID/records/B.json        Records, a block of rows of the index
//	run/ID/turn/SEQ.json         Turn
//	run/ID/files.json            Files
//	run/ID/terminal.json         Terminal
//	run/ID/report.json           Report
//	run/ID/payload/DIGEST        bytes
//	search.json?run=ID&q=TEXT    Found; a server alone, in a file the page looks itself
//	run/ID/live                  server-sent events: "grown" with the number of rows, "ended"; a server alone
package page
