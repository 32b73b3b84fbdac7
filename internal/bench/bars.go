package main

import "fmt"

// bar is what a figure of ours has to be.
type bar struct {
	of      measure
	against string  // the contender whose figure is the measure; empty: an absolute limit
	limit   float64 // times the other's figure, or in the measure's unit
	atLeast bool    // it is a lower limit
	equal   bool    // it is neither: it has to be that
	whose   string  // empty: rectifier's
}

// bars are those of the project. A figure that was not measured has none.
func (p plan) bars() []bar {
	small, large := p.referenceObjects(), p.largeObjects()
	bars := []bar{
		{of: syncCPU(small), against: typedProtobuf, limit: 0.6},
		{of: syncCPU(small), against: typedJSON, limit: 0.22},
		{of: syncCPU(small), against: plainDynamic, limit: 0.15},
		{of: syncCPU(large), against: typedProtobuf, limit: 0.6},
		{of: syncCPU(large), against: typedJSON, limit: 0.22},
		{of: syncCPU(large), against: plainDynamic, limit: 0.15},
		{of: syncHeap(small), against: typedJSON, limit: 0.27, whose: cacheAlone},
		{of: syncHeap(small), limit: 1.8, whose: cacheAlone},
		{of: syncHeap(small), limit: 2.2},
		{of: syncPeak(small), against: typedJSON, limit: 0.35},
		{of: syncPeak(small), against: typedProtobuf, limit: 0.35},
		{of: irrelevant(p.steadyName()), against: typedJSON, limit: 0.3},
		{of: fixRate, against: patchLoop, limit: 0.95, atLeast: true},
		{of: patchesOfFix, limit: 1, equal: true},
		{of: getsOfFix, limit: 0, equal: true},
		{of: lists, limit: 0, equal: true},
		{of: watches, limit: 1, equal: true},
		{of: driftToFix50, against: typedJSON, limit: 1},
		{of: driftToFix99, against: typedJSON, limit: 1},
		{of: ruleCost(manyRules), limit: 50},
		{of: rulesAdd(fewRules, manyRules), limit: 50},
		{of: firstFix, limit: 1},
		{of: offlineTime, limit: 0.4},
		{of: offlinePeak, limit: 60},
	}
	return bars
}

func (b bar) subject() string {
	if b.whose != "" {
		return b.whose
	}
	return ours
}

// text is the bar in words.
func (b bar) text() string {
	relation := "≤"
	switch {
	case b.equal:
		relation = "="
	case b.atLeast:
		relation = "≥"
	}
	if b.against == "" {
		return relation + " " + b.of.unit.short(b.limit)
	}
	return fmt.Sprintf("%s %.4g × %s", relation, b.limit, b.against)
}

// verdict is what came of a bar.
type verdict struct {
	bar
	value, other figure
	ratio        float64 // of the medians, to the other's figure; nothing for an absolute limit
	share        float64 // of the limit: how much of what is allowed is used; of a lower limit, how much is reached
	holds        bool
}

// judge compares a bar with what was measured; false: that was not.
func (r *results) judge(b bar) (v verdict, measured bool) {
	v.bar = b
	if v.value, measured = r.of(b.of, b.subject()); !measured {
		return v, false
	}
	compared := v.value.median
	if b.against != "" {
		if v.other, measured = r.of(b.of, b.against); !measured {
			return v, false
		}
		v.ratio = v.value.median / v.other.median
		compared = v.ratio
	}
	v.share = compared / b.limit
	switch {
	case b.equal:
		v.holds = compared == b.limit
	case b.atLeast:
		v.holds = compared >= b.limit
	default:
		v.holds = compared <= b.limit
	}
	return v, true
}
