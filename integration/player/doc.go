// Package player tries the page that cassette/picture writes in a real browser: it plays, goes where it is told, finds, is
// worked by keys, shows every column where it belongs, and asks the network for nothing. Its test has the build tag browser,
// for it needs Chromium on the machine, Node 20 or newer, and playwright-core where TAPEDECK_PLAYER says (its node_modules;
// npm/package-lock.json names the version). drive.mjs works the browser, one check a line.
package player
