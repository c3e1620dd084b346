import Testing

/// Random inputs for every compiler of this target, against slow reference implementations (`FuzzRun` explains longer
/// runs).
@Suite struct FuzzTests {
    @Test func regularExpressionsMatchLikeTheirDefinition() {
        Self.check(usual: 3_000, mustHappen: ["taken", "refused", "found", "not found"], FuzzChecks.regex)
    }

    @Test func setsOfScalarsHaveWhatTheirRangesHave() {
        Self.check(usual: 3_000, mustHappen: ["in", "out"], FuzzChecks.regexSet)
    }

    @Test func expressionsAreWhatTheirDefinitionSays() {
        Self.check(usual: 4_000, mustHappen: ["true", "false", "error"], FuzzChecks.expression)
    }

    @Test func wrongExpressionsAreRefusedAtTheirPosition() {
        Self.check(usual: 3_000, mustHappen: ["no expression", "wrong", "right"], FuzzChecks.mutatedExpression)
    }

    @Test func documentsHaveTheSameRulesHoweverTheyAreWritten() {
        Self.check(usual: 2_000, mustHappen: ["right", "wrong"], FuzzChecks.document)
    }

    @Test func conditionsAreDecidedOnlyByWhatIsKnown() {
        let outcomes = ["refused", "holds", "doesNotHold", "undecided"]
        Self.check(usual: 3_000, mustHappen: outcomes, FuzzChecks.predicate)
    }

    private static func check(
        usual: Int, mustHappen: [String], _ body: (inout SplitMix, (String) -> Void) -> String?,
        of test: String = #function
    ) {
        var run = FuzzRun(usual: usual)
        print("\(test): HATO_SEED=\(run.seed), \(run.rounds.count) inputs")
        run.run(body)
        for finding in run.findings { Issue.record("\(finding)") }
        for outcome in mustHappen {
            #expect(run.counts[outcome, default: 0] > run.rounds.count / 100, "\(test): \(run.counts)")
        }
    }
}
