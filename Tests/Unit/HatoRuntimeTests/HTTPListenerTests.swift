import NIOCore
import NIOPosix
import Testing

@testable import HatoRuntime

@Suite(.timeLimit(.minutes(5)))
struct HTTPListenerTests {
    private func listener(_ change: (inout HTTPLimits) -> Void) async throws -> HTTPListener {
        var limits = HTTPLimits()
        change(&limits)
        return try await HTTPListener(host: "127.0.0.1", port: 0, limits: limits) { _ in HTTPResponse(status: 204) }
    }

    /// Opens a connection that sends `text` and then nothing; returns when the listener has closed it.
    private func closes(_ port: Int, after text: String) async throws {
        let channel = try await connect(port)
        try? await channel.writeAndFlush(ByteBuffer(string: text))
        try await channel.closeFuture.get()
    }

    private func connect(_ port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port).get()
    }

    @Test func connectionsWithoutACompleteRequestAreClosed() async throws {
        let listener = try await listener { $0.idleSecondsMax = 1 }
        try await closes(listener.port, after: "")
        try await closes(listener.port, after: "GET / HTTP/1.1\r\nhost: te")
        // A response restarts the time; an idle connection is closed after it too.
        try await closes(listener.port, after: "GET / HTTP/1.1\r\nhost: test\r\n\r\n")
        await listener.stop()
    }

    @Test func connectionsAboveTheLimitAreClosedAtOnce() async throws {
        let listener = try await listener { $0.connectionsMax = 1 }
        let first = try await connect(listener.port)
        // The first may be accepted after the second: one of them stays.
        let second = try await connect(listener.port)
        try await withThrowingTaskGroup { group in
            group.addTask { try await first.closeFuture.get() }
            group.addTask { try await second.closeFuture.get() }
            try await group.next()
            for channel in [first, second] where channel.isActive { try? await channel.close() }
            try await group.waitForAll()
        }
        await listener.stop()
    }
}
