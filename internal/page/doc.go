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
//	daemon.json                  DaemonView, where a daemon is named; a server alone, as the next two
//	daemon/run/ID.json           DaemonTrace
//	daemon/decide                POST: a person's decision
//	run/ID/live                  server-sent events: "grown" with the number of rows, "ended"; a server alone
//
// ID is a path element of letters, digits, '.', '_' and '-'. What stands behind # in the page's address names a place: "compare", "run/ID",
// "run/ID/report", "run/ID/report/N" (a divergence, from 0), and whatever else the page makes up.
//
// In a file each block is base64 of gzip in an element of its own, before the script of the page:
//
//	<script type="application/x-tapedeck" id="td-table">   JSON {"PATH": [BLOCK, OFFSET, LENGTH, …], …}
//	<script type="application/x-tapedeck" id="td-N">       block N: documents, one behind the other
//
// A document is the bytes of its pieces, three numbers each, one behind the other: what two payloads have in common, as the request of a turn
// has with the one before, stands there once. Block 0 has what the first view needs.
//
// Text of recordings is data: it is in JSON alone, in a file in base64, and nothing of it is ever markup. A page may load nothing but what it
// holds (its Content-Security-Policy says so), from a server documents of the same origin.
//
// What a run comes to is read off its tape once and kept beside it, derived (package library): its index and its conversations. So a list
// never reads a tape, and a click reads what it shows: a block of records, two calls of a model.
//
// Not goals: how the page looks (package ui), judging, changing a recording.
package page
