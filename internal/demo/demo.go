package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

const (
	// settleTimeout is how long all objects may take to be right. It takes
	// well under a second on an idle machine.
	settleTimeout = 20 * time.Second
	// quietTime is how long no write may be seen before the show is over.
	quietTime = 2 * time.Second
	poll      = 50 * time.Millisecond
)

// show is the demo under way.
type show struct {
	out     *screen
	plane   *controlplane.ControlPlane
	cluster *cluster
	engine  *rectifier
	fixes   *fixWatcher
}

// run is the whole demo. The error says what is not as it should be; it is
// ctx's when the demo was interrupted. Nothing that it started is left.
func run(ctx context.Context, out *screen, keep bool) (err error) {
	s := &show{out: out}
	defer func() {
		if stopErr := s.stop(); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
	}()
	if err := s.setUp(ctx); err != nil {
		return interrupted(ctx, err)
	}
	if err := s.firstFixes(ctx); err != nil {
		return interrupted(ctx, err)
	}
	disturbed, err := s.disturb(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := s.judge(ctx, disturbed); err != nil {
		return interrupted(ctx, err)
	}
	if keep {
		s.keepUp(ctx)
	}
	return nil
}

// interrupted prefers the reason that the user knows: Ctrl-C makes everything
// else fail as well.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// setUp brings up the control plane with objects on it, and shows what is wrong.
func (s *show) setUp(ctx context.Context) error {
	s.out.title("A real Kubernetes API server, and nothing else on it")
	err := s.out.step("start etcd and kube-apiserver", func() (err error) {
		s.plane, err = controlplane.Start(ctx, controlplane.Options{Audit: true})
		return err
	})
	if err != nil {
		return err
	}
	if s.cluster, err = newCluster(s.plane); err != nil {
		return err
	}
	if err := s.out.step("install the CRD backups.example.io", func() error { return s.cluster.installCRD(ctx) }); err != nil {
		return err
	}
	what := fmt.Sprintf("create %d Deployments and %d Backups in namespace %s", count(deployments), count(backups), namespace)
	if err := s.out.step(what, func() error { return s.cluster.createItems(ctx) }); err != nil {
		return err
	}
	s.out.title("What is wrong")
	_, err = s.table(ctx, true)
	return err
}

// firstFixes starts Rectifier and waits until it has put everything right.
func (s *show) firstFixes(ctx context.Context) error {
	s.out.title("Rectifier starts")
	if err := s.out.step("go build ./cmd/rectifier", func() (err error) {
		s.engine, err = buildRectifier(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := s.cluster.grant(ctx, engineUser); err != nil {
		return err
	}
	if err := s.plane.WriteKubeconfig(s.engine.kubeconfig(), engineUser); err != nil {
		return err
	}
	var err error
	if s.fixes, err = watchFixes(ctx, s.cluster, s.out); err != nil {
		return err
	}
	s.out.line("  $ %s", s.engine.commandLine())
	s.out.line("  as user %q: list, watch and patch on what the rules name, no more", engineUser)
	s.out.line("")
	s.fixes.start()
	if err := s.engine.start(); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle waits until every object is as it should be.
func (s *show) settle(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.engine.exited(); err != nil {
			return false, err
		}
		findings, err := s.cluster.inspect(ctx)
		return err == nil && len(wrong(findings)) == 0, err
	})
	if err == nil || !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	findings, err := s.cluster.inspect(ctx)
	if err != nil {
		return err
	}
	s.out.title("Still wrong")
	s.out.findings(wrong(findings))
	return fmt.Errorf("%d things are still wrong after %s; rectifier's last log lines:\n%s", len(wrong(findings)), settleTimeout, s.engine.lastLines())
}

// judge shows the end state and counts the requests.
func (s *show) judge(ctx context.Context, disturbed int) error {
	s.out.line("")
	var requests tally
	if err := s.out.step("wait until all is right and quiet", func() (err error) {
		if err = s.settle(ctx); err == nil {
			requests, err = s.quiet(ctx)
		}
		return err
	}); err != nil {
		return err
	}
	ready, err := s.engine.readyz(ctx)
	if err != nil {
		return err
	}
	s.out.title("What Rectifier says of itself: GET /readyz")
	s.out.indented(ready)

	s.out.title("How it ended")
	findings, err := s.table(ctx, false)
	if err != nil {
		return err
	}
	s.out.title("What it cost, by the API server's audit log")
	faults := s.requests(requests, s.cluster.initiallyWrong+disturbed)
	if n := len(wrong(findings)); n > 0 {
		faults = append(faults, fmt.Errorf("%d things are not as they should be", n))
	}
	if n := s.fixes.untold(); n > 0 {
		faults = append(faults, fmt.Errorf("%d of %d disturbances were repaired and no Event tells of it", n, disturbed))
	}
	if warned := s.fixes.warnings(); !slices.Equal(warned, warnedOnce) {
		faults = append(faults, fmt.Errorf("there were Warnings on %q, not on %q once", warned, warnedOnce))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	s.out.line("")
	s.out.line("%s", s.out.good("All is as it should be."))
	return nil
}

// keepUp leaves everything running, and says what to do with it.
func (s *show) keepUp(ctx context.Context) {
	s.out.title("Now you")
	s.out.indented(lookAround(s.plane.KubeconfigFile(), s.engine))
	s.out.line("  Fixes appear here. Ctrl-C stops everything and removes its data.")
	s.out.line("")
	<-ctx.Done()
	s.out.line("")
	s.out.line("Stopping …")
}

func (s *show) stop() error {
	var errs []error
	if s.fixes != nil {
		s.fixes.stop()
	}
	if s.engine != nil {
		errs = append(errs, s.engine.stop())
	}
	if s.plane != nil {
		errs = append(errs, s.plane.Stop())
	}
	return errors.Join(errs...)
}
