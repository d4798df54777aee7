package lockdebug_test

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// busy fills a scene with everything that a row can show.
func busy(s *scene) {
	s.ask("alice", []any{"a"})
	time.Sleep(90 * time.Second)
	s.ask("bob", []any{"b", "a"})
	time.Sleep(1500 * time.Millisecond)
	s.ask("carol", []any{[]any{"c", 1}, "b"})
	s.ask("", []any{"a"}) // a client without a name
	for i := range 9 {
		time.Sleep(time.Duration(i) * 37 * time.Millisecond)
		s.ask(fmt.Sprint("reader-", i), []any{"s"}, processlock.Shared)
	}
	s.ask("writer", []any{"s"})
	time.Sleep(time.Microsecond)
	s.ask("late", []any{"s"}, processlock.Shared)
	for i := range 60 {
		s.ask(fmt.Sprint("crowd-", i), []any{"crowd"})
	}
	time.Sleep(12345 * time.Microsecond)
	s.ask("many", []any{processlock.All("free-1", "free-2", "a")})
	s.ask("idle", []any{map[string]int{"n": 7}})
	// Of each counter another number.
	_ = s.WithLock(s.Context(), "a", nothing, processlock.IfAvailable)
	for range 2 {
		ctx, cancel := context.WithTimeout(s.Context(), time.Millisecond)
		_ = s.WithLock(ctx, "a", nothing)
		cancel()
	}
	for range 3 {
		_ = s.WithLock(s.Context(), "own", func(ctx context.Context) error { return s.WithLock(ctx, "own", nothing) })
	}
	ctx, client := s.WithClient(s.Context(), "lost")
	_ = s.WithLock(ctx, processlock.All(1, 2, 3, 4), func(context.Context) error { client.Close(); return nil })
	ctx, client = s.WithClient(s.Context(), "closed")
	for range 5 {
		go func() { _ = s.WithLock(ctx, "a", nothing) }()
	}
	synctest.Wait()
	client.Close()
	synctest.Wait()
}

// Rules 39 to 41: the page and the JSON say the same, and what Snapshot and
// Stats say.
func TestFormsAgree(t *testing.T) {
	for _, track := range []bool{false, true} {
		for _, filter := range []string{"", "c", "A", "nothing like this"} {
			t.Run(fmt.Sprintf("track=%t/filter=%q", track, filter), func(t *testing.T) {
				play(t, processlock.Options{TrackHolds: track}, func(t *testing.T, s *scene) {
					busy(s)
					doc, page := s.json("&key="+strings.ReplaceAll(filter, " ", "+")), s.html("key="+strings.ReplaceAll(filter, " ", "+"))
					compareSnapshot(s, doc, filter)
					compareTotals(s, doc, page)
					compareTable(s, doc, page)
					compareChains(s, doc, page)
				})
			})
		}
	}
}

func compareSnapshot(s *scene, doc document, filter string) {
	snap, stats := s.Snapshot(), s.Stats()
	require.True(s, snap.Taken.Equal(doc.Taken))
	require.Equal(s, filter, doc.Filter)
	require.Equal(s, len(snap.Locks), doc.Now.Keys)
	require.EqualValues(s, stats.Held, doc.Now.Holders)
	require.EqualValues(s, stats.Waiting, doc.Now.Waiters)
	require.EqualValues(s, stats.Acquired, doc.Counters.Acquired)
	require.EqualValues(s, stats.Waited, doc.Counters.Waited)
	require.Equal(s, []int64{1, 2, 3, 4, 5}, []int64{stats.Unavailable, stats.Canceled, stats.Deadlocks, stats.Lost, stats.Closed})
	n := doc.Counters
	require.Equal(s, []int{1, 2, 3, 4, 5}, []int{n.Unavailable, n.Canceled, n.Deadlocks, n.Lost, n.Closed})
	require.Equal(s, stats.WaitDuration.Seconds(), doc.Counters.WaitTime)

	states := map[string]processlock.LockState{}
	matching := 0
	for _, l := range snap.Locks {
		states[l.Key.String()] = l
		if strings.Contains(strings.ToLower(l.Key.String()), strings.ToLower(filter)) {
			matching++
		}
	}
	require.Equal(s, matching, doc.Matching)
	require.Len(s, doc.Keys, matching)
	for _, k := range doc.Keys {
		l := states[k.Key]
		require.Len(s, l.Holders, len(k.Holders)+k.HoldersCut)
		require.Len(s, l.Waiters, len(k.Waiters)+k.WaitersCut)
		for i, h := range k.Holders {
			want := l.Holders[i]
			require.Equal(s, []any{want.Client, want.Func, want.File, want.Line, want.Mode.String(), want.Running},
				[]any{h.Client, h.Func, h.File, h.Line, h.Mode, *h.Running})
			require.Equal(s, want.Since.IsZero(), h.Since == nil)
			require.Equal(s, h.Since == nil, h.Held == nil, "a hold has a time and a duration or neither")
			if h.Since != nil {
				require.True(s, want.Since.Equal(*h.Since))
				require.Equal(s, snap.Taken.Sub(want.Since).Seconds(), *h.Held)
			}
		}
		for i, w := range k.Waiters {
			want := l.Waiters[i]
			require.Equal(s, []any{want.Client, want.Func, want.File, want.Line, want.Mode.String(), i + 1},
				[]any{w.Client, w.Func, w.File, w.Line, w.Mode, w.Position})
			require.True(s, want.Since.Equal(*w.Since))
			require.Equal(s, snap.Taken.Sub(want.Since).Seconds(), *w.Waited)
			require.Len(s, want.Holding, len(w.Holding))
			for j, held := range w.Holding {
				require.Equal(s, want.Holding[j].String(), held.Key)
			}
		}
	}
}

