// An empty file: with one, Go lets a function of its package stand without a body.
