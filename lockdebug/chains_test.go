package lockdebug_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// chainsOf are the chains as lists of their keys.
func chainsOf(d document) (chains [][]string) {
	for _, c := range d.Chains {
		chains = append(chains, texts(c.Keys))
	}
	return chains
}

func texts(names []name) (texts []string) {
	for _, n := range names {
		texts = append(texts, n.Key)
	}
	return texts
}

// Chains in which a waiter holds a key come first, however long others wait;
// each names the keys at its head, whose holders don't wait.
func TestChains(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("w0", []any{"long"})
		s.ask("w1", []any{"long"})
		time.Sleep(time.Minute)
		s.ask("a", []any{"1"})
		s.ask("b", []any{"2", "1"}) // holds 2, waits for 1
		time.Sleep(time.Second)
		s.ask("c", []any{"3", "2"})
		s.ask("d", []any{"3"})
		s.ask("e", []any{"x"})
		s.ask("f", []any{"y", "x"}) // nobody waits for y
		time.Sleep(time.Second)

		doc := s.json("")
		require.Equal(t, [][]string{{`["1"]`, `["2"]`, `["3"]`}, {`["x"]`}, {`["long"]`}}, chainsOf(doc))
		require.Equal(t, []string{`["1"]`}, texts(doc.Chains[0].Roots))
		require.Equal(t, 3, doc.Chains[0].Waiters)
		require.Equal(t, 2.0, *doc.Chains[0].LongestWait)
		require.Equal(t, []bool{true, true, false}, []bool{doc.Chains[0].Prone, doc.Chains[1].Prone, doc.Chains[2].Prone})
		require.Equal(t, `["long"]`, doc.Keys[0].Key, "the table is by wait alone")

		// The filter takes a chain whole.
		require.Equal(t, [][]string{{`["1"]`, `["2"]`, `["3"]`}}, chainsOf(s.json("&key=3")))
		require.Equal(t, []string{`["3"]`}, s.json("&key=3").keys())

		figures := s.html("").all(named("figure"))
		require.Len(t, figures, 3)
		require.Equal(t, []string{`["1"]`, `["2"]`, `["3"]`}, tabs(figures[0]))
		require.Equal(t, []string{`["x"]`, `["y"]`}, tabs(figures[1]))
		require.Len(t, figures[0].all(with("class", "edge")), 3, "an arrow for each that waits")
		require.Len(t, figures[0].all(with("class", "head")), 1)
		require.Equal(t, figures[0].one(t, named("figcaption")).text(), `chain of 3 keys 3 waiting behind ["1"], the longest for 2.0 s`)
	})
}

// tabs are the keys in a drawing, in order.
func tabs(figure *element) (keys []string) {
	for _, e := range figure.all(with("class", "tab")) {
		for _, t := range e.all(with("class", "key")) {
			keys = append(keys, t.text())
		}
	}
	return keys
}

// A key that two waiters hold, shared, hangs below the first and is named at
// the second.
func TestChainsMeet(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("a", []any{"left"})
		s.ask("a", []any{"right"})
		s.ask("l", []any{"both", "left"}, processlock.Shared)
		s.ask("r", []any{"both", "right"}, processlock.Shared)
		s.ask("w", []any{"both"})
		doc := s.json("")
		require.Len(t, doc.Chains, 1)
		require.ElementsMatch(t, []string{`["left"]`, `["right"]`, `["both"]`}, texts(doc.Chains[0].Keys))
		require.ElementsMatch(t, []string{`["left"]`, `["right"]`}, texts(doc.Chains[0].Roots))
		f := s.html("").one(t, named("figure"))
		require.Equal(t, []string{`["left"]`, `["both"]`, `["right"]`, `["both"]`}, tabs(f))
		require.Len(t, f.all(with("class", "queue")), 3)
		require.Len(t, f.all(with("class", "seen")), 1)
		require.Len(t, f.all(with("class", "edge")), 3)
	})
}

// Waiters that hold keys are drawn before others, whatever their position, and
// the rest is counted.
func TestChainOfACrowd(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("a", []any{"k"})
		for i := range 20 {
			s.ask(fmt.Sprint("w", i), []any{"k"})
		}
		s.ask("holds", []any{"other", "k"})
		f := s.html("").one(t, named("figure"))
		require.Equal(t, []string{`["k"]`, `["other"]`}, tabs(f))
		require.Len(t, f.all(with("class", "edge")), 6)
		require.Contains(t, f.text(), "and 15 more waiting")
		positions := ""
		for _, e := range f.all(with("class", "position")) {
			positions += e.text() + " "
		}
		require.Equal(t, "1 2 3 4 5 21 ", positions)
	})
}

// Keys are one by their text, not by ==: a list of one is its part.
func TestChainsKnowKeysByTheirText(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("a", []any{[]any{"1"}})
		s.ask("b", []any{[]any{"2"}, "1"})
		s.ask("c", []any{"2"})
		require.Equal(t, [][]string{{`["1"]`, `["2"]`}}, chainsOf(s.json("")))
	})
}
