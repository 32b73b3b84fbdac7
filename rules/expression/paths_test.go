package expression

import (
	"strings"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// ruleEnv declares what a rule's expressions can read.
func ruleEnv(t testing.TB) *Env {
	t.Helper()
	e := NewEnv()
	for _, d := range []declaration{
		{"object", Dyn}, {"namespaceObject", Dyn}, {"lookups.pods", ListOfDyn}, {"now", Timestamp},
		{"variables.a", Dyn}, {"variables.b", Dyn}, {"variables.c", Dyn},
	} {
		var err error
		if e, err = e.Declare(d.name, d.t); err != nil {
			t.Fatal(err)
		}
	}
	e, err := e.WithPatchTypes()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func compile(t testing.TB, e *Env, source string) *Program {
	t.Helper()
	p, issues := e.Compile(source)
	if issues != nil {
		t.Fatalf("compile %s: %v", source, issues[0])
	}
	return p
}

func TestPaths(t *testing.T) {
	e := ruleEnv(t)
	for _, tc := range []struct{ source, want string }{
		{`true`, ``},
		{`object.spec.replicas > 3`, `.spec.replicas`},
		{`object == object`, `.`},
		{`has(object.spec.paused)`, `.spec.paused?`},
		{`'example.io/x' in object.metadata.?annotations.orValue({}) && object.spec.?replicas.orValue(1) != int(object.metadata.annotations['example.io/x'])`,
			`.metadata.annotations{if list} .metadata.annotations["example.io/x"] .spec.replicas`},
		{`object.metadata.?labels.?team.orValue('none') == 'team-7'`, `.metadata.labels.team`},
		{`object.metadata.labels[?'app'].hasValue()`, `.metadata.labels.app?`},
		{`object.spec.containers.all(c, has(c.resources) && 'memory' in c.resources.limits)`,
			`.spec.containers[*].resources.limits{if list} .spec.containers[*].resources.limits.memory?`},
		{`object.spec.containers.filter(c, c.name == 'app')[0].image == 'x'`, `.spec.containers[*].image .spec.containers[*].name`},
		{`object.spec.containers.filter(c, c.name == 'app').map(c, c.image)`, `.spec.containers[*].image .spec.containers[*].name`},
		{`object.spec.containers.size() > 1`, `.spec.containers{keys}`},
		{`object.spec.containers[object.spec.index].image == 'x'`, `.spec.containers.*.image .spec.index`},
		{`object.metadata.annotations.exists(k, k.startsWith('a'))`, `.metadata.annotations{keys} .metadata.annotations{if list}`},
		{`object.metadata.annotations.exists(k, v, v == 'a')`, `.metadata.annotations`},
		{`object.spec.containers.transformList(i, c, c.image)`, `.spec.containers.*.image`},
		{`object.metadata.labels.transformMap(k, v, k.startsWith('a'), v)`, `.metadata.labels`},
		{`object.spec.m.transformMap(k, v, v.x)['a']`, `.spec.m.*.x`},
		{`(has(object.spec.paused) ? object.spec : object.status).replicas == 3`, `.spec.paused? .spec.replicas .status.replicas`},
		{`[object.spec, object.status].exists(x, x.replicas > 2)`, `.spec.replicas .status.replicas`},
		{`{'a': object.spec}.a.replicas == 1`, `.spec.replicas`},
		{`Object{spec: object.spec}.spec.replicas == 1`, `.spec.replicas`},
		{`object.?spec.optMap(s, s.replicas).orValue(0) > 2`, `.spec.replicas`},
		{`object.?spec.optFlatMap(s, s.?replicas).or(object.status.?replicas).value() > 2`, `.spec.replicas .status.replicas`},
		{`optional.ofNonZeroValue(object.spec).hasValue()`, `.spec{keys}`},
		{`optional.ofNonZeroValue(object.spec).value().x == 1`, `.spec{keys} .spec.x`},
		{`type(object.spec.replicas) == int`, `.spec.replicas?`},
		{`object.spec.a == null || object.spec.b != {}`, `.spec.a? .spec.b{keys}`},
		{`dyn(object).spec.x + '-' + object.metadata.name`, `.metadata.name .spec.x`},
		{`(object.spec.a + object.spec.b).exists(x, x.y == 1)`, `.spec.a[*].y .spec.b[*].y`},
		{`object.spec.l.sortBy(x, x.n)[0].image`, `.spec.l[*].image .spec.l[*].n`},
		{`object.spec.l.map(x, x.image).sort()`, `.spec.l[*].image`},
		{`object.spec.l.first().?image`, `.spec.l[*].image`},
		{`object.spec.x in ['a', 'b']`, `.spec.x`},
		{`object.spec.x in object.spec.l`, `.spec.l{keys} .spec.l{if list} .spec.x`},
		{`sets.contains(object.spec.a, object.spec.b)`, `.spec.a .spec.b`},
		{`'%s'.format([object.spec])`, `.spec`},
		{`[1].exists(object, .object.spec.x == 1)`, `.spec.x`},
		{`object.spec.l.exists(object, object.x == 1)`, `.spec.l[*].x .x`}, // sound, if not exact
	} {
		if got := compile(t, e, tc.source).Paths("object").String(); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.source, got, tc.want)
		}
	}
}

