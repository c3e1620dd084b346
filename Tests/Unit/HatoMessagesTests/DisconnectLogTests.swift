import HatoModel
import HatoRPC
import HatoTesting
import Logging
import Testing

@testable import HatoMessages

@Suite(.timeLimit(.minutes(5))) struct DisconnectLogTests {
    /// Any client can cause these lines, and keys may be names of people.
    @Test func whatIsLeftOutIsLoggedByTheShapeOfItsPathAndNotEachOfThem() async throws {
        let log = LogLines(of: "dropped an onDisconnect write", level: .debug)
        try await RunningMessages.with(logger: log.logger) { running in
            let client = running.administrator
            var events = EventReader(try await client.subscribe(Messages.Listen(path: "/end")))
            _ = try await events.next()
            let line = try await RawLines.connect(running, as: "a")
            for number in 0..<20 { try await line.ask("set", #""path":"/sazae/wakame\#(number)","value":1"#) }
            try await line.ask("set", #""path":"/end","value":1"#)
            _ = try await client.call(
                Messages.Rules.Set(rules: #"{"rules": {".read": true, "end": {".write": true}}}"#))
            let start = ContinuousClock.now
            line.end(.closed)
            #expect(try await events.next() == [.put("/", 1)])
            let first = try await log.next()
            #expect(first["path"] == "/*/*" && first["error"] == "permission_denied")
            let seconds = Int((ContinuousClock.now - start) / .seconds(1)) + 1
            #expect((1...seconds).contains(log.count))
        }
    }
}
