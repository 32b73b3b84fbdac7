package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// offlineBytes is how long one manifest is.
const offlineBytes = 735

// offlineFix is `rectifier fix` over one file with many Deployments, all of them
// wrong.
func (s *suite) offlineFix(ctx context.Context) error {
	path := filepath.Join(s.dir, "manifests.yaml")
	if err := os.WriteFile(path, []byte(manifests(s.offline)), 0o600); err != nil {
		return err
	}
	s.tell("== offline")
	for range s.runs {
		fix := exec.CommandContext(ctx, filepath.Join(s.dir, "rectifier"), "fix", "--builtin=expected-replicas", path)
		fixed, err := os.Create(filepath.Join(s.dir, "fixed.yaml"))
		if err != nil {
			return err
		}
		var told strings.Builder
		fix.Stdout, fix.Stderr = fixed, &told
		begin := time.Now()
		err = fix.Run()
		took := time.Since(begin)
		if err := errors.Join(err, fixed.Close()); err != nil {
			return fmt.Errorf("rectifier fix: %w\n%s", err, told.String()[:min(2000, told.Len())])
		}
		s.add(offlineTime, ours, took.Seconds())
		s.add(offlinePeak, ours, toMegabytes(peakOf(fix.ProcessState.SysUsage())))
	}
	fixed, err := os.ReadFile(filepath.Join(s.dir, "fixed.yaml"))
	if err == nil && strings.Count(string(fixed), fmt.Sprintf("replicas: %d\n", right)) != s.offline {
		err = errors.New("not all manifests are right")
	}
	return err
}

// manifests are so many wrong Deployments, as they stand in a file.
func manifests(count int) string {
	var b strings.Builder
	for i := range count {
		begin := b.Len()
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: %[2]s
  labels:
    app.kubernetes.io/name: %[1]s
  annotations:
    example.io/expected-replicas: "%[3]d"
spec:
  replicas: %[4]d
  selector:
    matchLabels:
      app.kubernetes.io/name: %[1]s
  template:
    metadata:
      labels:
        app.kubernetes.io/name: %[1]s
    spec:
      containers:
        - name: app
          image: registry.example.io/shop/web:1.4.2
          ports:
            - containerPort: 8080
          resources:
            limits:
              memory: 256Mi
`, nameOf(i), namespaceOf(i), right, wrong)
		if missing := offlineBytes - (b.Len() - begin) - len("# \n"); missing > 0 {
			fmt.Fprintf(&b, "# %s\n", strings.Repeat("-", missing))
		}
	}
	return b.String()
}
