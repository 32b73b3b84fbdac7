package main

import "slices"

// measure is something that is measured of contenders.
type measure struct {
	name string
	unit unit
}

// Measures. Those of a number of objects have it in their name: see sized.
var (
	firstFix     = measure{"start to first fix, empty cluster", seconds}
	driftToFix50 = measure{"drift to fix, median", milliseconds}
	driftToFix99 = measure{"drift to fix, 99th percentile", milliseconds}
	fixRate      = measure{"fixes per second, first to last", perSecond}
	allRight     = measure{"start until all are right", seconds}
	fixCPU       = measure{"CPU per fix, start and sync included", microseconds}
	patchesOfFix = measure{"PATCH or PUT per fix", number}
	getsOfFix    = measure{"GET per fix", number}
	lists        = measure{"LIST of Deployments", number}
	watches      = measure{"WATCH of Deployments", number}
	eventsOfFix  = measure{"Events written per fix, as fast as it can", number}
	offlineTime  = measure{"rectifier fix of one file, wall time", seconds}
	offlinePeak  = measure{"rectifier fix of one file, peak memory", megabytes}
	bareHeap     = measure{"live heap without objects", megabytes}
)

// sized is a measure of a number of objects.
func sized(name string, objects string, u unit) measure { return measure{name + ", " + objects, u} }

// results are all values that were measured, by measure and contender, in the
// order of the rounds.
type results struct {
	values   map[measure]map[string][]float64
	measures []measure // in the order of their first values
}

func (r *results) add(m measure, contender string, values ...float64) {
	if r.values == nil {
		r.values = map[measure]map[string][]float64{}
	}
	if r.values[m] == nil {
		r.values[m] = map[string][]float64{}
		r.measures = append(r.measures, m)
	}
	r.values[m][contender] = append(r.values[m][contender], values...)
}

// figure is what is reported of some values.
type figure struct{ median, least, most float64 }

// of returns the figure of a contender; false: it was not measured.
func (r *results) of(m measure, contender string) (figure, bool) {
	values := slices.Sorted(slices.Values(r.values[m][contender]))
	if len(values) == 0 {
		return figure{}, false
	}
	return figure{median: quantile(values, 0.5), least: values[0], most: values[len(values)-1]}, true
}

// quantile of sorted values: the smallest that is not below the share q of them; the
// median of an even number is the mean of the middle two.
func quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[min(int(q*float64(n)), n-1)]
}
