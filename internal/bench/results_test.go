package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		sorted []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{7}, 0.99, 7},
		{[]float64{1, 2}, 0.5, 1.5},
		{[]float64{1, 2, 9}, 0.5, 2},
		{[]float64{1, 2, 3, 4}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4}, 0.99, 4},
	} {
		if got := quantile(tc.sorted, tc.q); got != tc.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", tc.sorted, tc.q, got, tc.want)
		}
	}
}

func TestBars(t *testing.T) {
	m := measure{"something", seconds}
	for _, tc := range []struct {
		name        string
		bar         bar
		mine, other []float64
		holds       bool
		ratio       string // to the other
		share       string // of the bar
	}{
		{"below a share of another's", bar{of: m, against: typedJSON, limit: 0.5}, []float64{1, 1.5, 30}, []float64{4}, true, "0.38", "75 %"},
		{"as large as it may be", bar{of: m, against: typedJSON, limit: 0.5}, []float64{1, 2, 30}, []float64{4}, true, "0.50", "100 %"},
		{"above it", bar{of: m, against: typedJSON, limit: 0.5}, []float64{2.1}, []float64{4}, false, "0.53", "105 %"},
		{"not below a lower limit", bar{of: m, against: typedJSON, limit: 0.95, atLeast: true}, []float64{95}, []float64{100}, true, "0.95", "100 %"},
		{"below a lower limit", bar{of: m, against: typedJSON, limit: 0.95, atLeast: true}, []float64{90}, []float64{100}, false, "0.90", "95 %"},
		{"within an absolute limit", bar{of: m, limit: 50}, []float64{50}, nil, true, "", "100 %"},
		{"beyond it", bar{of: m, limit: 50}, []float64{51}, nil, false, "", "102 %"},
		{"what it has to be", bar{of: m, limit: 0, equal: true}, []float64{0, 0}, nil, true, "", ""},
		{"less than it has to be", bar{of: m, limit: 1, equal: true}, []float64{0.5}, nil, false, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r results
			r.add(m, ours, tc.mine...)
			r.add(m, typedJSON, tc.other...)
			v, measured := r.judge(tc.bar)
			if !measured || v.holds != tc.holds {
				t.Errorf("measured %v, holds %v, want %v (ratio %v)", measured, v.holds, tc.holds, v.ratio)
			}
			row := v.row()
			if diff := cmp.Diff([]string{tc.ratio, tc.share}, row[4:6]); diff != "" {
				t.Errorf("ratio and share (-want +got):\n%s", diff)
			}
		})
	}
}

// How much a run says of the bars depends on how much it has done.
func TestBarsInWords(t *testing.T) {
	for _, tc := range []struct {
		name  string
		plan  plan
		bars  bool
		doubt string
	}{
		{"a run of five rounds", plan{runs: 5, sizes: []int{1000, 5000}}, true, ""},
		{"a run of one round", plan{runs: 1, sizes: []int{1000, 5000}}, true, "Of fewer than 5 rounds"},
		{"a quick run", plan{runs: 1, sizes: []int{1000, 5000}, quick: true}, false, "The bars are not judged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &suite{plan: tc.plan}
			s.add(firstFix, ours, 2)
			text := newReport(s).text()
			if got := strings.Contains(text, "200 %"); got != tc.bars {
				t.Errorf("judged: %v", got)
			}
			if !strings.Contains(text, tc.doubt) || tc.doubt == "" && strings.Contains(text, "fewer") {
				t.Errorf("want %q in\n%s", tc.doubt, text)
			}
		})
	}
}

// A bar against somebody who was not measured is not judged.
func TestBarWithoutFigures(t *testing.T) {
	m := measure{"something", seconds}
	var r results
	r.add(m, ours, 1)
	if _, measured := r.judge(bar{of: m, against: typedJSON, limit: 1}); measured {
		t.Error("it was judged against nobody")
	}
	if _, measured := r.judge(bar{of: measure{"else", seconds}, limit: 1}); measured {
		t.Error("nothing was judged")
	}
}

func TestFiguresInWords(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{figure{1.234, 1, 2}.write(seconds), "1.23 s (1.00..2.00)"},
		{figure{2, 2, 2}.write(number), "2.00"},
		{seconds.short(0.4), "0.4 s"},
		{thousands(7), "7"},
		{thousands(1000), "1,000"},
		{thousands(1234567), "1,234,567"},
		{bar{of: syncCPU("x"), against: typedJSON, limit: 0.22}.text(), "≤ 0.22 × typed, JSON"},
		{bar{of: getsOfFix, equal: true}.text(), "= 0"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestFit(t *testing.T) {
	at := func(x, y float64) point { return point{x, figure{median: y}} }
	l, ok := fit([]point{at(1000, 12), at(5000, 20), at(10000, 30), at(20000, 50)})
	if !ok || math.Abs(l.bare-10) > 1e-9 || math.Abs(l.each-0.002) > 1e-12 || math.Abs(l.at(1e6)-2010) > 1e-6 {
		t.Errorf("%v %+v", ok, l)
	}
	if _, ok := fit([]point{at(1000, 12)}); ok {
		t.Error("one point makes a line")
	}
}

func TestSteps(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 0.2, 4.7: 1, 20000: 5000, 100000: 20000, 0.3: 0.05, 99: 20} {
		if got := niceStep(most); math.Abs(got-want) > 1e-9 {
			t.Errorf("niceStep(%v) = %v, want %v", most, got, want)
		}
	}
}
