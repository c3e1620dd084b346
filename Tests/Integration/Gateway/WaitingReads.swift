import HatoModel
import HatoTesting
import Testing

/// Reads of the built gateway that take long: for want of an index, or of a response.
@Suite(.timeLimit(.minutes(10)))
struct WaitingReads {
    private static let query = "/messages.json?orderBy=%22date%22&limitToLast=1"
    private static let value: JSONValue = ["m1": ["date": 1]]

    /// Runs with a gateway in front of an index that is not built.
    ///
    /// - Parameter indexMsMax: for which a query waits for it.
    private static func run(
        indexMsMax: Int, _ body: @Sendable @escaping (ServingProgram, UnbuiltIndex) throws -> Void
    ) async throws {
        let (index, folder) = (try await UnbuiltIndex(), try TemporaryFolder())
        let gateway = try await ServingProgram(
            "hato-gateway", ["--messages", index.address, "--index-ms-max", "\(indexMsMax)"], in: folder)
        try await Blocking.run { try body(gateway, index) }
        await gateway.stop()
        await index.stop()
    }

    private static func get(_ socket: FirebaseSocket, _ number: Int) throws {
        try socket.request(number, "g", ["p": "/messages", "q": ["i": "date", "l": 1, "vf": "r"]])
    }

    // MARK: An index

    @Test func aQueryWaitsForItsIndex() async throws {
        try await Self.run(indexMsMax: 600_000) { gateway, index in
            index.refuse(3)
            let socket = try PlainSocket(gateway.address)
            let response = try HTTPResponseText.of("GET \(Self.query)", on: socket)
            #expect(response.status == 200 && response.json == Self.value)
            #expect(index.count == 4)
            let firebase = try FirebaseSocket(gateway, target: "/.ws?v=5&ns=hato")
            _ = try firebase.message()
            index.refuse(3)
            try Self.get(firebase, 1)
            // Its response leaves its turn: others do not wait.
            try firebase.request(2, "s", ["c": [:]])
            #expect(try firebase.message()?["d"]?["r"] == 2)
            #expect(try firebase.response(to: 1) == ["s": "ok", "d": Self.value])
            #expect(index.count == 4)
        }
    }

    @Test func aQueryWaitsForItsIndexForAWhileOnly() async throws {
        try await Self.run(indexMsMax: 1_000) { gateway, index in
            index.refuse(.max)
            for headers in [[], ["Accept: text/event-stream"]] {
                let (began, before) = (ContinuousClock.now, index.count)
                let socket = try PlainSocket(gateway.address)
                let response = try HTTPResponseText.of("GET \(Self.query)", headers, on: socket)
                #expect(response.status == 503 && response.json == ["error": "Service unavailable"])
                #expect(ContinuousClock.now - began >= .seconds(1))
                #expect(index.count > before + 1, "it was tried again")
            }
            let firebase = try FirebaseSocket(gateway, target: "/.ws?v=5&ns=hato")
            _ = try firebase.message()
            index.refuse(.max)
            try Self.get(firebase, 1)
            #expect(try firebase.response(to: 1)?["s"] == "unavailable")
            #expect(index.count > 1, "it was tried again")
            try firebase.request(2, "s", ["c": [:]])
            #expect(try firebase.response(to: 2)?["s"] == "ok")
        }
    }

    // MARK: A response

    /// Of a service that takes connections and never responds. The timeout of an event stream is that of its first
    /// event.
    @Test(arguments: [[], ["Accept: text/event-stream"]])
    func aReadEndsWithItsTimeout(headers: [String]) async throws {
        let (silent, folder) = (try SilentService(), try TemporaryFolder())
        let gateway = try await ServingProgram(
            "hato-gateway", ["--messages", silent.address, "--call-ms-max", "5000"], in: folder)
        try await Blocking.run {
            let socket = try PlainSocket(gateway.address)
            for parameters in ["timeout=200ms", "orderBy=%22date%22&limitToLast=1&timeout=1s"] {
                let response = try HTTPResponseText.of("GET /a.json?\(parameters)", headers, on: socket)
                #expect(response.status == 400)
                #expect(response.json == ["error": "The request took longer than its timeout."])
            }
            let away = try HTTPResponseText.of("GET /a.json", headers, on: socket)
            #expect(away.status == 503 && away.json == ["error": "Service unavailable"])
        }
        await gateway.stop()
    }

    /// The timeout counts for the first event alone.
    @Test func aStreamLastsLongerThanItsTimeout() async throws {
        try await GatewayStack.run(rules: ["rules": [".read": true, ".write": true]], []) { stack in
            // Longer where the first event takes longer than that.
            var seconds = 1
            func open() throws -> PlainSocket? {
                seconds *= 2
                let socket = try PlainSocket(stack.gateway.address)
                let headers = ["Accept: text/event-stream"]
                try HTTPResponseText.request("GET /a.json?timeout=\(seconds)s", headers, on: socket)
                return try HTTPResponseText(headOf: socket).status == 200 ? socket : nil
            }
            var stream: PlainSocket?
            while stream == nil { stream = try open() }
            let (opened, events) = (ContinuousClock.now, try #require(stream))
            func read(upTo value: String) throws {
                while String(decoding: try events.line(), as: UTF8.self) != #"data: {"path":"/","data":\#(value)}"# {}
            }
            try read(upTo: "null")
            let writer = try PlainSocket(stack.gateway.address)
            var count = 0
            // Each event is waited for, so that no time is.
            while ContinuousClock.now - opened < .seconds(seconds + 1) {
                count += 1
                let response = try HTTPResponseText.of("PUT /a.json", body: "\(count)", on: writer)
                #expect(response.status == 200)
                try read(upTo: "\(count)")
            }
        }
    }
}
