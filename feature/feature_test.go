package feature_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/testkit"
)

// shop has a block of every kind: intercept (1), age (1), device (3), city (cross only), length (1),
// topic (2), id (4), device × topic (6), age × topic (2), city × id (16): 36 components, 9 blocks.
func shop() feature.Map {
	return feature.Map{
		Context: []feature.Feature{
			{Name: "device", Values: []string{"phone", "tablet", "desktop"}},
			{Name: "user.age", Lo: 0, Hi: 100},
			{Name: "user.city", CrossOnly: true}},
		Action: []feature.Feature{
			{Name: "topic", Values: []string{"news", "sport"}},
			{Name: "length", Lo: -10, Hi: 10, Clip: true}},
		ID: feature.Feature{Buckets: 4, Seed: 3},
		Cross: []feature.Cross{
			{Of: []string{"device", "topic"}},
			{Of: []string{"user.age", "topic"}},
			{Of: []string{"user.city", "id"}, Buckets: 16, Seed: 7}},
	}
}

func compiled(t testing.TB, m feature.Map) *feature.Mapper {
	t.Helper()
	p, err := feature.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// hash is XXH64 as the package says that words are hashed, on its own.
func hash(seed uint64, buckets int, words ...string) int {
	var b []byte
	for _, w := range words {
		h := xxhash.Sum64String(w)
		for range 8 {
			b = append(b, byte(h))
			h >>= 8
		}
	}
	d := xxhash.NewWithSeed(seed)
	if _, err := d.Write(b); err != nil {
		panic(err)
	}
	return int(d.Sum64() % uint64(buckets))
}

// A vector by hand: nine blocks, so that each is divided by 3 and u = ⌊2²⁰/3⌋ = 349525.
func TestVectorsByHand(t *testing.T) {
	p := compiled(t, shop())
	if p.Dim() != 36 || shop().Dim() != 36 {
		t.Fatalf("dim is %d", p.Dim())
	}
	const unit = 349525.
	if math.Abs(p.Norm()-3) > 1e-5 || p.Norm() < 3 || p.Norm() != (1<<20)/unit {
		t.Fatalf("norm is %v", p.Norm())
	}
	got, err := p.Vectors(nil, object(t, `{"device": "desktop", "user": {"age": 25, "city": "Rome"}}`),
		[]feature.Action{
			{ID: "a", Features: object(t, `{"topic": "sport", "length": 5}`)},
			{ID: "b", Features: object(t, `{"length": 11}`)},
		})
	if err != nil {
		t.Fatal(err)
	}
	names := p.Names()
	if len(names) != 36 {
		t.Fatal(names)
	}
	at := func(i int, name string) float64 {
		j := slices.Index(names, name)
		if j < 0 {
			t.Fatalf("no component %s in %q", name, names)
		}
		return got[i*36+j] * (1 << 20)
	}
	want := []map[string]float64{{
		"intercept": unit, "device=desktop": unit, "user.age": 87381, // ⌊349525/4⌋
		"length": 262143 /* ⌊0.75u⌋ */, "topic=sport": unit,
		fmt.Sprintf("id#%d", hash(3, 4, "a")): unit,
		"device=desktop × topic=sport":        unit, "user.age × topic=sport": 87381,
		fmt.Sprintf("user.city × id#%d", hash(7, 16, "Rome", "a")): unit,
	}, {
		"intercept": unit, "device=desktop": unit, "user.age": 87381, "length": unit,
		fmt.Sprintf("id#%d", hash(3, 4, "b")):                      unit,
		fmt.Sprintf("user.city × id#%d", hash(7, 16, "Rome", "b")): unit,
	}}
	for i := range want {
		for _, name := range names {
			if x := at(i, name); x != want[i][name] {
				t.Errorf("action %d: %s is %v, want %v", i, name, x, want[i][name])
			}
		}
	}
}

// Hashes are the same for ever: these were computed by a program of its own, written from XXH64's
// specification.
func TestHashesStay(t *testing.T) {
	p := compiled(t, feature.Map{Context: []feature.Feature{{Name: "c", Buckets: 1000, Seed: 42}},
		ID:    feature.Feature{Values: []string{"a"}},
		Cross: []feature.Cross{{Of: []string{"c", "id"}, Buckets: 20, Seed: 1}}})
	v, err := p.Vectors(nil, map[string]any{"c": "Utrecht"}, []feature.Action{{ID: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for i, x := range v {
		if x != 0 {
			at = append(at, p.Names()[i])
		}
	}
	if want := []string{"intercept", "c#395", "id=a", "c × id#14"}; !slices.Equal(at, want) {
		t.Errorf("%q, want %q", at, want)
	}
}

// What is wrong with a map is an error that names the field.
func TestMapErrors(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		of   func(*feature.Map)
		want string
	}{
		{func(m *feature.Map) { m.Actions = -1 }, "actions: is -1, must be from 1 to 1000"},
		{func(m *feature.Map) { m.Actions = 1001 }, "actions: is 1001"},
		{func(m *feature.Map) { m.Context[0].Name = "" }, "context: a name is empty"},
		{func(m *feature.Map) { m.Context[0].Name = long }, "context: a name is 2000 bytes long"},
		{func(m *feature.Map) {
			m.Context[0].Name = "a\x00"
		}, `context: a name "a\x00" has a control character`},
		{func(m *feature.Map) { m.Context[0].Name = "a\xff" }, "context: a name is no UTF-8"},
		{func(m *feature.Map) { m.Context[0].Name = "id" }, "context.id: is the name of the action's id"},
		{func(m *feature.Map) { m.Action[0].Name = "device" }, "action.device: is the name of another feature"},
		{func(m *feature.Map) { m.Action[1].Name = "topic" }, "action.topic: is the name of another feature"},
		{func(m *feature.Map) { m.Context[0].Values = []string{} }, "context.device.values: has 0"},
		{func(m *feature.Map) { m.Context[0].Values = nil }, "context.device: has no values, range or buckets"},
		{func(m *feature.Map) { m.Context[0].Values[1] = "phone" },
			`context.device.values[1]: "phone" is a value before`},
		{func(m *feature.Map) { m.Context[0].Values[1] = "" }, "context.device.values[1]: is empty"},
		{func(m *feature.Map) {
			m.Context[0].Values[1] = long
		}, "context.device.values[1]: is 2000 bytes long"},
		{func(m *feature.Map) { m.Context[0].Hi = 1 }, "context.device: has more than one of values, range"},
		{func(m *feature.Map) { m.Context[0].Clip = true }, "context.device.clip: is given without a range"},
		{func(m *feature.Map) { m.Context[0].Seed = 1 }, "context.device.seed: is given without buckets"},
		{func(m *feature.Map) { m.Context[1].Lo = 100 }, "context.user.age.range: is from 100 to 100"},
		{func(m *feature.Map) { m.Context[1].Lo = 200 }, "context.user.age.range: is from 200 to 100"},
		{func(m *feature.Map) { m.Context[1].Lo = math.NaN() }, "context.user.age.range: is from NaN to 100"},
		{func(m *feature.Map) { m.Context[1].Hi = math.Inf(1) }, "context.user.age.range: is from 0 to +Inf"},
		{func(m *feature.Map) { m.Context[1].Lo, m.Context[1].Hi = -math.MaxFloat64, math.MaxFloat64 },
			"context.user.age.range: is from -1.79"},
		{func(m *feature.Map) { m.Context[2].Buckets = 1 }, "context.user.city.buckets: is 1, must be from 2"},
		{func(m *feature.Map) { m.Context[2].Buckets = -1 }, "context.user.city.buckets: is -1"},
		{func(m *feature.Map) { m.Context[2].CrossOnly = false }, "context.user.city: has no values"},
		{func(m *feature.Map) { m.Cross = m.Cross[:2] }, "context.user.city: is for crosses only, and in none"},
		{func(m *feature.Map) { m.ID.Name = "x" }, "id: has a name or a range"},
		{func(m *feature.Map) { m.ID.Hi = 1 }, "id: has a name or a range"},
		{func(m *feature.Map) { m.ID.Buckets = 1025 }, "id.buckets: is 1025"},
		{func(m *feature.Map) { m.ID.Buckets = 1024 }, "id: makes the vector longer than 1024"},
		{func(m *feature.Map) { m.Cross[0].Of[1] = "device" }, `cross[0].of[1]: "device" is in it before`},
		{func(m *feature.Map) {
			m.Cross[0].Of[1] = "tropic"
		}, `cross[0].of[1]: "tropic" is no declared feature`},
		{func(m *feature.Map) {
			m.Cross[0].Of = m.Cross[0].Of[:1]
		}, "cross[0].of: has 1 features, must be from 2"},
		{func(m *feature.Map) { m.Cross[2].Buckets = 0 }, `cross[2].of[0]: "user.city" has no values`},
		{func(m *feature.Map) { m.Cross[2].Buckets = 1 }, "cross[2].buckets: is 1"},
		{func(m *feature.Map) { m.Cross[0].Seed = 1 }, "cross[0].seed: is given without buckets"},
		{func(m *feature.Map) { m.Cross[1].Of = []string{"user.age", "length"}; m.Cross[1].Buckets = 3 },
			"cross[1].buckets: is given, and the cross has no words"},
		{func(m *feature.Map) {
			m.Cross[1].Of = []string{"topic", "device"}
		}, "cross[1]: is cross[0] once more"},
		{func(m *feature.Map) { m.Cross[1].Of = slices.Repeat([]string{"topic"}, 9) }, "cross[1].of: has 9"},
		{func(m *feature.Map) {
			m.Context[2].Buckets, m.ID.Buckets = 500, 400
			m.Cross[2].Buckets, m.Cross[2].Seed = 0, 0
		}, "cross[2]: makes the vector longer"},
		{func(m *feature.Map) {
			m.Cross = slices.Repeat(m.Cross, 400)
		}, "context: with action and cross has 1205"},
	} {
		m := shop()
		c.of(&m)
		err := m.Check()
		var field *feature.Error
		if err == nil || !errors.Is(err, feature.ErrMap) || !errors.As(err, &field) ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
		if m.Dim() != 0 || m.Norm() != 0 {
			t.Errorf("%s: dim %d, norm %v", c.want, m.Dim(), m.Norm())
		}
	}
}

// What is wrong with features is an error that names the field, and the same one every time.
func TestFeatureErrors(t *testing.T) {
	long := strings.Repeat("x", 2000)
	deep := `1`
	for range 18 {
		deep = `{"a":` + deep + `}`
	}
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf(`"f%d":1`, i))
	}
	for _, c := range []struct{ context, action, want string }{
		{`{"device": "watch"}`, `{}`, `context.device: is "watch", must be phone, tablet, desktop`},
		{`{"device": 3}`, `{}`, `context.device: is "3", must be phone`},
		{`{"device": true}`, `{}`, `context.device: is "true", must be phone`},
		{`{"device": ["phone"]}`, `{}`, `context.device: is a list, must be a string`},
		{`{"device": {"kind": "phone"}}`, `{}`, `context.device.kind: is not declared`},
		{`{"device": "` + long + `"}`, `{}`, `context.device: is 2000 bytes long, must be at most 1024`},
		{`{"user.city": "` + long + `"}`, `{}`, `context.user.city: is 2000 bytes long`},
		{`{"user": {"age": "old"}}`, `{}`, `context.user.age: is "old", must be a number`},
		{`{"user": {"age": false}}`, `{}`, `context.user.age: is false, must be a number`},
		{`{"user": {"age": 101}}`, `{}`, `context.user.age: is 101, must be from 0 to 100`},
		{`{"user": {"age": -0.5}}`, `{}`, `context.user.age: is -0.5, must be from 0 to 100`},
		{`{"user": {"age": 5}, "user.age": 5}`, `{}`, `context.user.age: is given twice`},
		{`{"user": {"age": null}, "user.age": 5}`, `{}`, `context.user.age: is given twice`},
		{`{"colour": 5, "a": 1}`, `{}`, `context.a: is not declared`},
		{`{"topic": "news"}`, `{}`, `context.topic: is not declared`},
		{`{"` + long + `": 1}`, `{}`, `context."xxxxxxxx`},
		{deep, `{}`, `context.a.a.a.a.a.a`},
		{`{}`, `{"device": "phone"}`, `actions[1].device: is not declared`},
		{`{}`, `{"length": 1, "topic": "x", "zz": {}}`, `actions[1].topic: is "x", must be news, sport`},
		{`{}`, `{"id": "x"}`, `actions[1].id: is not declared`},
	} {
		p := compiled(t, shop())
		actions := []feature.Action{{ID: "ok"}, {ID: "b", Features: object(t, c.action)}}
		for range 20 {
			_, err := p.Vectors(nil, object(t, c.context), actions)
			var field *feature.Error
			if err == nil || !errors.Is(err, feature.ErrFeatures) || !errors.As(err, &field) ||
				!strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 300 {
				t.Fatalf("want %q, got %v", c.want, err)
			}
		}
	}
	p := compiled(t, shop())
	for _, c := range []struct {
		context map[string]any
		actions []feature.Action
		want    string
	}{
		{nil, nil, "actions: has 0, must be from 1 to 50"},
		{nil, make([]feature.Action, 51), "actions: has 51"},
		{nil, []feature.Action{{}}, "actions[0].id: is empty"},
		{nil, []feature.Action{{ID: long}}, "actions[0].id: is 2000 bytes"},
		{nil, []feature.Action{{ID: "a"}, {ID: "b"}, {ID: "a"}}, `actions[2].id: "a" is the id of actions[0]`},
		{map[string]any{"user.age": math.NaN()}, []feature.Action{{ID: "a"}}, "context.user.age: is NaN"},
		{map[string]any{"user.city": math.Inf(1)}, []feature.Action{{ID: "a"}}, "context.user.city: is +Inf"},
		{map[string]any{"device": struct{}{}}, []feature.Action{{ID: "a"}}, "context.device: is no string"},
	} {
		_, err := p.Vectors(nil, c.context, c.actions)
		if err == nil || !errors.Is(err, feature.ErrFeatures) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
	m := shop()
	m.ID = feature.Feature{Values: []string{"a"}}
	if _, err := compiled(t, m).Vectors(nil, nil, []feature.Action{{ID: "b"}}); err == nil ||
		err.Error() != `actions[0].id: is "b", must be a` {
		t.Error(err)
	}
	m.Ignore = true
	p = compiled(t, m)
	if _, err := p.Vectors(nil, object(t, "{"+strings.Join(many, ",")+"}"),
		[]feature.Action{{ID: "b"}}); err == nil ||
		!strings.Contains(err.Error(), "is one of more than 1000 features") {
		t.Error(err)
	}
	// What is ignored leaves its blocks 0.
	got, err := p.Vectors(nil, object(t, `{"device": "watch", "new": [1], "user": {"x": {"y": 1}}}`),
		[]feature.Action{{ID: "b", Features: object(t, `{"topic": "art"}`)}})
	if err != nil || got[0] == 0 || slices.ContainsFunc(got[1:], func(x float64) bool { return x != 0 }) {
		t.Error(got, err)
	}
}

// Numbers and booleans are words by their text, and −0 is 0.
func TestWords(t *testing.T) {
	p := compiled(t, feature.Map{Context: []feature.Feature{{Name: "c",
		Values: []string{"3", "2.5", "true", "0"}}},
		ID: feature.Feature{Buckets: 2}})
	for i, v := range []any{3., 2.5, true, math.Copysign(0, -1), 3, "3"} {
		got, err := p.Vectors(nil, map[string]any{"c": v}, []feature.Action{{ID: "a"}})
		if err != nil || got[1+[]int{0, 1, 2, 3, 0, 0}[i]] == 0 {
			t.Error(v, got, err)
		}
	}
}

// A norm is at most 1 whatever the number of blocks, in integers, and no larger unit would do.
func TestUnit(t *testing.T) {
	for n := 1; n < 1000; n += 1 + n/7 {
		m := feature.Map{}
		for i := range n - 1 {
			m.Context = append(m.Context, feature.Feature{Name: fmt.Sprint(i), Hi: 1})
		}
		p := compiled(t, m)
		context := map[string]any{}
		for _, f := range m.Context {
			context[f.Name] = 1.
		}
		got, err := p.Vectors(nil, context, []feature.Action{{ID: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		u := int64(got[0] * (1 << 20))
		for _, x := range got {
			if x != got[0] || x != float64(u)/(1<<20) {
				t.Fatalf("%d blocks: %v", n, got)
			}
		}
		if one := int64(1) << 40; int64(n)*u*u > one || int64(n)*(u+1)*(u+1) <= one {
			t.Errorf("%d blocks: a unit of %d", n, u)
		}
	}
}

func TestSteers(t *testing.T) {
	m := shop()
	if !m.Steers() {
		t.Error("a cross of both does not")
	}
	m.Cross = []feature.Cross{{Of: []string{"user.city", "id"}, Buckets: 9}}
	if !m.Steers() {
		t.Error("a cross with the id does not")
	}
	m.Cross = []feature.Cross{{Of: []string{"user.city", "device"}, Buckets: 9}}
	if m.Steers() {
		t.Error("a cross of the context alone does")
	}
}

// Anything that is mapped has a norm of at most 1 and is on the grid; a nested object is the same
// as a flat one; the order of declarations, of actions and of what else is asked does not matter.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		p, err := feature.New(m)
		if err != nil {
			t.Fatal(err)
		}
		context, actions := drawAsk(t, m)
		got, err := p.Vectors(nil, context, actions)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(actions)*p.Dim() || len(p.Names()) != p.Dim() {
			t.Fatalf("%d numbers, %d names, %d", len(got), len(p.Names()), p.Dim())
		}
		for i := range actions {
			var norm int64
			for _, x := range got[i*p.Dim():][:p.Dim()] {
				k := int64(x * (1 << 20))
				if float64(k) != x*(1<<20) || k < 0 {
					t.Fatalf("%v is not on the grid", x)
				}
				norm += k * k
			}
			if norm > 1<<40 {
				t.Fatalf("‖a‖² is %d/2^40", norm)
			}
		}
		other := m
		other.Context = rapid.Permutation(m.Context).Draw(t, "context order")
		other.Action = rapid.Permutation(m.Action).Draw(t, "action order")
		at := rapid.IntRange(0, len(actions)-1).Draw(t, "action")
		alone, err := compiledOf(t, other).Vectors(got[:0:0], nested(context), []feature.Action{
			{ID: actions[at].ID, Features: nested(actions[at].Features)}})
		if err != nil || !slices.Equal(alone, got[at*p.Dim():][:p.Dim()]) {
			t.Fatalf("nested and alone: %v, %v; %v", alone, got, err)
		}
		merged, err := feature.Merge([]map[string]any{{"user": map[string]any{"age": -1.}}, nested(context)})
		if _, given := context["user.age"]; !given {
			delete(merged, "user.age")
		}
		again, err2 := p.Vectors(nil, merged, actions)
		if err != nil || err2 != nil || !slices.Equal(again, got) {
			t.Fatalf("merged: %v; %v, %v", merged, err, err2)
		}
	})
}

func compiledOf(t *rapid.T, m feature.Map) *feature.Mapper {
	p, err := feature.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drawMap draws part of shop with other sizes.
func drawMap(t *rapid.T) feature.Map {
	m := shop()
	m.ID.Buckets = rapid.IntRange(2, 20).Draw(t, "id")
	m.Context[1].Hi = rapid.Float64Range(1e-9, 1e9).Draw(t, "hi")
	m.Context[0].CrossOnly = rapid.Bool().Draw(t, "cross only")
	if n := rapid.IntRange(0, 5).Draw(t, "more"); n > 0 {
		m.Cross = append(m.Cross, feature.Cross{Of: []string{"length", "user.age", "id",
			"device"}[:max(2, n-1)]})
	}
	return m
}

func drawAsk(t *rapid.T, m feature.Map) (context map[string]any, actions []feature.Action) {
	context = map[string]any{}
	word := rapid.SampledFrom([]string{"phone", "tablet", "desktop"})
	if rapid.Bool().Draw(t, "has device") {
		context["device"] = word.Draw(t, "device")
	}
	if rapid.Bool().Draw(t, "has age") {
		context["user.age"] = rapid.Float64Range(0, m.Context[1].Hi).Draw(t, "age")
	}
	if rapid.Bool().Draw(t, "has city") {
		context["user.city"] = rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true),
			rapid.Map(rapid.Float64Range(-9, 9), func(x float64) any { return x }),
			rapid.Map(rapid.String(), func(x string) any { return x })).Draw(t, "city")
	}
	for i := range rapid.IntRange(1, 9).Draw(t, "actions") {
		f := map[string]any{}
		if rapid.Bool().Draw(t, "has length") {
			f["length"] = rapid.Float64Range(-20, 20).Draw(t, "length")
		}
		if rapid.Bool().Draw(t, "has topic") {
			f["topic"] = rapid.SampledFrom([]string{"news", "sport"}).Draw(t, "topic")
		}
		actions = append(actions, feature.Action{ID: fmt.Sprint("action", i), Features: f})
	}
	return context, actions
}

// nested makes objects of dotted names.
func nested(flat map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range flat {
		if of, rest, dotted := strings.Cut(name, "."); dotted {
			if out[of] == nil {
				out[of] = map[string]any{}
			}
			out[of].(map[string]any)[rest] = v
		} else {
			out[name] = v
		}
	}
	return out
}

func TestMerge(t *testing.T) {
	var list []map[string]any
	if err := json.Unmarshal([]byte(`[{"time": "morning", "user": {"age": 3, "home": {"city": "Rome"}}},
		null, {}, {"user": {"age": 4}, "tags": [1, 2], "user.home.city": null}]`), &list); err != nil {
		t.Fatal(err)
	}
	got, err := feature.Merge(list)
	text, _ := json.Marshal(got)
	if want := `{"tags":[1,2],"time":"morning","user.age":4,"user.home.city":null}`; err != nil ||
		string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if got, err := feature.Merge(nil); err != nil || got == nil || len(got) != 0 {
		t.Error(got, err)
	}
	many := map[string]any{}
	for i := range 1001 {
		many[fmt.Sprint(i)] = 1.
	}
	deep := map[string]any{}
	for range 20 {
		deep = map[string]any{"a": deep}
	}
	for want, list := range map[string][]map[string]any{
		"[1]: a.b is given twice":             {{}, {"a.b": 1., "a": map[string]any{"b": 2.}}},
		"[0]: makes more than 1000 features":  {many},
		"[0]: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.": {deep},
	} {
		if _, err := feature.Merge(list); err == nil || !errors.Is(err, feature.ErrFeatures) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Whatever JSON is given, it is mapped to vectors of norm at most 1 or refused, the same each time.
func FuzzVectors(f *testing.F) {
	f.Add(`[{"device": "phone"}, {"user": {"age": 3}}]`, `[{"topic": "news"}]`, false)
	f.Add(`[{"device": "watch", "x": [1, {"y": null}]}]`, `[{"length": 1e300}, null]`, true)
	f.Add(`[{"user": {"city": -0.0}, "user.city": true}]`, `[{"": {"": 1}}]`, true)
	f.Fuzz(func(t *testing.T, context, action string, ignore bool) {
		var of, on []map[string]any
		if json.Unmarshal([]byte(context), &of) != nil || json.Unmarshal([]byte(action), &on) != nil {
			return
		}
		m := shop()
		m.Ignore = ignore
		p := compiled(t, m)
		one, err := feature.Merge(of)
		other, err2 := feature.Merge(on)
		if err != nil || err2 != nil {
			return
		}
		got, err := p.Vectors(nil, one, []feature.Action{{ID: "a", Features: other}})
		again, err2 := p.Vectors(nil, one, []feature.Action{{ID: "a", Features: other}})
		if fmt.Sprint(err) != fmt.Sprint(err2) || !slices.Equal(got, again) {
			t.Fatalf("%v, %v", err, err2)
		}
		if err != nil {
			if len(err.Error()) > 1000 || !errors.Is(err, feature.ErrFeatures) {
				t.Fatal(err)
			}
			return
		}
		var norm float64
		for _, x := range got {
			norm += x * x
		}
		if !(norm <= 1) || len(got) != p.Dim() {
			t.Fatal(norm, got)
		}
	})
}

// The mapper is one for all goroutines, and allocates nothing.
func TestNoAllocation(t *testing.T) {
	if testkit.Race {
		t.Skip("a sync.Pool drops things at random under the race detector")
	}
	p, context, actions := rank(t)
	dst := make([]float64, len(actions)*p.Dim())
	if n := testing.AllocsPerRun(100, func() {
		if _, err := p.Vectors(dst, context, actions); err != nil {
			t.Fatal(err)
		}
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// rank is a decision among 50 actions with vectors of 20 components.
func rank(t testing.TB) (*feature.Mapper, map[string]any, []feature.Action) {
	p := compiled(t, feature.Map{
		Context: []feature.Feature{{Name: "device", Values: []string{"phone", "tablet", "desktop"}},
			{Name: "user.age", Lo: 0, Hi: 100}},
		Action: []feature.Feature{{Name: "topic", Values: []string{"news", "sport"}},
			{Name: "length", Hi: 3000}},
		Cross: []feature.Cross{{Of: []string{"device", "topic"}},
			{Of: []string{"user.age", "id"}, Buckets: 6}},
	})
	if p.Dim() != 20 {
		t.Fatalf("dim is %d", p.Dim())
	}
	var actions []feature.Action
	for i := range 50 {
		actions = append(actions, feature.Action{ID: fmt.Sprintf("article-%d", i), Features: map[string]any{
			"topic": []string{"news", "sport"}[i%2], "length": float64(i * 50)}})
	}
	return p, map[string]any{"device": "tablet", "user": map[string]any{"age": 37.}}, actions
}

func BenchmarkVectors(b *testing.B) {
	p, context, actions := rank(b)
	dst := make([]float64, len(actions)*p.Dim())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Vectors(dst, context, actions); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleMapper_Vectors() {
	p, err := feature.New(feature.Map{
		Context: []feature.Feature{{Name: "device", Values: []string{"phone", "desktop"}, CrossOnly: true}},
		Action:  []feature.Feature{{Name: "topic", Values: []string{"news", "sport"}}, {Name: "price", Hi: 10}},
		Cross:   []feature.Cross{{Of: []string{"device", "topic"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	vectors, err := p.Vectors(nil, map[string]any{"device": "phone"}, []feature.Action{
		{ID: "a", Features: map[string]any{"topic": "sport", "price": 5.}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, name := range p.Names() {
		fmt.Printf("%-28s %.3f\n", name, vectors[i])
	}
	_, err = p.Vectors(nil, map[string]any{"device": "watch"}, []feature.Action{{ID: "a"}})
	fmt.Println(err)
	// Output:
	// intercept                    0.500
	// price                        0.250
	// topic=news                   0.000
	// topic=sport                  0.500
	// device=phone × topic=news    0.000
	// device=phone × topic=sport   0.500
	// device=desktop × topic=news  0.000
	// device=desktop × topic=sport 0.000
	// context.device: is "watch", must be phone, desktop
}
