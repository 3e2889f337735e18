// Package ui is the page's script and its style, as package page puts them into a document: one bundle, built from src by tools/page.
package ui

import _ "embed" // the bundle

//go:generate go -C ../tools/page run . -repo ../..

// Script is a classic script: it makes the page's elements in the body.
//
//go:embed dist/page.js
var Script string

// Style is the page's style sheet.
//
//go:embed dist/page.css
var Style string
