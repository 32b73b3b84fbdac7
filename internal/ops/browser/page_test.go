package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/rectifier-dev/rectifier/internal/ops"
)

// wantSeen fails unless texts are seen in this order.
func (b *tab) wantSeen(texts ...string) {
	b.Helper()
	seen := eval[string](b, "seen()")
	rest := seen
	for _, text := range texts {
		i := strings.Index(rest, text)
		if i < 0 {
			b.Errorf("%q is not seen, at least not in this order, in:\n%s", text, seen)
			return
		}
		rest = rest[i+len(text):]
	}
}

func TestQuiet(t *testing.T) {
	ops.Require(t, "chromium")
	s := quiet(t)
	t.Run("audit", func(t *testing.T) { audit(t, s, "quiet") })
	t.Run("seen", func(t *testing.T) {
		b := open(t, s.url, 1280, 800)
		b.wantSeen("Rectifier v0.6.0", "All is well", "Ready", "Rules 5 all running", "Resources 6 all synced", "Fixed 0 none yet", "Failures 0",
			"Recent activity", "Nothing yet", "Rules 5 Each", "database-backups rules.yaml:31 db.example.com/v1/databases Running",
			"Resources 6", "v1/secrets all namespaces Synced")
		if title := eval[string](b, "document.title"); title != "All is well – Rectifier" {
			t.Errorf("the title is %q", title)
		}
		if n := eval[int](b, `document.querySelectorAll(".problems li").length`); n > 0 {
			t.Errorf("there are %d problems", n)
		}
	})
}

func TestBusy(t *testing.T) {
	ops.Require(t, "chromium")
	s := busy(t)
	t.Run("audit", func(t *testing.T) { audit(t, s, "busy") })
	t.Run("seen", func(t *testing.T) {
		b := open(t, s.url, 1280, 800)
		b.openAll()
		b.wantSeen("All is well", "Recent activity", "Fixed shop/web apps/v1/deployments expected-replicas it had 7 replicas", "spec.replicas 7 → 3",
			"Fixed shop/web-settings v1/configmaps team-label", "metadata.labels.team stroefront → storefront")
		b.wantSeen("Fixed shop/orders db.example.com/v1/databases database-backups", "spec.backup", "retentionDays: 14", "spec.deletionPolicy Delete → Retain")
		b.wantSeen("Fixed shop/web-token v1/secrets team-label", "metadata.labels not set → team: storefront")
		b.wantSeen("Audit billing/invoices apps/v1/deployments no-latest-image an image is :latest", "metadata.labels.needs-version")
		if page := eval[string](b, "document.documentElement.outerHTML"); strings.Contains(page, "s3cr3t") {
			t.Error("a Secret is on the page")
		}
	})
	t.Run("renewal", func(t *testing.T) { renewal(t, s) })
	t.Run("pause", func(t *testing.T) { pause(t, s) })
	t.Run("without JavaScript", func(t *testing.T) { withoutScript(t, s) })
}

// renewal: what is new comes by itself, and what the reader is doing goes on.
func renewal(t *testing.T, s *stage) {
	b := open(t, s.url, 1280, 500)
	b.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
	const third = `document.querySelectorAll(".activity details")[2]`
	id := eval[string](b, `(() => { const d = `+third+`; d.open = true; d.querySelector("summary").focus(); window.mine = d; scrollTo(0, 220); return d.id })()`)
	s.mustWrite("kubectl-edit", "ConfigMap", "billing", "tax-rates", `{"metadata":{"labels":{"team":"sales"}}}`)
	b.becomes(`text(".activity > li").some((t) => t.includes("billing/tax-rates") && t.includes("sales") && t.includes("payments"))`)
	for _, so := range []string{
		`document.getElementById("` + id + `") === mine && mine.isConnected && mine.open`,
		`document.activeElement === mine.querySelector("summary")`,
		`scrollY > 0`,
		`text("#trouble")[0] === ""`,
	} {
		if !eval[bool](b, so) {
			t.Errorf("after the renewal it is not so: %s", so)
		}
	}
}

// pause: the reader can stop it, and go on.
func pause(t *testing.T, s *stage) {
	b := open(t, s.url, 1280, 800)
	b.do(chromedp.Focus(chromedp.CSS("#toggle")), chromedp.KeyEvent("\r"))
	b.becomes(`text("#toggle")[0].startsWith("Resume") && !document.body.dataset.refresh`)
	if query := eval[string](b, "location.search"); query != "?refresh=off" {
		t.Errorf("the query is %q: the page would go on when it is loaded anew", query)
	}
	if focus := eval[string](b, "document.activeElement.id"); focus != "toggle" {
		t.Errorf("the focus is on %q", focus)
	}
	b.do(chromedp.KeyEvent("\r"))
	b.becomes(`text("#toggle")[0].startsWith("Pause") && document.body.dataset.refresh === "5"`)
}

// withoutScript: the browser itself loads the page anew.
func withoutScript(t *testing.T, s *stage) {
	b := open(t, s.url, 1280, 800)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(s.url))
	b.becomes(`performance.getEntriesByType("navigation")[0].type === "reload"`)
	b.wantSeen("Pause", "All is well", "Recent activity")
}

func TestProblems(t *testing.T) {
	ops.Require(t, "chromium")
	s := problems(t)
	t.Run("audit", func(t *testing.T) { audit(t, s, "problems") })
	t.Run("seen", func(t *testing.T) {
		b := open(t, s.url, 1280, 800)
		b.wantSeen("7 things need attention", "What needs attention",
			"Invalid rule", "Rule zone-count: Syntax error: missing ')'", "/etc/rectifier/rules/problems.yaml:83:51", "83 |", "^", "Next: It is left out.",
			"Not served", "cert-manager.io/v1/certificates", "Keeps from running: certificate-renewal.",
			"Forbidden", "networking.k8s.io/v1/networkpolicies", "Not allowed: list networkpolicies", "rectifier rbac",
			"Forbidden", "team-label on v1/services", "Not allowed: patch services in namespace warehouse",
			"Contention", "thrifty-routes gives way on warehouse/routes", "data.mode is set back by argocd-controller",
			"Failed", "expected-replicas on warehouse/conveyor",
			"Recent activity", "Gave way", "Contentions 1", "argocd-controller", "Held",
			"Rules 7 Each", "Parked:", "Resources 6", "Not served")
		if icon := eval[string](b, `document.querySelector("link[rel=icon]").getAttribute("href")`); icon != "assets/icon-attention.svg" {
			t.Errorf("the icon is %s", icon)
		}
	})
}