func TestPathsOfLookupsAreThoseOfTheElements(t *testing.T) {
	e := ruleEnv(t)
	for _, tc := range []struct{ source, want string }{
		{`lookups.pods.size() == 0`, ``},
		{`object.x == 1`, ``},
		{`lookups.pods.exists(p, p.spec.node == object.metadata.name)`, `.spec.node`},
		{`lookups.pods[0].metadata.name`, `.metadata.name`},
		{`lookups.pods.map(p, p.spec).filter(s, has(s.x))[0].y`, `.spec.x? .spec.y`},
		{`lookups.pods`, `.`},
		{`{'items': lookups.pods}['items'][0].x`, `.x`},
	} {
		if got := compile(t, e, tc.source).Paths("lookups.pods").String(); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.source, got, tc.want)
		}
	}
}

func TestVariablesAreFollowed(t *testing.T) {
	e := ruleEnv(t)
	a := NewAnalysis()
	a.Bind("variables.a", compile(t, e, `object.spec.?template.orValue(object.status)`))
	a.Bind("variables.b", compile(t, e, `variables.a.containers.filter(c, c.name != '')`))
	a.Bind("variables.c", compile(t, e, `object.never.used`))
	a.Read(compile(t, e, `variables.b.exists(c, c.image == namespaceObject.metadata.labels.registry)`))
	if got, want := a.Paths("object").String(), ".spec.template.containers[*].image .spec.template.containers[*].name .status.containers[*].image .status.containers[*].name"; got != want {
		t.Errorf("object\n got %s\nwant %s", got, want)
	}
	if got, want := a.Paths("namespaceObject").String(), ".metadata.labels.registry"; got != want {
		t.Errorf("namespaceObject: got %s, want %s", got, want)
	}
	a.Read(compile(t, e, `variables.a.replicas`)) // a template, later
	if !a.Paths("object").Covers(fieldset.Of("status", "replicas")) {
		t.Errorf("what a later expression reads is missing: %s", a.Paths("object"))
	}
	if !a.Paths("lookups.pods").IsEmpty() || !a.Paths("unheard.of").IsEmpty() {
		t.Error("what nothing reads is needed")
	}
}

func TestALoopThatDoesNotComeToRestIsNeededWhole(t *testing.T) {
	a := NewAnalysis()
	a.passes = 1
	a.Read(compile(t, ruleEnv(t), `object.l.map(x, x.a)[0].b == 1`))
	if got := a.Paths("object").String(); got != `.l[*].a` {
		t.Errorf("got %s", got)
	}
}

func TestReadsKnowsHiddenNames(t *testing.T) {
	p := compile(t, ruleEnv(t), `[1].exists(object, .object.spec.x == object)`)
	if len(p.Reads()) != 1 || p.Reads()[0] != "object" {
		t.Errorf("reads %v", p.Reads())
	}
	v, err := p.Eval(names{"object": m{"spec": m{"x": int64(1)}}})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := v.Bool(); !b {
		t.Error("the name is not resolved to the declared one")
	}
}

