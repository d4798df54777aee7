package locktest

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
)

// Rule 37 comes first: a wait that is not durably blocking hangs every bubble.
var synctestRule = rule{37, "synctest", []check{
	{"waits_are_durable", bubble, func(k *kit) {
		a := k.start(k.ctx, k.key("a"))
		b := k.start(k.ctx, k.key("a"))
		k.settle() // it hangs here if it is not
		for _, c := range []*call{a.open(), b.open()} {
			if !k.closes(c.over) {
				k.fail("in a bubble the call %v for ever", c)
			}
		}
	}},
}}

var exclusionRule = rule{1, "exclusion", []check{
	{"two", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		k.held(k.key("a"))
		k.waits(b)
		a.open()
		k.served(a)
		k.runs(b)
		k.held(k.key("a"))
		b.open()
		k.served(b)
		k.free(k.key("a"))
	}},
	{"many", 0, func(k *kit) { k.crowd(0) }},
	{"many_with_shared", shared, func(k *kit) { k.crowd(3) }},
	{"until_fn_ends", 0, func(k *kit) {
		fnEnds := make(chan struct{})
		a := k.startThen(k.ctx, k.key("a"), func(context.Context) error { close(fnEnds); return nil })
		k.runs(a)
		b := k.startThen(k.ctx, k.key("a"), func(context.Context) error {
			if !isClosed(fnEnds) {
				k.fail("the second fn ran before the first had returned")
			}
			return nil
		}).open()
		k.waits(b)
		a.open()
		k.served(a)
		k.served(b)
	}},
	{"equal_spellings", 0, equalSpellings},
}}

// crowd has many callers meet on one key; every shared'th call is Shared.
func (k *kit) crowd(shared int) {
	var in inside
	const callers, turns = 8, 20
	served := new(guarded[int])
	k.parallel(callers, func(i int) {
		for turn := range turns {
			var opts []processlock.Option
			isShared := shared > 0 && (i+turn)%shared == 0
			if isShared {
				opts = append(opts, processlock.Shared)
			}
			err := k.l.WithLock(k.ctx, k.key("a"), func(context.Context) error {
				defer in.enter(isShared)()
				runtime.Gosched()
				return nil
			}, opts...)
			if err != nil {
				k.fail("a caller got %v", err)
				return
			}
			served.add(i)
		}
	})
	if in.broken.Load() {
		k.fail("an exclusive holder was not alone")
	}
	if n := len(served.all()); n != callers*turns {
		k.fail("%d calls of %d were served", n, callers*turns)
	}
	k.free(k.key("a"))
}

var keysRule = rule{2, "keys", []check{
	{"never_wait_for_each_other", 0, func(k *kit) {
		k.hold(k.key("a"))
		k.waits(k.start(k.ctx, k.key("a")))
		b := k.hold(k.key("b")).open()
		k.served(b)
	}},
	{"many_held_at_once", 0, func(k *kit) {
		for i := range 32 {
			k.hold([]any{k.key("many"), i})
		}
		for _, c := range k.made() {
			c.open()
			k.served(c)
		}
	}},
	{"any_number_nested", 0, func(k *kit) {
		depth := 0
		var nest func(ctx context.Context) error
		nest = func(ctx context.Context) error {
			if depth++; depth == 20 {
				return nil
			}
			return k.l.WithLock(ctx, []any{k.key("deep"), depth}, nest)
		}
		k.served(k.do(k.ctx, []any{k.key("deep"), 0}, nest))
		k.free([]any{k.key("deep"), 0}, []any{k.key("deep"), 10})
	}},
	{"alike_are_different", 0, func(k *kit) {
		for _, pair := range lookAlikes {
			a := k.hold(pair[0])
			k.hold(pair[1]).open()
			a.open()
			k.served(a)
		}
	}},
}}

