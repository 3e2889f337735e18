// Package canonjson brings JSON into the one form of RFC 8785 (JSON Canonicalization Scheme), so that equal values have
// equal bytes and a digest can stand for a value.
//
// The canonical form has no white space; the members of an object are sorted by the UTF-16 code units of their keys;
// numbers are IEEE 754 doubles written as ECMAScript writes them; strings are UTF-8 and escape only the quotation mark,
// the backslash and the control characters below U+0020 (with the short forms \b \t \n \f \r, else \u00xx lowercase).
//
// Parse gives the value as a tree that keeps the source's order, for callers that canonicalise only parts of a text.
//
// Strictness: what has no single meaning is refused, never repaired: a key that occurs twice in one object, half of a
// surrogate pair, bytes that are not UTF-8, a number beyond the range of a double, anything after the value. Every
// refusal is an *Error with its offset. An integer beyond 2^53 is rounded to the nearest double, as the RFC has it.
//
// Bounds: nesting ends at MaxDepth; memory is a small multiple of the source's length.
package canonjson
