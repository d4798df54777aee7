package processlock_test

import "testing"

// pfPeerIDs are the rows that were restated from the public suites of Web Locks
// (W: web-platform-tests, S: what only its specification says), Node.js (N),
// AsyncKeyedLock (AKL), moby/locker (M), x/sync (G) and dbx-tools (DBX), of
// each scenario that applies to a keyed lock in a process.
const pfPeerIDs = `
	W1 W2 W6 W8 W9 W11 W12 W13 W15 W16 W17 W18 W19 W20 W21 W22 W25 W31 W32 W33
	W34 W35 W36 W37 W38 W39 W40 W41 W42 W47 W49 W50 W54 W55 W56 W57 W58 W59 W62
	W63 W64 W65 W66 W67 W68 W69 W71 W72 W73 W75 W77 W78 W79 W81 W92 W105 W132
	S1 S2 S3 S6 S7 S8 S12 S16
	N1 N8
	AKL_A1 AKL_A2 AKL_A16 AKL_A17 AKL_A28 AKL_A68 AKL_A115
	M4 M5 M6 M11 M12 M13
	G2 G8 G10 G11
	DBX_P4 DBX_P6 DBX_P9 DBX_P18 DBX_P19 DBX_P30 DBX_P34 DBX_P35 DBX_P36 DBX_P37 DBX_P38`

// Every row is covered, or it is said why it can't be.
func TestPeerRowsAreCovered(t *testing.T) {
	for _, problem := range pfProblems(pfPeerIDs, pfPeerRows, pfDeclared(t), "Peer") {
		t.Error(problem)
	}
}

