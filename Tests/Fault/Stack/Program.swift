import Foundation
import HatoModel
import HatoTesting

/// One program of the stack under test, which can be killed and started again on the same folder.
actor Program {
    private let executable: String
    private let logFile: String
    private var process: Process?
    /// The program stops when this is closed: it does not outlive the tests.
    private var input: Pipe?

    init(_ name: String, logFile: String) throws {
        guard let path = BuiltProgram.path(name) else { throw DeadlineExceeded("\(name) is built") }
        try self.init(path: path, logFile: logFile)
    }

    init(path: String, logFile: String) throws {
        executable = path
        self.logFile = logFile
        try Data().write(to: URL(fileURLWithPath: logFile))
    }

    /// Limits of the operating system for a program.
    struct Limits {
        /// No file it writes gets longer; a write beyond it fails as on a full disk.
        var fileBytesMax: Int?
        /// Writable memory (`RLIMIT_DATA`); an allocation beyond it fails, and usually ends the program.
        var dataBytesMax: Int?

        /// As arguments of sh's `ulimit`.
        fileprivate var command: String? {
            // The signal that comes with the error would end the process: ignored, only the error is left. The unit of
            // sh's `ulimit -f` is 512 bytes, that of `-d` is 1,024.
            let commands = [
                fileBytesMax.map { "trap '' XFSZ; ulimit -f \($0 / 512)" },
                dataBytesMax.map { "ulimit -d \($0 / 1_024)" },
            ].compactMap(\.self)
            return commands.isEmpty ? nil : commands.joined(separator: "; ")
        }
    }

    /// Starts the program and waits for its ready line.
    ///
    /// - Parameters:
    ///   - limits: of the operating system.
    ///   - failpoints: the faults of this run, e.g. `commit.beforeSync=kill@37`.
    func start(
        _ arguments: [String], limits: Limits = Limits(), failpoints: String? = nil
    ) async throws -> JSONObject {
        let (process, input, output) = (Process(), Pipe(), Pipe())
        if let command = limits.command {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "\(command); exec \"$0\" \"$@\"", executable] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: executable)
            process.arguments = arguments
        }
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HATO_") }
        process.environment?["HATO_FAILPOINTS"] = failpoints
        process.standardInput = input
        process.standardOutput = output
        let log = FileHandle(forWritingAtPath: logFile)
        _ = try log?.seekToEnd()
        process.standardError = log ?? FileHandle.nullDevice
        try process.run()
        (self.process, self.input) = (process, input)
        let identifier = process.processIdentifier
        let impatience = Task {
            try await Task.sleep(for: FaultSettings.patience)
            Glibc.kill(identifier, SIGKILL)
        }
        defer { impatience.cancel() }
        let line = await Self.firstLine(of: output)
        guard let ready = (try? JSONParser.parse(line))?.object, ready["ready"] == true else {
            let text = (try? String(contentsOfFile: logFile, encoding: .utf8)) ?? ""
            throw DeadlineExceeded(
                "\(executable) \(arguments.joined(separator: " ")) never got ready:\n\(text.suffix(2_000))"
            )
        }
        return ready
    }

    /// Whether it was started and has not ended.
    var isRunning: Bool { process?.isRunning == true }

    /// `kill -9`; returns when the process is gone.
    func kill() async {
        guard let process = process.take() else { return }
        if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
        await Self.end(of: process)
        input = nil
    }

    /// SIGTERM; returns the exit code when the process is gone, nil if none ran.
    @discardableResult
    func stop() async -> Int32? {
        guard let process = process.take() else { return nil }
        if process.isRunning { process.terminate() }
        await Self.end(of: process)
        input = nil
        return process.terminationStatus
    }

    /// Waits until it ends by itself; returns its exit code.
    func exitCode() async -> Int32? {
        guard let process = process.take() else { return nil }
        await Self.end(of: process)
        input = nil
        return process.terminationStatus
    }

    /// Waits until it ends by itself; returns whether that was by `SIGKILL`, which only a failpoint sends to it.
    func diedAtFailpoint() async -> Bool {
        guard let process = process.take() else { return false }
        await Self.end(of: process)
        input = nil
        return process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL
    }

    struct Ended {
        var code: Int32
        var output: [UInt8]
        var log: String
    }

    /// Runs another command of the program to its end.
    func run(_ arguments: [String], failpoints: String? = nil) async throws -> Ended {
        let (process, output, log) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HATO_") }
        process.environment?["HATO_FAILPOINTS"] = failpoints
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = log
        try process.run()
        async let text = Self.everything(of: log)
        let bytes = await Self.everything(of: output)
        let complaint = await text
        await Self.end(of: process)
        return Ended(
            code: process.terminationStatus, output: bytes, log: String(decoding: complaint, as: UTF8.self))
    }

    private static func everything(of pipe: Pipe) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: Array(pipe.fileHandleForReading.readDataToEndOfFile()))
            }
        }
    }

    private static func end(of process: Process) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                process.waitUntilExit()
                continuation.resume()
            }
        }
    }

    /// Empty if the program ends before its first line does.
    private static func firstLine(of pipe: Pipe) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var bytes: [UInt8] = []
                while !bytes.contains(UInt8(ascii: "\n")) {
                    let more = pipe.fileHandleForReading.availableData
                    if more.isEmpty { break }
                    bytes += more
                }
                continuation.resume(returning: bytes.split(separator: UInt8(ascii: "\n")).first.map(Array.init) ?? [])
            }
        }
    }
}
