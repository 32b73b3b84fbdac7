package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart is lines over a number of objects.
type chart struct {
	title, x, y string
	lines       []line
}

type line struct {
	name   string
	points []point
}

// point is a value with its range.
type point struct {
	x float64
	y figure
}

// The image, in pixels: its size and the margins around the plot.
const (
	imageWidth, imageHeight  = 720, 400
	marginLeft, marginRight  = 70, 150
	marginTop, marginBottom  = 50, 60
	plotRight                = imageWidth - marginRight
	plotBottom               = imageHeight - marginBottom
	plotWidth, plotHeight    = plotRight - marginLeft, plotBottom - marginTop
	smallestGapBetweenLabels = 16
)

// style has colours that can be read on white and on black, and told apart by
// those who do not see red and green as two; lines differ in their dashes, too.
const style = `
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.background { fill: #ffffff }
.grid { stroke: #d1d9e0 }
.axis { stroke: #59636e }
.line { fill: none; stroke: currentColor; stroke-width: 2.5 }
.range { stroke: currentColor; stroke-width: 1.5 }
.median, .name { fill: currentColor }
.series0 { color: #bc4c00 } .series0 .line { stroke-dasharray: 2 4 }
.series1 { color: #8250df } .series1 .line { stroke-dasharray: 8 4 }
.series2 { color: #0072b2 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .background { fill: #0d1117 }
  .grid { stroke: #3d444d }
  .axis { stroke: #9198a1 }
  .name { fill: currentColor }
  .series0 { color: #ff9d57 }
  .series1 { color: #c297ff }
  .series2 { color: #56b4e9 }
}
`

// svg draws the chart.
func (c chart) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		imageWidth, imageHeight, imageWidth, imageHeight, html.EscapeString(c.title))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="background" width="%d" height="%d"/>`+"\n", imageWidth, imageHeight)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="26">%s</text>`+"\n", marginLeft, html.EscapeString(c.title))
	s := c.scale()
	s.drawAxes(&b, c.x, c.y)
	names := c.namePositions(s)
	for i, l := range c.lines {
		l.draw(&b, i, s, names[i])
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale maps values to pixels. Both axes begin with 0.
type scale struct{ stepX, topX, stepY, topY float64 }

func (c chart) scale() scale {
	var mostX, mostY float64
	for _, l := range c.lines {
		for _, p := range l.points {
			mostX, mostY = max(mostX, p.x), max(mostY, p.y.most)
		}
	}
	s := scale{stepX: niceStep(mostX), stepY: niceStep(mostY)}
	s.topX, s.topY = math.Ceil(mostX/s.stepX)*s.stepX, math.Ceil(mostY/s.stepY)*s.stepY
	return s
}

// niceStep divides 0 to most into at most seven parts, of 1, 2 or 5 times a power of
// ten.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, step := range []float64{power / 5, power / 2, power} {
		if most/step <= 7 {
			return step
		}
	}
	return power * 2
}

func (s scale) x(value float64) float64 { return marginLeft + value/s.topX*plotWidth }
func (s scale) y(value float64) float64 { return plotBottom - value/s.topY*plotHeight }

func (s scale) drawAxes(b *strings.Builder, x, y string) {
	for i := range int(math.Round(s.topY/s.stepY)) + 1 {
		value := float64(i) * s.stepY
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, marginLeft, s.y(value), plotRight, s.y(value))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", marginLeft-8, s.y(value)+4, number0(value))
	}
	for i := range int(math.Round(s.topX/s.stepX)) + 1 {
		value := float64(i) * s.stepX
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, s.x(value), plotBottom, s.x(value), plotBottom+5)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", s.x(value), plotBottom+21, number0(value))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", marginLeft, plotBottom, plotRight, plotBottom)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", marginLeft+plotWidth/2, imageHeight-16, html.EscapeString(x))
	fmt.Fprintf(b, `<text x="18" y="%d" text-anchor="middle" transform="rotate(-90 18 %[1]d)">%s</text>`+"\n", marginTop+plotHeight/2, html.EscapeString(y))
}

// number0 is a label of an axis.
func number0(value float64) string {
	if value >= 1000 && value == math.Trunc(value) {
		return thousands(int(value))
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// namePositions are the heights of the names at the ends of the lines, apart enough
// to be read.
func (c chart) namePositions(s scale) []float64 {
	heights := make([]float64, len(c.lines))
	for i, l := range c.lines { // the first line is the highest as a rule
		heights[i] = s.y(l.points[len(l.points)-1].y.median) + 4
		if i > 0 {
			heights[i] = max(heights[i], heights[i-1]+smallestGapBetweenLabels)
		}
	}
	return heights
}

func (l line) draw(b *strings.Builder, i int, s scale, nameY float64) {
	fmt.Fprintf(b, `<g class="series%d">`+"\n", i)
	var points []string
	for _, p := range l.points {
		x := s.x(p.x)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, s.y(p.y.median)))
		fmt.Fprintf(b, `<line class="range" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x, s.y(p.y.least), x, s.y(p.y.most))
		fmt.Fprintf(b, `<circle class="median" cx="%.1f" cy="%.1f" r="3"/>`+"\n", x, s.y(p.y.median))
	}
	fmt.Fprintf(b, `<polyline class="line" points="%s"/>`+"\n", strings.Join(points, " "))
	last := l.points[len(l.points)-1]
	fmt.Fprintf(b, `<text class="name" x="%.1f" y="%.1f">%s</text></g>`+"\n", s.x(last.x)+10, nameY, html.EscapeString(l.name))
}
