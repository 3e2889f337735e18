package foreign

import "bytes"

// flow reads a list or a mapping in brackets.
func (p *yamlParser) flow() (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.wrong("%v", errNested)
	}
	defer func() { p.depth-- }()
	n, end := &node{kind: listNode}, byte(']')
	if p.b[p.i] == '{' {
		n.kind, end = mapNode, '}'
	}
	p.i++
	for {
		if p.breaks(); p.i >= len(p.b) {
			return nil, p.wrong("the brackets are not closed")
		}
		if p.b[p.i] == end {
			p.i++
			return n, nil
		}
		if err := p.flowMember(n); err != nil {
			return nil, err
		}
		if p.breaks(); p.i < len(p.b) && p.b[p.i] == ',' {
			p.i++
		} else if p.i >= len(p.b) || p.b[p.i] != end {
			return nil, p.wrong("want ',' or %q", end)
		}
	}
}

// flowMember reads an item of n, or a key and its value.
func (p *yamlParser) flowMember(n *node) error {
	if n.kind == mapNode && isMark(p.b[p.i:], '?') {
		p.i++
		p.breaks()
	}
	v, err := p.flowValue()
	if err != nil {
		return err
	}
	if n.kind == listNode {
		n.items = append(n.items, v)
		return nil
	}
	if v.kind > scalarNode {
		return p.wrong("a collection as a key is not read here")
	}
	key := v.string()
	v = new(node)
	if p.breaks(); p.i < len(p.b) && p.b[p.i] == ':' {
		p.i++
		p.breaks()
		if p.i < len(p.b) && p.b[p.i] != ',' && p.b[p.i] != '}' {
			if v, err = p.flowValue(); err != nil {
				return err
			}
		}
	}
	if err := n.add(key, v); err != nil {
		return p.wrong("%v", err)
	}
	return nil
}

func (p *yamlParser) flowValue() (*node, error) {
	tag, anchor := p.properties()
	if p.i >= len(p.b) {
		return nil, p.wrong("the brackets are not closed")
	}
	n, err := p.flowUntagged()
	if err == nil && (tag == "!!binary" || tag == "!binary") {
		n, err = p.binary(n)
	}
	if err != nil {
		return nil, err
	}
	return n, p.anchor(anchor, n)
}

func (p *yamlParser) flowUntagged() (*node, error) {
	switch p.b[p.i] {
	case '{', '[':
		return p.flow()
	case '"', '\'':
		t, err := p.quoted()
		return &node{kind: scalarNode, text: t}, err
	case '*':
		return p.alias()
	}
	at := p.i
	for p.i < len(p.b) && !bytes.ContainsRune([]byte(",[]{}\n"), rune(p.b[p.i])) {
		if p.b[p.i] == ':' && (p.i+1 == len(p.b) || bytes.ContainsRune([]byte(" ,]}\n"), rune(p.b[p.i+1]))) {
			break
		}
		p.i++
	}
	if p.i == at {
		return nil, p.wrong("want a value")
	}
	return plainNode(bytes.TrimRight(p.b[at:p.i], " \t\r")), nil
}
