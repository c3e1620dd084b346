import HatoModel
import NIOCore

/// Whether the services behind the gateway respond, as one event loop sees them: at most a second old, so that a flood
/// of questions costs no more than one a second.
final class ServiceHealth {
    /// By the name of the service: its own status, or `unreachable`, or `refused` where it does not accept the
    /// gateway's key.
    typealias States = [(service: String, status: String)]

    private static let ageMax = TimeAmount.seconds(1)
    /// In which a service responds.
    private static let responseMax = TimeAmount.seconds(2)
    private let upstream: Upstream
    private let loop: any EventLoop
    private var states: States = []
    private var since: NIODeadline?
    private var waiting: [(States) -> Void] = []

    init(_ upstream: Upstream, on loop: any EventLoop) { (self.upstream, self.loop) = (upstream, loop) }

    /// Calls `completion` once, on the event loop.
    func ask(_ completion: @escaping (States) -> Void) {
        if let since, NIODeadline.now() - since < Self.ageMax { return completion(states) }
        waiting.append(completion)
        guard waiting.count == 1 else { return }
        var found: [String: String] = [:]
        let services = upstream.shared
        for (service, wires) in services {
            ask(wires) { [self] status in
                found[service] = status
                guard found.count == services.count else { return }
                states = services.map { ($0.service, found[$0.service] ?? "unreachable") }
                since = .now()
                let waiting = waiting
                self.waiting = []
                for completion in waiting { completion(states) }
            }
        }
    }

    private func ask(_ wires: SharedWires, _ completion: @escaping (String) -> Void) {
        var isOpen = true
        func complete(_ status: String) {
            guard isOpen else { return }
            isOpen = false
            completion(status)
        }
        let deadline = loop.assumeIsolated().scheduleTask(in: Self.responseMax) { complete("unreachable") }
        wires.call(Service.Health.method, Array("{}".utf8)) { outcome in
            deadline.cancel()
            switch outcome {
            case .success(let text):
                let health = (try? JSONParser.parse(Array(text.readableBytesView)))?["status"]?.string
                complete(health.flatMap { Service.Health.Status(rawValue: $0)?.rawValue } ?? "unreachable")
            case .failure(let error): complete(error.reason == "forward_refused" ? "refused" : "unreachable")
            }
        }
    }
}
