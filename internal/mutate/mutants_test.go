package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMutantsFit notices when the code has moved away from a mutant.
func TestMutantsFit(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		if mutated, err := m.apply(string(text)); err != nil {
			t.Error(err)
		} else if mutated == string(text) {
			t.Errorf("%s: changes nothing", m.name)
		}
		if names[m.name] {
			t.Errorf("%s: name is taken", m.name)
		}
		names[m.name] = true
	}
	if len(mutants) < 40 {
		t.Errorf("only %d mutants", len(mutants))
	}
}
