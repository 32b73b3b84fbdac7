package browser

import (
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// picture writes the whole page to a file, if somebody wants it.
func (b *tab) picture(name string) {
	b.Helper()
	b.write(name, chromedp.FullScreenshot(100))
}

// docPicture writes what the window shows: one of docs/images.
func (b *tab) docPicture(name string) {
	b.Helper()
	b.write("status-"+name, chromedp.CaptureScreenshot())
}

func (b *tab) write(name string, take chromedp.Action[[]byte]) {
	b.Helper()
	folder := os.Getenv("RECTIFIER_SCREENSHOTS")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, take)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o644); err != nil {
		b.Fatal(err)
	}
}
