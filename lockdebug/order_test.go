package lockdebug_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A stuck key is at the top however many others are busy: the longest wait
// comes first, then the longest hold, then what isn't known.
func TestOrder(t *testing.T) {
	play(t, processlock.Options{TrackHolds: true}, func(t *testing.T, s *scene) {
		s.ask("h", []any{"idle, held first"})
		time.Sleep(time.Second)
		s.ask("h", []any{"idle, held next"})
		s.ask("h", []any{"busy"})
		s.ask("h", []any{"stuck"})
		s.ask("h", []any{"also stuck"})
		s.ask("w", []any{"stuck"})
		time.Sleep(time.Nanosecond)
		s.ask("w", []any{"also stuck"})
		time.Sleep(time.Minute)
		s.ask("w", []any{"busy"})
		s.ask("w", []any{"busy"})
		require.Equal(t, []string{
			`["stuck"]`, `["also stuck"]`, `["busy"]`, `["idle, held first"]`, `["idle, held next"]`,
		}, s.json("").keys())
	})
}

func TestOrderOfEqualsIsThatOfTheSnapshot(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		for _, key := range []any{"b", "a", 10, 9, []any{"a", 1}} {
			s.ask("h", []any{key})
		}
		want := []string{}
		for _, l := range s.Snapshot().Locks {
			want = append(want, l.Key.String())
		}
		doc := s.json("")
		require.Equal(t, want, doc.keys())
		require.Equal(t, 5, doc.Now.Unknown)
		require.Nil(t, doc.Now.LongestHold)
		require.Contains(t, s.get("/").Body.String(), "Since when is unknown of 5 holders")
	})
}

// Waiters are in queue order and numbered, shared holders in order of their
// grants.
func TestOrderOfPeople(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		for _, client := range []string{"r2", "r1", "r3"} {
			s.ask(client, []any{"k"}, processlock.Shared)
		}
		for _, client := range []string{"z", "a", "m", "b"} {
			s.ask(client, []any{"k"})
			time.Sleep(time.Millisecond)
		}
		k := s.json("").Keys[0]
		names := func(people []person) (names []string) {
			for _, p := range people {
				names = append(names, p.Client)
			}
			return names
		}
		require.Equal(t, []string{"r2", "r1", "r3"}, names(k.Holders))
		require.Equal(t, []string{"z", "a", "m", "b"}, names(k.Waiters))
		require.Equal(t, 0.004, *k.LongestWait)
	})
}

// A request of All that has some of its keys is seen as their holder that does
// not run, and as a waiter that holds them.
func TestAllThatWaits(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("first", []any{"b"})
		s.ask("all", []any{processlock.All("a", "b", "c")})
		doc := s.json("")
		require.Equal(t, []string{`["b"]`, `["a"]`}, doc.keys())
		require.Equal(t, `["a"]`, doc.Keys[0].Waiters[0].Holding[0].Key)
		require.True(t, *doc.Keys[0].Holders[0].Running)
		require.False(t, *doc.Keys[1].Holders[0].Running)
		require.Equal(t, 1, len(doc.Chains))
		require.True(t, doc.Chains[0].Prone)
	})
}

// The totals lead to the keys with the longest wait and hold.
func TestTotalsLeadToTheWorst(t *testing.T) {
	play(t, processlock.Options{TrackHolds: true}, func(t *testing.T, s *scene) {
		s.ask("h", []any{"held the longest"})
		time.Sleep(time.Second)
		s.ask("h", []any{"waited for the longest"})
		s.ask("w", []any{"waited for the longest"})
		time.Sleep(time.Second)
		page := s.html("")
		links := page.one(t, with("id", "totals")).all(named("a"))
		require.Len(t, links, 2)
		for i, want := range []string{`["waited for the longest"]`, `["held the longest"]`} {
			require.Equal(t, want, links[i].text())
			row := page.one(t, with("id", links[i].Attr["href"][1:]))
			require.Equal(t, want, row.one(t, with("class", "key")).text())
		}
	})
}

// A key that is held the longest is named where others that are waited for, or
// a filter, keep it from being listed.
func TestTotalsNameWhatIsNotListed(t *testing.T) {
	play(t, processlock.Options{TrackHolds: true}, func(t *testing.T, s *scene) {
		s.ask("h", []any{"held the longest"})
		time.Sleep(time.Minute)
		for i := range 200 {
			s.ask("h", []any{i})
			s.ask("w", []any{i})
		}
		for _, query := range []string{"", "refresh=10&key=199"} {
			doc := s.json("&" + query)
			require.NotContains(t, doc.keys(), `["held the longest"]`)
			require.Equal(t, `["held the longest"]`, doc.Now.HoldKey.Key)
			link := s.html(query).one(t, with("id", "totals")).all(named("a"))[1]
			require.Equal(t, doc.Now.HoldKey.Key, link.text())
			require.Equal(t, []string{doc.Now.HoldKey.Key}, s.json("&"+strings.TrimPrefix(link.Attr["href"], "?")).keys())
			require.Equal(t, strings.Contains(query, "refresh"), strings.Contains(link.Attr["href"], "refresh=10"))
		}
		require.Contains(t, s.get("/?format=text").Body.String(), `longest hold 1 m 0 s of ["held the longest"]`)
	})
}
