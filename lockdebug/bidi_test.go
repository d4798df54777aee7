package lockdebug

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRuns(t *testing.T) {
	for s, want := range map[string][]run{
		"":                   {{"", false}},
		`["order",7]`:        {{`["order",7]`, false}},
		`["שלום",1]`:         {{`["`, false}, {"שלום", true}, {`",1]`, false}},
		`["שלום עולם ",1]`:   {{`["`, false}, {"שלום עולם", true}, {` ",1]`, false}},
		"مفتاح":              {{"مفتاح", true}},
		`["א","ב"]`:          {{`["`, false}, {"א", true}, {`","`, false}, {"ב", true}, {`"]`, false}},
		"xא":                 {{"x", false}, {"א", true}},
		"a א b":              {{"a ", false}, {"א", true}, {" b", false}},
		"\U0001E900\uFE8E x": {{"\U0001E900\uFE8E", true}, {" x", false}},
	} {
		require.Equal(t, want, runs(s), s)
	}
}
