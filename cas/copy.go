package cas

// Copy brings a blob of one store into another: by a hard link where both are directories (see Dir.Link for what is taken on
// trust then), else in bounded memory. Within one store it does nothing. A blob that from does not
// hold is a *MissingError, or fs.ErrNotExist where a link is tried; other errors are those of either store.
func Copy(to, from Store, d Digest) error {
	if to == from {
		return nil
	}
	dir, ok := to.(*Dir)
	source, also := from.(*Dir)
	if ok && also {
		_, err := dir.Link(d, source.Path(d))
		return err
	}
	r, err := from.Open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, _, err = to.PutReader(r)
	return err
}