func BenchmarkAnalysis(b *testing.B) {
	e := ruleEnv(b)
	p := compile(b, e, pathExpressions[0])
	b.ReportAllocs()
	for b.Loop() {
		p.Paths("object")
	}
}

// pathExpressions are what the property test evaluates: the shapes of real
// rules, and every feature of the language that the analysis knows, over
// sampleObject.
var pathExpressions = append(strings.Split(strings.TrimSpace(pathExpressionLines), "\n"), mutationSources()...)

func mutationSources() []string {
	var out []string
	for _, tc := range mutations {
		out = append(out, strings.ReplaceAll(tc.source, "\n", " "))
	}
	return out
}

const pathExpressionLines = `
has(object.metadata.annotations) && 'example.io/expected-replicas' in object.metadata.annotations && object.spec.replicas != int(object.metadata.annotations['example.io/expected-replicas'])
'example.io/expected-replicas' in object.metadata.?annotations.orValue({}) && object.spec.?replicas.orValue(1) != int(object.metadata.annotations['example.io/expected-replicas']) && lookups.pods.size() == 0
object.metadata.?labels.?team.orValue('none') == 'team-7'
object.metadata.labels[?'app.kubernetes.io/name'].hasValue()
object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)
object.spec.containers.exists(c, c.image.startsWith('docker.io/'))
object.spec.containers.filter(c, c.name == 'app-0').map(c, c.image) == ['x']
object.spec.containers.filter(c, c.name == 'app-0')[0].image == 'x'
size(object.spec.containers) > 1
object.metadata.annotations.exists(k, k.startsWith('example.io/'))
object.metadata.annotations.exists(k, v, k.startsWith('example.io/') && v == '3')
object.metadata.labels[object.metadata.annotations['example.io/owner']] == 'x'
(has(object.spec.paused) ? object.spec : object.status).replicas == 3
'foo' in object.metadata.finalizers
object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')
object.spec == object.status
has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.hostPath))
object.metadata.labels.map(k, object.metadata.labels[k]).exists(v, v == 'shop')
type(object.spec.replicas) == int
type(object.spec.replicas) == type(object.status.replicas)
object.spec.containers[0].image.matches('^registry')
object.spec.containers[?0].?image.orValue('none')
object.spec.containers[?object.spec.replicas].?image.orValue('none')
sets.contains(object.metadata.labels.map(k, k), ['team'])
object.spec.containers.exists_one(c, c.ports.exists(p, p.containerPort == 8080))
dyn(object).spec.replicas == 3
object.spec.?securityContext.?runAsNonRoot.orValue(false)
object.metadata.name.size() > 3 && object.metadata.namespace != 'kube-system'
object.spec.containers.map(c, c.env.filter(e, e.name.startsWith('APP_'))).size() > 0
[object.spec.replicas, object.status.replicas].exists(x, x > 2)
optional.of(object.spec).optMap(s, s.replicas).orValue(0) > 2
object.spec.nope.deeper == 1 || object.spec.replicas == 1
object.spec.containers.transformList(i, c, c.image).exists(x, x != '')
object.spec.containers.transformList(i, c, i > 0, c.image)
object.spec.containers.transformMap(i, c, c.image)[0]
object.metadata.labels.transformMap(k, v, k.startsWith('t'), v)
object.metadata.labels.transformMapEntry(k, v, {v: k})
object.spec.containers.transformMapEntry(i, c, {c.name: c.resources})['app-0'].limits
object.metadata.labels.transformMap(k, v, {'v': v, 'spec': object.spec})['team'].spec.replicas
object.metadata.labels.all(k, v, k != v)
object.metadata.labels.existsOne(k, v, v == 'team-7')
object.spec.?a.?b.orValue("none")
has(object.spec.a)
has(object.metadata.labels) && "a" in object.metadata.labels
object.spec.containers.exists(c, c.image.endsWith(":latest"))
object.spec.containers.all(c, has(c.image))
object.metadata.labels.tier == "web"
object.m > "1Gi"
quantity(object.m).isGreaterThan(quantity("1Gi"))
quantity(object.c).compareTo(quantity("1"))
quantity(string(object.c)).compareTo(quantity("1"))
object.r * 2.0 > 1.5
double(object.r) * 2.0 > 1.5
object.r > 0.4
object.p == "80"
object.p < 90
string(object.p) == "80"
int(object.a) + int(string(object.b))
timestamp(object.t) > timestamp("2026-01-01T00:00:00Z")
object.n
double(object.n)
{'op': 'replace', 'value': 3, 'list': [1, 'a', null]}
{'a': 1, ?'b': object.?b}
{'a': 1, 'b': object.?nope}
[object.?nope, object.?a]
[?object.?nope, ?object.?a].size()
object.a.b.c
object.l.map(x, x.a).filter(x, x > 1).exists(x, x == 2)
object.l.map(x, x.b.filter(y, y > 1))
object.l.exists(x, object.q.all(y, y == x))
{'k': [object.l.map(x, {'z': x.b.map(y, y)})]}
object.l.transformMap(k, v, v)
object.inner
object
object.metadata
object.spec.containers.map(c, {'name': c.name, 'image': c.image.replace(':latest', ':1')})
object.spec.containers.map(c, c.image.contains(':') ? c.image : c.image + ':latest')
object.spec.containers.filter(c, !has(c.resources) || !has(c.resources.requests)).size() > 0
object.spec.containers.map(c, has(c.resources), c.resources)
object.spec.containers.exists(c, c.?securityContext.?privileged.orValue(false) == true)
object.spec.containers.exists(c, c.?imagePullPolicy.orValue('') != (c.image.endsWith(':latest') ? 'Always' : 'IfNotPresent'))
object.metadata.?labels[?'pod-security.kubernetes.io/enforce'].orValue('privileged') in ['privileged', 'baseline']
object.spec.?persistentVolumeReclaimPolicy.orValue('Delete') != 'Retain'
object.status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status != 'True')
now - timestamp(object.metadata.creationTimestamp) > duration('24h') && object.status.?succeeded.orValue(0) > 0
has(object.metadata.deletionTimestamp) && 'foo' in object.metadata.finalizers
object.metadata.finalizers.filter(f, f != 'foo')
object.metadata.?finalizers.orValue([]).indexOf('foo')
'old-key' in object.data && !('new-key' in object.data)
{'new-key': object.data['old-key'], 'old-key': null}
object.data.transformMap(k, v, k != 'old-key', v)
type(object.p) == string ? int(object.p) : object.p
string(object.p).matches('^[0-9]+$')
namespaceObject.metadata.labels.?env.orValue('') == 'prod'
namespaceObject != null && namespaceObject.metadata.name == object.metadata.namespace
namespaceObject == null || has(namespaceObject.metadata.labels)
object.metadata.name in namespaceObject.metadata.labels
lookups.pods.exists(p, p.metadata.name == object.metadata.name)
lookups.pods.all(p, p.spec.replicas == object.spec.replicas)
lookups.pods.map(p, p.metadata.name)
lookups.pods.filter(p, p.metadata.?labels.?team.orValue('') == 'team-7').size()
lookups.pods.size() > 0 ? lookups.pods[0].spec.replicas : object.spec.replicas
lookups.pods.sortBy(p, p.metadata.name)[0].spec
lookups.pods.last().?spec.?replicas
lookups.pods.map(p, p.spec) == [object.spec]
variables.a.replicas == 3
variables.a.containers.exists(c, c.image == variables.b)
variables.a == object.spec
has(variables.a.replicas) && variables.b != ''
variables.c.map(c, c.image)
variables.c.size() + variables.c.filter(c, has(c.ports)).size()
variables.c[0].name + variables.b
optional.ofNonZeroValue(object.metadata.labels).hasValue()
optional.ofNonZeroValue(object.spec.replicas).hasValue()
optional.ofNonZeroValue(object.metadata.name).orValue('x')
optional.ofNonZeroValue(object.spec.containers).optMap(c, c[0].name)
optional.ofNonZeroValue(object.inner).hasValue() ? 1 : 2
object.spec.?replicas == optional.of(3)
object.?spec.?nope == optional.none()
object.spec.a == null
object.spec.replicas != null && object.spec.paused == null
null == object.metadata.labels
object.inner == {}
object.metadata.labels != {}
object.q == []
[] == object.metadata.finalizers
object.q + object.metadata.finalizers
(object.q + object.l).map(x, x)
(object.spec.containers + object.spec.initContainers).exists(c, c.image == 'docker.io/x:latest')
object.spec.containers + [{'name': 'extra'}]
object.a + object.m
object.spec.replicas + object.status.replicas
object.metadata.name + '-' + object.metadata.namespace
object.q.sum() > 2
object.q.max() - object.q.min()
object.q.isSorted()
object.q.sort()
object.q.reverse()[0]
object.metadata.name.reverse()
object.q.slice(0, 1)
object.spec.containers.slice(0, 1)[0].image
object.spec.containers.reverse().map(c, c.name)
object.q.distinct().size()
[object.q, object.q].flatten().size()
object.spec.containers.sortBy(c, c.name).map(c, c.image)
object.spec.containers.first().?image.orValue('none')
object.spec.containers.last().?resources.?limits.?memory.orValue('none')
[object.?a, object.?nope].unwrapOpt()
optional.unwrap([object.spec.?replicas, object.?nope])[0]
object.spec.replicas in [1, 2, 3]
object.spec.replicas in object.q
object.metadata.name in object.metadata.labels
'team' in object.metadata.labels.map(k, k)
'x' in {'x': object.spec}
[object.spec, object.status][object.spec.replicas].replicas
[object.spec, object.status][?1].?replicas.orValue(9)
{'spec': object.spec, 'status': object.status}[object.which].replicas
{'spec': object.spec}['spec'].containers[0].name
{'a': {'b': object.spec}}.a.b.replicas
has({'a': object.spec}.a) && {'a': object.spec}.a.replicas > 0
object[object.which].replicas
object[object.which]
object.spec['replicas'] == object.status["replicas"]
object.spec[?'replicas'].orValue(0)
object.spec[0]
object.spec.containers['0']
object.spec.containers[0u].name
object.spec.containers[1.0].name
object.?spec.containers[0].?name.orValue('none')
object.?spec.?containers.optFlatMap(c, c[?0]).optMap(c, c.image).orValue('none')
object.?nope.or(object.?status).or(object.?spec).value().replicas
object.?spec.hasValue() && object.?spec.value().replicas > 1
object.?spec.?paused.hasValue()
!object.spec.paused
object.spec.paused || object.spec.replicas > 1
object.spec.paused && object.spec.nope
-object.spec.replicas < 0 ? object.spec : object.status
'%s-%d'.format([object.metadata.name, object.spec.replicas])
object.metadata.name.split('-')[0]
object.metadata.labels.map(k, k != 'team', k) == []
url(object.metadata.annotations.url).getHost()
isURL(object.metadata.annotations.url) && object.metadata.annotations.url.find('[0-9]+') != ''
semver(object.metadata.labels.version).major() > 0
ip(object.status.ip).family() == 4
cidr('10.0.0.0/8').containsIP(object.status.ip)
jsonpatch.escapeKey(object.metadata.name)
lists.range(object.spec.replicas).map(i, object.spec.containers[i].name)
lists.range(object.spec.containers.size()).map(i, {'op': 'replace', 'path': '/spec/containers/' + string(i) + '/image', 'value': object.spec.containers[i].image})
object.spec.containers.map(c, c.ports.map(p, p.containerPort))
object.spec.containers.map(c, c.?ports.orValue([])).flatten()
object.spec.containers.exists(c, object.spec.initContainers.exists(i, i.image == c.image))
object.spec.containers.all(c, c.env.all(e, has(e.value) || has(e.valueFrom)))
object.spec.containers.exists_one(c, c.name == 'app-0') ? object.spec.containers.filter(c, c.name == 'app-0')[0].resources : {}
object.spec.containers.map(c, {'c': c}).filter(x, x.c.name == 'app-0').map(x, x.c.image)
object.spec.containers.map(c, [c, object.spec])[0][1].replicas
object.spec.template.?spec.?nodeSelector.orValue({}).size() == 0
object.spec.containers.map(object, object.name)
[1].map(object, .object.spec.replicas)
[object].map(o, o.spec).map(s, s.replicas)
[[object.spec]].map(x, x[0]).exists(s, s.replicas > 1)
Object{spec: Object.spec{replicas: object.spec.replicas}}
Object{spec: object.spec}.spec.replicas
has(Object{?spec: object.?spec}.spec)
optional.ofNonZeroValue(Object{?spec: object.?nope}).hasValue()
[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.status.replicas}]
object.spec.containers.map(c, Object.spec.containers{name: c.name, ?image: c.?image})
object.spec.paused ? object.spec.replicas : object.status.replicas
(object.spec.paused ? [object.spec] : [object.status])[0].replicas
[[object.spec], [object.status]].map(x, x[0].replicas)
'web-1' in [object.metadata.name, 'x']
object.which in object.spec.containers.map(c, c.name)
'app-1' in object.spec.containers.map(c, c.name)
object.metadata.annotations['example.io/owner'] in object.metadata.labels
object.l.sortBy(x, x.a)[0].b
`

