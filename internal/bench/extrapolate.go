package main

import "github.com/rectifier-dev/rectifier/internal/deployments"

// straight is the straight line through medians that is nearest to them (least
// squares): what it takes without objects, and for each.
type straight struct{ bare, each float64 }

func (l straight) at(objects float64) float64 { return l.bare + l.each*objects }

// fit needs two points that differ; false: there are not.
func fit(points []point) (l straight, ok bool) {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, p := range points {
		n++
		sumX += p.x
		sumY += p.y.median
		sumXX += p.x * p.x
		sumXY += p.x * p.y.median
	}
	spread := n*sumXX - sumX*sumX
	if spread == 0 {
		return l, false
	}
	l.each = (n*sumXY - sumX*sumY) / spread
	l.bare = (sumY - l.each*sumX) / n
	return l, true
}

// points are the medians of a measure by number of objects.
func (r *report) points(of func(string) measure, contender string) (points []point) {
	for _, n := range r.sizes {
		if f, ok := r.of(of(objects(n, deployments.Small)), contender); ok {
			points = append(points, point{float64(n), f})
		}
	}
	return points
}

// Numbers of objects that are computed, not measured.
const (
	many     = 100_000
	veryMany = 1_000_000
)

// growthTable is what the measured numbers of objects say of larger ones. Memory of
// the servers is not in it: their peaks hold what was done to the objects, too.
func (r *report) growthTable() table {
	t := table{{"Deployments of 3.5 KB", "for each 1,000", "at " + thousands(many), "at " + thousands(veryMany)}}
	for _, row := range []struct {
		what string
		of   func(string) measure
	}{
		{"CPU to sync", syncCPU},
		{"CPU of kube-apiserver and etcd meanwhile", syncServers},
		{"peak memory", syncPeak},
	} {
		for _, name := range []string{ours, typedJSON, typedProtobuf} {
			l, ok := fit(r.points(row.of, name))
			if !ok {
				continue
			}
			u := row.of("").unit
			t = append(t, []string{row.what + ": " + name, u.write(l.each * 1000), u.write(l.at(many)), u.write(l.at(veryMany))})
		}
	}
	return t
}
