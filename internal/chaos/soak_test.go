package chaos

import (
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var soakTime = flag.Duration("soak", 10*time.Minute, "how long the soak takes")

var soaks = []scenario{
	{
		name: "soak", fault: "random writes, deletions, recreations and reloads over 2,000 objects of 4 resources", long: true,
		run: soak,
	},
}

var (
	widgets = schema.GroupVersionResource{Group: "chaos.rectifier.dev", Version: "v1", Resource: "widgets"}
)

const (
	soakObjects = 500 // of each species
	soakWriters = 8
	soakRate    = 40 // changes a second, all writers together
	reloadEvery = 15 * time.Second
)

// species is one resource of the soak: an object as it is created, a change that
// makes it want something else, and whether it has what it wants.
type species struct {
	resource schema.GroupVersionResource
	create   string // of the name and what it wants
	drift    string // a merge patch, of what it wants
	right    func(object map[string]any, wants, settings string) bool
}

var allSpecies = []species{
	{
		resource: configmaps,
		create:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"want":"%d"}}`,
		drift:    `{"data":{"want":"%d"}}`,
		right:    func(o map[string]any, wants, _ string) bool { return at(o, "data", "is") == wants },
	},
	{
		resource: secrets,
		create:   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"stringData":{"want":"%d"}}`,
		drift:    `{"stringData":{"want":"%d"}}`,
		right: func(o map[string]any, wants, _ string) bool {
			return at(o, "data", "is") == base64.StdEncoding.EncodeToString([]byte(wants))
		},
	},
	{
		resource: deployments,
		create: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"annotations":{"want":"%d"}},"spec":{"replicas":0,
			"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"x","image":"example.io/x:1"}]}}}}`,
		drift: `{"metadata":{"annotations":{"want":"%d"}}}`,
		right: func(o map[string]any, wants, _ string) bool { return at(o, "spec", "replicas") == wants },
	},
	{
		resource: widgets,
		create:   `{"apiVersion":"chaos.rectifier.dev/v1","kind":"Widget","metadata":{"name":%q},"spec":{"want":"%d"}}`,
		drift:    `{"spec":{"want":"%d"}}`,
		right:    func(o map[string]any, wants, settings string) bool { return at(o, "spec", "is") == wants+" "+settings },
	},
}

// at is a field of an object as text.
func at(object map[string]any, path ...string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(object, path...)
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

const soakCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.chaos.rectifier.dev"},
	"spec":{"group":"chaos.rectifier.dev","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
	"spec":{"type":"object","properties":{"want":{"type":"string"},"is":{"type":"string"}}}}}}}]}}`

// soakRule makes a rule of the lab's namespace.
func soakRule(name, resource, spec string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n" +
		"  resource: {" + resource + "}\n  match: {namespaces: [NS]}\n" + spec
}

var (
	soakMerge = soakRule("merge", "version: v1, resource: configmaps", `
  condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
  patch: {merge: {data: {is: "${object.data.want}"}}}
`)
	// The same to another end: a reload changes what all ConfigMaps should be.
	soakMergeOther = strings.NewReplacer(
		"!= object.data.want", "!= object.data.want + '!'", "${object.data.want}", "${object.data.want}!").Replace(soakMerge)
	soakJSON = soakRule("json", "version: v1, resource: secrets", `
  condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
  patch: {json: [{op: add, path: /data/is, value: "${object.data.want}"}]}
`)
	soakScale = soakRule("scale", "group: apps, version: v1, resource: deployments", `
  condition: object.spec.?replicas.orValue(1) != int(object.metadata.annotations.want)
  patch: {subresource: scale, merge: {spec: {replicas: "${int(object.metadata.annotations.want)}"}}}
`)
	soakLookup = soakRule("lookup", "group: chaos.rectifier.dev, version: v1, resource: widgets", `
  lookups:
    - {name: settings, resource: {version: v1, resource: configmaps}, namespace: NS, where: {metadata.name: settings}}
  variables:
    - {name: is, expression: "object.spec.want + ' ' + lookups.settings[0].data.value"}
  condition: lookups.settings.size() > 0 && object.spec.?is.orValue('') != variables.is
  patch: {merge: {spec: {is: "${variables.is}"}}}
`)

	soakRules = []string{soakMerge, soakJSON, soakScale, soakLookup}
	// What the reloads go through.
	soakReloads = [][]string{{soakMergeOther, soakJSON, soakScale, soakLookup}, {soakMergeOther, soakJSON}, {soakMerge, soakScale, soakLookup}, soakRules}
)

// soak runs an engine for a long time among writers that never rest.
func soak(t *trial) {
	l := t.own(controlplane.Options{})
	l.create(crds, "", l.object(soakCRD))
	testcluster.Eventually(l, time.Minute, func() error {
		_, err := l.client.Resource(widgets).Namespace(l.ns).List(l.Context(), metav1.ListOptions{})
		return err
	})
	l.create(configmaps, l.ns, l.object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"value":"0"}}`))
	c, user := l.startChild(l.here(soakRules...)...)
	began := time.Now()
	writers := l.startWriters(began.Add(*soakTime))
	settings, warm := l.reloadFor(c, began)
	if err := writers.Wait(); err != nil {
		l.Fatal(err)
	}
	c.order(order{Rules: l.here(soakRules...)})
	l.soakRight(writers, settings)
	end := c.least()

	l.saw("heap: %.2f MB after %s, %.2f MB at the end; goroutines: %d and %d", megabytes(warm), warm.at.Sub(began).Round(time.Second),
		megabytes(end), warm.Goroutines, end.Goroutines)
	l.saw("sent in %s: %s", end.at.Sub(began).Round(time.Second), describe(end.Sent))
	if end.Heap > warm.Heap+warm.Heap/10 {
		l.Errorf("the heap has grown from %.2f to %.2f MB: by more than a tenth", megabytes(warm), megabytes(end))
	}
	if end.Goroutines > warm.Goroutines+warm.Goroutines/10 {
		l.Errorf("of %d goroutines have become %d", warm.Goroutines, end.Goroutines)
	}
	c.stop()
	p := &patient{lab: l, user: user}
	for _, s := range allSpecies {
		p.writes(s.resource.Resource)
	}
	p.decidedOnCurrent("configmaps", "secrets", "deployments", "widgets")
}

