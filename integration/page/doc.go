// Package page tries the page of internal/page and ui in a real browser: recordings are made, a hostile one, a damaged one and one of 100,000
// records among them, written as files, and worked by clicks and keys. Every view is looked at by axe-core, in a narrow window, in light and
// dark; nothing may be asked of the network, and nothing of a recording may become markup. TAPEDECK_LONG=1 measures the program itself too, with a
// recording of 174 MB, a library of 10,000 recordings, an export of 60 turns: `go test -v -run TestLarge` prints how long each thing took.
//
// Its tests have the build tag browser, for they need Chromium on the machine, Node 20 or newer, and what npm/package-lock.json names where
// TAPEDECK_PAGE says (its node_modules). drive.mjs works the browser, one check a line. Screenshots of every view, in light and dark:
//
//	TAPEDECK_PAGE_SHOTS=DIR go test -tags browser -run Screenshots ./integration/page
package page
