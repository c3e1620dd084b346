import HatoTesting
import Logging
import Testing

@testable import HatoRPC

struct ThrottledNoticesTests {
    /// A peer that makes up names cannot have more logged than one notice of each kind.
    @Test func furtherKindsShareOneNotice() {
        let lines = Shared(0)
        let notices = ThrottledNotices(Logger(label: "test") { _ in CountingLog(lines: lines) })
        for number in 0..<3 * ThrottledNotices.kindsMax { notices.notice(.trigger("t\(number)"), "noticed", [:]) }
        #expect(lines.current > ThrottledNotices.kindsMax)
        #expect(lines.current < 2 * ThrottledNotices.kindsMax)
    }
}

private struct CountingLog: LogHandler {
    let lines: Shared<Int>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.change { $0 += 1 } }
}
