import Foundation
import HatoModel

/// A sink that runs in a process of its own, until `stop`.
///
/// `@unchecked Sendable`: commands are sent one after the other; `Process` is set up before others see it.
final class Sink: @unchecked Sendable {
    enum Kind {
        case apns(PushFolder)
        case webhooks
    }

    struct Count {
        var count: Int
        var repeated: Int
        /// When the last one arrived.
        var last: UInt64
    }

    let port: Int
    private let process = Process()
    private let input = Pipe()
    private let lines: SinkLines

    init(_ kind: Kind) throws {
        guard let path = Bundle.main.executablePath else { throw BenchError("this program has no path") }
        process.executableURL = URL(fileURLWithPath: path)
        switch kind {
        case .apns(let folder): process.arguments = ["sink", "apns", folder.certificate, folder.certificateKey]
        case .webhooks: process.arguments = ["sink", "webhooks"]
        }
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        lines = SinkLines(output.fileHandleForReading)
        try process.run()
        do { port = Int(try Self.number("port", try lines.next())) } catch {
            process.terminate()
            throw error
        }
    }

    deinit { stop() }

    func stop() {
        try? input.fileHandleForWriting.close()
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    // MARK: Commands

    func clear() throws { _ = try command("clear") }

    /// Requests get no response from now on.
    func silence() throws { _ = try command("silence") }

    func respond(afterMilliseconds delay: Double = 0) throws { _ = try command("respond \(delay)") }

    /// Returns when so many requests have arrived since `clear`; throws after the limit.
    @discardableResult
    func count(atLeast wanted: Int, within seconds: Double = 300) throws -> Count {
        let object = try command("count \(wanted) \(seconds)")
        let found = Count(
            count: Int(try Self.number("count", object)), repeated: Int(try Self.number("repeated", object)),
            last: UInt64(try Self.number("last", object)))
        guard found.count >= wanted else { throw BenchError("\(found.count) pushes of \(wanted) arrived") }
        return found
    }

    /// When the pushes with the numbers from 0 on arrived. Throws if one did not.
    func arrivals(_ count: Int) throws -> [UInt64] {
        let times = try command("arrivals \(count)")["arrivals"]?.array ?? []
        let arrivals = times.compactMap { time in time.number.map { UInt64($0) } }
        guard arrivals.count == count, !arrivals.contains(0) else { throw BenchError("a push did not arrive") }
        return arrivals
    }

    /// Of the first request since `clear`.
    func body() throws -> String { try command("body")["body"]?.string ?? "" }

    private func command(_ line: String) throws -> JSONObject {
        input.fileHandleForWriting.write(Data("\(line)\n".utf8))
        return try lines.next()
    }

    private static func number(_ name: String, _ object: JSONObject) throws -> Double {
        guard let number = object[name]?.number else { throw BenchError("the sink gives no \(name)") }
        return number
    }
}

/// The lines that a sink writes.
private final class SinkLines {
    private let handle: FileHandle
    private var buffer: [UInt8] = []

    init(_ handle: FileHandle) { self.handle = handle }

    func next() throws -> JSONObject {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(buffer[..<end])
                buffer.removeFirst(end + 1)
                return try JSONParser.parse(line).object ?? [:]
            }
            let data = handle.availableData
            guard !data.isEmpty else { throw BenchError("the sink ended") }
            buffer += data
        }
    }
}
