import HatoModel
import HatoRPC
import Testing

/// Protocol §1: what is applied when, and in which order answers come.
@Suite(.timeLimit(.minutes(10)))
struct OrderTests {
    private func line(_ id: Int, _ method: String, _ gate: String) -> String {
        "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":{\"gate\":\"\(gate)\"}}\n"
    }

    @Test func hotRequestsStartTogetherAndRespondInOrder() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            line(1, "check.later", "a") + line(2, "check.later", "b")
                + "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"check.echo\"}\n")
        await service.gates.arrivals(2)
        #expect(service.gates.arrived == ["a", "b"])
        service.gates.open("b")
        service.gates.open("a")
        for id in 1...3 { #expect(try await peer.response()["id"] == .number(Double(id))) }
        await service.stop()
    }

    @Test func coldRequestStartsAfterEarlierResponsesAndDelaysLaterRequests() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            line(1, "check.later", "a") + line(2, "check.afterEarlier", "b") + line(3, "check.later", "c")
                + line(4, "check.afterEarlier", "d"))
        await service.gates.arrivals(1)
        #expect(service.gates.arrived == ["a"])
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        await service.gates.arrivals(2)
        #expect(service.gates.arrived == ["a", "b"])
        service.gates.open("b")
        #expect(try await peer.response()["id"] == 2)
        await service.gates.arrivals(3)
        #expect(service.gates.arrived == ["a", "b", "c"])
        service.gates.open("c")
        service.gates.open("d")
        #expect(try await peer.response()["id"] == 3)
        #expect(try await peer.response()["id"] == 4)
        await service.stop()
    }

    @Test func slowRequestIsOvertaken() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            line(1, "check.slow", "a") + line(2, "check.slow", "b") + line(3, "check.afterEarlier", "c")
                + "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"check.echo\"}\n")
        service.gates.open("c")
        #expect(try await peer.response()["id"] == 3)
        #expect(try await peer.response()["id"] == 4)
        service.gates.open("b")
        #expect(try await peer.response()["id"] == 2)
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        await service.stop()
    }

    @Test func slowRequestStartsAfterEarlierOnes() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(line(1, "check.later", "a") + line(2, "check.slow", "b"))
        await service.gates.arrivals(1)
        service.gates.open("b")
        #expect(service.gates.arrived == ["a"])
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        #expect(try await peer.response()["id"] == 2)
        await service.stop()
    }

    @Test func connectionsDoNotWaitForEachOther() async throws {
        let service = try await TestService()
        let one = try await service.peer()
        let other = try await service.peer()
        try await one.send(line(1, "check.afterEarlier", "a"))
        await service.gates.arrivals(1)
        #expect(try await other.call("check.echo")["result"] != nil)
        service.gates.open("a")
        #expect(try await one.response()["id"] == 1)
        await service.stop()
    }

    @Test func requestWhoseCredentialIsVerifiedHoldsUpLaterOnes() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"check.who\",\"params\":{\"auth\":\"late-anna\"}}\n"
                + line(2, "check.later", "b"))
        await service.gates.arrivals(1)
        #expect(service.gates.arrived == ["late-anna"])
        service.gates.open("late-anna")
        #expect(try await peer.response()["result"]?["uid"] == "anna")
        service.gates.open("b")
        #expect(try await peer.response()["id"] == 2)
        await service.stop()
    }

    // MARK: Batches

    @Test func responsesOfABatchStandInTheOrderOfItsEntries() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.sendLine(
            """
            [{"jsonrpc":"2.0","id":"a","method":"check.later","params":{"gate":"x"}},\
            {"jsonrpc":"2.0","id":"b","method":"check.echo"},{"jsonrpc":"2.0","method":"check.echo"},1,\
            {"jsonrpc":"2.0","id":"c","method":"check.afterEarlier","params":{"gate":"y"}},{"jsonrpc":"2.0","id":"d","method":"no"}]
            """)
        service.gates.open("x")
        service.gates.open("y")
        let answers = try #require(try await peer.response().array)
        #expect(answers.map { $0["id"] } == ["a", "b", .null, "c", "d"])
        #expect(answers[3]["result"]?["gate"] == "y")
        #expect(answers[4]["error"]?["code"] == -32601)
        await service.stop()
    }

    @Test func batchKeepsItsPlaceAmongItsNeighbours() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            line(1, "check.later", "a") + "[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"check.echo\"}]\n"
                + "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"check.echo\"}\n")
        service.gates.open("a")
        #expect(try await peer.response()["id"] == 1)
        #expect(try await peer.response().array?.first?["id"] == 2)
        #expect(try await peer.response()["id"] == 3)
        await service.stop()
    }

    @Test func batchWithASlowEntryIsOvertaken() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        try await peer.send(
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"check.slow\",\"params\":{\"gate\":\"a\"}}]\n"
                + "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"check.echo\"}\n")
        #expect(try await peer.response()["id"] == 2)
        service.gates.open("a")
        #expect(try await peer.response().array?.first?["id"] == 1)
        await service.stop()
    }

    @Test func emptyBatchIsOneErrorAndBatchOfNotificationsIsNothing() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let empty = try await peer.ask("[]")
        #expect(empty["error"]?["code"] == -32600)
        #expect(empty["id"] == .null)
        try await peer.sendLine(#"[{"jsonrpc":"2.0","method":"check.echo"},{"jsonrpc":"2.0","method":"no"}]"#)
        #expect(try await peer.call("check.echo", id: 9)["id"] == 9)
        await service.stop()
    }

    @Test func brokenBatchIsOneParseErrorAndNothingOfItIsDone() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.ask(
            #"[{"jsonrpc":"2.0","id":1,"method":"session.authenticate","params":{"auth":"admin"}},{"jsonrpc":"2.0","method"]"#
        )
        #expect(response["error"]?["code"] == -32700)
        #expect(try await peer.call("check.who")["result"]?["admin"] == false)
        await service.stop()
    }

    @Test func batchOfAThousandIsTakenAndOneMoreIsRefused() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        let entry = #"{"jsonrpc":"2.0","id":1,"method":"check.echo"}"#
        let full = try await peer.ask("[" + Array(repeating: entry, count: 1_000).joined(separator: ",") + "]")
        #expect(full.array?.count == 1_000)
        let over = try await peer.ask("[" + Array(repeating: entry, count: 1_001).joined(separator: ",") + "]")
        #expect(over["error"]?["code"] == -32600)
        #expect(over["error"]?["data"]?["reason"] == "batch_too_large")
        await service.stop()
    }

    /// https://www.jsonrpc.org/specification#examples, with methods that exist nowhere where the service has none.
    @Test(arguments: [
        (
            #"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
            #"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}"#
        ),
        (
            #"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
            #"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#
        ),
        (
            #"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
            #"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}"#
        ),
        (
            #"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]"#,
            #"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#
        ),
        ("[]", #"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}"#),
        ("[1]", #"[{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}]"#),
        (
            "[1,2,3]",
            #"[{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}]"#
        ),
    ])
    func examplesOfTheSpecificationGetItsResponses(line: String, expected: String) async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.ask(line)
        #expect(withoutErrorData(response) == (try JSONParser.parse(expected)))
        await service.stop()
    }

    private func withoutErrorData(_ response: JSONValue) -> JSONValue {
        if let array = response.array { return .array(array.map(withoutErrorData)) }
        guard var object = response.object, var error = object["error"]?.object else { return response }
        error["data"] = nil
        object["error"] = .object(error)
        return .object(object)
    }
}
