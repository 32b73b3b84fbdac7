package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// fill makes the Deployment of a number from a template. Every other one has
// another number of replicas than it declares.
func fill(template string, i int) string {
	return strings.NewReplacer("NAMESPACE", fmt.Sprintf("shop-%02d", i%50), "NAME", fmt.Sprintf("web-%05d", i), "TEAM", fmt.Sprintf("team-%d", i%37),
		"EXPECTED", fmt.Sprint(3+i%2), "NUMBER", fmt.Sprintf("%012d", i)).Replace(template)
}

// deploymentTemplate is what `kubectl get deployment -o yaml` prints, about 3 KB.
const deploymentTemplate = `# NAME: owned by TEAM
apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    deployment.kubernetes.io/revision: "3"
    example.io/expected-replicas: "EXPECTED" # agreed with the team
    example.io/owner: TEAM@example.com
  creationTimestamp: "2026-10-01T10:11:12Z"
  generation: 3
  labels:
    app.kubernetes.io/name: NAME
    app.kubernetes.io/part-of: shop
    team: TEAM
  name: NAME
  namespace: NAMESPACE
  resourceVersion: "1NUMBER"
  uid: 7f0b3c1e-57a8-4b71-9f5d-NUMBER
spec:
  progressDeadlineSeconds: 600
  replicas: 3
  revisionHistoryLimit: 10
  selector:
    matchLabels:
      app.kubernetes.io/name: NAME
  strategy:
    rollingUpdate:
      maxSurge: 25%
      maxUnavailable: 25%
    type: RollingUpdate
  template:
    metadata:
      labels:
        app.kubernetes.io/name: NAME
        app.kubernetes.io/part-of: shop
        team: TEAM
    spec:
      containers:
      - args: ["--listen=:8080", "--config=/etc/app/config.yaml"]
        env:
        - name: APP_SETTING_00
          value: value-NUMBER-0
        - name: APP_SETTING_01
          value: value-NUMBER-1
        - name: POD_NAME
          valueFrom:
            fieldRef:
              apiVersion: v1
              fieldPath: metadata.name
        image: registry.example.com/TEAM/app:v1.NUMBER
        imagePullPolicy: IfNotPresent
        livenessProbe:
          failureThreshold: 3
          httpGet:
            path: /healthz
            port: http
            scheme: HTTP
          periodSeconds: 10
          successThreshold: 1
          timeoutSeconds: 1
        name: app
        ports:
        - containerPort: 8080
          name: http
          protocol: TCP
        readinessProbe:
          failureThreshold: 3
          httpGet:
            path: /ready
            port: http
            scheme: HTTP
          periodSeconds: 10
          successThreshold: 1
          timeoutSeconds: 1
        resources:
          limits:
            cpu: 500m
            memory: 512Mi
          requests:
            cpu: 100m
            memory: 128Mi
        securityContext:
          allowPrivilegeEscalation: false
          runAsNonRoot: true
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
        volumeMounts:
        - mountPath: /etc/app
          name: config
          readOnly: true
        - mountPath: /tmp
          name: tmp
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      schedulerName: default-scheduler
      securityContext: {}
      terminationGracePeriodSeconds: 30
      volumes:
      - configMap:
          defaultMode: 420
          name: NAME-config
        name: config
      - emptyDir: {}
        name: tmp
status:
  availableReplicas: 3
  conditions:
  - lastTransitionTime: "2026-10-01T10:11:40Z"
    lastUpdateTime: "2026-10-01T10:11:40Z"
    message: Deployment has minimum availability.
    reason: MinimumReplicasAvailable
    status: "True"
    type: Available
  observedGeneration: 3
  readyReplicas: 3
  replicas: 3
  updatedReplicas: 3
`

// layouts are the ways in which many objects stand in one stream: what stands
// before the first, each, and behind the last.
var layouts = map[string]struct{ head, each, tail string }{
	"documents":  {each: "---\n" + deploymentTemplate},
	"JSON lines": {each: inJSON(deploymentTemplate) + "\n"},
	"list": {head: "apiVersion: v1\nitems:\n",
		each: "- " + strings.TrimSuffix(strings.ReplaceAll(deploymentTemplate, "\n", "\n  "), "  "),
		tail: "kind: List\nmetadata:\n  resourceVersion: \"\"\n"},
	// The items of a JSON list have commas between them: the last one stands alone.
	"JSON list": {head: `{"apiVersion":"v1","items":[`, each: inJSON(deploymentTemplate) + ",\n", tail: `{"apiVersion":"v1","kind":"A"}],"kind":"List"}`},
}

