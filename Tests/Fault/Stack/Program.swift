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
        guard let path = BuiltProgram.path(name) else { throw NeverHappened("\(name) is built") }
        executable = path
        self.logFile = logFile
        try Data().write(to: URL(fileURLWithPath: logFile))
    }

    /// Starts it and waits for the line that says it is ready.
    ///
    /// - Parameter fileBytesMax: no file it writes gets longer; what does not fit fails as on a full disk.
    func start(_ arguments: [String], fileBytesMax: Int? = nil) async throws -> JSONObject {
        let (process, input, output) = (Process(), Pipe(), Pipe())
        if let fileBytesMax {
            // The signal that comes with the error would end the process: ignored, only the error is left. The unit of
            // sh's `ulimit -f` is 512 bytes.
            let limits = "trap '' XFSZ; ulimit -f \(fileBytesMax / 512); exec \"$0\" \"$@\""
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", limits, executable] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: executable)
            process.arguments = arguments
        }
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HATO_") }
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
            throw NeverHappened(
                "\(executable) \(arguments.joined(separator: " ")) never got ready:\n\(text.suffix(2_000))"
            )
        }
        return ready
    }

    /// `kill -9`; returns when the process is gone.
    func kill() async {
        guard let process = process.take() else { return }
        if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
        await Self.end(of: process)
        input = nil
    }

    func stop() async {
        guard let process = process.take() else { return }
        if process.isRunning { process.terminate() }
        await Self.end(of: process)
        input = nil
    }

    /// Waits until it ends by itself; returns its exit code.
    func exitCode() async -> Int32? {
        guard let process = process.take() else { return nil }
        await Self.end(of: process)
        input = nil
        return process.terminationStatus
    }

    private static func end(of process: Process) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                process.waitUntilExit()
                continuation.resume()
            }
        }
    }

    /// Empty when the program ends before its first line does.
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
