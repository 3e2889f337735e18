package tape

// AppendKind appends the object of k, as it stands under the key "kind". It uses dst's memory as AppendRecord does.
func AppendKind(dst []byte, k Kind) []byte {
	c := codec{buf: dst}
	c.writeKind(k)
	return c.buf
}
