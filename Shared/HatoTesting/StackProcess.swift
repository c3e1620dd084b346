import Foundation
import HatoModel
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The child process, its pipes, and its end.
///
/// `@unchecked Sendable`: `Process` and `Pipe` are set up before other threads see them; afterwards only calls that are
/// safe from any thread are made.
final class StackProcess: @unchecked Sendable {
    private struct State {
        var output: [UInt8] = []
        var log: [UInt8] = []
        var status: Int32?
        var isTooLate = false
        var readers: [CheckedContinuation<Void, Never>] = []
    }

    private static let logBytesMax = 64 << 10

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let errors = Pipe()
    private let state = Mutex(State())

    init(_ path: String, _ arguments: [String]) throws(TestStackError) {
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        // Settings in the environment of the tests must not reach a temporary stack.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HATO_") }
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        process.terminationHandler = { [weak self] ended in
            self?.changed { $0.status = ended.terminationStatus }
        }
        read(output) { $0.output += $1 }
        read(errors) { state, bytes in
            state.log += bytes
            if state.log.count > Self.logBytesMax { state.log.removeFirst(state.log.count - Self.logBytesMax) }
        }
        do {
            try process.run()
        } catch {
            throw TestStackError.cannotStart(path: path, reason: error.localizedDescription)
        }
    }

    var identifier: Int32 { process.processIdentifier }

    var log: String { state.withLock { String(decoding: $0.log, as: UTF8.self) } }

    /// The first line on standard output, which says that all services are ready.
    func readyLine(within limit: Duration) async throws(TestStackError) -> JSONObject {
        let watch = Task { [weak self] in
            try await Task.sleep(for: limit)
            self?.changed { $0.isTooLate = true }
        }
        defer { watch.cancel() }
        while true {
            let (line, status, isTooLate) = state.withLock { state in
                (
                    state.output.firstIndex(of: UInt8(ascii: "\n")).map { Array(state.output[..<$0]) }, state.status,
                    state.isTooLate
                )
            }
            if let line {
                guard let ready = (try? JSONParser.parse(line))?.object, ready["ready"] == true else {
                    throw .badReadyLine(String(decoding: line, as: UTF8.self))
                }
                return ready
            }
            if let status { throw .endedEarly(status: status, log: log) }
            if isTooLate { throw .neverReady(log: log) }
            await nextChange { $0.output.contains(UInt8(ascii: "\n")) || $0.status != nil || $0.isTooLate }
        }
    }

    // MARK: The end

    /// The stack ends when its standard input does.
    func closeInput() { try? input.fileHandleForWriting.close() }

    func stop(within limit: Duration) async {
        if process.isRunning { process.terminate() }
        closeInput()
        let watch = Task { [self] in
            try await Task.sleep(for: limit)
            if process.isRunning { _ = Self.sendKill(identifier) }
        }
        await ended()
        watch.cancel()
    }

    func kill() async {
        if process.isRunning { _ = Self.sendKill(identifier) }
        await ended()
        closeInput()
    }

    private func ended() async {
        while state.withLock({ $0.status == nil }) { await nextChange { $0.status != nil } }
        output.fileHandleForReading.readabilityHandler = nil
        errors.fileHandleForReading.readabilityHandler = nil
    }

    private static func sendKill(_ identifier: Int32) -> Int32 {
        #if canImport(Glibc)
            Glibc.kill(identifier, SIGKILL)
        #elseif canImport(Musl)
            Musl.kill(identifier, SIGKILL)
        #else
            Darwin.kill(identifier, SIGKILL)
        #endif
    }

    // MARK: Waiting

    private func read(_ pipe: Pipe, _ take: @escaping @Sendable (inout State, [UInt8]) -> Void) {
        pipe.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let data = handle.availableData
            guard !data.isEmpty else {
                handle.readabilityHandler = nil
                return
            }
            self?.changed { take(&$0, Array(data)) }
        }
    }

    private func changed(_ change: (inout State) -> Void) {
        let readers = state.withLock { state in
            change(&state)
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.resume() }
    }

    private func nextChange(unless isThere: (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let mayGoOn = state.withLock { state in
                if isThere(state) { return true }
                state.readers.append(continuation)
                return false
            }
            if mayGoOn { continuation.resume() }
        }
    }
}
