package engine

// sampledObjects are so many that the mean of objects which differ by as much as
// their own size is right within 10 % or so, and so few that a scrape stays cheap.
const sampledObjects = 100

// meanBytes is the mean of the sizes of some objects; 0 without any.
func meanBytes(sizes []int) float64 {
	if len(sizes) == 0 {
		return 0
	}
	sum := 0
	for _, size := range sizes {
		sum += size
	}
	return float64(sum) / float64(len(sizes))
}