var sampleNow = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// sampleObject has something at every place that pathExpressions read, and
// things beside it.
func sampleObject() m {
	container := func(name, image string) m {
		return m{
			"name": name, "image": image, "imagePullPolicy": "Always", "emptyDir": m{},
			"resources": m{"limits": m{"memory": "1Gi", "cpu": "1"}, "requests": m{"cpu": "100m"}},
			"ports":     l{m{"containerPort": int64(8080), "protocol": "TCP"}, m{"containerPort": int64(9090)}},
			"env":       l{m{"name": "APP_A", "value": "1"}, m{"name": "B", "valueFrom": m{"secretKeyRef": m{"name": "s"}}}},
		}
	}
	return m{
		"metadata": m{
			"name": "web-1", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": l{"foo", "bar"},
			"labels":      m{"team": "team-7", "tier": "web", "version": "1.2.3", "app.kubernetes.io/name": "web"},
			"annotations": m{"example.io/expected-replicas": "3", "example.io/owner": "team", "url": "https://example.io:80/"},
		},
		"spec": m{
			"replicas": int64(1), "paused": false, "a": nil, "index": int64(0), "color": "Red", "x": int64(1),
			"containers":     l{container("app-0", "docker.io/x:latest"), container("app-1", "registry/y:1")},
			"initContainers": l{container("init", "docker.io/x:latest")},
			"volumes":        l{m{"name": "v", "emptyDir": m{}}, m{"name": "h", "hostPath": m{"path": "/"}}},
			"rules":          l{m{"host": "a.old", "http": m{}}, m{"host": "b.new"}},
			"template":       m{"spec": m{"nodeSelector": m{"disk": "ssd"}}},
		},
		"status": m{
			"replicas": int64(3), "succeeded": int64(1), "ip": "10.1.2.3",
			"conditions": l{m{"type": "Available", "status": "True"}, m{"type": "Ready", "status": "False"}},
		},
		"data": m{"old-key": "v", "other": "w"}, "which": "spec",
		"m": "900Mi", "c": "1000m", "r": 0.5, "p": int64(80), "a": "4", "b": int64(3), "n": "9", "t": "2026-05-01T00:00:00Z",
		"l": l{m{"a": int64(2), "b": l{int64(1), int64(2)}}, m{"a": int64(1), "b": l{}}}, "q": l{int64(1), int64(3), int64(2)}, "inner": m{"k": "v"},
	}
}
