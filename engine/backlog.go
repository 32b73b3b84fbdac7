package engine

import "hash/maphash"

// backlog is a FIFO out of whose middle keys can be taken. Its memory is bounded
// by the keys in it.
type backlog struct {
	first, last *backlogged
	// index finds a key by its hash, which takes a fifth of the memory that the keys
	// would. Of keys with the same hash it has one at most: the others cannot be taken
	// out of the middle.
	index map[uint64]*backlogged
	len   int
}

// backlogged is a key in a backlog.
type backlogged struct {
	key        Key
	hash       uint64
	prev, next *backlogged
}

var keySeed = maphash.MakeSeed()

func hashKey(key Key) uint64 { return maphash.Comparable(keySeed, key) }

// push adds a key that is not in it.
func (b *backlog) push(key Key) {
	if b.index == nil {
		b.index = map[uint64]*backlogged{}
	}
	e := &backlogged{key: key, hash: hashKey(key), prev: b.last}
	if b.last == nil {
		b.first = e
	} else {
		b.last.next = e
	}
	b.last = e
	b.len++
	b.index[e.hash] = e
}

// pop takes the oldest key; there must be one.
func (b *backlog) pop() Key {
	e := b.first
	b.take(e)
	return e.key
}

// remove takes a key out, and says whether it was there and could be found.
func (b *backlog) remove(key Key) bool {
	if b.len == 0 {
		return false
	}
	e := b.index[hashKey(key)]
	if e == nil || e.key != key {
		return false
	}
	b.take(e)
	return true
}

func (b *backlog) take(e *backlogged) {
	if e.prev == nil {
		b.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		b.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	delete(b.index, e.hash)
	if b.len--; b.len == 0 {
		b.index = nil // a map keeps the memory of the most that was in it
	}
}