func inJSON(template string) string {
	text, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// manyDeployments is a stream of n Deployments. It makes them as they are read.
type manyDeployments struct {
	layout  string
	n, done int
	rest    string
}

func (m *manyDeployments) Read(p []byte) (int, error) {
	l := layouts[m.layout]
	for len(m.rest) == 0 {
		switch {
		case m.done > m.n:
			return 0, io.EOF
		case m.done == m.n:
			m.rest = l.tail
		default:
			if m.done == 0 {
				m.rest = l.head
			}
			m.rest += fill(l.each, m.done)
		}
		m.done++
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// BenchmarkFix fixes Deployments from memory, half of which change.
func BenchmarkFix(b *testing.B) {
	const n = 2000
	for name := range layouts {
		text, err := io.ReadAll(&manyDeployments{layout: name, n: n})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			runs, before := 0, cpuTime(b)
			for b.Loop() {
				runs++
				code := execute(context.Background(), []string{"fix", "--builtin", "expected-replicas", "-"}, streams{bytes.NewReader(text), io.Discard, io.Discard})
				if code != exitFine {
					b.Fatal("exit code", code)
				}
			}
			b.ReportMetric(float64(runs*len(text))/1e6/(cpuTime(b)-before).Seconds(), "MB/cpu-s")
		})
	}
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// heapAt notes the least that is reachable when so many bytes have been written: how
// many documents are being worked on at a moment differs.
type heapAt struct {
	written int
	at      []heapSample
}

type heapSample struct {
	written int
	least   *uint64
}

func (h *heapAt) Write(p []byte) (int, error) {
	h.written += len(p)
	for len(h.at) > 0 && h.written >= h.at[0].written {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if least := h.at[0].least; *least == 0 || stats.HeapAlloc < *least {
			*least = stats.HeapAlloc
		}
		h.at = h.at[1:]
	}
	return len(p), nil
}

// expect has samples taken around a place of a stream of that size, in percent.
func (h *heapAt) expect(size int64, percent int) *uint64 {
	least := new(uint64)
	for i := -4; i <= 4; i += 2 {
		h.at = append(h.at, heapSample{int(size) * (percent + i) / 100, least})
	}
	return least
}

// TestUnracedFixNeedsNoMoreMemoryForMoreDocuments checks that what fix holds does not grow
// with the stream, whatever the stream looks like.
func TestUnracedFixNeedsNoMoreMemoryForMoreDocuments(t *testing.T) {
	const n = 2500
	for name := range layouts {
		t.Run(name, func(t *testing.T) {
			size, err := io.Copy(io.Discard, &manyDeployments{layout: name, n: n})
			if err != nil {
				t.Fatal(err)
			}
			out := &heapAt{}
			early, late := out.expect(size, 15), out.expect(size, 90)
			var told bytes.Buffer
			told.Grow(4 << 20) // what is told is kept by the test, not by fix
			code := execute(context.Background(), []string{"fix", "--builtin", "expected-replicas", "-"}, streams{&manyDeployments{layout: name, n: n}, out, &told})
			if want := fmt.Sprintf(", %d matched, %d changed, 0 failures\n", n, n/2); code != exitFine || !strings.HasSuffix(told.String(), want) {
				t.Fatalf("exit code %d, told …%s", code, told.String()[max(0, told.Len()-200):])
			}
			if int64(out.written) != size {
				t.Errorf("%d bytes of %d were printed", out.written, size)
			}
			t.Logf("%d MiB of input; the heap holds %d KiB early and %d KiB late", size>>20, *early>>10, *late>>10)
			if *early == 0 || *late > *early+uint64(size)/4 {
				t.Errorf("the heap grew from %d to %d bytes", *early, *late)
			}
		})
	}
}
