package statuspage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
)

// problem is something that somebody has to look at.
type problem struct {
	Tone    tone
	Kind    string // in one or two words
	Title   string
	Detail  string
	Excerpt string // of a file, with a caret
	Next    string // what to do
	Command string // that tells more
	When    moment
	Link    string // to the table that tells more
}

// failureTime is how long a failure counts as a problem, if the same rule has not
// put the object right since.
const failureTime = time.Hour

// problemsOf finds what needs attention, the worst first.
func problemsOf(s *engine.Status) []problem {
	out := slices.Concat(ruleFileProblems(s), connectionProblems(s), resourceProblems(s), parkedProblems(s), contentionProblems(s), failureProblems(s))
	if s.Leadership.Role == engine.Alone || s.Leadership.Role == engine.Leader {
		if len(s.Rules) == 0 {
			out = append(out, problem{
				Tone: toneWarn, Kind: "No rules", Title: "No rules are loaded",
				Next: "Check that the folder of rules is the one that is mounted. Files that are added are read by themselves.",
			})
		}
	}
	return out
}

func ruleFileProblems(s *engine.Status) []problem {
	var out []problem
	if s.UnreadRules != "" {
		out = append(out, problem{
			Tone: toneBad, Kind: "Rules not read", Title: "The rules cannot be read anew", Detail: s.UnreadRules,
			Next: "Those that were loaded before stay in force. Check the mounted files; they are read again by themselves.",
			When: ago(s.RulesLoaded, s.Time),
		})
	}
	for _, r := range s.InvalidRules {
		title := "A file of rules"
		if r.Rule != "" {
			title = "Rule " + r.Rule
		}
		next := "It is left out. Correct the file; it is read again by itself."
		if r.Kept {
			next = "Its last good version stays in force. Correct the file; it is read again by itself."
		}
		out = append(out, problem{
			Tone: toneBad, Kind: "Invalid rule", Title: title + ": " + r.Message, Detail: place(r.File, r.Line, r.Column),
			Excerpt: r.Excerpt, Next: next, Command: "rectifier lint " + r.File,
		})
	}
	return out
}

