import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Peers that request much and read nothing take no more memory than the settings allow, and do not delay other
/// clients.
@Suite(.timeLimit(.minutes(10)))
struct UnreadResponses {
    private static let connections = 24
    private static let reads = 16
    private static let valueBytes = 1_500_000
    private static let budget = 32 << 20
    /// The budget, plus memory for one large read, a debug build and the allocator.
    private static let growthMax = budget + (64 << 20)

    private static func withStack(_ body: (TestStack, TestStack.Identity) async throws -> Void) async throws {
        let rules = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json")
        try #"{"rules": {".read": "auth != null", ".write": "auth != null"}}"#.write(
            to: rules, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: rules) }
        let settings = [
            "--rules", rules.path, "--process-bytes-in-flight-max", "\(budget)", "--client-bytes-in-flight-max",
            "\(budget / 4)", "--response-bytes-max", "2097152", "--line-bytes-max", "4194304",
        ]
        try await TestStack.run(settings) { stack in
            let administrator = stack.client(.messages, as: .administrator)
            _ = try await administrator.call(
                method: "messages.set",
                params: ["path": "/large", "value": .string(String(repeating: "x", count: valueBytes))])
            _ = try await administrator.call(method: "messages.set", params: ["path": "/small", "value": 1])
            await administrator.close()
            try await body(stack, .user(idToken: try await stack.newUser().idToken))
        }
    }

    private static func pipeline(_ stack: TestStack, _ identity: TestStack.Identity) throws -> UnreadSocket {
        let socket = try UnreadSocket(port: stack.configuration(.messages).port)
        guard case .user(let token) = identity else { return socket }
        try socket.send(
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session.authenticate\",\"params\":{\"auth\":\"\(token)\"}}\n")
        _ = socket.line()
        let get = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"messages.get\",\"params\":{\"path\":\"/large\"}}\n"
        try socket.send(String(repeating: get, count: reads))
        return socket
    }

    private static func residentBytes(_ stack: TestStack) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(stack.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
    }

    private static func figure(_ name: String, _ client: RPCClient) async throws -> Int {
        let text = try await client.call(Service.Metrics()).text
        let line = text.split(separator: "\n").first {
            $0.hasPrefix(name) && $0.contains("messages") || $0.hasPrefix(name + " ")
        }
        return line.flatMap { $0.split(separator: " ").last }.flatMap { Double($0) }.map { Int($0) } ?? 0
    }

    @Test func peersThatReadNothingAreLimitedAndDisconnectedWithAReason() async throws {
        try await Self.withStack { stack, hostile in
            let other = stack.client(.messages, as: .user(idToken: try await stack.newUser().idToken))
            let administrator = stack.client(.messages, as: .administrator)
            _ = try await other.call(method: "messages.get", params: ["path": "/large"])
            let before = try Self.residentBytes(stack)
            let sockets = try (0..<Self.connections).map { _ in try Self.pipeline(stack, hostile) }
            var (growth, cutOff) = (0, 0)
            while cutOff == 0, growth <= Self.growthMax {
                for _ in 0..<20 {
                    let read = try await other.call(method: "messages.get", params: ["path": "/small"])
                    #expect(read["value"] == 1)
                }
                // Large results are served to other clients, too.
                let large = try await other.call(method: "messages.get", params: ["path": "/large"])
                #expect(large["value"]?.string?.utf8.count == Self.valueBytes)
                growth = max(growth, try Self.residentBytes(stack) - before)
                cutOff = try await Self.figure("hato_rpc_stalled_peers_total", administrator)
            }
            print("unread pipelines: growth of \(growth >> 20) MiB")
            #expect(growth <= Self.growthMax)
            var received = sockets.map { _ in [UInt8]() }
            try await eventually("one gets the reason for its disconnection") {
                for (index, socket) in sockets.enumerated() {
                    received[index] = received[index].suffix(1_000) + socket.available()
                }
                return received.contains { String(decoding: $0, as: UTF8.self).contains("peer_stalled") }
            }
            await other.close()
            await administrator.close()
        }
    }

    @Test func readsOfClosedConnectionsAreNotDone() async throws {
        try await Self.withStack { stack, hostile in
            let administrator = stack.client(.messages, as: .administrator)
            let (before, memory) = (
                try await Self.figure("hato_messages_reads_total", administrator), try Self.residentBytes(stack)
            )
            let rounds = 100
            for _ in 0..<rounds { try Self.pipeline(stack, hostile).reset() }
            let other = stack.client(.messages, as: .user(idToken: try await stack.newUser().idToken))
            #expect(try await other.call(method: "messages.get", params: ["path": "/small"])["value"] == 1)
            let done = try await Self.figure("hato_messages_reads_total", administrator) - before
            print("reads of connections that are gone: \(done) of \(rounds * Self.reads)")
            #expect(done < rounds * Self.reads / 2)
            #expect(try Self.residentBytes(stack) - memory <= Self.growthMax)
            await other.close()
            await administrator.close()
        }
    }

    /// A slow connection: 384 KiB a second of a response of 12 MB, through buffers of the kernels that fill at once and
    /// then accept a megabyte every few seconds. All the time another connection waits for the memory of this response.
    @Test func aPeerThatReadsSlowlyIsNotDisconnected() async throws {
        let settings = [
            "--process-bytes-in-flight-max", "\(64 << 20)", "--client-bytes-in-flight-max", "\(16 << 20)",
            "--stalled-peer-seconds-max", "2",
        ]
        try await TestStack.run(settings) { stack in
            let administrator = stack.client(.messages, as: .administrator)
            _ = try await administrator.call(
                method: "messages.set",
                params: ["path": "/slow/one", "value": .string(String(repeating: "x", count: 6_000_000))])
            _ = try await administrator.call(
                method: "messages.set",
                params: ["path": "/slow/more", "value": .string(String(repeating: "y", count: 6_000_000))])
            let token = try await stack.newUser().idToken
            let (slow, waiting) = (try Self.reader(stack, token), try Self.reader(stack, token))
            let get = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"messages.get\",\"params\":{\"path\":\"/slow\"}}\n"
            try slow.send(get)
            #expect(slow.read(4_096).count == 4_096)
            try waiting.send(get)
            let isComplete = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: Self.readsSlowly(slow)) }
            }
            #expect(isComplete, "cut off")
            #expect(waiting.available().isEmpty, "it has waited")
            #expect(try await Self.figure("hato_rpc_stalled_peers_total", administrator) == 0)
            slow.reset()
            await administrator.close()
        }
    }

    /// Reads 384 KiB a second for six seconds. A machine that delays the thread does not make the peer slower: the
    /// thread then reads what is due since.
    ///
    /// - Returns: false if the connection ended before.
    private static func readsSlowly(_ socket: UnreadSocket) -> Bool {
        let (start, chunk) = (ContinuousClock.now, 24 << 10)
        for count in 1...96 {
            let wait = start + .microseconds(62_500) * count - .now
            Thread.sleep(forTimeInterval: max(0, wait / .seconds(1)))
            guard socket.read(chunk).count == chunk else { return false }
        }
        return true
    }

    private static func reader(_ stack: TestStack, _ token: String) throws -> UnreadSocket {
        let socket = try UnreadSocket(port: stack.configuration(.messages).port, receiveBytes: 256 << 10)
        try socket.send(
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"session.authenticate\",\"params\":{\"auth\":\"\(token)\"}}\n")
        _ = socket.line()
        return socket
    }
}
