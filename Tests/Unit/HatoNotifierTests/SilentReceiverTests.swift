import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

@testable import HatoNotifier

/// Receivers that accept connections and never respond delay no deliveries to others, however many accounts have them.
@Suite(.timeLimit(.minutes(10))) struct SilentReceiverTests {
    /// A listening socket whose connections the kernel accepts, and nothing else does.
    private final class SilentSocket: Sendable {
        private let descriptor: Int32
        let url: String

        /// At an address of this machine.
        init(at host: String) throws {
            #if canImport(Darwin)
                let kind = SOCK_STREAM
            #else
                let kind = Int32(SOCK_STREAM.rawValue)
            #endif
            descriptor = socket(AF_INET, kind, 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr(host)
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let (descriptor, length) = (descriptor, size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && listen(descriptor, 128) == 0
                        ? getsockname(descriptor, $0, &size) : -1
                }
            }
            guard code == 0 else { throw DeadlineExceeded("a socket: \(String(cString: strerror(errno)))") }
            url = "http://\(host):\(UInt16(bigEndian: address.sin_port))/hook"
        }

        deinit { close(descriptor) }
    }

    /// Eight users with four silent receivers each, for sixteen attempts at a time; a user "good" whose receiver
    /// responds; and a notification for the silent ones, whose attempts are under way.
    private func attacked(
        _ body: (TestNotifier, TestReceiver, _ attack: String) async throws -> Void
    ) async throws {
        let (good, sockets) = (try await TestReceiver(), try (0..<32).map { try SilentSocket(at: "127.0.9.\($0 + 1)") })
        // Attempts at silent receivers take 100 seconds.
        let notifier = try await TestNotifier.start { configuration in
            configuration.delivery.attemptsInFlightMax = 16
            configuration.delivery.slowAfter = .milliseconds(500)
            configuration.delivery.silentFor = .seconds(2)
        }
        let users = (0..<8).map { "hostile\($0)" }
        for (index, socket) in sockets.enumerated() {
            try await notifier.addDevice(of: users[index / 4], at: socket.url)
        }
        try await notifier.addDevice(of: "good", at: good.url)
        let attack = try await notifier.client.call(
            Notifier.Send(to: .init(uids: users), notification: .init(title: "a")))
        try await eventually("silent attempts") { try await notifier.stats.leased >= 8 }
        try await body(notifier, good, try #require(attack.notification))
        await notifier.stop()
        await good.stop()
        withExtendedLifetime(sockets) {}
    }

    @Test func aDeliveryWaitsForNoSilentReceiversOfManyAccounts() async throws {
        try await attacked { notifier, good, _ in
            for count in 1...5 {
                _ = try await notifier.client.call(
                    Notifier.Send(to: .init(uids: ["good"]), notification: .init(title: "\(count)")))
                // Silent attempts take longer.
                try await eventually("delivered beside them", within: .seconds(60)) { good.received.count == count }
            }
            try await eventually("all recorded") { try await notifier.stats.delivered == 5 }
        }
    }

    /// It is attempted again as after any failure.
    @Test func anAttemptThatIsEndedForOthersHasFailed() async throws {
        try await attacked { notifier, _, attack in
            let request = Notifier.Status(notification: attack)
            try await eventually("attempts that were ended") {
                try await notifier.client.call(request).deliveries.count { $0.lastAttempt?.error != nil } >= 8
            }
            let deliveries = try await notifier.client.call(request).deliveries
            #expect(deliveries.allSatisfy { $0.state == .pending || $0.state == .leased })
            for case let report? in deliveries.map(\.lastAttempt) {
                #expect(report.status == nil && report.error?.hasPrefix("no response after 500 ms") == true)
            }
        }
    }
}