func place(file string, line, column int) string {
	switch {
	case line == 0:
		return file
	case column == 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

func connectionProblems(s *engine.Status) []problem {
	var out []problem
	if l := s.Leadership; l.Trouble != "" && l.Role != engine.Lost {
		out = append(out, problem{
			Tone: toneBad, Kind: "Lease", Title: "The lease " + l.Lease + ": " + l.Trouble,
			Next: "Check the connection to the API server, and that this instance may get, create and update leases.coordination.k8s.io.",
		})
	}
	if s.Discovery.Error != "" {
		detail := "What was known before holds."
		if !s.Discovery.Done {
			detail = "Nothing is known of the cluster yet."
		}
		out = append(out, problem{
			Tone: toneBad, Kind: "Discovery", Title: "What the cluster serves cannot be read: " + s.Discovery.Error, Detail: detail,
			Next: "It is tried again by itself. Check the connection to the API server.",
		})
	}
	return out
}

// resourceProblems are resources that rules cannot be run on.
func resourceProblems(s *engine.Status) []problem {
	var out []problem
	for _, r := range s.Resources {
		p := problem{
			Tone: toneBad, Kind: stateWords(r.State), Title: r.Resource, When: since(r.Since, s.Time), Link: "#resources",
			Detail: sentence(upper(r.Reason)),
		}
		if r.Namespace != "" {
			p.Title += " in namespace " + r.Namespace
		}
		switch r.State {
		case gvr.Synced, gvr.Syncing:
			continue
		case gvr.Waiting:
			p.Tone = toneWarn
			p.Next = "Install what serves it, usually a CustomResourceDefinition, or take the rule out. It starts by itself then."
		case gvr.Forbidden:
			p.Detail = "Not allowed: " + sentence(r.Reason)
			p.Next = "Grant list and watch. The command prints the Role that the rules need; it starts by itself within 20 s of that."
			p.Command = "rectifier rbac --rules FOLDER"
		case gvr.Failing:
			p.Next = "It is tried again by itself. Look at the API server, and at what serves or converts this resource."
		}
		if len(r.Rules) == 0 && r.Consequence != "" {
			continue // nothing is kept from running: see notesOf
		}
		if len(r.Rules) > 0 {
			p.Detail = strings.TrimPrefix(p.Detail+" Keeps from running: "+listOf(r.Rules, 5)+".", " ")
		}
		out = append(out, p)
	}
	return out
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.TrimSuffix(text, ".") + "."
}

// ofTheResource are the reasons for parking that are its resource's: see
// resourceProblems.
var ofTheResource = []string{"waiting", "forbidden", "failing"}

// parkedProblems are rules that cannot run although their resource is there, at
// least in some of its namespaces, those with the same reason together.
func parkedProblems(s *engine.Status) []problem {
	there := map[string]bool{}
	for _, r := range s.Resources {
		if r.State == gvr.Synced || r.State == gvr.Syncing {
			there[r.Resource] = true
		}
	}
	type group struct{ resource, reason, message string }
	var order []group
	parked := map[group][]string{}
	for _, r := range s.Rules {
		for _, on := range r.On {
			for _, why := range on.Parked {
				if !there[on.Resource] || slices.Contains(ofTheResource, why.Reason) {
					continue
				}
				g := group{on.Resource, why.Reason, why.Message}
				if parked[g] == nil {
					order = append(order, g)
				}
				parked[g] = append(parked[g], r.Name)
			}
		}
	}
	var out []problem
	for _, g := range order {
		p := problem{
			Tone: toneBad, Kind: "Parked", Title: fmt.Sprintf("%s on %s", listOf(parked[g], 5), g.resource), Detail: sentence(upper(strings.Replace(g.message, "forbidden: ", "not allowed: ", 1))),
			Next: "It runs by itself as soon as that is there.", Link: "#rules",
		}
		if g.reason == "patch_forbidden" {
			p.Kind, p.Next = "Forbidden", "Grant it. The command prints the Role that the rules need; it is tried again by itself."
			p.Command = "rectifier rbac --rules FOLDER"
		}
		out = append(out, p)
	}
	return out
}

// contentionProblems are the fights of rules, by rule and resource.
func contentionProblems(s *engine.Status) []problem {
	var out []problem
	for all := s.Contentions; len(all) > 0; {
		first, n := all[0], 1
		managers := slices.Clone(first.Managers)
		for n < len(all) && all[n].Rule == first.Rule && all[n].Resource == first.Resource {
			for _, m := range all[n].Managers {
				if len(managers) < 10 && !slices.Contains(managers, m) {
					managers = append(managers, m)
				}
			}
			n++
		}
		all = all[n:]
		about := objectName(first.Namespace, first.Name)
		if n > 1 {
			about = count(n, "object", "objects") + ", e.g. " + about
		}
		by, next := "somebody", "Find out who writes these fields: kubectl get with --show-managed-fields names them."
		if len(managers) > 0 {
			by = listOf(managers, 3)
			next = "Decide who owns these fields: change what " + listOf(managers, 3) + " writes, or the rule, or have the object left alone."
		}
		out = append(out, problem{
			Tone: toneWarn, Kind: "Contention", Title: fmt.Sprintf("%s gives way on %s", first.Rule, about),
			Detail: fmt.Sprintf("%s: %s is set back by %s.", first.Resource, listOf(first.Fields, 3), by),
			Next:   next, When: since(first.Since, s.Time), Link: "#contentions",
		})
	}
	return out
}

// failureProblems are the latest failures that were not followed by a fix, by
// rule and reason.
func failureProblems(s *engine.Status) []problem {
	type object struct{ rule, resource, namespace, name string }
	type group struct{ rule, resource, reason string }
	right := map[object]bool{}
	failed := map[group][]engine.Activity{}
	var order []group
	for _, a := range s.Recent { // the latest first
		for _, rule := range a.Rules {
			at, g := object{rule, a.Resource, a.Namespace, a.Name}, group{rule, a.Resource, a.Reason}
			switch {
			case a.Kind == engine.Fixed:
				right[at] = true
			case a.Kind == engine.Failed && !right[at] && s.Time.Sub(a.Time) < failureTime:
				if failed[g] == nil {
					order = append(order, g)
				}
				failed[g] = append(failed[g], a)
			}
		}
	}
	var out []problem
	for _, g := range order {
		last := failed[g][0]
		about := objectName(last.Namespace, last.Name)
		if n := len(failed[g]); n > 1 {
			about = count(n, "object", "objects") + ", e.g. " + about
		}
		out = append(out, problem{
			Tone: toneBad, Kind: "Failed", Title: fmt.Sprintf("%s on %s", g.rule, about), Detail: sentence(upper(last.Message)),
			Next: "Other rules and objects go on. The command shows step by step what the rule makes of the object.", Command: explainCommand(last),
			When: ago(last.Time, s.Time), Link: "#activity",
		})
	}
	return out
}

func explainCommand(a engine.Activity) string {
	parts := strings.Split(a.Resource, "/")
	command := "rectifier explain --rules FOLDER " + parts[len(parts)-1] + "/" + a.Name
	if a.Namespace != "" {
		command += " -n " + a.Namespace
	}
	return command
}

// notesOf are what is good to know and asks for nothing.
func notesOf(s *engine.Status) []note {
	var out []note
	if len(s.Namespaces) > 0 {
		out = append(out, note{"Limited to the " + plural(len(s.Namespaces), "namespace", "namespaces") + " " + listOf(s.Namespaces, 5) + "."})
	}
	if len(s.ExcludedNamespaces) > 0 {
		out = append(out, note{"Objects in " + listOf(s.ExcludedNamespaces, 5) + " are left alone."})
	}
	for _, r := range s.Resources {
		if len(r.Rules) == 0 && r.Consequence != "" {
			out = append(out, note{sentence(upper(r.Consequence)) + " (" + r.Resource + ": " + stateWords(r.State) + ")"})
		}
	}
	for _, a := range s.Advice {
		out = append(out, note{sentence(upper(a))})
	}
	return out
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// stateWords says a resource's state as people do.
func stateWords(state gvr.State) string {
	switch state {
	case gvr.Waiting:
		return "Not served"
	case gvr.Synced:
		return "Synced"
	case gvr.Syncing:
		return "Syncing"
	case gvr.Forbidden:
		return "Forbidden"
	case gvr.Failing:
		return "Failing"
	}
	return string(state)
}