func compareTotals(s *scene, doc document, page *element) {
	totals := page.one(s.T, with("id", "totals"))
	for name, want := range map[string]int{
		"keys": doc.Now.Keys, "holders": doc.Now.Holders, "waiters": doc.Now.Waiters,
		"acquired": doc.Counters.Acquired, "waited": doc.Counters.Waited, "canceled": doc.Counters.Canceled,
		"unavailable": doc.Counters.Unavailable, "deadlocks": doc.Counters.Deadlocks, "closed": doc.Counters.Closed, "lost": doc.Counters.Lost,
	} {
		require.Equal(s, strconv.Itoa(want), totals.one(s.T, with("data-n", name)).text(), name)
	}
	spans := totals.all(has("data-seconds"))
	require.Len(s, spans, 3)
	require.Equal(s, seconds(doc.Now.LongestWait), spans[0].Attr["data-seconds"])
	require.Equal(s, seconds(doc.Now.LongestHold), spans[1].Attr["data-seconds"])
	require.Equal(s, seconds(&doc.Counters.WaitTime), spans[2].Attr["data-seconds"])
}

// seconds is a span as the page has it.
func seconds(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func compareTable(s *scene, doc document, page *element) {
	rows := page.all(has("data-id"))
	rows = filterName(rows, "tr")
	require.Len(s, rows, len(doc.Keys))
	for i, k := range doc.Keys {
		row := rows[i]
		require.Equal(s, k.ID, row.Attr["data-id"])
		require.Equal(s, k.Key, row.one(s.T, with("class", "key")).text())
		head := row.one(s.T, named("th"))
		require.Equal(s, "row", head.Attr["scope"])
		require.Equal(s, "rowheader", head.Attr["role"])
		cells := filterName(row.Children, "td")
		require.Len(s, cells, 3)
		wait := ""
		for _, e := range cells[0].all(has("data-seconds")) {
			wait = e.Attr["data-seconds"]
		}
		require.Equal(s, seconds(k.LongestWait), wait)
		comparePeople(s, k.Holders, cells[1])
		comparePeople(s, k.Waiters, cells[2])
		require.Equal(s, cutOf(k.HoldersCut), attrOf(cells[1], "data-holders-cut"))
		require.Equal(s, cutOf(k.WaitersCut), attrOf(cells[2], "data-waiters-cut"))
	}
	if len(rows) > 0 {
		table := page.one(s.T, named("table"))
		require.Len(s, table.all(named("caption")), 1)
		require.Len(s, table.all(with("scope", "col")), 4)
		span := page.one(s.T, has("data-matching"))
		require.Equal(s, strconv.Itoa(doc.Matching), span.Attr["data-matching"])
		require.Equal(s, strconv.Itoa(doc.Cut), span.Attr["data-cut"])
	}
}

func comparePeople(s *scene, want []person, cell *element) {
	people := cell.all(with("class", "person"))
	require.Len(s, people, len(want))
	for i, w := range want {
		p := people[i]
		client := ""
		for _, e := range p.all(with("class", "client")) {
			client += e.text()
		}
		require.Equal(s, w.Client, client)
		require.Equal(s, w.Func, p.one(s.T, with("class", "func")).Attr["title"])
		where := ""
		if w.File != "" {
			where = w.File + ":" + strconv.Itoa(w.Line)
			require.Equal(s, path.Base(where), p.one(s.T, with("class", "place")).text())
		}
		require.Equal(s, where, attrOf(p, "title", "place"))
		tags := ""
		for _, e := range p.all(with("class", "tag")) {
			tags += e.text()
		}
		require.Equal(s, w.Mode == "shared", strings.Contains(tags, "shared"))
		require.Equal(s, w.Running != nil && !*w.Running, strings.Contains(tags, "not running"))
		lasted := w.Held
		if w.Waited != nil {
			lasted = w.Waited
		}
		age := p.one(s.T, with("class", "age"))
		require.Equal(s, seconds(lasted), age.Attr["data-seconds"])
		require.Equal(s, lasted == nil, age.text() == "unknown")
		if w.Since != nil {
			require.Equal(s, w.Since.Format("2006-01-02T15:04:05.000Z"), age.Attr["datetime"])
		}
		held := p.all(has("data-id"))
		require.Len(s, held, len(w.Holding))
		for j, h := range w.Holding {
			require.Equal(s, h, name{held[j].text(), held[j].Attr["data-id"]})
		}
	}
}

func compareChains(s *scene, doc document, page *element) {
	figures := page.all(named("figure"))
	require.Len(s, figures, len(doc.Chains))
	for i, c := range doc.Chains {
		f := figures[i]
		require.Equal(s, strconv.FormatBool(c.Prone), f.Attr["data-prone"])
		require.Equal(s, strconv.Itoa(c.Waiters), f.Attr["data-waiters"])
		require.Equal(s, strconv.Itoa(len(c.Keys)+c.KeysCut), f.Attr["data-keys"])
		require.Equal(s, seconds(c.LongestWait), f.Attr["data-seconds"])
		require.Equal(s, "chain-"+c.Keys[0].ID, f.Attr["id"])
		caption := f.one(s.T, named("figcaption")).text()
		for _, r := range c.Roots {
			require.Contains(s, caption, r.Key)
		}
	}
}

func filterName(elements []*element, name string) []*element {
	var found []*element
	for _, e := range elements {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// attrOf is the attribute of the one below e that has it, of those of a class
// if one is given.
func attrOf(e *element, attr string, class ...string) string {
	value := ""
	for _, c := range e.all(has(attr)) {
		if len(class) == 0 || with("class", class[0])(c) {
			value += c.Attr[attr]
		}
	}
	return value
}

func cutOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