var pfPeerRows = []pfRow{
	// Arguments.
	{id: "W1", tests: "TestMisusePanics TestEarlyRefusalDoesNotTouchTheQueue"},
	{id: "W2", tests: "TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow TestResolveReadsAsWithLockDoes",
		why: "a mode that does not exist can't be asked for: Option has an unexported method and is no number"},
	{id: "W6", tests: "TestPeer_W6_TryWithADoneContextIsNotUnavailable TestIfAvailableNeverWaits"},
	{id: "W71", tests: "TestMisusePanics", why: "whatever is no context does not compile; what is left is nil"},
	{id: "AKL_A1", tests: "TestMisusePanics", why: "Options is a value, so only an Option can be nil"},
	{id: "S7", tests: "TestOrderOfChecks"},
	{id: "S8", tests: "TestOneExclusiveHolderAtATime TestGrantsFollowArrival"},

	// Results.
	{id: "W8", tests: "TestPeer_W8_FnEndsThenTheCallReturnsWithTheKeyFree"},
	{id: "W9", tests: "TestFnErrorComesBackAsItIs TestPanicKeepsItsValueAndItsStack TestEveryEndOfFnReleasesOnce"},
	{id: "W11", tests: "TestPeer_W11_FnErrorPassesThroughUnread"},
	{id: "W12", tests: "TestWithLockValueReturnsWhatFnReturns TestHoldsAreOrderedInMemory"},
	{id: "N8", tests: "TestFnsContextIsTheCallers TestFnRunsOnTheCallersGoroutine"},
	{id: "DBX_P4", tests: "TestPeer_DBX_P4_ListIsNotItsPartsJoined TestWithLockValueReturnsWhatFnReturns"},

	// Exclusion and order.
	{id: "W13", tests: "TestOneExclusiveHolderAtATime"},
	{id: "W19", tests: "TestAnyTwoKeysCanBeNested"},
	{id: "W31", tests: "TestGrantsFollowArrival"},
	{id: "W32", tests: "TestPeer_W32_LaterRequestForAnotherKeyPassesOneThatWaits"},
	{id: "W33", tests: "TestPeer_W33_SharedTogetherThenTheExclusiveAlone"},
	{id: "W34", tests: "TestPeer_W34_W35_SnapshotShowsThePhasesOfAQueue"},
	{id: "W35", tests: "TestPeer_W34_W35_SnapshotShowsThePhasesOfAQueue"},
	{id: "W36", tests: "TestPeer_W36_SharedHoldersAreListedInOrder"},
	{id: "W37", tests: "TestAskingForOnesOwnKey"},
	{id: "W42", tests: "TestEveryEndOfFnReleasesOnce"},
	{id: "W47", tests: "TestWhichCoordinatorLocks TestWithCoordinatorIsolatesWhatIsBelow"},
	{id: "W105", tests: "TestPeer_W105_NothingOfOneGenerationReachesTheNext"},
	{id: "S2", tests: "TestSharedNeighboursAreGrantedTogether"},
	{id: "S3", tests: "TestSharedNeighboursAreGrantedTogether"},
	{id: "N1", tests: "TestPeer_N1_KeyOfAnEndedHolderIsFreeForAnother"},
	{id: "AKL_A16", tests: "TestField_E3_RecycledEntryServesAnotherKeyWhileAnOldHoldIsAround TestLateReleaseLeavesTheRecycledEntryAlone TestField_E3_E8_RecycledEntriesWhileTheCollectorRuns"},
	{id: "AKL_A17", tests: "TestPeer_AKL_A17_RequestThatMeetsTheRelease TestExclusionWhileEntriesComeAndGo"},
	{id: "AKL_A68", tests: "TestPeer_AKL_A68_AsManyAreInsideAsThereAreKeys"},
	{id: "AKL_A115", tests: "TestPeer_AKL_A115_LogOfEveryKeyAlternates"},

	// Tries.
	{id: "W15", tests: "TestAskingForOnesOwnKey TestOrderOfChecks"},
	{id: "W16", tests: "TestIfAvailableNeverWaits"},
	{id: "W17", tests: "TestIfAvailableNeverWaits", why: "fn is not called without the lock: the error tells"},
	{id: "W18", tests: "TestIfAvailableNeverWaits TestErrorsFindWhatTheyAre",
		why: "nothing of the caller's runs when the key is busy, so ErrUnavailable is all that there is to return"},
	{id: "W20", tests: "TestIfAvailableNeverWaits TestAskingForOnesOwnKey"},
	{id: "W21", tests: "TestIfAvailableNeverWaits TestAskingForOnesOwnKey"},
	{id: "W22", tests: "TestIfAvailableNeverWaits TestAskingForOnesOwnKey"},
	{id: "W25", tests: "TestPeer_W25_KeyWithoutWaitersIsAvailableAgain"},
	{id: "W92", tests: "TestIfAvailableNeverWaits TestReleaseHandsOverToTheQueue"},
	{id: "S1", tests: "TestSharedTryDoesNotPassAQueuedExclusive TestIfAvailableNeverWaits"},

	// Context.
	{id: "W72", tests: "TestDoneContextNeverRunsFn"},
	{id: "W73", tests: "TestDoneContextEndsTheWait"},
	{id: "W75", tests: "TestDoneContextEndsTheWait"},
	{id: "W77", tests: "TestPeer_W77_CancelAfterTheCallHasNoEffect"},
	{id: "W78", tests: "TestPeer_W78_CancelAtAnyMomentOfAFreeCall"},
	{id: "W79", tests: "TestContextThatEndsDuringFnIsFnsBusiness TestField_B7_CancelDuringFnReturnsWhenFnDoes"},
	{id: "W81", tests: "TestLeavingTheQueueKeepsTheOrderAndGrantsAtOnce"},
	{id: "S6", tests: "TestLongLivedParentKeepsNothing TestNothingIsRegisteredOnTheParent"},
	{id: "G2", tests: "TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand",
		why: "nobody can release what was not obtained: only the end of fn releases, once"},
	{id: "G8", tests: "TestPeer_G8_CancelBeforeTheReleaseFailsEveryTime TestField_B3_CancelBeforeTheReleaseWins TestField_B8_DoneContextNeverRunsFn"},

	// The end of a coordinator, a client or a process.
	{id: "W38", tests: "TestField_N2_ShutdownEndsWaitsRefusesCallsAndLetsHoldersFinish"},
	{id: "W39", tests: "TestPeer_W39_SnapshotAfterShutdownShowsWhatStillRuns"},
	{id: "W40", tests: "TestOrderOfChecks", why: "fixed the other way round: a key without identity is told before a closed coordinator"},
	{id: "W41", tests: "TestPeer_W41_ShutdownOfOneCoordinatorLeavesAnother"},
	{id: "W132", tests: "TestShutdownInsideAnFnIsADeadlock TestCloseInsideFn"},
	{id: "AKL_A2", tests: "TestShutdownWithNothingHeldIsNilUnderADoneContext TestConcurrentShutdownsEachWait TestCloseInsideFn TestCloseFromManyGoroutinesTakesEachHoldOnce"},
	{id: "AKL_A28", tests: "TestField_N2_ShutdownEndsWaitsRefusesCallsAndLetsHoldersFinish"},
	{id: "S16", tests: "TestField_D1_D9_ManyKeysUsedOnceLeaveNothing TestField_D1_NoPathLeavesAnythingOfAKey TestField_D5_MillionKeysHeldAtOnceCostLittleAndThenNothing"},
	{id: "DBX_P6", tests: "TestPeer_DBX_P6_ProcessEndsByItself TestField_N5_CoordinatorsCanBeDroppedWithoutClosing"},
	{id: "DBX_P9", tests: "TestMisusePanics TestEveryMethodWorksFirstOnAZeroCoordinator TestZeroCoordinatorIsReady"},

	// Snapshot.
	{id: "W49", tests: "TestSnapshotAsJSONHasEmptyListsAndNoNulls TestEveryMethodWorksFirstOnAZeroCoordinator"},
	{id: "W50", tests: "TestPeer_W50_WaitersAreListedInOrderOfArrival"},
	{id: "W54", tests: "TestField_L5_SnapshotShowsEveryField"},
	{id: "W55", tests: "TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow"},
	{id: "W56", tests: "TestPeer_W56_W58_NestedHoldsAreListedOnceEach"},
	{id: "W57", tests: "TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow"},
	{id: "W58", tests: "TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow TestPeer_W56_W58_NestedHoldsAreListedOnceEach"},
	{id: "W59", tests: "TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow"},
	{id: "W62", tests: "TestPeer_W62_SnapshotShowsTwoThatWaitForEachOther TestDeadlockCycleFailsTheLastToArrive"},
	{id: "S12", tests: "TestSnapshotIsACopy"},

	// Keys.
	{id: "W63", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W64", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W65", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W66", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W67", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W68", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn"},
	{id: "W69", tests: "TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn TestKeySame"},
	{id: "DBX_P18", tests: "TestKeyKnownIDs TestKeyVectors"},
	{id: "DBX_P19", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestKeyKnownIDs"},
	{id: "DBX_P30", tests: "TestCanonical TestKeyVectors"},
	{id: "DBX_P34", tests: "TestKeyErrors TestField_D1_NoPathLeavesAnythingOfAKey"},
	{id: "DBX_P35", tests: "TestKeyErrors TestKeySharedValue"},
	{id: "DBX_P36", tests: "TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo TestKeySame",
		why: "of null and undefined Go has one, nil"},
	{id: "DBX_P37", tests: "TestKeyMapOrder"},
	{id: "DBX_P38", tests: "TestKeyErrors"},

	// What it costs.
	{id: "M4", tests: "BenchmarkPeer_M4_FreshKeyInsideAHotOne"},
	{id: "M5", tests: "BenchmarkHotKey"},
	{id: "M6", tests: "BenchmarkPeer_M6_RandomKeys"},
	{id: "M11", tests: "BenchmarkPeer_M11_M12_M13_SharedMix"},
	{id: "M12", tests: "BenchmarkPeer_M11_M12_M13_SharedMix BenchmarkShared"},
	{id: "M13", tests: "BenchmarkPeer_M11_M12_M13_SharedMix"},
	{id: "G10", tests: "BenchmarkPeer_G10_NewAndFirstLock"},
	{id: "G11", tests: "BenchmarkPeer_G11_NestedKeys BenchmarkUncontended"},
}
