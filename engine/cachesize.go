package engine

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The bytes that the caches take are estimated: the objects of a sample are
// walked, and their mean is taken for all. What is counted is what Go allocates
// for decoded JSON on a 64-bit machine: headers, maps with the room they keep
// free, and the rounding of small sizes. It is an estimate, not an account.

// sampledObjects are so many that the mean of objects which differ by as much as
// their own size is right within 10 % or so, and so few that a scrape stays cheap.
const sampledObjects = 100

const (
	wordSize      = 8
	stringHeader  = 2 * wordSize
	sliceHeader   = 3 * wordSize
	interfaceSize = 2 * wordSize

	mapHeader  = 48 // of a map; what it holds is in groups
	tableSize  = 48 // of a map with more than one group, with its directory
	mapSlot    = stringHeader + interfaceSize
	groupSlots = 8

	// storeEntry is what the store and its index by namespace take for an object,
	// beside its key.
	storeEntry = 96
)

// objectBytes estimates what an object in a store takes.
func objectBytes(u *unstructured.Unstructured) int64 {
	key := allocated(len(u.GetNamespace()) + len("/") + len(u.GetName()))
	return storeEntry + wordSize + key + valueBytes(u.Object)
}

// meanBytes estimates what one of such objects takes, 0 without any.
func meanBytes(sample []*unstructured.Unstructured) float64 {
	if len(sample) == 0 {
		return 0
	}
	var sum int64
	for _, u := range sample {
		sum += objectBytes(u)
	}
	return float64(sum) / float64(len(sample))
}

// valueBytes estimates what a value of decoded JSON takes beside the interface
// that holds it.
func valueBytes(value any) int64 {
	switch v := value.(type) {
	case map[string]any:
		size := mapBytes(len(v))
		for key, item := range v {
			size += allocated(len(key)) + valueBytes(item)
		}
		return size
	case []any:
		size := sliceHeader + allocated(cap(v)*interfaceSize)
		for _, item := range v {
			size += valueBytes(item)
		}
		return size
	case string:
		return stringHeader + allocated(len(v))
	case int64:
		if v >= 0 && v < 256 {
			return 0 // the runtime has them all
		}
		return wordSize
	case float64:
		return wordSize
	}
	return 0 // bool, nil
}

// mapBytes is the size of a map that has grown to its number of entries: one
// group of slots, or a table of a power of two that is at most 7/8 full.
func mapBytes(entries int) int64 {
	switch {
	case entries == 0:
		return mapHeader
	case entries <= groupSlots:
		return mapHeader + allocated(groupSlots+groupSlots*mapSlot)
	}
	slots := 1 << bits.Len(uint(entries*8/7))
	return mapHeader + tableSize + allocated(slots+slots*mapSlot)
}

// allocated rounds a size as the allocator does, roughly: small ones of bytes
// share a block, and larger ones come in classes an eighth apart.
func allocated(size int) int64 {
	if size <= 2*wordSize {
		return int64(size)
	}
	step := max(1<<(bits.Len(uint(size-1))-4), 2*wordSize)
	return int64((size + step - 1) / step * step)
}
