package processlock_test

import "testing"

// pfFieldIDs are faults that users have reported of libraries doing this job,
// by kind: A waiters that are stranded, B cancel against grant, C odd contexts,
// D memory, E the life of a key's entry, F release, G panics, H reentrancy, I
// several keys, J identity, K fairness, L keys that hinder each other, M
// timeouts, N shutdown, O leaks, Q tries and looks, S testing/synctest.
const pfFieldIDs = `
	A1 A2 A4 A6 A8 A9
	B1 B2 B3 B6 B7 B8 B10
	C1 C2 C3 C5 C6
	D1 D3 D5 D6 D9
	E1 E3 E5 E6 E7 E8 E9 E10 E11
	F1 F2 F4 F5
	G1 G3 G4 G6 G7
	H1 H2 H3 H5
	I1 I2 I3 I6 I7
	J1 J2 J4 J5 J7 J9 J10
	K1 K3 K4 K5
	L1 L2 L4 L5
	M1 M2 M3 M4
	N1 N2 N3 N5
	O2 O3
	Q1 Q3
	S1 S4`

// Every case is covered, or it is said why it can't arise.
func TestFieldCasesAreCovered(t *testing.T) {
	for _, problem := range pfProblems(pfFieldIDs, pfFieldRows, pfDeclared(t), "Field") {
		t.Error(problem)
	}
}

