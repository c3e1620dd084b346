import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization
import Testing

/// The project's built programs, started from the command line.
enum Executable {
    struct Ended {
        var code: Int32
        var text: String
        var error: String
        var output: JSONValue { (try? JSONParser.parse(text)) ?? .null }
    }

    /// Longer than any machine needs: only a program that hangs reaches it.
    private static let patience: Duration = .seconds(240)

    /// The files that a program reads and writes; without `output`, its output is kept.
    struct Streams {
        var input = "/dev/null"
        var output: String?
        /// In place of `output`.
        var terminal: FileHandle?
    }

    /// Runs a program to its end. Variables of Hato come only from the argument, none from the environment.
    static func run(
        _ name: String, _ arguments: [String], _ environment: [String: String] = [:], streams: Streams = Streams()
    ) async throws -> Ended {
        let folder = try TemporaryFolder()
        let process = try process(name, arguments, environment)
        let input = try #require(FileHandle(forReadingAtPath: streams.input))
        let (captured, errors) = (try folder.handle("output"), try folder.handle("error"))
        let output = try streams.output.map { try #require(FileHandle(forWritingAtPath: $0)) }
        process.standardInput = input
        process.standardOutput = streams.terminal ?? output ?? captured
        process.standardError = errors
        let ended = Latch()
        process.terminationHandler = { _ in ended.open() }
        try process.run()
        // The program has its own. Here they would stay open for as long as the process object is kept.
        for handle in [input, captured, errors] + [output].compactMap({ $0 }) { try? handle.close() }
        let identifier = process.processIdentifier
        let impatience = Task {
            try await Task.sleep(for: patience)
            kill(identifier, SIGKILL)
        }
        await ended.wait()
        impatience.cancel()
        return Ended(code: process.terminationStatus, text: try folder.text("output"), error: try folder.text("error"))
    }

    /// What a serving program finds when it starts.
    struct Surroundings {
        /// The most files it may have open, whatever it asks for.
        var openFiles: Int?
        /// Of these, how many it may have open unless it asks for more.
        var softOpenFiles: Int?
        var environment: [String: String] = [:]
    }

    /// Limits the open files of the process, whatever it requests.
    fileprivate static func limit(_ process: Process, openFiles: Int, soft: Int) throws {
        let program = try #require(process.executableURL).path
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments =
            [
                "-c", #"ulimit -n "$1"; ulimit -S -n "$2"; shift 2; exec "$@""#, "sh", String(openFiles), String(soft),
                program,
            ] + (process.arguments ?? [])
    }

    fileprivate static func process(
        _ name: String, _ arguments: [String], _ environment: [String: String]
    ) throws -> Process {
        let process = Process()
        guard let path = BuiltProgram.path(name) else { throw DeadlineExceeded("\(name) is built") }
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HATO_") }
            .merging(environment) { $1 }
        return process
    }
}

/// A `serve` on a free port, unless the arguments name one, with the administrator key of its test. It ends at the
/// latest with its standard input.
final class ServingProgram: Sendable {
    static let administratorKey = "administrator-key-of-the-tests-0123456789"

    /// The line in which it said that it is ready.
    let announcement: JSONValue
    private let name: String
    private let arguments: [String]
    private let folder: TemporaryFolder
    private let surroundings: Executable.Surroundings
    private let running: Mutex<Running>
    private let logFile: String

    /// One process of it.
    private struct Running {
        let process: Process
        let input: Pipe
        let ended: Latch
        var isAskedToStop = false
    }

    /// Returns when it is ready.
    init(
        _ name: String, _ arguments: [String], in folder: TemporaryFolder,
        with surroundings: Executable.Surroundings = .init()
    ) async throws {
        (self.name, self.arguments, self.folder, self.surroundings) = (name, arguments, folder, surroundings)
        logFile = "\(folder.path)/\(name).log"
        let (running, announcement) = try await Self.start(name, arguments, in: folder, with: surroundings)
        self.running = Mutex(running)
        self.announcement = announcement
    }

