// Package canonjson brings JSON into the one form of RFC 8785 (JSON Canonicalization Scheme), so that equal values have
// equal bytes and a digest can stand for a value. It departs from the RFC in numbers that no double holds, see below.
//
// The canonical form has no white space; the members of an object are sorted by the UTF-16 code units of their keys;
// numbers are IEEE 754 doubles written as ECMAScript writes them; strings are UTF-8 and escape only the quotation mark,
// the backslash and the control characters below U+0020 (with the short forms \b \t \n \f \r, else \u00xx lowercase).
//
// Parse gives the value as a tree that keeps the source's order, for callers that canonicalise only parts of a text.
//
// Strictness: what has no single meaning is refused, never repaired: a key that occurs twice in one object, half of a
// surrogate pair, bytes that are not UTF-8, a number beyond the range of a double, anything after the value. Every
// refusal is an *Error with its offset.
//
// Digits: the RFC rounds every number to a double, so that two ids of 19 digits can have one form. Here a number that RFC
// 8785 would write as another one keeps its own text (Holds): integers have one form only where they are equal. A number
// with a point or an exponent is the nearest double up to 17 significant digits, and beyond them its text as it is written:
// two spellings of such a number are two numbers. All that doubles hold has the form that the RFC gives it.
//
// Bounds: nesting ends at MaxDepth; memory is a small multiple of the source's length.
package canonjson
