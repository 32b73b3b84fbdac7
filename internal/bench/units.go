package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// unit says how a value is written.
type unit struct {
	symbol   string
	decimals int
}

var (
	seconds      = unit{"s", 2}
	milliseconds = unit{"ms", 1}
	microseconds = unit{"µs", 0}
	gigabytes    = unit{"GB", 1}
	megabytes    = unit{"MB", 1}
	kilobytes    = unit{"KB", 2}
	perSecond    = unit{"/s", 0}
	number       = unit{"", 2}
)

func (u unit) write(value float64) string {
	text := strconv.FormatFloat(value, 'f', u.decimals, 64)
	if u.symbol == "" {
		return text
	}
	return text + " " + u.symbol
}

// short is a limit, without digits that say nothing.
func (u unit) short(value float64) string {
	return strings.TrimSpace(strconv.FormatFloat(value, 'f', -1, 64) + " " + u.symbol)
}

// write is the median, and the range if there is one.
func (f figure) write(u unit) string {
	if f.least == f.most {
		return u.write(f.median)
	}
	bare := unit{decimals: u.decimals}
	return fmt.Sprintf("%s (%s..%s)", u.write(f.median), bare.write(f.least), bare.write(f.most))
}

func toMilliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

func toMicroseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }

func toMegabytes(bytes float64) float64 { return bytes / 1e6 }