    private static func start(
        _ name: String, _ arguments: [String], in folder: TemporaryFolder, with surroundings: Executable.Surroundings
    ) async throws -> (Running, JSONValue) {
        let keys = try folder.write("admin-key", Self.administratorKey)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keys)
        // A gateway has no administrators: it shows the key to the services.
        let keyFile = name == "hato-gateway" ? "--outgoing-key-file" : "--admin-key-file"
        var own = ["serve", "--exit-with-stdin"] + (arguments.contains(keyFile) ? [] : [keyFile, keys])
        // Tests make more accounts than one address may.
        if name == "hato-auth" { own += ["--limit-loopback", "false"] }
        let port = arguments.contains("--port") ? [] : ["--port", "0"]
        let process = try Executable.process(name, own + port + arguments, surroundings.environment)
        if let openFiles = surroundings.openFiles {
            try Executable.limit(process, openFiles: openFiles, soft: surroundings.softOpenFiles ?? openFiles)
        }
        let running = Running(process: process, input: Pipe(), ended: Latch())
        let (output, log) = (Pipe(), try folder.handle("\(name).log"))
        process.standardInput = running.input
        process.standardOutput = output
        process.standardError = log
        process.terminationHandler = { [ended = running.ended] _ in ended.open() }
        try process.run()
        let line = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: output.fileHandleForReading.availableData) }
        }
        guard let announcement = try? JSONParser.parse(Array(line)), announcement["listening"]?.string != nil else {
            throw NeverReady(log: try folder.text("\(name).log"))
        }
        return (running, announcement)
    }

    /// The output of a program that ended before it was ready.
    struct NeverReady: Error { let log: String }

    var address: String { announcement["listening"]?.string ?? "" }
    var port: Int { address.split(separator: ":").last.flatMap { Int($0) } ?? 0 }

    /// An administrator's client.
    func client() throws -> RPCClient {
        guard let configuration = RPCClientConfiguration(address: address) else { throw NeverReady(log: address) }
        return RPCClient(configuration.with(credential: Self.administratorKey))
    }

    var isRunning: Bool { running.withLock { $0.process.isRunning } }

    /// Of a program that has ended.
    var exitCode: Int32? { running.withLock { $0.process.isRunning ? nil : $0.process.terminationStatus } }

    /// Blocks until the program has ended.
    func waitForExitCode() -> Int32 {
        let process = running.withLock { $0.process }
        process.waitUntilExit()
        return process.terminationStatus
    }

    var processIdentifier: Int32 { running.withLock { $0.process.processIdentifier } }

    /// Sends a signal.
    func send(_ signal: Int32) { running.withLock { _ = kill($0.process.processIdentifier, signal) } }

    /// Its output on stderr.
    var log: String { (try? String(contentsOfFile: logFile, encoding: .utf8)) ?? "" }

    /// Asks it to stop, and does not wait. A second signal would end it at once.
    func terminate() {
        running.withLock { running in
            if !running.isAskedToStop { running.process.terminate() }
            running.isAskedToStop = true
        }
    }

    /// With which code it has ended; waits for its end.
    func exitCode() async -> Int32 {
        let running = running.withLock { $0 }
        await running.ended.wait()
        return running.process.terminationStatus
    }

    func stop() async { await stop(killing: false) }

    private func stop(killing isKilled: Bool) async {
        if isKilled { send(SIGKILL) } else { terminate() }
        let running = running.withLock { $0 }
        await running.ended.wait()
        try? running.input.fileHandleForWriting.close()
    }

    /// Stops it, or kills it, and starts it again on the same port. It needs its data to be in its own folder.
    func restart(killing isKilled: Bool = false) async throws {
        await stop(killing: isKilled)
        let port = arguments.contains("--port") ? [] : ["--port", String(port)]
        let (next, _) = try await Self.start(name, arguments + port, in: folder, with: surroundings)
        running.withLock { $0 = next }
    }
}

/// Opens once; all waiting tasks then continue.
final class Latch: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            defer { state = (true, []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

/// A folder that is deleted with its owner.
final class TemporaryFolder: Sendable {
    private let url = URL.temporaryDirectory.appending(path: "hato-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    var path: String { url.path }

    func write(_ name: String, _ text: String) throws -> String {
        let file = url.appending(path: name)
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    func handle(_ name: String) throws -> FileHandle {
        let file = url.appending(path: name)
        try Data().write(to: file)
        return try FileHandle(forWritingTo: file)
    }

    func text(_ name: String) throws -> String { try String(contentsOf: url.appending(path: name), encoding: .utf8) }

    func run(_ executable: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(filePath: executable)
        process.arguments = arguments
        try process.run()
        process.waitUntilExit()
    }
}
