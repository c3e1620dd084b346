import Testing

@testable import HatoStorage

/// The syntax of `HATO_FAILPOINTS`. (`Tests/Fault` tests the effect on a process.)
@Suite("Orders for failpoints")
struct FailpointTests {
    @Test func anOrderNamesAPointAnActionAndATime() throws {
        let orders = try FailpointOrder.orders(in: "commit.beforeSync=kill@37, store.read=error")
        #expect(
            orders == [
                .commitBeforeSync: FailpointOrder(action: .kill, countdown: 37),
                .storeRead: FailpointOrder(action: .error, countdown: 1),
            ])
    }

    @Test func itHappensAtItsTimeAndEveryTimeAfter() {
        var order = FailpointOrder(action: .error, countdown: 3)
        #expect((0..<5).map { _ in order.pass() } == [nil, nil, .error, .error, .error])
    }

    @Test(arguments: [
        ("commit.beforeSink=kill", "there is no failpoint 'commit.beforeSink'"), ("commit.beforeSync", "is no order"),
        ("commit.beforeSync=explode", "cannot 'explode'"), ("commit.beforeSync=kill@", "does not say when"),
        ("commit.beforeSync=kill@0", "does not say when"), ("commit.beforeSync=kill@1@2", "does not say when"),
        ("commit.afterAnswer=error", "only kill is possible"), ("store.read=kill,store.read=error", "is named twice"),
    ])
    func problemOfAnOrderIsNamed(text: String, problem: String) {
        let error = #expect(throws: FailpointProblem.self) { try FailpointOrder.orders(in: text) }
        #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    }

    @Test func nothingOrderedIsNoProblem() {
        var warnings = 0
        func arm(_ environment: [String: String]) -> String? {
            Failpoints.arm(environment: environment) { _ in warnings += 1 }
        }
        #expect(arm([:]) == nil)
        #expect(arm(["HATO_FAILPOINTS": ""]) == nil)
        #expect(
            arm(["HATO_FAILPOINTS": "x"]) == "HATO_FAILPOINTS: 'x' is no order; write commit.beforeSync=kill@37")
        #expect(warnings == 0)
    }
}
