package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium finds the browser of these tests: $CHROMIUM, or one on the path.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium ($CHROMIUM, chromium, google-chrome, chromium-browser): apt-get install chromium")
	return ""
}

// tab is a page in a browser, with what it complained about and asked the network for.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mutex                sync.Mutex
	complaints, requests []string
}

// open writes the outcome's page and opens it in a headless browser, with scripts or without.
func open(t *testing.T, o *Outcome, scripts bool) *tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	var b bytes.Buffer
	if err := Write(&b, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	tab := &tab{T: t, ctx: ctx, url: "file://" + path}
	if err := chromedp.Listen(ctx, tab.listen); err != nil {
		t.Fatal(err)
	}
	call(tab, network.Enable, network.EnableParams{})
	call(tab, log.Enable, cdp.Empty{})
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
	tab.do(chromedp.Navigate(tab.url))
	return tab
}

func (b *tab) listen(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != b.url && !strings.HasPrefix(e.Request.URL, "data:") {
			b.requests = append(b.requests, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("line %d: %s", e.ExceptionDetails.LineNumber, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// run is an action's value.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// eval is the value of an expression on the page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// quiet fails for complaints and requests so far.
func (b *tab) quiet() {
	b.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.complaints) > 0 || len(b.requests) > 0 {
		b.Errorf("complaints %q, requests %q", b.complaints, b.requests)
	}
}

// size makes the page so wide, light or dark.
func (b *tab) size(width int64, scheme string) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// picture is a PNG of an element, with some room around it.
func (b *tab) picture(selector string) []byte {
	b.Helper()
	r := eval[[]float64](b, fmt.Sprintf(`(e => { const r = e.getBoundingClientRect(); return [r.x + scrollX, r.y + scrollY, r.width, r.height]; })(document.querySelector(%q))`, selector))
	return call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "png", CaptureBeyondViewport: new(true),
		Clip: &page.Viewport{X: 0, Y: r[1] - 10, Width: r[2] + 2*r[0], Height: min(r[3]+20, 2600), Scale: 1}}).Data
}