// writers change objects at random, each its own ones.
type writers struct {
	errgroup.Group
	wants []map[string]string // by writer and object; no entry: it is not there
}

func (l *lab) startWriters(until time.Time) *writers {
	w := &writers{}
	limiter := rate.NewLimiter(soakRate, 1)
	for i := range soakWriters {
		wants := map[string]string{}
		w.wants = append(w.wants, wants)
		w.Go(func() error {
			for version := i; ; version += soakWriters { // no two changes are the same
				number := version / soakWriters
				first := number < len(allSpecies)*soakObjects/soakWriters
				if !first {
					if time.Now().After(until) {
						return nil
					}
					if err := limiter.Wait(l.Context()); err != nil {
						return err
					}
					number = rand.IntN(len(allSpecies) * soakObjects / soakWriters)
				}
				s := &allSpecies[number%len(allSpecies)]
				name := fmt.Sprintf("%s-%d-%d", s.resource.Resource, i, number/len(allSpecies))
				if err := l.change(s, name, version, wants); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		})
	}
	return w
}

// change does one thing to an object.
func (l *lab) change(s *species, name string, version int, wants map[string]string) error {
	client := l.client.Resource(s.resource).Namespace(l.ns)
	merge := func(patch string) error {
		_, err := client.Patch(l.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	_, exists := wants[name]
	switch dice := rand.IntN(10); {
	case !exists:
		wants[name] = fmt.Sprint(version)
		_, err := client.Create(l.Context(), l.object(fmt.Sprintf(s.create, name, version)), metav1.CreateOptions{})
		return err
	case dice == 0:
		delete(wants, name)
		return client.Delete(l.Context(), name, metav1.DeleteOptions{})
	case dice == 1: // and created again at once
		if err := client.Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		wants[name] = fmt.Sprint(version)
		_, err := client.Create(l.Context(), l.object(fmt.Sprintf(s.create, name, version)), metav1.CreateOptions{})
		return err
	case dice == 2: // what no rule reads
		return merge(fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, version))
	default:
		wants[name] = fmt.Sprint(version)
		return merge(fmt.Sprintf(s.drift, version))
	}
}

// reloadFor reloads the rules and changes what they look up, until the soak is
// over. It returns what the looked-up value was last, and how the engine was when
// it had warmed up.
func (l *lab) reloadFor(c *child, began time.Time) (settings string, warm report) {
	l.Helper()
	for i := 0; time.Since(began) < *soakTime; i++ {
		l.pause(reloadEvery)
		c.order(order{Rules: l.here(soakReloads[i%len(soakReloads)]...)})
		settings = fmt.Sprint(i)
		l.merge(configmaps, l.ns, "settings", fmt.Sprintf(`{"data":{"value":%q}}`, settings))
		if warm.Heap == 0 && time.Since(began) > *soakTime/5 && i%len(soakReloads) == len(soakReloads)-1 {
			l.pause(5 * time.Second)
			warm = c.least()
		}
	}
	return settings, warm
}

// least asks the engine a few times, and returns the report with the smallest
// heap: what it holds for good.
func (c *child) least() report {
	c.Helper()
	least := c.order(order{})
	for range 5 {
		time.Sleep(time.Second)
		if r := c.order(order{}); r.Heap < least.Heap {
			least = r
		}
	}
	return least
}

func megabytes(r report) float64 { return float64(r.Heap) / (1 << 20) }

// soakRight waits until each object is there or not, and as it should be.
func (l *lab) soakRight(w *writers, settings string) {
	l.Helper()
	wants := map[string]string{}
	for _, own := range w.wants {
		maps.Copy(wants, own)
	}
	began := time.Now()
	testcluster.Eventually(l, 5*time.Minute, func() error {
		seen := 0
		for i := range allSpecies {
			s := &allSpecies[i]
			list, err := l.client.Resource(s.resource).Namespace(l.ns).List(l.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, u := range list.Items {
				if u.GetName() == "settings" {
					continue
				}
				seen++
				if want, ok := wants[u.GetName()]; !ok || !s.right(u.Object, want, settings) {
					return fmt.Errorf("%s wants %q and is %v", u.GetName(), want, u.Object)
				}
			}
		}
		if seen != len(wants) {
			return fmt.Errorf("there are %d objects, not %d", seen, len(wants))
		}
		return nil
	})
	l.saw("all %d objects right %.1f s after the last write", len(wants), time.Since(began).Seconds())
}
