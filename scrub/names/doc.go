// Package names tells by a name, and by what a value looks like, whether the value is a secret. docs/reference/secrets.md has the
// tables for people ("Names", "Names in bodies", "Files").
//
// A name is taken apart into words once (words.go). What it says depends on where it stands: of variables, headers, queries and
// arguments any word counts (Say), of members of JSON and fields of forms the last one (Members), for texts have names too. What
// headers, queries and cookies are called besides stands in words.go too. A value is no secret where it is a path, a column, a reference,
// an example or a word (values.go).
//
// Nothing here is changed after it was made. Not goals: finding names in a text, remembering values.
package names
