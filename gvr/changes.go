package gvr

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// changeLocked changes a status and notes the change for announce.
func (m *Manager) changeLocked(s *Status, state State, reason string) {
	if s.State == state && s.Reason == reason {
		return
	}
	if s.State != state {
		s.Since = time.Now()
	}
	s.State, s.Reason = state, reason
	m.epoch.Add(1)
	m.pending = append(m.pending, *s)
}

// announce logs and hands out the noted changes, in order, without any lock. If a goroutine is at it already, then
// that one does it: so OnStateChange is never called twice at a time, and may itself cause changes.
func (m *Manager) announce() {
	for {
		m.mu.Lock()
		if m.announcing || len(m.pending)+len(m.renewed) == 0 {
			m.mu.Unlock()
			return
		}
		changes, renewed, logger := m.pending, m.renewed, m.logger
		m.pending, m.renewed, m.announcing = nil, nil, true
		m.mu.Unlock()

		for _, change := range changes {
			m.logFor(change.Resource).write(logger, change, time.Now())
			if m.options.OnStateChange != nil {
				m.options.OnStateChange(change)
			}
		}
		if m.options.OnRenewal != nil {
			for _, gvr := range renewed {
				m.options.OnRenewal(gvr)
			}
		}

		m.mu.Lock()
		m.announcing = false
		m.mu.Unlock()
	}
}

func (m *Manager) logFor(gvr schema.GroupVersionResource) *changeLog {
	l := m.logs[gvr]
	if l == nil {
		l = &changeLog{last: map[string]Status{}}
		m.logs[gvr] = l
	}
	return l
}

// changeLog logs the state changes of one resource, at most linesPerMinute of them, whatever the cluster does.
// It is not safe for concurrent use.
type changeLog struct {
	last       map[string]Status // by namespace: what was logged last
	lines      [linesPerMinute]time.Time
	next       int // index of the oldest in lines
	suppressed int
}

const linesPerMinute = 5

func (l *changeLog) write(logger klog.Logger, s Status, now time.Time) {
	if s.State == Syncing || s.Reason == notAnswered || s.Reason == notStarted {
		return // it becomes something else soon
	}
	if last := l.last[s.Namespace]; last.State == s.State && last.Reason == s.Reason {
		return
	}
	if oldest := l.lines[l.next]; !oldest.IsZero() && now.Sub(oldest) < time.Minute {
		l.suppressed++
		return
	}
	l.lines[l.next] = now
	l.next = (l.next + 1) % linesPerMinute
	l.last[s.Namespace] = s

	values := []any{"resource", s.Resource.GroupResource().String(), "version", s.Resource.Version, "state", s.State}
	if s.Namespace != "" {
		values = append(values, "namespace", s.Namespace)
	}
	if s.Reason != "" {
		values = append(values, "reason", s.Reason)
	}
	if l.suppressed > 0 {
		values = append(values, "suppressedLines", l.suppressed)
		l.suppressed = 0
	}
	logger.Info("Resource changed state", values...)
}
