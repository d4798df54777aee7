package pglock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// row accounts for a fault that is known of such locks: by tests, by a reason
// why it can't arise, or both where the tests cover what is left of it.
type row struct {
	id    string
	tests string // names, divided by blanks
	why   string
}

// problems lists what is wrong with rows, which account for ids. Tests that are
// named after an id must be in its row.
func problems(ids string, rows []row, declared map[string]bool, prefix string) (found []string) {
	wanted, seen, named := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, id := range strings.Fields(ids) {
		wanted[id] = true
	}
	for _, r := range rows {
		if !wanted[r.id] || seen[r.id] {
			found = append(found, r.id+": no such id, or a second row for it")
		}
		seen[r.id] = true
		if r.tests == "" && r.why == "" {
			found = append(found, r.id+": neither a test nor a reason")
		}
		for _, test := range strings.Fields(r.tests) {
			if !declared[test] {
				found = append(found, fmt.Sprintf("%s: there is no %s", r.id, test))
			}
			if strings.HasPrefix(test, prefix+r.id+"_") {
				named[test] = true
			}
		}
	}
	for id := range wanted {
		if !seen[id] {
			found = append(found, id+": no row")
		}
	}
	for test := range declared {
		if strings.HasPrefix(test, prefix) && !named[test] {
			found = append(found, test+": in no row that it is named after")
		}
	}
	slices.Sort(found)
	return found
}

// declared finds the tests of the package, in files of every build tag.
func declared(t *testing.T) map[string]bool {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	tests := make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = true
			}
		}
	}
	require.Contains(t, tests, t.Name())
	return tests
}

// The account itself must be able to fail.
func TestAccountFindsWhatIsMissing(t *testing.T) {
	assert.Equal(t, []string{
		"P2: neither a test nor a reason",
		"P3: there is no TestGone",
		"P4: no row",
		"P9: no such id, or a second row for it",
		"TestField_P5_Forgotten: in no row that it is named after",
	}, problems("P1 P2 P3 P4", []row{
		{id: "P1", tests: "TestField_P1_Works TestOld"},
		{id: "P2"},
		{id: "P3", tests: "TestOld TestGone"},
		{id: "P9", why: "not on the list"},
	}, map[string]bool{"TestOld": true, "TestField_P1_Works": true, "TestField_P5_Forgotten": true}, "TestField_"))
}

// fieldIDs are faults that users have reported of advisory locks elsewhere.
const fieldIDs = "P1 P2 P3 P5 P6 P7 P8 P11 P12 P14 P15 P17 P18 P19 P20 P22 P24 P25 P27 P30 P32 P33 P34 P36"

func TestFieldCasesAreCovered(t *testing.T) {
	assert.Empty(t, problems(fieldIDs, fieldRows, declared(t), "TestField_"))
}

var fieldRows = []row{
	{id: "P1", tests: "TestField_P1_UnlockGoesWhereTheLockIs"},
	{id: "P2", tests: "TestField_P2_SessionOfAFailedUnlockIsNotUsedAgain TestField_P2_UnlockThatIsAnsweredFalseIsALoss"},
	{id: "P3", tests: "TestField_P3_UnlockDoesNotNeedTheCallersContext"},
	{id: "P5", tests: "TestField_P5_CancelMeetsTheGrant"},
	{id: "P6", tests: "TestField_P6_NoStatementIsCanceledForAnother"},
	{id: "P7", tests: "TestField_P7_TransactionPoolingIsRefused TestField_P7_SessionPoolingIsNot"},
	{id: "P8", tests: "TestField_P8_HoldersDoNotStarveTheCallersPool"},
	{id: "P11", tests: "TestField_P11_LossIsTold TestField_P11_LossShowsWhereFnOwnsTheSession"},
	{id: "P12", tests: "TestField_P12_BlackHole TestField_P12_KeepAlivesAreSet"},
	{id: "P14", tests: "TestField_P14_IndexIsBuiltWhileOthersWait"},
	{id: "P15", tests: "TestField_P15_CycleOfProcessesIsFound"},
	{id: "P17", tests: "TestField_P17_IdsAre64BitsOfAHash"},
	{id: "P18", tests: "TestField_P18_NamespacesAndSmallNumbersDoNotCollide"},
	{id: "P19", tests: "TestField_P19_ScopeIsTheDatabase"},
	{id: "P20", tests: "TestField_P20_EveryProcessDerivesTheSameIds"},
	{id: "P22", tests: "TestField_P22_IdsAreThePublishedOnes"},
	{id: "P24", tests: "TestField_P24_CommitComesBeforeTheUnlock"},
	{id: "P25", tests: "TestField_P25_SnapshotIsYoungerThanTheLock"},
	{id: "P27", tests: "TestField_P27_WaitIsBoundedAndCanBeSeen"},
	{id: "P30", tests: "TestField_P30_NobodyWaitsForALockedConnection"},
	{id: "P32", tests: "TestField_P32_PollingBacksOff"},
	{id: "P33", tests: "TestField_P33_WaitStopsNoOtherKey"},
	{id: "P34", tests: "TestField_P34_UnusedLockerCostsNothing"},
	{id: "P36", tests: "TestField_P36_EveryLockAsksTheServer"},
}

// trapIDs are traps in PostgreSQL, its protocol and its poolers, each found by
// trial.
const trapIDs = "1 2 3 4 5 6 7 8 9 10 11 12 13 14"

func TestTrapsAreCovered(t *testing.T) {
	assert.Empty(t, problems(trapIDs, trapRows, declared(t), "TestTrap_"))
}

var trapRows = []row{
	{id: "1", tests: "TestTrap_1_FailedAcquireMayHoldTheLock"},
	{id: "2", tests: "TestTrap_2_ServersDeadlockIsNotPassedOn"},
	{id: "3", tests: "TestTrap_3_SessionLocksCount"},
	{id: "4", tests: "TestTrap_4_TwoKeysOfOneId TestTrap_4_OneKeyOfTwoIds"},
	{id: "5", tests: "TestTrap_5_NamespaceIsOneForAllMethods"},
	{id: "6", tests: "TestTrap_6_VacuumIsHeldBackByASliceAtMost"},
	{id: "7", tests: "TestTrap_7_NoCancelRequestIsSent TestTrap_7_PoolerSurvivesCanceledWaits"},
	{id: "8", tests: "TestTrap_8_FreeKeysAreToBeHadWhileOthersWait TestTrap_8_NestedCallsNeedNoFreeConnection"},
	{id: "9", tests: "TestTrap_9_FullLockTable TestTrap_9_MaxKeysKeepsTheLockTableFree"},
	{id: "10", tests: "TestTrap_10_SessionsAreNotCollected"},
	{id: "11", tests: "TestField_P3_UnlockDoesNotNeedTheCallersContext TestTrap_11_UnlockInsideAnEndedContext"},
	{id: "12", tests: "TestTrap_12_SuccessUnderADoneContextIsGivenBack"},
	{id: "13", why: "the server may let a shared request pass an exclusive one of another process, after its deadlock_timeout; order is promised inside a process only"},
	{id: "14", tests: "TestTrap_14_RollbackToASavepointDropsTheLock"},
}