var pfFieldRows = []pfRow{
	{id: "A1", tests: "TestField_A1_HeadCancelsAsTheHolderReleases"},
	{id: "A2", tests: "TestField_A2_GrantedWaiterIsCancelledBeforeItResumes"},
	{id: "A4", tests: "TestField_A4_TimedOutWaitsLeaveNothingInTheQueue TestContextMethodThatPanicsLeavesTheQueueFirst"},
	{id: "A6", tests: "TestField_A6_CountOfWaitersGoesBack"},
	{id: "A8", why: "there is no wait outside a call that somebody is in: nothing returns a future or a channel"},
	{id: "A9", tests: "TestLeavingTheQueueKeepsTheOrderAndGrantsAtOnce TestCloseOfAnExclusiveWaiterLetsTheSharedOnesIn"},

	{id: "B1", tests: "TestField_B1_B2_StormOfCancelsAndGrants TestMeetingOfGrantAndCancelIsNeverBothAndNeverNeither"},
	{id: "B2", tests: "TestField_B1_B2_StormOfCancelsAndGrants"},
	{id: "B3", tests: "TestField_B3_CancelBeforeTheReleaseWins"},
	{id: "B6", tests: "TestField_B6_NoFailureLooksLikeASuccess TestRefusalNamesTheKeyAndTheReason"},
	{id: "B7", tests: "TestField_B7_CancelDuringFnReturnsWhenFnDoes"},
	{id: "B8", tests: "TestField_B8_DoneContextNeverRunsFn"},
	{id: "B10", tests: "TestField_B10_ContextMethodsMayCallBack TestContextMethodThatBlocksStopsNobody"},

	{id: "C1", tests: "TestDoneContextNeverRunsFn"},
	{id: "C2", tests: "TestWithoutCancelLocksDuringCleanUp ExampleWithLock_cleanup"},
	{id: "C3", tests: "TestMisusePanics TestEarlyRefusalDoesNotTouchTheQueue"},
	{id: "C5", tests: "TestDoneContextEndsTheWait"},
	{id: "C6", tests: "TestField_C6_ContextOfALostHoldIsOneByTheBook TestClientContextKeepsValuesAndDeadlineAndEndsWithErrClosed"},

	{id: "D1", tests: "TestField_D1_NoPathLeavesAnythingOfAKey TestField_D1_D9_ManyKeysUsedOnceLeaveNothing"},
	{id: "D3", tests: "TestEveryEndOfFnReleasesOnce", why: "a release in the process has no step that can fail; that of a database is its backend's"},
	{id: "D5", tests: "TestField_D5_MillionKeysHeldAtOnceCostLittleAndThenNothing"},
	{id: "D6", tests: "TestField_D1_NoPathLeavesAnythingOfAKey TestKeyErrors"},
	{id: "D9", tests: "TestField_D1_D9_ManyKeysUsedOnceLeaveNothing TestDeadlockGraphForgets"},

	{id: "E1", tests: "TestExclusionWhileEntriesComeAndGo TestPeer_AKL_A17_RequestThatMeetsTheRelease"},
	{id: "E3", tests: "TestField_E3_RecycledEntryServesAnotherKeyWhileAnOldHoldIsAround TestField_E3_E8_RecycledEntriesWhileTheCollectorRuns TestLateReleaseLeavesTheRecycledEntryAlone"},
	{id: "E5", tests: "TestMaxWaiters"},
	{id: "E6", tests: "TestBubblesAreServedWhateverTheirClocks", why: "nothing is evicted by time: an entry goes with its last holder or waiter"},
	{id: "E7", tests: "TestPeer_AKL_A17_RequestThatMeetsTheRelease", why: "there is no sweeper; an entry goes in the step that empties it"},
	{id: "E8", tests: "TestField_E3_E8_RecycledEntriesWhileTheCollectorRuns", why: "no entry is held by a weak pointer or has a finalizer"},
	{id: "E9", tests: "TestLostHoldJoinsFnsErrorAndKeepsItsValue",
		why: "in the process nobody is in doubt who holds; what is handed on from a running fn is so by Client.Close alone, and ErrLost says it"},
	{id: "E10", tests: "TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand"},
	{id: "E11", tests: "TestField_E11_TimerOfALoserTouchesNoHold"},

	{id: "F1", tests: "TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand", why: "no handle, no Unlock"},
	{id: "F2", tests: "TestField_F2_ReleaseIsOfTheKeyThatWasTaken TestKeyIsCopied"},
	{id: "F4", why: "a release in the process can't be answered late or be retried; that of a database is its backend's"},
	{id: "F5", tests: "TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand", why: "no Unlock"},

	{id: "G1", tests: "TestEveryEndOfFnReleasesOnce TestPanicKeepsItsValueAndItsStack TestField_D1_NoPathLeavesAnythingOfAKey"},
	{id: "G3", tests: "TestEveryEndOfFnReleasesOnce TestQueueOutlivesThoseWhoPanic"},
	{id: "G4", tests: "TestFnRunsOnTheCallersGoroutine TestPanicKeepsItsValueAndItsStack"},
	{id: "G6", tests: "TestContextThatEndsDuringFnIsFnsBusiness", why: "a release in the process waits for nothing that could be canceled; that of a database is its backend's"},
	{id: "G7", why: "a hold in the process has no connection; a database's is its backend's"},

	{id: "H1", tests: "TestField_H1_OwnKeyWithAForeignContextEndsByItsDeadline TestAskingForOnesOwnKey"},
	{id: "H2", tests: "TestAskingForOnesOwnKey TestDeadlockOwnKey"},
	{id: "H3", tests: "TestField_H3_SlowKeyStopsNobody TestField_H3_NoOtherMethodOfAKeyIsCalled TestMarshalTextMayCallBack TestContextMethodThatBlocksStopsNobody"},
	{id: "H5", tests: "TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand"},

	{id: "I1", tests: "TestAnyTwoKeysCanBeNested TestKeysOfOneHashAreToldApart"},
	{id: "I2", tests: "TestDeadlockCycleFailsTheLastToArrive TestPeer_W62_SnapshotShowsTwoThatWaitForEachOther"},
	{id: "I3", tests: "TestAllRequestsNeverDeadlockAmongThemselves TestAllTakesTheKeysInCanonicalOrder"},
	{id: "I6", tests: "TestAllOrdersByCanonicalText", why: "the order is that of the locks' own identity, not of a hash that two may share; by lock id is for a database's backend"},
	{id: "I7", tests: "TestFnRunsOnTheCallersGoroutine TestManyKeysAreHeldAtOnce", why: "there is no pool of workers and no bound on holders"},

	{id: "J1", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestKeySame"},
	{id: "J2", tests: "TestField_J2_KeysThatGoCannotHash TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo"},
	{id: "J4", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestKeySame"},
	{id: "J5", tests: "TestWhichCoordinatorLocks TestWithCoordinatorIsolatesWhatIsBelow", why: "a namespace across processes is a database backend's"},
	{id: "J7", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestKeySame TestKeyMapOrder TestKeyVectors"},
	{id: "J9", tests: "TestVetComplainsAboutCopies TestMisuseOfACoordinatorPanics TestZeroCoordinatorIsReady"},
	{id: "J10", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestAllSortsAndDropsDoubles"},

	{id: "K1", tests: "TestField_K1_WhoReleasesAndAsksAgainGoesBehindTheQueue TestReleaseHandsOverToTheQueue TestGrantsFollowArrival"},
	{id: "K3", tests: "TestField_K3_OneGrantWakesOneWaiter TestField_K3_ThousandWaitersInOrderOnFlatStacks"},
	{id: "K4", why: "nothing polls, and there is one process; order among several is a database backend's"},
	{id: "K5", tests: "BenchmarkField_K5_HandOffUnderCrowds BenchmarkHotKey"},

	{id: "L1", tests: "TestField_L1_L4_BusyKeyHindersNoOther"},
	{id: "L2", tests: "BenchmarkDisjoint"},
	{id: "L4", tests: "TestField_L1_L4_BusyKeyHindersNoOther"},
	{id: "L5", tests: "TestField_L5_SnapshotShowsEveryField"},

	{id: "M1", tests: "TestContextThatEndsDuringFnIsFnsBusiness TestMaxWaitDoesNotBoundFn"},
	{id: "M2", tests: "TestDoneContextEndsTheWait TestField_B6_NoFailureLooksLikeASuccess"},
	{id: "M3", tests: "TestField_M3_NoTimeLeftIsNotATry TestIfAvailableNeverWaits"},
	{id: "M4", tests: "TestResolveReadsAsWithLockDoes TestSharedNeighboursAreGrantedTogether TestIfAvailableNeverWaits TestMaxWaitBoundsTheWait TestAskingForOnesOwnKey TestMaxWaiters TestHolderThatWaitedKnowsSinceWhen TestConfigureWorksUntilDefaultHasServed"},

	{id: "N1", tests: "TestLeavingTheQueueKeepsTheOrderAndGrantsAtOnce", why: "a waiter's own end is its context's or its client's; a session is a database backend's"},
	{id: "N2", tests: "TestField_N2_ShutdownEndsWaitsRefusesCallsAndLetsHoldersFinish"},
	{id: "N3", tests: "TestField_N2_ShutdownEndsWaitsRefusesCallsAndLetsHoldersFinish TestIfAvailableNeverWaits TestCloseInsideFn",
		why: "no mutex is held while somebody waits; a connection's is a database backend's"},
	{id: "N5", tests: "TestField_N5_CoordinatorsCanBeDroppedWithoutClosing"},

	{id: "O2", tests: "TestEveryEndOfFnReleasesOnce", why: "a release sends to nobody; a connection's keep-alive is a database backend's"},
	{id: "O3", tests: "TestQueueOutlivesThoseWhoPanic"},

	{id: "Q1", tests: "TestField_Q1_TryNeverWaitsInAStorm TestIfAvailableNeverWaits"},
	{id: "Q3", tests: "TestPeer_W8_FnEndsThenTheCallReturnsWithTheKeyFree"},

	{id: "S1", tests: "TestField_S1_WaitsAreDurablyBlocking"},
	{id: "S4", why: "a lock in the process is no resource that could outlive a bubble; for a database it is its backend's testing advice"},
}