// lookAlikes are pairs of different keys that a careless text of keys takes for
// one.
var lookAlikes = [][2]any{
	{1, "1"}, {nil, ""}, {nil, "null"}, {true, "true"}, {"", []any{}},
	{[]any{"a", "b"}, "a b"}, {[]any{"a", "b"}, "[a b]"}, {[]any{"a b"}, []any{"a", "b"}},
	{[]any{"a", []any{"b"}}, []any{"a", "b"}}, {[]any{"invoice", 7}, "invoice_7"},
	{[]any{"a", "b"}, "a\x00b"}, {"abc", "abc\x00def"}, {[]any{1, "2"}, []any{"1", 2}},
	{"\xff", "\ufffd"}, {"\u00e9", "e\u0301"}, {[]byte("a"), "a"}, {0.5, "0.5"},
	{map[string]int{"a": 1}, []any{"a", 1}}, {time.Unix(1, 0), time.Unix(1, 1000000)},
	{uint64(1<<63 + 1), uint64(1 << 63)},
}

// equalSpellings holds a key in one spelling and asks for it in another.
func equalSpellings(k *kit) {
	seven := 7
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	type text string
	prebuilt, err := processlock.KeyOf("invoice", 7)
	if err != nil {
		k.fatal("KeyOf: %v", err)
	}
	for _, pair := range [][2]any{
		{7, uint8(7)}, {7, 7.0}, {7, &seven}, {"a", text("a")}, {"a", []any{"a"}}, {"a", []string{"a"}},
		{[]any{"invoice", 7}, prebuilt}, {[]any{"a", "b"}, [2]string{"a", "b"}},
		{at, at.In(time.FixedZone("elsewhere", 3600))},
		{map[string]int{"a": 1, "b": 2}, struct {
			B int `json:"b"`
			A int `json:"a"`
		}{2, 1}},
		{nil, (*int)(nil)}, {[]any{}, []int{}},
	} {
		a := k.hold(pair[0])
		if err := k.try(pair[1]); !unavailable(err) {
			k.fail("%#v and %#v are one key, but with the one held a try on the other returned %v", pair[0], pair[1], err)
		}
		a.open()
		k.served(a)
	}
}

var goroutineRule = rule{6, "goroutine", []check{
	{"caller_runs_fn", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		a.open()
		k.served(a)
		k.runs(b).open()
		k.served(b)
		for _, c := range []*call{a, b} {
			if c.caller != c.inside {
				k.fail("called on %s, fn ran on %s", c.caller, c.inside)
			}
		}
	}},
	{"caller_runs_fn_of_all", all, func(k *kit) {
		c := k.hold(processlock.All(k.key("a"), k.key("b"))).open()
		k.served(c)
		if c.caller != c.inside {
			k.fail("called on %s, fn ran on %s", c.caller, c.inside)
		}
	}},
}}

// The race detector, if it is on, finds here what the counts don't show.
var memoryRule = rule{7, "memory_model", []check{
	{"exclusive_sees_exclusive", 0, func(k *kit) {
		plain := 0
		k.parallel(8, func(int) {
			for range 20 {
				if err := k.l.WithLock(k.ctx, k.key("a"), func(context.Context) error { plain++; return nil }); err != nil {
					k.fail("a caller got %v", err)
					return
				}
			}
		})
		if plain != 8*20 {
			k.fail("a plain variable was counted to %d under the lock, not to %d", plain, 8*20)
		}
	}},
	{"exclusive_and_shared", shared, func(k *kit) {
		var once sync.Once
		plain, writes := [2]int{}, 0
		k.parallel(8, func(i int) {
			for range 20 {
				var err error
				if i%2 == 0 {
					err = k.l.WithLock(k.ctx, k.key("a"), func(context.Context) error {
						plain[0]++
						plain[1]++
						writes++
						return nil
					})
				} else {
					err = k.l.WithLock(k.ctx, k.key("a"), func(context.Context) error {
						if plain[0] != plain[1] {
							once.Do(func() { k.fail("a shared holder saw half of what an exclusive one wrote") })
						}
						return nil
					}, processlock.Shared)
				}
				if err != nil {
					k.fail("a caller got %v", err)
					return
				}
			}
		})
		if writes != 4*20 {
			k.fail("%d writes under the lock, not %d", writes, 4*20)
		}
	}},
	{"caller_sees_fn", 0, func(k *kit) {
		plain := 0
		k.served(k.do(k.ctx, k.key("a"), func(context.Context) error { plain++; return nil }))
		if plain != 1 {
			k.fail("what fn wrote is not there when the call is over")
		}
	}},
}}
